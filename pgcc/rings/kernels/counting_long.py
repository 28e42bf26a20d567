"""The number system of long polynomials in t without their negligible tails, for monotone programs.

A value is 2^exponent · Σ_k c_k·t^(low + k), with ½ ≤ Σ c_k < 1 and c_k ≥ 0, and has two kinds of errors: the number of
roundings of every coefficient; and its loss, the error in the 2-norm caused by cutting off tails and by fast Fourier
transforms, relative to the sum of the coefficients. A product with a polynomial b multiplies the latter by Σ b, a sum
averages it.

Two long polynomials are multiplied by fast Fourier transforms, which are not compiled here: an instruction with such
products stays unfinished, and `pgcc.evaluate.counting_long` finishes it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel, separate_kernel
from pgcc.kernels.walk import Operations, number_system, walk
from pgcc.rings.kernels.counting import add_convolution
from pgcc.rings.kernels.scaled import Constants

# If two polynomials are both longer than this, they are multiplied by fast Fourier transforms.
SHORT = 2048
_NEVER = -(2**60)  # the exponent of 0
_VANISHING = -2000  # 2 to this power is 0 in doubles


class Pieces(NamedTuple):
    """The factors of an unfinished product, or products of some of them: buffer[starts[p] : starts[p] + sizes[p]].

    filled[0] : the number of pieces. scratch : memory for one polynomial.
    """

    filled: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    buffer: np.ndarray
    scratch: np.ndarray


class LongPolynomials(NamedTuple):
    """The number system, for one row of evidence.

    Attributes
    ----------
    constants : Constants
        The numbers of the program, with exponents of 2, not of 2^256.
    codes, counted : arrays
        The row of evidence; and for every variable, whether it is counted.
    cut : float
        The largest share of the sum of the coefficients that may be cut off at either end.
    offset, pool : arrays
        The coefficients of a slot are pool[offset[slot] : offset[slot] + lengths[slot]].
    lows, lengths, exponents, rounds, losses : arrays
        By slot; see the module. They describe an unfinished product or sum, too.
    pieces : Pieces
        The unfinished product.
    unfinished_sum : array
        The coefficients of t^0, t^1, …; those from lows[at] on, lengths[at] of them, are in use.
    terms : array of one number
        The number of terms that were added up to a coefficient of the unfinished sum.
    waiting : array of one number
        The number of products of two long polynomials that the last instruction still needs.
    one : array
        The polynomial 1.
    """

    constants: Constants
    codes: np.ndarray
    counted: np.ndarray
    cut: float
    offset: np.ndarray
    pool: np.ndarray
    lows: np.ndarray
    lengths: np.ndarray
    exponents: np.ndarray
    rounds: np.ndarray
    losses: np.ndarray
    pieces: Pieces
    unfinished_sum: np.ndarray
    terms: np.ndarray
    waiting: np.ndarray
    one: np.ndarray


# -- polynomials without tails ---------------------------------------------------------------------------------------


@separate_kernel
def cut_tails(c, cut, out):
    """Write c to `out` without its two tails, each at most `cut` of the sum, and divided by a power of 2.

    Returns the number of coefficients before `out`, the length of `out`, the exponent of that power of 2 (`_NEVER` if
    all coefficients are 0), and the loss.
    """
    total, first, last = 0.0, 0, len(c)
    for x in c:
        total += x
    if not total > 0.0:
        out[0] = 0.0
        return 0, 1, _NEVER, 0.0
    tail = c[0]
    while tail <= cut * total:
        first += 1
        tail += c[first]
    tail = c[last - 1]
    while tail <= cut * total:
        last -= 1
        tail += c[last - 1]
    binary = math.frexp(total)[1]
    scale = np.ldexp(1.0, int(-binary))
    for k in range(first, last):
        out[k - first] = c[k] * scale
    return first, last - first, binary, 2.0 * cut if last - first < len(c) else 0.0


@bare_kernel
def write(system, at, c):
    """Complete a slot that has an exponent, a lowest power of t, and errors: its coefficients are c without tails."""
    first, length, binary, lost = cut_tails(c, system.cut, system.pool[system.offset[at] : system.offset[at + 1]])
    system.lows[at] += first
    system.lengths[at] = length
    system.exponents[at] = system.exponents[at] + binary if binary != _NEVER else _NEVER
    system.losses[at] += lost


@bare_kernel
def _begin(system, at, exponent, rounded):
    """Begin a value: 2^exponent times powers of t from t^0 on, with this number of roundings and no loss."""
    system.lows[at], system.lengths[at], system.exponents[at] = 0, 0, exponent
    system.rounds[at], system.losses[at] = rounded, 0.0


# -- leaves and products ---------------------------------------------------------------------------------------------


def _leaf(system, i, at, number):
    (_, _, leaf_variable, table, exponents), c = system.constants, system.pieces.scratch
    v = leaf_variable[number]
    if v >= 0 and system.counted[v] and system.codes[v] < 0 and table[number, 1] != 0.0:
        exponent, size = max(exponents[number, 0], exponents[number, 1]), 2
        for k in range(2):
            c[k] = np.ldexp(table[number, k], int(max(exponents[number, k] - exponent, _VANISHING)))
    else:
        code = 2 if v < 0 or system.codes[v] < 0 else system.codes[v]
        c[0], exponent, size = table[number, code], exponents[number, code], 1
    _begin(system, at, exponent, 2.0)
    write(system, at, c[:size])


def _one(system, i, at):
    _begin(system, at, 0, 0.0)
    system.pieces.filled[0] = 0


def _times(system, at, x):
    """The last two pieces are multiplied if the last is not the shorter one: this makes a balanced tree."""
    filled, starts, sizes, buffer, _ = system.pieces
    p, first = filled[0], system.offset[x]
    starts[p], sizes[p] = starts[p - 1] + sizes[p - 1] if p else 0, system.lengths[x]
    for j in range(sizes[p]):
        buffer[starts[p] + j] = system.pool[first + j]
    filled[0] += 1
    system.lows[at] += system.lows[x]
    system.exponents[at] += system.exponents[x]
    system.rounds[at] += system.rounds[x]
    system.losses[at] += system.losses[x]
    while filled[0] > 1 and sizes[filled[0] - 1] >= sizes[filled[0] - 2] and _join_last(system, at):
        pass


@bare_kernel
def _join_last(system, at):
    """Multiply the last two pieces, unless both are long; returns whether that was done."""
    filled, starts, sizes, buffer, scratch = system.pieces
    p, q = filled[0] - 2, filled[0] - 1
    if min(sizes[p], sizes[q]) > SHORT:
        return False
    x, y = buffer[starts[p] : starts[p] + sizes[p]], buffer[starts[q] : starts[q] + sizes[q]]
    if len(x) > len(y):  # the longer one in the inner loop
        x, y = y, x
    product = scratch[: len(x) + len(y) - 1]
    product[:] = 0.0
    add_convolution(product, 1.0, x, y)
    system.rounds[at] += len(x) + 2.0
    first, sizes[p], binary, lost = cut_tails(product, system.cut, buffer[starts[p] :])
    system.lows[at] += first
    system.exponents[at] += binary if binary != _NEVER else 0
    system.losses[at] += lost
    filled[0] -= 1
    return True


def _end_product(system, i, at):
    filled, _, sizes, buffer, _ = system.pieces
    while filled[0] > 1 and _join_last(system, at):
        pass
    system.waiting[0] = max(filled[0] - 1, 0)
    if filled[0] == 0:
        write(system, at, system.one)
    elif filled[0] == 1:
        write(system, at, buffer[: sizes[0]])


# -- sums ------------------------------------------------------------------------------------------------------------


def _zero(system, i, at):
    _begin(system, at, _NEVER, 0.0)
    system.terms[0] = system.waiting[0] = 0


def _add(system, at, k, x):
    value = system.pool[system.offset[x] : system.offset[x] + system.lengths[x]]
    errors = system.rounds[x], system.losses[x]
    add_term(system, at, k, (system.lows[x], system.exponents[x]), (system.one, value), errors)


def _add_product(system, at, k, x, y):
    if system.lengths[x] > system.lengths[y]:  # the longer one in the inner loop
        x, y = y, x
    if system.lengths[x] > SHORT:
        system.waiting[0] += 1
        return
    power = system.lows[x] + system.lows[y], system.exponents[x] + system.exponents[y]
    short = system.pool[system.offset[x] : system.offset[x] + system.lengths[x]]
    long = system.pool[system.offset[y] : system.offset[y] + system.lengths[y]]
    add_term(system, at, k, power, (short, long), product_errors(system, x, y))


@bare_kernel
def product_errors(system, x, y):
    """The number of roundings and the loss of a product of two slots, but for those of the convolution."""
    return system.rounds[x] + system.rounds[y] + 1.0, (1.0 + system.losses[x]) * (1.0 + system.losses[y]) - 1.0


@bare_kernel
def add_term(system, at, k, power, factors, errors):
    """Add weight number k times 2^exponent · t^low · a · b to the unfinished sum.

    power : (low, exponent). factors : the coefficients of a and b. errors : (number of roundings, loss).
    """
    (low, exponent), (a, b), (rounded, lost) = power, factors, errors
    high = low + len(a) + len(b) - 1
    exponent += system.constants.weight_exponents[k]
    _widen(system, at, low, high, exponent)
    gap = max(exponent - system.exponents[at], _VANISHING)
    add_convolution(system.unfinished_sum[low:high], np.ldexp(system.constants.weights[k], int(gap)), a, b)
    system.rounds[at] = max(system.rounds[at], rounded + 3.0)
    system.losses[at] = max(system.losses[at], lost)
    system.terms[0] += len(a)


@bare_kernel
def _widen(system, at, low, high, exponent):
    """Extend the unfinished sum to the powers t^low … t^(high − 1), and its exponent to at least this one."""
    acc, old_low, old_high = system.unfinished_sum, system.lows[at], system.lows[at] + system.lengths[at]
    if old_high == old_low:
        old_low = old_high = low
    if exponent > system.exponents[at]:
        scale = np.ldexp(1.0, int(max(system.exponents[at] - exponent, _VANISHING)))
        for k in range(old_low, old_high):
            acc[k] *= scale
        system.exponents[at] = exponent
    acc[low:old_low] = 0.0
    acc[old_high:high] = 0.0
    system.lows[at] = min(low, old_low)
    system.lengths[at] = max(high, old_high) - system.lows[at]


@bare_kernel
def write_sum(system, at):
    """The sum is complete."""
    low, length = system.lows[at], system.lengths[at]
    system.rounds[at] += system.terms[0]
    if length == 0:
        system.unfinished_sum[low], length = 0.0, 1
    write(system, at, system.unfinished_sum[low : low + length])


def _end_sum(system, i, at):
    if system.waiting[0] == 0:
        write_sum(system, at)


def _waits(system):
    return system.waiting[0] > 0


number_system(
    LongPolynomials, Operations(_leaf, _one, _times, _zero, _add, _add_product, _end_product, _end_sum, waits=_waits)
)


@kernel
def run_long_polynomials(code, system, begin):
    """Run instructions from `begin` on; returns the first one that waits, or the number of all instructions.

    code : Instructions. system : LongPolynomials.
    """
    return walk(code, system, begin, len(code.op))
