"""Break the compiler in known ways, and show that the tests notice: ``python tests/mutations.py [NAME …]``.

Every mutant is a copy of the package with one text changed, on which a few tests are run: files of tests, or cases of
the adversary. It is killed if one of them fails. The script ends with an error if a mutant survives, if its tests fail
without it (which would kill anything), and at once if a text that it wants to change does not stand exactly once in its
file: whoever rewrites that line mends the mutant too.

    python tests/mutations.py --list                    the names, and whether their texts are there
    python tests/mutations.py --sample 3 --seed 1       some of them, as CI does (`test_mutations`)
    python tests/mutations.py --jobs 4                  several at a time
    python tests/mutations.py "the floor of a bound"    one
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mutations_check import CHECK_MUTANTS
from mutations_float64 import FLOAT64_MUTANTS

HOME = Path(__file__).resolve().parent.parent
# Tests of formulas and of analyses, which take less time in plain Python than their kernels take to be compiled.
PLAIN = "tests/certify/test_bounds.py"


def digest_of_code() -> str:
    """Of pgcc as it is: CI takes other samples of mutants, and of slow tests, after another change."""
    found = hashlib.sha256()
    for path in sorted((HOME / "pgcc").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


class Mutant(NamedTuple):
    """A text of one file, what it becomes, and what should notice.

    tests : files of tests, or one test as file::name. adversary : generators, " / ", questions.
    """

    name: str
    file: str
    line: str
    becomes: str
    tests: str = ""
    adversary: str = ""


MUTANTS = [
    Mutant(
        "a product of small numbers loses nothing",
        "certify/kernels/analysis.py",
        "        low, error = -ENDLESS, log_add(error, LOSS + log_length)",
        "        low = -ENDLESS",
        "certify/test_certificates.py",
    ),
    Mutant(
        "coefficients of series lose no more than numbers",
        "certify/kernels/analysis.py",
        "        low, error = -ENDLESS, log_add(error, LOSS + log_length)",
        "        low, error = -ENDLESS, log_add(error, LOSS)",
        "certify/test_certificates.py",
    ),
    Mutant(
        "a quotient by what underflowed is right",
        "certify/kernels/analysis.py",
        "    if y_error > -math.inf or y_low < _NORMAL:",
        "    if False:",
        "certify/test_bounds.py certify/test_certificates.py",
    ),
    Mutant(
        "a quotient has two roundings",
        "certify/kernels/analysis.py",
        "s.rounds[x] + s.rounds[y] + 3.0",
        "s.rounds[x] + s.rounds[y] + 2.0",
        "certify/test_certificates.py",
    ),
    Mutant(
        "complements are dropped beside large children",
        "determinants/kernels/scaled_staged.py",
        " or (m[y] != 0.0 and top - e[y] > 2)",
        "",
        "certify/test_certificates.py",
    ),
    Mutant(
        "sums miss variables",
        "passes/homogenize.py",
        "            self._missing[key] = self.absent(lacking) if size(lacking) else None",
        "            self._missing[key] = None",
        "program/test_lowering.py",
    ),
    Mutant(
        "a free leaf is an absent one",
        "program/builder.py",
        "table[i, 2] = nearest_float(add(x, y))",
        "table[i, 2] = nearest_float(x)",
        "rings/test_paper.py",
    ),
    Mutant(
        "weights are no part of identity",
        "ir/node.py",
        "    return (op, children, _ratios(data) if Fraction in kinds else data, kinds)",
        "    return (op, children, None if op == Op.SUM else data, kinds)",
        "ir/test_ir.py",
    ),
    Mutant(
        "bounds that are always small",
        "certify/kernels/bounds.py",
        "    return 1.0001 * (gamma * (m + floor) / (1.0 - gamma) + floor) + _LEAST",
        "    return 1e-17 * abs(m)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the sign of Berkowitz' determinant",
        "passes/berkowitz.py",
        "    return p[-1][top] if n % 2 == 0 else _combination([(-1, [ONE], p[-1])], top)[top]",
        "    return p[-1][top]",
        "passes/test_passes.py determinants/test_determinant.py",
    ),
    Mutant(
        "what is out counts as in",
        "determinants/forms.py",
        "-change if form == FREE else change]),",
        "change]),",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "the diagonal of what is out",
        "determinants/forms.py",
        "other, other_low = -base.gap, -base.gap_low",
        "other, other_low = base.gap, base.gap_low",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "borders forget what was eliminated",
        "determinants/kernels/bordering.py",
        "            pivot[j] -= right[at + j] * left[at + j] * inverse",
        "            pivot[j] -= 0.0 * inverse",
        "determinants/test_marginals_det.py",
    ),
    Mutant(
        "everything counts in a determinant of a size",
        "ir/interpret.py",
        "[zero, x] if counts else [x]",
        "[zero, x]",
        "determinants/test_counted_det.py",
    ),
    Mutant(
        "any combination of determinants is proved",
        "validity/extraction.py",
        "    return None if len(found) > 1 else found.pop() if found else 0",
        "    return 1",
        "validity/test_extraction.py",
    ),
    Mutant(
        "trees subtract",
        "determinants/kernels/laplacian.py",
        "                other[j] += share * row[j]",
        "                other[j] -= share * row[j]",
        "frontend/test_spanning_tree.py",
    ),
    Mutant(
        "edges that must be in are left away",
        "determinants/kernels/laplacian.py",
        "            parent[a] = b\n        inside",
        "            parent[b] = b\n        inside",
        "frontend/test_spanning_tree.py",
    ),
    Mutant(
        "matchings with edges that touch",
        "determinants/kernels/sized.py",
        "            next_[i] = newer[i] + path[t] * older[i - 1]",
        "            next_[i] = newer[i] + path[t] * newer[i - 1]",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "complements of what is absent are forgotten",
        "exact/pencil.py",
        "        factor = math.prod([y[i] for i in absent], start=self.one)",
        "        factor = self.one",
        "determinants/test_exact_det.py",
    ),
    Mutant(
        "slots are free too early",
        "program/schedule.py",
        "    last[list(roots)] = len(start)",
        "    last = np.maximum(last - 1, -1)\n    last[list(roots)] = len(start)",
        "program/test_lowering.py laws/test_strategies.py",
    ),
    Mutant(
        "conditioning keeps lower degrees",
        "passes/condition.py",
        "range(len(ins), len(ins) + 1), kept=False)",
        "range(len(ins) + 1), kept=False)",
        "passes/test_condition.py",
    ),
    Mutant(
        "a pair of a determinant leads with less than it has",
        "passes/sizes.py",
        "            leading = [parts.get(top, ZERO) for parts, top in zip(children, tops, strict=True)]",
        "            leading = [parts.get(top, ONE) for parts, top in zip(children, tops, strict=True)]",
        "passes/test_condition.py",
    ),
    Mutant(
        "K is taken for L",
        "frontend/dpp.py",
        "    return _circuit(kernel, _one_minus(kernel), _identity(kernel), _transposed(kernel))",
        "    return _circuit(kernel, _identity(kernel), _identity(kernel), _transposed(kernel))",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "a weight is lost in merging",
        "passes/rules.py",
        "            weights[place] = total",
        "            pass",
        "passes/test_passes.py",
    ),
    Mutant(
        "the top coefficient without its neighbours",
        "rings/kernels/series.py",
        "                slack[args[j]] = max(slack[args[j]], total - lowest)",
        "                slack[args[j]] = max(slack[args[j]], 0)",
        "laws/test_strategies.py",
    ),
    Mutant(
        "decimals are doubles",
        "frontend/tokens.py",
        "    return digits * 10**power if power >= 0 else as_number(Fraction(digits, 10**-power))",
        "    return digits * 10**power if power >= 0 else digits / 10**-power",
        "frontend/test_expression.py",
    ),
]

MUTANTS += [Mutant(*one) for one in [*CHECK_MUTANTS, *FLOAT64_MUTANTS]]


# Every term of every bound. What a bound is made of is compared with what it must be at least (test_bounds),
# or the bound with exact errors of cases that are made to exceed it (the adversary).
BOUNDS = [
    # the formulas
    Mutant(
        "the floor of a bound",
        "certify/kernels/bounds.py",
        "(gamma * (m + floor) / (1.0 - gamma) + floor)",
        "(gamma * (m + floor) / (1.0 - gamma))",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the magnitude that underflow hid",
        "certify/kernels/bounds.py",
        "(gamma * (m + floor) / (1.0 - gamma) + floor)",
        "(gamma * m / (1.0 - gamma) + floor)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the computed magnitude for the true one",
        "certify/kernels/bounds.py",
        "(gamma * (m + floor) / (1.0 - gamma) + floor)",
        "(gamma * (m + floor) + floor)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "relative to the computed value",
        "certify/kernels/bounds.py",
        "    return error / rest if rest > 0.0",
        "    return error / abs(v) if rest > 0.0",
        "certify/test_bounds.py",
    ),
    Mutant(
        "zero without a floor",
        "certify/kernels/bounds.py",
        "    if v == 0.0 and m == 0.0 and floor == 0.0:",
        "    if v == 0.0 and m == 0.0:",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the error of what divides",
        "certify/kernels/bounds.py",
        "    more, times = by_bound + 2.0 * UNIT,",
        "    more, times = 2.0 * UNIT,",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the rounding of a quotient",
        "certify/kernels/bounds.py",
        "    more, times = by_bound + 2.0 * UNIT,",
        "    more, times = by_bound,",
        "certify/test_bounds.py",
    ),
    Mutant(
        "a quotient by what is smaller than it seems",
        "certify/kernels/bounds.py",
        "(1.0 + 4.0 * UNIT) / max(1.0 - by_bound, 0.5)",
        "(1.0 + 4.0 * UNIT)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the root's error in a posterior",
        "certify/kernels/bounds.py",
        "gamma, floor[row]) + root_bound) * (1.0 + 1e-6) + 1e-15",
        "gamma, floor[row])) * (1.0 + 1e-6) + 1e-15",
        "certify/test_bounds.py",
    ),
    Mutant(
        "a posterior by what is smaller than it seems",
        "certify/kernels/bounds.py",
        "bound / (1.0 - root_bound) if root_bound < 1.0",
        "bound if root_bound < 1.0",
        "certify/test_bounds.py",
    ),
    Mutant(
        "what the formula of a bound loses below the normal numbers",
        "certify/kernels/bounds.py",
        "+ floor) + _LEAST",
        "+ floor)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the variable's error in a posterior",
        "certify/kernels/bounds.py",
        "                bound = (relative_bound(x, sizes[i, row], gamma, floor[row]) + root_bound)",
        "                bound = root_bound",
        "certify/test_bounds.py",
    ),
    Mutant(
        "subnormal floats are as good as others",
        "rings/values.py",
        "            bound[tiny] += np.where(floats > 0.0, 2.0**-1074 / floats, np.inf)[tiny]",
        "            bound[tiny] += 0.0",
        "certify/test_bounds.py",
    ),
    Mutant(
        "roundings beyond the first order",
        "certify/certificate.py",
        "    return total / (1.0 - total) if total < 0.5 else np.inf",
        "    return total if total < 0.5 else np.inf",
        "certify/test_bounds.py",
    ),
    # roundings of operations
    *(
        Mutant(
            f"roundings: {name}",
            "certify/kernels/analysis.py",
            line,
            becomes,
            "certify/test_bounds.py certify/test_certificates.py",
        )
        for name, line, becomes in [
            (
                "of factors",
                "rounds[at] += rounds[x] + system.length",
                "rounds[at] = max(rounds[at], rounds[x]) + 1.0",
            ),
            ("of products", "rounds[at] += rounds[x] + system.length", "rounds[at] += rounds[x]"),
            ("of a quotient", "s.rounds[x] + s.rounds[y] + 3.0", "s.rounds[x] + s.rounds[y] + 2.0"),
            ("of the divisor", "s.rounds[x] + s.rounds[y] + 3.0", "s.rounds[x] + 3.0"),
            ("of weights", "_add_term(s, at, s.rounds[x] + 2.0,", "_add_term(s, at, s.rounds[x] + 0.0,"),
            ("of weights of products", "s.rounds[y] + 2.0 + system.length", "s.rounds[y] + system.length"),
            ("of the second factor", "s.rounds[x] + s.rounds[y] + 2.0", "s.rounds[x] + 2.0"),
            ("of a product in a sum", "s.rounds[y] + 2.0 + system.length", "s.rounds[y] + 2.0"),
            (
                "of values in sums",
                "    _add_term(s, at, s.rounds[x] + 2.0,",
                "    _add_term(s, at, 0.0,",
            ),
            ("of additions", "    system.terms[0] += 1.0\n\n\ndef _add_product", "\n\ndef _add_product"),
            ("of added series", "    system.terms[0] += system.length", "    system.terms[0] += 1.0"),
        ]
    ),
    Mutant(
        "roundings: of leaves",
        "certify/certificate.py",
        "        np.full(len(size), 2.0),",
        "        np.full(len(size), 0.0),",
        "certify/test_bounds.py certify/test_certificates.py",
    ),
    # underflow
    *(
        Mutant(
            f"underflow: {name}",
            file,
            line,
            becomes,
            "certify/test_bounds.py certify/test_certificates.py",
            "flows_order subnormal scales series_floor deep / prob raw marginals",
        )
        for name, file, line, becomes in [
            ("of products", "certify/kernels/analysis.py", "log_add(error, LOSS + log_length)", "error"),
            (
                "of long products",
                "certify/kernels/analysis.py",
                "log_add(error, LOSS + log_length)",
                "log_add(error, LOSS)",
            ),
            (
                "of the first factor",
                "certify/kernels/analysis.py",
                "log_add(x_error + y_high, x_high + y_error)",
                "x_high + y_error",
            ),
            (
                "of the second factor",
                "certify/kernels/analysis.py",
                "log_add(x_error + y_high, x_high + y_error)",
                "x_error + y_high",
            ),
            ("of weights", "certify/kernels/analysis.py", "LOSS if lost else -math.inf", "-math.inf"),
            ("of a quotient", "certify/kernels/analysis.py", "    error = x_error - y_low\n", "    error = x_error\n"),
            (
                "of quotients",
                "certify/kernels/analysis.py",
                "low, error = -ENDLESS, log_add(error, LOSS)",
                "low = -ENDLESS",
            ),
            (
                "of a divisor",
                "certify/kernels/analysis.py",
                "if y_error > -math.inf or y_low < _NORMAL:",
                "if y_error > -math.inf:",
            ),
            (
                "of terms",
                "certify/kernels/analysis.py",
                "= log_add(s.error[at], error), s.positive[at] & positive",
                "= s.error[at], s.positive[at] & positive",
            ),
            (
                "of values in sums",
                "certify/kernels/analysis.py",
                "s.low[x], s.error[x])\n    _add_term(",
                "s.low[x], s.error[x])\n    error = s.error[x]\n    _add_term(",
            ),
            (
                "of leaves",
                "certify/certificate.py",
                "        np.where(lost, LOSS, -math.inf),",
                "        np.full(len(table), -math.inf),",
            ),
            (
                "of both factors",
                "certify/kernels/analysis.py",
                "log_add(log_add(x_error + y_high, x_high + y_error), x_error + y_error + log_length)",
                "log_add(x_error + y_high, x_high + y_error)",
            ),
            (
                "the least normal number",
                "certify/kernels/analysis.py",
                "_NORMAL, LEAST_NORMAL = -1021 * math.log(2.0)",
                "_NORMAL, LEAST_NORMAL = -1074 * math.log(2.0)",
            ),
            (
                "of subnormal weights",
                "certify/kernels/analysis.py",
                "    lost = weight < LEAST_NORMAL",
                "    lost = False",
            ),
            ("of weights that are not 1", "certify/kernels/analysis.py", "    if weight == 0.0:", "    if True:"),
            (
                "the largest quotient",
                "certify/kernels/analysis.py",
                "    return x_high - y_low, low, error",
                "    return x_high - y_high, low, error",
            ),
            (
                "the largest sum",
                "certify/kernels/analysis.py",
                "s.high[at], s.low[at] = log_add(s.high[at], high),",
                "s.high[at], s.low[at] = max(s.high[at], high),",
            ),
            (
                "of sums with negative terms",
                "certify/kernels/analysis.py",
                "    if not (s.positive[at] and s.error[at] == -math.inf):",
                "    if not s.error[at] == -math.inf:",
            ),
            (
                "signs of weights",
                "certify/kernels/analysis.py",
                "error, s.positive[x] & (not system.negative[k]))",
                "error, s.positive[x])",
            ),
            (
                "signs of factors in sums",
                "certify/kernels/analysis.py",
                "2.0 + system.length, s.positive[x] & s.positive[y]",
                "2.0 + system.length, s.positive[x]",
            ),
            (
                "signs of factors",
                "certify/kernels/analysis.py",
                "    positive[at] &= positive[x]\n",
                "",
            ),
            (
                "the order of weights",
                "certify/kernels/analysis.py",
                "    if system.weight_first:",
                "    if not system.weight_first:",
            ),
            (
                "the largest leaf",
                "certify/certificate.py",
                "np.log(np.abs(program.leaf_table[:, :2]).sum(axis=1))",
                "np.log(np.abs(program.leaf_table[:, :2]).max(axis=1))",
            ),
            (
                "the least coefficient of a leaf",
                "certify/certificate.py",
                "leaves._replace(low=np.full(len(leaves.low), -ENDLESS))",
                "leaves",
            ),
            (
                "signs of leaves",
                "certify/certificate.py",
                "        positive,\n    )",
                "        np.ones(len(size), np.uint8),\n    )",
            ),
            (
                "sizes of subnormal weights",
                "certify/certificate.py",
                "        logs[k] = _log_size(program.numbers[k])",
                "        logs[k] = min(logs[k], 800.0)",
            ),
            (
                "of the floor itself",
                "certify/certificate.py",
                " * _bounded_exp(beside + 1.0) + 2.0**-1074)",
                " * _bounded_exp(beside + 1.0))",
            ),
            (
                "rounding of what is lost",
                "certify/certificate.py",
                "_bounded_exp(error + 1.0) + min",
                "_bounded_exp(error) + min",
            ),
            (
                "rounding of what magnitudes lose",
                "certify/certificate.py",
                "min(gamma, 1.0) * _bounded_exp(beside + 1.0)",
                "min(gamma, 1.0) * _bounded_exp(beside)",
            ),
            ("of the value", "certify/certificate.py", "_bounded_exp(error + 1.0) + min(gamma", "min(gamma"),
            ("of the magnitude", "certify/certificate.py", " + min(gamma, 1.0) * _bounded_exp(beside + 1.0)", ""),
        ]
    ),
    # determinants
    *(
        Mutant(f"determinants: {name}", file, line, becomes, tests, adversary)
        for name, file, line, becomes, tests, adversary in [
            (
                "errors of children",
                "certify/certificate.py",
                "        off = bound + _log_growth(below)",
                "        off = -math.inf",
                "certify/test_certificates.py",
                "tiny_beside_determinant composed / prob raw",
            ),
            (
                "growth by children",
                "certify/certificate.py",
                "    return log_sum + 0.55 if log_sum < 0.0",
                "    return log_sum if log_sum < 0.0",
                "certify/test_bounds.py",
                "",
            ),
            (
                "growth by wrong children",
                "certify/certificate.py",
                " if log_sum < 0.0 else min(math.exp(min(log_sum, 30.0)), ENDLESS)",
                "",
                "certify/test_bounds.py",
                "",
            ),
            (
                "Hadamard's bound without V",
                "certify/certificate.py",
                "np.logaddexp(_log_squares(m0, 0), _log_squares(v, 1))",
                "_log_squares(m0, 0)",
                "certify/test_certificates.py::test_a_bound_of_every_value_of_a_determinant",
                "",
            ),
            (
                "Hadamard's bound without complements",
                "certify/certificate.py",
                "np.logaddexp(_log_squares(u, 0) + 2.0 * log_f, 2.0 * log_y)",
                "_log_squares(u, 0) + 2.0 * log_f",
                "certify/test_certificates.py::test_a_bound_of_every_value_of_a_determinant",
                "",
            ),
            (
                "definite by rounding",
                "linalg.py",
                "scaled - shift * np.eye(n)",
                "scaled",
                "certify/test_bounds.py",
                "",
            ),
            (
                "definite though entries are off",
                "linalg.py",
                "        off += 1.001 * error / scale / scale[:, None]",
                "        pass",
                "certify/test_bounds.py",
                "",
            ),
            (
                "negative coefficients",
                "determinants/staged.py",
                "        if self.is_positive(d, children):",
                "        if True:",
                "certify/test_certificates.py",
                "tiny_beside_determinant / prob raw",
            ),
            (
                "radii of the kernel",
                "determinants/bases.py",
                "    error += (entries.radii * scaling).max(initial=0.0)",
                "",
                "",
                "orthogonal_columns / prob raw",
            ),
            (
                "the residual of the inverse",
                "determinants/bases.py",
                "        error = (arb(_sizes(x, r)[1]) * largest / (1.0 - norm) * 1.001).abs_upper()",
                "        error = arb(0)",
                "attacks/test_attacks_det.py determinants/test_near_duplicates.py",
                "cancelling_columns dpp_features / prob raw",
            ),
            (
                "growth, quickly",
                "determinants/kernels/forms.py",
                "        tau[lane] *= 1.11 * (roundings + spread)",
                "        tau[lane] *= 1e-3 * (roundings + spread)",
                "attacks/test_attacks_det.py determinants/test_near_duplicates.py",
                "dpp_features dpp_floats / prob raw",
            ),
            (
                "growth",
                "determinants/kernels/forms.py",
                "        better = 1.5 * (roundings + q * spread) * spare[lane]",
                "        better = 1e-4 * (roundings + q * spread) * spare[lane]",
                "attacks/test_attacks_det.py determinants/test_near_duplicates.py",
                "dpp_features dpp_floats / prob raw",
            ),
            (
                "the border's size",
                "determinants/kernels/bordering.py",
                "(roundings * UNIT * size + relative * abs(pivot))",
                "(relative * abs(pivot))",
                "determinants/test_marginals_det.py attacks/test_attacks_marginals.py",
                "dpp_floats dpp_features / marginals pairwise",
            ),
            (
                "the border's growth",
                "determinants/kernels/bordering.py",
                "    tau = roundings * UNIT * growth",
                "    tau = 0.0 * growth",
                "determinants/test_marginals_det.py attacks/test_attacks_marginals.py",
                "dpp_floats dpp_features / marginals pairwise",
            ),
            (
                "errors of sizes",
                "determinants/kernels/sized.py",
                "(np.sqrt(m - j + 1.0) * error + (m - j + 1.0) * shift) * before / e",
                "0.0",
                "determinants/test_sized_det.py frontend/test_dpp_forms.py",
                "dpp_exact / prob raw",
            ),
            (
                "trees",
                "determinants/kernels/laplacian.py",
                "    return value, exponent, 1.01 * roundings * UNIT if reliable else math.nan",
                "    return value, exponent, 0.0 * roundings",
                "frontend/test_spanning_tree.py",
                "trees / prob raw",
            ),
            (
                "slices too wide for their products",
                "determinants/slices.py",
                "    bits = (53 - math.ceil(math.log2(len(matrix)))) // 2",
                "    bits = 27",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: what a sum loses",
                "determinants/kernels/exact_sums.py",
                "        most = max(most, abs(rest))",
                "        most = 0.0",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: what is left of the first residual",
                "determinants/definite.py",
                "left = of_first * (known + unseen) + through",
                "left = 0.0 * (known + unseen) + 0.0 * through",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: cubes of eigenvalues",
                "determinants/definite.py",
                "        error += size**3 / (3.0 * (1.0 - size)) +",
                "        error += 0.0 * size**3 +",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: the diagonal is not scaled back",
                "determinants/definite.py",
                "            diagonal = [x * arb(one) for",
                "            diagonal = [x for",
                "determinants/test_definite.py",
                "",
            ),
        ]
    ),
    # other methods
    *(
        Mutant(f"{name}", file, line, becomes, tests, adversary)
        for name, file, line, becomes, tests, adversary in [
            (
                "fft: rounding of sums",
                "rings/paper.py",
                "(len(weights) + 3) * (UNIT * size + _TINY)",
                "0.0 * size",
                "certify/test_bounds.py",
                "entangled cancelling nearly_zero / prob raw",
            ),
            (
                "fft: rounding of products",
                "rings/paper.py",
                "    return product, (spread + rounding) * (1 + 64 * UNIT) + _TINY * n",
                "    return product, spread",
                "certify/test_bounds.py",
                "entangled entangled_scales / prob raw",
            ),
            (
                "fft: errors of factors",
                "rings/paper.py",
                "    return product, (spread + rounding) * (1 + 64 * UNIT) + _TINY * n",
                "    return product, rounding",
                "certify/test_bounds.py",
                "entangled entangled_scales / prob raw",
            ),
            (
                "fft: leaves",
                "rings/paper.py",
                "at[node] = np.array([value]), UNIT * abs(value) + _TINY",
                "at[node] = np.array([value]), 0.0",
                "certify/test_bounds.py",
                "subnormal / prob raw",
            ),
            (
                "balls: their radius",
                "exact/precision.py",
                "ratio / (1 - ratio) + 2 * UNIT if ratio < 0.5",
                "2 * UNIT if ratio < 0.5",
                "certify/test_bounds.py",
                "",
            ),
            *(
                (f"estimates: {what}", "queries/information.py", line, becomes, "certify/test_bounds.py", "")
                for what, line, becomes in [
                    (
                        "the entropy of what was not seen",
                        "max(map(_times_log, u)) + u[1] * free * np.log(2.0)",
                        "max(map(_times_log, u))",
                    ),
                    (
                        "the probability of what was not seen",
                        "max(map(_times_log, u)) + u[1] * free",
                        "u[1] * free",
                    ),
                    (
                        "what samples miss",
                        "_MISSED / len(drawn) * (free * np.log(2.0) + np.log(len(drawn)))",
                        "0.0",
                    ),
                    (
                        "the divergence of what was not seen",
                        "(part + slack - u[1] * floor - least) / 2",
                        "(part + slack - least) / 2",
                    ),
                    (
                        "the least divergence of what was not seen",
                        "least = max(0.0, part + _least_share(*u, v) - slack)",
                        "least = max(0.0, part - slack)",
                    ),
                    (
                        "the divergence of what samples miss",
                        "max(missed * -floor, -_least_share(0.0, missed, v))",
                        "0.0",
                    ),
                    (
                        "what samples miss is more probable under q",
                        "max(missed * -floor, -_least_share(0.0, missed, v))",
                        "missed * -floor",
                    ),
                ]
            ),
            (
                "counts: relative to the computed value",
                "evaluate/counting.py",
                "np.where(ratio < 1.0, ratio / (1.0 - ratio), np.inf)",
                "np.where(ratio < 1.0, ratio, np.inf)",
                "certify/test_bounds.py",
                "",
            ),
            (
                "logarithms near 0",
                "queries/probability.py",
                "~(values.bound + 4.0 * UNIT <= rtol * size)",
                "~(values.bound + 4.0 * UNIT <= rtol)",
                "queries/test_answers.py",
                "",
            ),
            (
                "modes: what is pruned",
                "queries/mode_search.py",
                "        if bound > self.logprob + self.slack:",
                "        if bound > self.logprob + 1e-8:",
                "queries/test_answers.py::test_a_mode_beside_a_branch_that_is_likelier_as_a_whole",
                "",
            ),
            (
                "gradients: determinants",
                "queries/gradient.py",
                "        is_lost = not function.sensitivity(codes, share, found) <= _LOST",
                "        is_lost = False",
                "evaluate/test_gradients.py::test_a_determinant_that_cancels_where_the_value_does_not",
                "",
            ),
            (
                "gradients: sums beside determinants",
                "evaluate/gradient.py",
                "self.constants = constants._replace(weights=constants.weights * factors)",
                "self.constants = constants",
                "attacks/test_attacks_questions.py::test_derivatives_are_not_lost_beside_what_has_no_bounds",
                "",
            ),
            (
                "counts: gamma",
                "evaluate/counting.py",
                "magnitude[0] * (gamma / (1.0 - gamma))",
                "magnitude[0] * 0.0",
                "evaluate/test_cardinality.py attacks/test_attacks_counts.py",
                "cancelling nearly_zero / cardinality counts",
            ),
            (
                "counts: between two runs",
                "evaluate/counting.py",
                "        error = 1.5 * np.maximum(high[0] - below, 0.0) + 5.0 * gamma / (1.0 - gamma) * high[0]",
                "        error = 0.0 * high[0]",
                "determinants/test_counted_det.py attacks/test_attacks_counts.py",
                "dpp_exact dpp_floats / cardinality counts",
            ),
            (
                "long counts: lost tails",
                "evaluate/counting_long.py",
                "1.01 * (2.0 * gamma * top + lost + top * in_sum)",
                "1.01 * (2.0 * gamma * top)",
                "evaluate/test_cardinality_long.py",
                "",
            ),
            (
                "long counts: losses that are not small",
                "evaluate/counting_long.py",
                "        if not gamma + in_sum <= _FIRST_ORDER:",
                "        if False:",
                "evaluate/test_cardinality_long.py",
                "",
            ),
            (
                "long counts: exponents of zeros",
                "evaluate/counting_long.py",
                "[np.maximum(e, _LEAST_EXPONENT) * RADIX for e in",
                "[e * RADIX for e in",
                "evaluate/test_cardinality_long.py",
                "",
            ),
            (
                "logarithms of what is scaled cancel",
                "rings/values.py",
                "        if exponent.any():\n            # The logarithms",
                "        if False:\n            # The logarithms",
                "queries/test_answers.py",
                "",
            ),
            (
                "long counts: transforms",
                "rings/fourier.py",
                "    epsilon = UNIT * (_PASS * math.log2(points) + _BESIDE)",
                "    epsilon = 0.0",
                "evaluate/test_cardinality_long.py",
                "",
            ),
            (
                "gradients: what is lost",
                "queries/gradient.py",
                "        return self.differentiator.gamma * total",
                "        return 0.0 * total",
                "evaluate/test_gradients.py::test_a_derivative_that_cancels_where_the_value_does_not",
                "cancelling / gradient",
            ),
            (
                "gradients: certified values",
                "queries/gradient.py",
                "<= _AGREEMENT))[:1]",
                "<= 1e9))[:1]",
                "evaluate/test_gradients.py::test_a_value_that_cancels_is_named",
                "cancelling nearly_zero / gradient",
            ),
        ]
    ),
]


# -- running them ---------------------------------------------------------------------------------------------------


def problem(mutant: Mutant) -> str | None:
    """Why a mutant cannot be made: the text does not stand exactly once in its file, or does not change."""
    path = HOME / "pgcc" / mutant.file
    if not path.exists():
        return f"{mutant.name}: there is no pgcc/{mutant.file}"
    times = path.read_text(encoding="utf-8").count(mutant.line)
    if times != 1:
        return f"{mutant.name}: pgcc/{mutant.file} has this {times} times: {mutant.line!r}"
    if mutant.line == mutant.becomes or not (mutant.tests or mutant.adversary):
        return f"{mutant.name}: it changes nothing, or nothing is to notice it"
    missing = [t for t in mutant.tests.split() if not (HOME / "tests" / t.split("::")[0]).exists()]
    return f"{mutant.name}: there is no tests/{missing[0]}" if missing else None


def commands(mutant: Mutant) -> list[list[str]]:
    """What should fail on the mutant, the quickest first."""
    found = []
    tests = [f"tests/{name}" for name in mutant.tests.split()]
    for some in ([t for t in tests if t == PLAIN], [t for t in tests if t != PLAIN]):
        if some:
            found.append([sys.executable, "-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider", *some])
    if mutant.adversary:
        generators, questions = (part.split() for part in mutant.adversary.split(" / "))
        words = [w for g in generators for w in ("--generator", g)] + [w for q in questions for w in ("--question", q)]
        found.append([sys.executable, "-m", "tests.adversary", "6000", "--thresholds", "as-is", *words])
    return found


def stale_kernels(file: str) -> list[str]:
    """The modules whose machine code, as Numba keeps it, is outdated by a change of a file: what imports it, too."""
    kernels = {path: path.read_text(encoding="utf-8") for path in (HOME / "pgcc").glob("**/kernels/*.py")}
    found = [HOME / "pgcc" / file] if "kernels" in file else []
    for path in found:  # and grows
        imports = f"from {'.'.join(path.relative_to(HOME).with_suffix('').parts)} import"
        found += [other for other, text in kernels.items() if imports in text and other not in found]
    return [path.stem for path in found]


def run_in_copy(mutant: Mutant | None, command: list[str]) -> tuple[int, str]:
    """The exit code and the output of a command in a copy of everything, mutated or (None) as it is."""
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room) / "copy"
        stale = [f"{name}.*.nb?" for name in stale_kernels(mutant.file)] if mutant is not None else []
        shutil.copytree(HOME, folder, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", *stale))
        if mutant is not None:
            path = folder / "pgcc" / mutant.file
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(mutant.line, mutant.becomes), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        if command[-1] == PLAIN:
            environment["NUMBA_DISABLE_JIT"] = "1"
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def killer(mutant: Mutant) -> str | None:
    """What fails on the mutant: a test, or a number of the adversary. A crash of the adversary is neither."""
    for command in commands(mutant):
        code, output = run_in_copy(mutant, command)
        lines = output.splitlines()
        told = [line for line in lines if line.startswith("FAILED ")] or [
            after for line, after in pairwise(lines) if line.endswith("numbers are wrong:")
        ]
        if code == 1 and told:
            return told[0]
    return None


def baseline_failures(wanted: list[Mutant]) -> list[str]:
    """Commands that fail although nothing was changed."""
    distinct = {" ".join(c[1:]): c for mutant in wanted for c in commands(mutant)}
    return [text for text, command in distinct.items() if run_in_copy(None, command)[0] != 0]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python tests/mutations.py", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="only these; all unless said otherwise")
    parser.add_argument("--list", action="store_true", help="the names, without running anything")
    parser.add_argument("--sample", type=int, metavar="K", help="so many of them, by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--no-baseline", action="store_true", help="take it for granted that the tests pass unchanged")
    parser.add_argument("--reasons", action="store_true", help="also say which test failed, and on what")
    options = parser.parse_args(arguments)
    everything = [*MUTANTS, *BOUNDS]
    unknown = set(options.names) - {m.name for m in everything}
    if unknown:
        raise SystemExit(f"no mutant is called {sorted(unknown)[0]!r}")
    wanted = [m for m in everything if not options.names or m.name in options.names]
    if options.sample is not None:
        wanted = random.Random(options.seed).sample(wanted, min(options.sample, len(wanted)))
    problems = [told for told in map(problem, wanted) if told]
    if options.list:
        print(*(m.name for m in wanted), sep="\n")
    if problems:
        raise SystemExit("\n".join(problems))
    if options.list:
        return
    if not options.no_baseline and (failing := baseline_failures(wanted)):
        raise SystemExit("these fail without any mutation:\n" + "\n".join(failing))
    survivors = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for i, (mutant, told) in enumerate(zip(wanted, pool.map(killer, wanted), strict=True), 1):
            print(f"{i:3}/{len(wanted)}  {'killed  ' if told else 'SURVIVED'}  {mutant.name}", flush=True)
            if options.reasons and told:
                print(f"         {told[:200]}", flush=True)
            if not told:
                survivors.append(mutant.name)
    if survivors:
        raise SystemExit(f"{len(survivors)} of {len(wanted)} mutants survived: {', '.join(survivors)}")


if __name__ == "__main__":
    main()
