"""The fixed parts of emitted source (see `emit`), as Python text, with EVALUATE for the name of the evaluator.

Names of users' variables occur only as strings in VARIABLES and, sanitised, in straight-line code.
"""

from __future__ import annotations

IMPORTS = """\
import sys

import numpy as np

if __name__ == "__main__":  # one query from the command line is answered before a compiler has started

    def _jit(function):
        return function
else:
    from numba import njit

    # Compiled code is kept next to this file; text that was not read from a file is compiled every time.
    _jit = njit(cache="__file__" in globals(), nogil=True, error_model="numpy", fastmath={"contract"})
"""

# -- one number per node ----------------------------------------------------------------------------------------

TRANSPOSE = '''
@_jit
def _transpose(rows, first, count, z):
    """z[variable, k] = code of row first + k."""
    for k in range(count):
        for j in range(z.shape[0]):
            z[j, k] = rows[first + k, j]
'''

STRAIGHT_HEAD = '''
BLOCK = 1 if __name__ == "__main__" else 64  # rows evaluated side by side


@_jit
def _leaf(code, if_out, if_in, if_free):
    """The value of an affine form in one variable, by what is observed of it."""
    return if_out if code == 0 else if_in if code == 1 else if_free


@_jit
def _block(z, p):
    """p[k] = the answer to column k of z, for a whole block."""
    for k in range(BLOCK):
'''

STRAIGHT_EVALUATE = '''

@_jit
def EVALUATE(rows, out):
    """Write the probability of every row of an int8 array (1 in, 0 out, -1 unobserved) to out."""
    z = np.empty((COLUMNS, BLOCK), np.int8)
    p = np.empty(BLOCK)
    for first in range(0, rows.shape[0], BLOCK):
        count = min(BLOCK, rows.shape[0] - first)
        _transpose(rows, first, count, z)
        _block(z, p)
        for k in range(count):
            out[first + k] = p[k]
'''

# -- tables: the instructions are data --------------------------------------------------------------------------

TABLE_HEAD = """

def _numbers(text, kind):
    return np.array([kind(word) for word in text.split()], dtype=np.float64 if kind is float else np.int64)


# The program, one instruction per entry of OP: it writes slot TARGET[i] from ARGS[START[i]:START[i + 1]].
#   LEAF   the leaf with this number: LEAF_TABLE[number] = a, b, a + b of an affine form in one variable (see _leaf)
#   SUM    sum of w*x over the first arguments x, then of w*x*y over the pairs of arguments that follow;
#          its weights are WEIGHTS[FIRST_WEIGHT[i]:FIRST_WEIGHT[i + 1]], one for every term
#   TIMES  product of the arguments
#   DET    determinant number ARGS[START[i]] of the values of f, then y, that follow
LEAF, SUM, TIMES, DET = OPCODES
"""

TABLE_EVALUATE = '''
BLOCK = 1 if __name__ == "__main__" else 64  # rows evaluated side by side


@_jit
def _run(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table, DETS_slots, root, total, rows, out
):
    z = np.empty((rows.shape[1], BLOCK), np.int8)
    v = np.empty((slots, BLOCK))
    for first in range(0, rows.shape[0], BLOCK):
        count = min(BLOCK, rows.shape[0] - first)
        _transpose(rows, first, count, z)
        for i in range(len(op)):
            kind, begin, end, weight, x = op[i], start[i], start[i + 1], first_weight[i], v[target[i]]
            if kind == LEAF:
                _leaf(leaf_variable[args[begin]], leaf_table[args[begin]], z, x)
            elif kind == SUM:
                _fill(x, 0.0)
                pairs = begin + 2 * (first_weight[i + 1] - weight) - (end - begin)  # where they begin
                for j in range(begin, pairs):
                    _add(x, weights[weight], v[args[j]])
                    weight += 1
                for j in range(pairs, end, 2):
                    _add_product(x, weights[weight], v[args[j]], v[args[j + 1]])
                    weight += 1
            elif kind == TIMES:
                _fill(x, 1.0)
                for j in range(begin, end):
                    _multiply(x, v[args[j]])
DET_BRANCH        for k in range(count):
            out[first + k] = v[root, k] / total


@_jit
def _leaf(variable, table, z, x):
    """a, b or a + b, where the variable is observed 0, observed 1, unobserved."""
    for k in range(BLOCK):
        code = z[variable, k] if variable >= 0 else -1
        x[k] = table[0] if code == 0 else table[1] if code == 1 else table[2]


@_jit
def _fill(x, value):
    for k in range(BLOCK):
        x[k] = value


@_jit
def _add(x, w, y):
    for k in range(BLOCK):
        x[k] += w * y[k]


@_jit
def _add_product(x, w, y1, y2):
    for k in range(BLOCK):
        x[k] += w * (y1[k] * y2[k])


@_jit
def _multiply(x, y):
    for k in range(BLOCK):
        x[k] *= y[k]
'''

DET_BRANCH = """\
            elif kind == DET:
                _determinants(det_rank, det_start, det_data, args[begin:end], v, x)
"""

DETERMINANTS = '''

@_jit
def _determinants(rank, starts, data, args, v, x):
    """x = det [[M0, U*diag(f)], [-V^T, diag(y)]], row by row."""
    r, n_children = rank[args[0]], (len(args) - 1) // 2
    m0 = data[starts[args[0]] :]
    u, vt = m0[r * r :], m0[r * (r + n_children) :]
    a = np.empty((r + n_children, r + n_children))
    for k in range(BLOCK):
        for i in range(r + n_children):
            for j in range(r + n_children):
                a[i, j] = m0[i * r + j] if i < r and j < r else 0.0
        for i in range(r):
            for j in range(n_children):
                a[i, r + j] = u[i * n_children + j] * v[args[1 + j], k]
                a[r + j, i] = -vt[i * n_children + j]
        for j in range(n_children):
            a[r + j, r + j] = v[args[1 + n_children + j], k]
        x[k] = _determinant(a)


@_jit
def _determinant(a):
    """By elimination with partial pivoting; destroys a."""
    n, value = len(a), 1.0
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if abs(a[i, j]) > abs(a[best, j]):
                best = i
        if a[best, j] == 0.0:
            return 0.0
        if best != j:
            value = -value
            for c in range(n):
                a[j, c], a[best, c] = a[best, c], a[j, c]
        value *= a[j, j]
        for i in range(j + 1, n):
            factor = a[i, j] / a[j, j]
            for c in range(j + 1, n):
                a[i, c] -= factor * a[j, c]
    return value
'''

# -- polynomials in t -------------------------------------------------------------------------------------------

POLYNOMIAL_HEAD = '''
BLOCK = SIDE_BY_SIDE  # rows evaluated side by side
LENGTH = len(VARIABLES) + 1  # coefficients that answers are made of
FFT = 128  # products of longer polynomials go by numpy's FFT


# A polynomial in t is an array with a row of coefficients for every row of the block, or with one row for all of them.


def leaf(codes, if_out, if_in, if_free):
    """An affine form in z, which is 0 where it is observed 0, 1 where it is unobserved, t where it is observed 1."""
    low, is_in = np.where(codes < 0, if_free, if_out)[:, None], (codes == 1)[:, None]
    return np.hstack([low, if_in * is_in]) if is_in.any() else low


def constant(number):
    return np.array([[number]])


def scale(weight, x):
    return weight * x


def add(*terms):
    total = np.zeros(np.max([x.shape for x in terms], axis=0))
    for x in terms:
        total[:, : x.shape[1]] += x
    return total


def multiply(x, *factors):
    for y in factors:
        long, short = (x, y) if x.shape[1] > y.shape[1] else (y, x)
        x = (_by_fft if short.shape[1] > FFT else _by_definition)(long, short)[:, :LENGTH]
    return x


def _by_fft(x, y):
    length = x.shape[1] + y.shape[1] - 1
    return np.fft.irfft(np.fft.rfft(x, length) * np.fft.rfft(y, length), length)


@_jit
def _by_definition(x, y):
    product = np.zeros((max(len(x), len(y)), x.shape[1] + y.shape[1] - 1))
    for k in range(len(product)):
        for j in range(y.shape[1]):
            factor = y[k % len(y), j]
            for i in range(x.shape[1]):
                product[k, i + j] += x[k % len(x), i] * factor
    return product


def _block(z):
    """The polynomial of every row of a block."""
'''

POLYNOMIAL_EVALUATE = '''

def EVALUATE(rows, out):
    """Write the probability of every row of an int8 array (1 in, 0 out, -1 unobserved) to out."""
    for first in range(0, len(rows), BLOCK):
        block = rows[first : first + BLOCK]
        answers, degrees = np.zeros((len(block), LENGTH)), np.sum(block == 1, axis=1)
        polynomials = _block(block.T)
        answers[:, : polynomials.shape[1]] = polynomials
        out[first : first + BLOCK] = answers[np.arange(len(block)), degrees] / TOTAL
'''

# Instead of a line per instruction, for circuits too large for that.
POLYNOMIAL_LOOP = """\
    values = [None] * SLOTS
    for i in range(len(OP)):
        args = ARGS[START[i] : START[i + 1]]
        if OP[i] == LEAF:
            variable, table = LEAF_VARIABLE[args[0]], LEAF_TABLE[args[0]]
            values[TARGET[i]] = leaf(z[variable], *table) if variable >= 0 else constant(table[2])
            continue
        factors = [values[x] for x in args]
        if OP[i] == SUM:
            weights = WEIGHTS[FIRST_WEIGHT[i] : FIRST_WEIGHT[i + 1]]
            pairs = 2 * len(weights) - len(args)  # where they begin
            products = map(multiply, factors[pairs::2], factors[pairs + 1 :: 2])
            values[TARGET[i]] = add(*map(scale, weights, [*factors[:pairs], *products]))
        else:
            values[TARGET[i]] = multiply(*factors)
    return values[ROOT]
"""

# -- what people call -------------------------------------------------------------------------------------------

QUESTIONS = '''

_COLUMN = {name: column for column, name in enumerate(VARIABLES)}


def prob(evidence):
    """The probability of what is observed: of {"name": 1 or 0, ...}, or of every row of an array.

    An array has a column per variable, in the order of VARIABLES: 1 in, 0 out, -1 (or NaN) unobserved.
    """
    rows, single = _rows(evidence)
    out = np.empty(len(rows))
    EVALUATE(rows, out)
    return float(out[0]) if single else out


def logprob(evidence):
    """Natural logarithm of prob(evidence); -inf where that is 0, NaN where rounding made it negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(prob(evidence))
    return float(logs) if logs.ndim == 0 else logs


def _rows(evidence):
    """Evidence as int8 rows, and whether it was a single piece."""
    if isinstance(evidence, dict):
        table, single = np.full((1, len(VARIABLES)), None), True
        for name, value in evidence.items():
            if name not in _COLUMN:
                raise ValueError(f"unknown variable {name!r}")
            table[0, _COLUMN[name]] = value
    else:
        table = np.asarray(evidence)
        single = table.ndim == 1
        table = table[None] if single else table
    if table.ndim != 2 or table.shape[1] != len(VARIABLES):
        raise ValueError(f"evidence of shape {table.shape} does not fit {len(VARIABLES)} variables")
    if table.dtype.kind not in "biuf" and table.size:
        table = _floats(table)
    if table.dtype.kind == "f":
        table = np.where(np.isnan(table), -1.0, table)
    bad = (table != 0) & (table != 1) & (table != -1)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise _bad_value(row, column, table[row, column].item())
    rows = np.ascontiguousarray(table, dtype=np.int8)
    return rows if rows.flags.writeable else rows.copy(), single


def _floats(table):
    """A table of objects: numbers, or None for unobserved."""
    floats = np.empty(table.shape)
    for (row, column), value in np.ndenumerate(table.astype(object)):
        if value is not None and not isinstance(value, (bool, int, float, np.number)):
            raise _bad_value(row, column, value)
        floats[row, column] = -1.0 if value is None else value
    return floats


def _bad_value(row, column, value):
    return ValueError(f"row {row}, variable {VARIABLES[column]!r} is {value!r}: 1 (in), 0 (out) or -1 (unobserved)")


def _main(arguments):
    evidence = {}
    for text in arguments:
        name, equals, value = text.rpartition("=")
        if not equals or value not in ("0", "1", "-1"):
            raise ValueError(f"{text!r} is not name=1 or name=0")
        if evidence.setdefault(name, int(value)) != int(value):
            raise ValueError(f"{name!r} is given twice")
    print(prob(evidence))


if __name__ == "__main__":
    try:
        _main(sys.argv[1:])
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
'''
