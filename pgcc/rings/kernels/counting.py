"""A program over polynomials in t, with t·z_i in place of z_i for every variable that is counted.

Coefficients are scaled numbers m · 2^(256·e), which do not underflow: one of 1e-4000 is as accurate as any other.
Polynomials are multiplied term by term, and in monotone circuits nothing cancels. Mostly, all coefficients of a
polynomial have the same exponent, and the inner loop is a multiply-add of doubles.

Where an absolute error is allowed, negligible tails are cut off: a polynomial keeps the powers of t from its lowest one
on, and when it is written, coefficients at either end whose sum is at most a share `cut` of the sum of all are dropped.
If n variables are not too dependent, about √n coefficients of the distribution of their count are not negligible. In a
monotone program, the shares that the factors of a product lose add up, and a sum averages those of its terms.

A product of polynomials with a and b coefficients takes a·b steps. A value has at most one coefficient more than it has
unobserved variables that are counted. If the scopes form a tree, all products together take O(edges · k) steps, with k
such variables in all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.kernels.walk import Operations, number_system, walk
from pgcc.program.program import DET, DETMAG
from pgcc.rings.kernels.scaled import Constants, normalized, shifted

_NOTHING = -(2**61)  # the common exponent of 0
_MIXED = 2**61  # there is no common exponent


class Sizes(NamedTuple):
    """The number system of sizes: the lengths of polynomials, and their rounding errors, before they are computed.

    lengths[i] : the number of coefficients that instruction i writes. now[slot] : the number that a slot holds at the
    moment. most[slot] : the largest number that it ever holds. rounds[slot] : how many factors (1 + δ), |δ| ≤ 2⁻⁵³, any
    term of its coefficients has. (A coefficient of a product of a and b coefficients adds at most min(a, b) terms.)
    cuts[slot] : how often tails are cut off on the way to it. terms : the terms of an unfinished sum.
    """

    constants: Constants
    det_lengths: np.ndarray
    codes: np.ndarray
    counted: np.ndarray
    lengths: np.ndarray
    most: np.ndarray
    now: np.ndarray
    rounds: np.ndarray
    cuts: np.ndarray
    terms: np.ndarray


def _leaf_size(system, i, at, number):
    c, v = system.constants, system.constants.leaf_variable[number]
    free = v >= 0 and system.counted[v] and system.codes[v] < 0 and c.leaf_table[number, 1] != 0.0
    system.now[at], system.rounds[at], system.cuts[at] = 2 if free else 1, 2.0, 1
    _note_size(system, i, at)


def _one_size(system, i, at):
    system.now[at], system.rounds[at], system.cuts[at], system.terms[0] = 1, 0.0, 0, 0.0


def _times_size(system, at, x):
    now, rounds = system.now, system.rounds
    rounds[at] += rounds[x] + min(now[at], now[x]) + 1.0
    now[at] += now[x] - 1
    system.cuts[at] += system.cuts[x] + 1


def _add_size(system, at, k, x):
    now, rounds = system.now, system.rounds
    rounds[at], now[at] = max(rounds[at], rounds[x] + 2.0), max(now[at], now[x])
    system.cuts[at] = max(system.cuts[at], system.cuts[x])
    system.terms[0] += 1.0


def _add_product_size(system, at, k, x, y):
    now, rounds = system.now, system.rounds
    rounds[at], now[at] = max(rounds[at], rounds[x] + rounds[y] + 3.0), max(now[at], now[x] + now[y] - 1)
    system.cuts[at] = max(system.cuts[at], system.cuts[x] + system.cuts[y])
    system.terms[0] += min(now[x], now[y])


def _end_size(system, i, at):
    system.rounds[at] += system.terms[0]
    system.cuts[at] += 1
    _note_size(system, i, at)


def _note(system, i, at):
    _note_size(system, i, at)


def _determinant_size(system, i, at, op, args):
    _expect_determinant(op)
    system.now[at], system.rounds[at], system.cuts[at] = system.det_lengths[args[0]], 2.0, 1
    _note_size(system, i, at)


@bare_kernel
def _expect_determinant(op):
    """The polynomials of DETMAG are those of DET: given determinants, the error bounds do not need magnitudes."""
    if op not in (DET, DETMAG):
        raise ValueError("an instruction that polynomials do not know")


@bare_kernel
def _note_size(system, i, at):
    system.lengths[i] = system.now[at]
    system.most[at] = max(system.most[at], system.now[at])


number_system(
    Sizes,
    Operations(
        _leaf_size, _one_size, _times_size, _one_size, _add_size, _add_product_size, _note, _end_size, _determinant_size
    ),
)


@kernel
def plan_polynomials(code, constants, det_lengths, codes, counted, lengths, most, rounds, cuts):
    """Fill in lengths, most, rounds and cuts (see `Sizes`); code : Instructions, constants : scaled numbers."""
    most[:] = 1
    now, terms = np.zeros(len(most), np.int64), np.zeros(1)
    system = Sizes(constants, det_lengths, codes, counted, lengths, most, now, rounds, cuts, terms)
    walk(code, system, 0, len(code.op))


@bare_kernel
def add_convolution(acc, w, x, y):
    """acc += w·x·y, of polynomials with doubles as coefficients; acc has those of x·y, or more."""
    for i in range(len(x)):
        a = w * x[i]
        if a != 0.0:
            row = acc[i : i + len(y)]
            for j in range(len(y)):
                row[j] += a * y[j]


@bare_kernel
def _add_scaled_convolution(acc, begin, w, x, y):
    """acc += w·t^begin·x·y; returns the new common exponent of the coefficients of acc.

    acc, x, y : mantissas, exponents, and the common exponent of all coefficients. w : mantissa and exponent.
    """
    (acc_m, acc_e, common), (wm, we) = acc, w
    if len(x[0]) > len(y[0]):  # the longer one in the inner loop
        x, y = y, x
    (xm, xe, x_common), (ym, ye, y_common) = x, y
    if wm == 0.0 or x_common == _NOTHING or y_common == _NOTHING:
        return common
    if x_common != _MIXED and y_common != _MIXED and common != _MIXED:
        e = we + x_common + y_common
        if common in (_NOTHING, e):
            add_convolution(acc_m[begin:], wm, xm, ym)
            return e
    if common != _MIXED:
        for k in range(len(acc_m)):
            acc_e[k] = common
    for i in range(len(xm)):
        a, e = normalized(wm * xm[i], we + (xe[i] if x_common == _MIXED else x_common))
        if a == 0.0:
            continue
        for j in range(len(ym)):
            term = a * ym[j]
            if term == 0.0:
                continue
            p, k = e + (ye[j] if y_common == _MIXED else y_common), begin + i + j
            gap = acc_e[k] - p
            if gap == 0:
                acc_m[k] += term
            elif acc_m[k] == 0.0:
                acc_m[k], acc_e[k] = term, p
            elif gap < 0:
                acc_m[k], acc_e[k] = shifted(acc_m[k], -gap) + term, p
            else:
                acc_m[k] += shifted(term, gap)
    return _MIXED


@bare_kernel
def write_normalized(acc_m, acc_e, common, m, e):
    """Write the accumulator to m, e with mantissas in range; returns the common exponent."""
    found = _NOTHING
    for k in range(len(acc_m)):
        m[k], e[k] = normalized(acc_m[k], acc_e[k] if common == _MIXED else common)
        if m[k] != 0.0 and found != e[k]:
            found = e[k] if found == _NOTHING else _MIXED
    return found


class Dets(NamedTuple):
    """The polynomials of determinants: their lengths, where they start, and their coefficients, one after another."""

    lengths: np.ndarray
    starts: np.ndarray
    m: np.ndarray
    e: np.ndarray


class Polynomials(NamedTuple):
    """The number system of polynomials, for one row of evidence.

    Slot s has the coefficients of t^low[s], t^(low[s] + 1), …, now[s] of them, in m, e from offset[s] on; all have the
    exponent common[s], unless that is `_MIXED`. lengths : see `plan_polynomials`. cut : see the module. acc_m, acc_e :
    the coefficients of t^0, t^1, … of the unfinished sum or product, of which those that its slot says are in use;
    acc_common : their exponent. one_m, one_e : the polynomial 1.
    """

    constants: Constants
    dets: Dets
    codes: np.ndarray
    lengths: np.ndarray
    cut: float
    offset: np.ndarray
    m: np.ndarray
    e: np.ndarray
    common: np.ndarray
    low: np.ndarray
    now: np.ndarray
    acc_m: np.ndarray
    acc_e: np.ndarray
    acc_common: np.ndarray
    one_m: np.ndarray
    one_e: np.ndarray


@bare_kernel
def _write(system, at):
    """Write the accumulator to its slot."""
    low, length, first = system.low[at], system.now[at], system.offset[at]
    m, e = system.m[first : first + length], system.e[first : first + length]
    common = system.acc_common[0]
    system.common[at] = write_normalized(
        system.acc_m[low : low + length], system.acc_e[low : low + length], common, m, e
    )
    if system.cut > 0.0:
        skipped, kept = cut_tails(m, e, system.common[at], system.cut)
        system.low[at], system.now[at] = low + skipped, kept


@bare_kernel
def cut_tails(m, e, common, cut):
    """Move the coefficients without the two tails, each at most a share `cut` of their sum, to the front.

    common : their exponent, or `_MIXED`. Returns how many were before them, and how many they are: one at least.
    """
    n, top, total = len(m), common, 0.0
    if common == _MIXED:
        top = max(e)
    for k in range(n):
        total += m[k] if common == top else _beside(m[k], e[k], top)
    limit, first, last = cut * total, 0, n
    tail = _beside(m[0], e[0], top)
    while tail <= limit and first < n - 1:
        first += 1
        tail += _beside(m[first], e[first], top)
    tail = _beside(m[n - 1], e[n - 1], top)
    while tail <= limit and last > first + 1:
        last -= 1
        tail += _beside(m[last - 1], e[last - 1], top)
    if first > 0:
        for k in range(first, last):
            m[k - first], e[k - first] = m[k], e[k]
    return first, last - first


@bare_kernel
def _beside(m, e, top):
    """m·2^(256·(e − top)): 0 has an exponent far below all others."""
    return shifted(m, top - e) if m != 0.0 else 0.0


@bare_kernel
def _put(system, at, length):
    """Write a leaf or a determinant: the first coefficients of the accumulator, each with its own exponent."""
    system.acc_common[0], system.low[at], system.now[at] = _MIXED, 0, length
    _write(system, at)


def _leaf(system, i, at, number):
    c, v, length = system.constants, system.constants.leaf_variable[number], system.lengths[i]
    for k in range(length):  # of two: observed 0, observed 1
        code = k if length == 2 else 2 if v < 0 or system.codes[v] < 0 else system.codes[v]
        system.acc_m[k], system.acc_e[k] = c.leaf_table[number, code], c.leaf_exponents[number, code]
    _put(system, at, length)


def _determinant(system, i, at, op, args):
    _expect_determinant(op)
    d, length = system.dets.starts[args[0]], system.lengths[i]
    for k in range(length):
        system.acc_m[k], system.acc_e[k] = system.dets.m[d + k], system.dets.e[d + k]
    _put(system, at, length)


def _one(system, i, at):
    system.m[system.offset[at]], system.e[system.offset[at]] = 1.0, 0
    system.common[at], system.low[at], system.now[at] = 0, 0, 1


def _times(system, at, x):
    low, first, last = system.low[at], system.offset[at], system.offset[at] + system.now[at]
    value = system.m[first:last], system.e[first:last], system.common[at]
    _clear(system, at)
    _add_multiple(system, at, (1.0, 0), low, value, x)
    _write(system, at)


def _zero(system, i, at):
    _clear(system, at)


@bare_kernel
def _clear(system, at):
    system.low[at], system.now[at], system.acc_common[0] = 0, 0, _NOTHING


@bare_kernel
def _add_multiple(system, at, w, low, short, x):
    """Add to the accumulator w·t^low·short·(slot x)."""
    first, last = system.offset[x], system.offset[x] + system.now[x]
    value = system.m[first:last], system.e[first:last], system.common[x]
    low += system.low[x]
    _widen(system, at, low, low + len(short[0]) + len(value[0]) - 1)
    begin, end = system.low[at], system.low[at] + system.now[at]
    acc = system.acc_m[begin:end], system.acc_e[begin:end], system.acc_common[0]
    system.acc_common[0] = _add_scaled_convolution(acc, low - begin, w, short, value)


@bare_kernel
def _widen(system, at, low, high):
    """Take the powers t^low … t^(high − 1) of the accumulator into use, too."""
    acc, old_low, old_high = system.acc_m, system.low[at], system.low[at] + system.now[at]
    if old_high == old_low:
        old_low = old_high = low
    acc[low:old_low] = 0.0
    acc[old_high:high] = 0.0
    system.low[at] = min(low, old_low)
    system.now[at] = max(high, old_high) - system.low[at]


def _add(system, at, k, x):
    w = system.constants.weights[k], system.constants.weight_exponents[k]
    _add_multiple(system, at, w, 0, (system.one_m, system.one_e, 0), x)


def _add_product(system, at, k, x, y):
    w = system.constants.weights[k], system.constants.weight_exponents[k]
    first, last = system.offset[x], system.offset[x] + system.now[x]
    _add_multiple(system, at, w, system.low[x], (system.m[first:last], system.e[first:last], system.common[x]), y)


def _end_sum(system, i, at):
    if system.now[at] == 0:  # no terms
        _widen(system, at, 0, 1)
    _write(system, at)


number_system(
    Polynomials, Operations(_leaf, _one, _times, _zero, _add, _add_product, end_sum=_end_sum, determinant=_determinant)
)


@kernel
def run_polynomials(code, constants, dets, codes, lengths, most, cut, roots, out_m, out_e):
    """out_m[r], out_e[r] = the coefficients of slot roots[r], for one row of codes.

    code : Instructions. constants : Constants of scaled numbers. dets : Dets. lengths, most : see `plan_polynomials`.
    cut : see the module; 0 to keep all coefficients.
    """
    offset = np.zeros(len(most) + 1, np.int64)
    for s in range(len(most)):
        offset[s + 1] = offset[s] + most[s]
    m, e = np.zeros(offset[-1]), np.zeros(offset[-1], np.int64)
    common = np.full(len(most), _NOTHING)
    low, now = np.zeros(len(most), np.int64), np.zeros(len(most), np.int64)
    longest = most.max()
    system = Polynomials(
        constants, dets, codes, lengths, cut, offset, m, e, common, low, now,
        np.zeros(longest), np.zeros(longest, np.int64), np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.int64),
    )  # fmt: skip
    walk(code, system, 0, len(code.op))
    for r in range(len(roots)):
        at = roots[r]
        for k in range(now[at]):
            out_m[r, low[at] + k], out_e[r, low[at] + k] = m[offset[at] + k], e[offset[at] + k]


@kernel
def linear_factors(p, q):
    """The coefficients of Π (q_i + p_i·t) as scaled numbers, for p and q ≥ 0."""
    n = len(p)
    m, e = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    m[0] = 1.0
    for i in range(n):
        for k in range(i + 1, -1, -1):
            up, up_e = normalized(p[i] * m[k - 1], e[k - 1]) if k > 0 else (0.0, 0)
            stay, stay_e = normalized(q[i] * m[k], e[k])
            if up == 0.0 or stay == 0.0:
                m[k], e[k] = (stay, stay_e) if up == 0.0 else (up, up_e)
            elif up_e >= stay_e:
                m[k], e[k] = normalized(up + shifted(stay, up_e - stay_e), up_e)
            else:
                m[k], e[k] = normalized(stay + shifted(up, stay_e - up_e), stay_e)
    return m, e
