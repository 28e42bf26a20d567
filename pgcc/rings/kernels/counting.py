"""A program over polynomials in t, with t·z_i in place of z_i for every variable that is counted.

Coefficients are scaled numbers m · 2^(256·e), which do not underflow: one of 1e-4000 is as accurate as any other.
Polynomials are multiplied term by term, and in monotone circuits nothing cancels. Mostly, all coefficients of a
polynomial have the same exponent, and the inner loop is a multiply-add of doubles.

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
    terms : the terms of an unfinished sum.
    """

    constants: Constants
    det_lengths: np.ndarray
    codes: np.ndarray
    counted: np.ndarray
    lengths: np.ndarray
    most: np.ndarray
    now: np.ndarray
    rounds: np.ndarray
    terms: np.ndarray


def _leaf_size(system, i, at, number):
    c, v = system.constants, system.constants.leaf_variable[number]
    free = v >= 0 and system.counted[v] and system.codes[v] < 0 and c.leaf_table[number, 1] != 0.0
    system.now[at], system.rounds[at] = 2 if free else 1, 2.0
    _note_size(system, i, at)


def _one_size(system, i, at):
    system.now[at], system.rounds[at], system.terms[0] = 1, 0.0, 0.0


def _times_size(system, at, x):
    now, rounds = system.now, system.rounds
    rounds[at] += rounds[x] + min(now[at], now[x]) + 1.0
    now[at] += now[x] - 1


def _add_size(system, at, k, x):
    now, rounds = system.now, system.rounds
    rounds[at], now[at] = max(rounds[at], rounds[x] + 2.0), max(now[at], now[x])
    system.terms[0] += 1.0


def _add_product_size(system, at, k, x, y):
    now, rounds = system.now, system.rounds
    rounds[at], now[at] = max(rounds[at], rounds[x] + rounds[y] + 3.0), max(now[at], now[x] + now[y] - 1)
    system.terms[0] += min(now[x], now[y])


def _end_size(system, i, at):
    system.rounds[at] += system.terms[0]
    _note_size(system, i, at)


def _note(system, i, at):
    _note_size(system, i, at)


def _determinant_size(system, i, at, op, args):
    _expect_determinant(op)
    system.now[at], system.rounds[at] = system.det_lengths[args[0]], 2.0
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
def plan_polynomials(code, constants, det_lengths, codes, counted, lengths, most, rounds):
    """Fill in lengths, most and rounds (see `Sizes`); code : Instructions, constants : Constants of scaled numbers."""
    most[:] = 1
    now, terms = np.zeros(len(most), np.int64), np.zeros(1)
    walk(code, Sizes(constants, det_lengths, codes, counted, lengths, most, now, rounds, terms), 0, len(code.op))


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
def _add_scaled_convolution(acc, w, x, y):
    """acc += w·x·y; returns the new common exponent of the coefficients of acc.

    acc, x, y : mantissas, exponents, and the common exponent of all coefficients. w : mantissa and exponent.
    """
    (acc_m, acc_e, common), (wm, we) = acc, w
    (xm, xe, x_common), (ym, ye, y_common) = x, y
    if wm == 0.0 or x_common == _NOTHING or y_common == _NOTHING:
        return common
    if x_common != _MIXED and y_common != _MIXED and common != _MIXED:
        e = we + x_common + y_common
        if common in (_NOTHING, e):
            add_convolution(acc_m, wm, xm, ym)
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
            p, k = e + (ye[j] if y_common == _MIXED else y_common), i + j
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

    Slot s has now[s] coefficients, m, e from offset[s] on; all have the exponent common[s], unless that is `_MIXED`.
    lengths : see `plan_polynomials`. acc_m, acc_e, acc_common : the unfinished sum or product. one_m, one_e : the
    polynomial 1.
    """

    constants: Constants
    dets: Dets
    codes: np.ndarray
    lengths: np.ndarray
    offset: np.ndarray
    m: np.ndarray
    e: np.ndarray
    common: np.ndarray
    now: np.ndarray
    acc_m: np.ndarray
    acc_e: np.ndarray
    acc_common: np.ndarray
    one_m: np.ndarray
    one_e: np.ndarray


@bare_kernel
def _write(system, at, length):
    """Write the accumulator to a slot."""
    first, last = system.offset[at], system.offset[at] + length
    system.common[at] = write_normalized(
        system.acc_m[:length], system.acc_e[:length], system.acc_common[0], system.m[first:last], system.e[first:last]
    )
    system.now[at] = length


def _leaf(system, i, at, number):
    c, v, length = system.constants, system.constants.leaf_variable[number], system.lengths[i]
    for k in range(length):  # of two: observed 0, observed 1
        code = k if length == 2 else 2 if v < 0 or system.codes[v] < 0 else system.codes[v]
        system.acc_m[k], system.acc_e[k] = c.leaf_table[number, code], c.leaf_exponents[number, code]
    system.acc_common[0] = _MIXED
    _write(system, at, length)


def _determinant(system, i, at, op, args):
    _expect_determinant(op)
    d, length = system.dets.starts[args[0]], system.lengths[i]
    for k in range(length):
        system.acc_m[k], system.acc_e[k] = system.dets.m[d + k], system.dets.e[d + k]
    system.acc_common[0] = _MIXED
    _write(system, at, length)


def _one(system, i, at):
    system.m[system.offset[at]], system.e[system.offset[at]] = 1.0, 0
    system.common[at], system.now[at] = 0, 1


def _times(system, at, x):
    m, e, now, common, offset = system.m, system.e, system.now, system.common, system.offset
    length = now[at] + now[x] - 1
    system.acc_m[:length] = 0.0
    a, b, c, d = offset[at], offset[at] + now[at], offset[x], offset[x] + now[x]
    acc = system.acc_m[:length], system.acc_e[:length], _NOTHING
    system.acc_common[0] = _add_scaled_convolution(
        acc, (1.0, 0), (m[a:b], e[a:b], common[at]), (m[c:d], e[c:d], common[x])
    )
    _write(system, at, length)


def _zero(system, i, at):
    system.now[at], system.acc_common[0] = system.lengths[i], _NOTHING
    system.acc_m[: system.lengths[i]] = 0.0


def _add(system, at, k, x):
    c, m, e, length = system.constants, system.m, system.e, system.now[at]
    first, last = system.offset[x], system.offset[x] + system.now[x]
    acc, w = (system.acc_m[:length], system.acc_e[:length], system.acc_common[0]), (c.weights[k], c.weight_exponents[k])
    value = m[first:last], e[first:last], system.common[x]
    system.acc_common[0] = _add_scaled_convolution(acc, w, (system.one_m, system.one_e, 0), value)


def _add_product(system, at, k, x, y):
    c, m, e, offset, now = system.constants, system.m, system.e, system.offset, system.now
    length = now[at]
    if now[x] > now[y]:  # the longer one in the inner loop
        x, y = y, x
    acc, w = (system.acc_m[:length], system.acc_e[:length], system.acc_common[0]), (c.weights[k], c.weight_exponents[k])
    short = m[offset[x] : offset[x] + now[x]], e[offset[x] : offset[x] + now[x]], system.common[x]
    long = m[offset[y] : offset[y] + now[y]], e[offset[y] : offset[y] + now[y]], system.common[y]
    system.acc_common[0] = _add_scaled_convolution(acc, w, short, long)


def _end_sum(system, i, at):
    _write(system, at, system.now[at])


number_system(
    Polynomials, Operations(_leaf, _one, _times, _zero, _add, _add_product, end_sum=_end_sum, determinant=_determinant)
)


@kernel
def run_polynomials(code, constants, dets, codes, lengths, most, roots, out_m, out_e):
    """out_m[r], out_e[r] = the coefficients of slot roots[r], for one row of codes.

    code : Instructions. constants : Constants of scaled numbers. dets : Dets. lengths, most : see `plan_polynomials`.
    """
    offset = np.zeros(len(most) + 1, np.int64)
    for s in range(len(most)):
        offset[s + 1] = offset[s] + most[s]
    m, e = np.zeros(offset[-1]), np.zeros(offset[-1], np.int64)
    common, now = np.full(len(most), _NOTHING), np.zeros(len(most), np.int64)
    longest = most.max()
    system = Polynomials(
        constants, dets, codes, lengths, offset, m, e, common, now,
        np.zeros(longest), np.zeros(longest, np.int64), np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.int64),
    )  # fmt: skip
    walk(code, system, 0, len(code.op))
    for r in range(len(roots)):
        at = roots[r]
        for k in range(now[at]):
            out_m[r, k], out_e[r, k] = m[offset[at] + k], e[offset[at] + k]


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
