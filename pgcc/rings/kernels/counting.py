"""A program over polynomials in t: z_i becomes t·z_i for every variable that counts.

A coefficient is a scaled number m · 2^(256·e) with m = 0 or 2⁻¹²⁸ ≤ |m| < 2¹²⁸, so that none underflows: one of 1e-4000
is as accurate as any other. Products are direct ones, of coefficients that have no sign in monotone circuits: nothing
cancels. Most polynomials have one exponent in common, and then the inner loop is a plain multiply-add.

A product of polynomials with a and b coefficients takes a·b steps. A value has at most one coefficient more than it has
free variables that count, so that over scopes that form a tree these add up to O(edges · k).
"""

from __future__ import annotations

import numpy as np

from pgcc.kernels.policy import bare_kernel, kernel
from pgcc.program.program import DET, LEAF, TIMES
from pgcc.rings.kernels.scaled import normalized, shifted

_NOTHING = -(2**61)  # the common exponent of 0
_MIXED = 2**61  # there is no common exponent


@kernel
def plan_polynomials(
    op, target, start, args, first_weight, leaf_variable, leaf_table, det_lengths, codes, counted, lengths, room, count
):  # fmt: skip
    """lengths[i]: coefficients of what instruction i leaves in its slot; room[slot]: the most that it ever holds.

    count[slot] : how many factors (1 + δ), |δ| ≤ 2⁻⁵³, stand on any term of its coefficients. A coefficient of a
    product of a and b coefficients adds at most min(a, b) terms.
    """
    now = np.zeros(len(room), np.int64)
    room[:] = 1
    for i in range(len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        length, total = 1, 2.0
        if kind == LEAF:
            v = leaf_variable[args[first]]
            if v >= 0 and counted[v] and codes[v] < 0 and leaf_table[args[first], 1] != 0.0:
                length = 2
        elif kind >= DET:
            length = det_lengths[args[first]]
        elif kind == TIMES:
            total = 0.0
            for j in range(first, last):
                other = now[args[j]]
                total += count[args[j]] + min(length, other) + 1.0
                length += other - 1
        else:
            worst, terms, j = 0.0, 0.0, first
            all_terms = first_weight[i + 1] - first_weight[i]
            alone = 2 * all_terms - (last - first)  # terms w·x; the others are w·x·y
            for k in range(all_terms):
                here, own, added = count[args[j]] + 2.0, now[args[j]], 1
                if k >= alone:
                    j += 1
                    here += count[args[j]] + 1.0
                    added = min(own, now[args[j]])
                    own += now[args[j]] - 1
                j += 1
                worst, terms, length = max(worst, here), terms + added, max(length, own)
            total = worst + terms
        now[at], lengths[i], count[at] = length, length, total
        room[at] = max(room[at], length)


@bare_kernel
def add_product(acc_m, acc_e, common, wm, we, xm, xe, x_common, ym, ye, y_common):
    """acc += w·x·y; takes and returns the exponent that the coefficients of acc have in common."""
    if wm == 0.0 or x_common == _NOTHING or y_common == _NOTHING:
        return common
    if x_common != _MIXED and y_common != _MIXED and common != _MIXED:
        e = we + x_common + y_common
        if common in (_NOTHING, e):
            for i in range(len(xm)):
                a = wm * xm[i]
                if a != 0.0:
                    row = acc_m[i : i + len(ym)]
                    for j in range(len(ym)):
                        row[j] += a * ym[j]
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
def settle(acc_m, acc_e, common, m, e):
    """Write the accumulator to m, e with mantissas in range; returns the exponent that they have in common."""
    found = _NOTHING
    for k in range(len(acc_m)):
        m[k], e[k] = normalized(acc_m[k], acc_e[k] if common == _MIXED else common)
        if m[k] != 0.0 and found != e[k]:
            found = e[k] if found == _NOTHING else _MIXED
    return found


@bare_kernel
def multiply_all(factors, length_of, m_of, e_of, common_of, offset, acc_m, acc_e, m, e):
    """m, e = the product of the polynomials in these slots; returns the exponent that it has in common."""
    m[0], e[0] = 1.0, 0
    length, common = 1, 0
    for s in factors:
        first, last = offset[s], offset[s] + length_of[s]
        total = length + length_of[s] - 1
        acc_m[:total] = 0.0
        found = add_product(
            acc_m[:total], acc_e[:total], _NOTHING, 1.0, 0,
            m[:length], e[:length], common, m_of[first:last], e_of[first:last], common_of[s],
        )  # fmt: skip
        length = total
        common = settle(acc_m[:length], acc_e[:length], found, m[:length], e[:length])
    return common


@bare_kernel
def run_instructions(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table, weight_exponents, leaf_exponents,
    det_lengths, det_starts, det_m, det_e, codes, lengths, offset, m, e, common, now, acc_m, acc_e, one_m, one_e,
):  # fmt: skip
    """Slot s is m, e from offset[s] on: now[s] coefficients with the exponent common[s], unless that is mixed."""
    for i in range(len(op)):
        kind, first, last, at = op[i], start[i], start[i + 1], target[i]
        here, length = offset[at], lengths[i]
        if kind == LEAF:
            leaf = args[first]
            v = leaf_variable[leaf]
            for k in range(length):  # of two: observed 0, observed 1
                code = k if length == 2 else 2 if v < 0 or codes[v] < 0 else codes[v]
                acc_m[k], acc_e[k] = leaf_table[leaf, code], leaf_exponents[leaf, code]
            found = _MIXED
        elif kind >= DET:
            d = det_starts[args[first]]
            for k in range(length):
                acc_m[k], acc_e[k] = det_m[d + k], det_e[d + k]
            found = _MIXED
        elif kind == TIMES:
            # written where it stays: no slot is given away by the instruction that reads it
            common[at] = multiply_all(
                args[first:last], now, m, e, common, offset, acc_m, acc_e,
                m[here : here + length], e[here : here + length],
            )  # fmt: skip
            now[at] = length
            continue
        else:
            found = _NOTHING
            acc_m[:length] = 0.0
            weight, end = first_weight[i], first_weight[i + 1]
            alone, j = 2 * (end - weight) - (last - first), first  # terms w·x; the others are w·x·y
            for k in range(weight, end):
                x = args[j]
                a, b = offset[x], offset[x] + now[x]
                if k - weight < alone:
                    j += 1
                    found = add_product(
                        acc_m[:length], acc_e[:length], found, weights[k], weight_exponents[k],
                        one_m, one_e, 0, m[a:b], e[a:b], common[x],
                    )  # fmt: skip
                else:
                    y = args[j + 1]
                    j += 2
                    c, d = offset[y], offset[y] + now[y]
                    if b - a > d - c:  # the longer one in the inner loop
                        x, y, a, b, c, d = y, x, c, d, a, b
                    found = add_product(
                        acc_m[:length], acc_e[:length], found, weights[k], weight_exponents[k],
                        m[a:b], e[a:b], common[x], m[c:d], e[c:d], common[y],
                    )  # fmt: skip
        common[at] = settle(acc_m[:length], acc_e[:length], found, m[here : here + length], e[here : here + length])
        now[at] = length


@kernel
def run_polynomials(
    op, target, start, args, first_weight, weights, leaf_variable, leaf_table, weight_exponents, leaf_exponents,
    det_lengths, det_starts, det_m, det_e, codes, counted, lengths, room, roots, out_m, out_e,
):  # fmt: skip
    """out_m[r], out_e[r] = the coefficients of slot roots[r], for one row of codes.

    lengths, room : of `plan_polynomials`. det_m, det_e : the polynomials of determinants, one after another.
    """
    offset = np.zeros(len(room) + 1, np.int64)
    for s in range(len(room)):
        offset[s + 1] = offset[s] + room[s]
    m, e = np.zeros(offset[-1]), np.zeros(offset[-1], np.int64)
    common, now = np.full(len(room), _NOTHING), np.zeros(len(room), np.int64)
    longest = room.max()
    acc_m, acc_e = np.zeros(longest), np.zeros(longest, np.int64)
    one_m, one_e = np.ones(1), np.zeros(1, np.int64)
    run_instructions(
        op, target, start, args, first_weight, weights, leaf_variable, leaf_table, weight_exponents, leaf_exponents,
        det_lengths, det_starts, det_m, det_e, codes, lengths, offset, m, e, common, now, acc_m, acc_e, one_m, one_e,
    )  # fmt: skip
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
