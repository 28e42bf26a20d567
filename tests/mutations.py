"""Break the compiler in known ways, and show that the tests notice: ``python tests/mutations.py [NAME …]``.

Every mutant is a copy of the package with a piece of code changed, on which a few tests are run: files of tests, or
cases of the adversary. It is killed if one of them fails. The script ends with an error if a mutant survives, if its
tests fail without it (which would kill anything), and at once if the code that it wants to change does not stand
exactly once in its function: whoever rewrites that code mends the mutant too. Code is found in the syntax tree, so that
its layout, comments and the rest of the file may change freely.

    python tests/mutations.py --list                    the names, and what is missing
    python tests/mutations.py --sample 3 --seed 1       some of them, as CI does (`test_mutations`)
    python tests/mutations.py --jobs 4                  several at a time
    python tests/mutations.py "the floor of a bound"    one
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mutations_check import CHECK_MUTANTS
from mutations_edges import EDGE_MUTANTS
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
    """A piece of code, what it becomes, and what should notice.

    where : the function or class, as "Class.method"; "" for a whole file. code, becomes : expressions, or statements.
    tests : files of tests, or one test as file::name. adversary : generators, " / ", questions.
    """

    name: str
    file: str
    where: str
    code: str
    becomes: str
    tests: str = ""
    adversary: str = ""


MUTANTS = [
    Mutant(
        "a product of small numbers loses nothing",
        "certify/kernels/analysis.py",
        "_product",
        "low, error = -ENDLESS, log_add(error, LOSS + log_length)",
        "low = -ENDLESS",
        "certify/test_certificates.py",
    ),
    Mutant(
        "coefficients of series lose no more than numbers",
        "certify/kernels/analysis.py",
        "_product",
        "LOSS + log_length",
        "LOSS",
        "certify/test_certificates.py",
    ),
    Mutant(
        "machine code under another kernel's name is run",
        "kernels/cache.py",
        "",
        'hashlib.sha256(path.name.encode() + b"\\n" + content)',
        "hashlib.sha256(content)",
        "kernels/test_cache.py",
    ),
    Mutant(
        "machine code from a folder of the group is run",
        "kernels/folder.py",
        "",
        "(stat.S_IWGRP | stat.S_IWOTH)",
        "stat.S_IWOTH",
        "kernels/test_cache.py",
    ),
    Mutant(
        "locks stay locked in a forked child",
        "locks.py",
        "",
        "os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)",
        "pass",
        "test_locks.py",
    ),
    Mutant(
        "complements are dropped beside large children",
        "determinants/kernels/scaled_staged.py",
        "scaled_determinant",
        "(m[f] != 0.0 and top - e[f] > 2) or (m[y] != 0.0 and top - e[y] > 2)",
        "m[f] != 0.0 and top - e[f] > 2",
        "certify/test_certificates.py",
    ),
    Mutant(
        "sums miss variables",
        "passes/homogenize.py",
        "Fillers.missing",
        "self._filler(lacking) if size(lacking) else None",
        "None",
        "program/test_lowering.py",
    ),
    Mutant(
        "a free leaf is an absent one",
        "program/builder.py",
        "leaf_table",
        "add(x, y)",
        "x",
        "rings/test_paper.py",
    ),
    Mutant(
        "weights are no part of identity",
        "ir/node.py",
        "identity",
        "_ratios(data) if Fraction in kinds else data",
        "None if op == Op.SUM else data",
        "ir/test_ir.py",
    ),
    Mutant(
        "bounds that are always small",
        "certify/kernels/bounds.py",
        "absolute_error",
        "1.0001 * (gamma * (m + floor) / (1.0 - gamma) + floor) + _LEAST",
        "1e-17 * abs(m)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the sign of Berkowitz' determinant",
        "passes/berkowitz.py",
        "",
        "p[-1][top] if n % 2 == 0 else _combination([(-1, [ONE], p[-1])], top)[top]",
        "p[-1][top]",
        "passes/test_passes.py determinants/test_determinant.py",
    ),
    Mutant(
        "what is out counts as in",
        "determinants/forms.py",
        "_put_variable_tables",
        "-change if form == FREE else change",
        "change",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "the diagonal of what is out",
        "determinants/forms.py",
        "_put_variable_tables",
        "-base.gap, -base.gap_low",
        "base.gap, base.gap_low",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "borders forget what was eliminated",
        "determinants/kernels/bordering.py",
        "border_pivots",
        "right[at + j] * left[at + j]",
        "0.0",
        "determinants/test_marginals_det.py",
    ),
    Mutant(
        "everything counts in a determinant of a size",
        "ir/interpret.py",
        "_det",
        "[zero, x] if counts else [x]",
        "[zero, x]",
        "determinants/test_counted_det.py",
    ),
    Mutant(
        "any combination of determinants is proved",
        "validity/proof/steps.py",
        "_part_of_determinant",
        "sign in (-1, 0, 1) and {_sign(x) for x in sums} <= {0, sign}",
        "sign in (-1, 0, 1)",
        "validity/test_extraction.py",
    ),
    Mutant(
        "trees subtract",
        "determinants/kernels/laplacian.py",
        "_star_mesh",
        "other[j] += share * row[j]",
        "other[j] -= share * row[j]",
        "frontend/test_spanning_tree.py",
    ),
    Mutant(
        "edges that must be in are left away",
        "determinants/kernels/laplacian.py",
        "contract",
        "if a == r:\n    parent[b] = a\nelse:\n    parent[a] = b",
        "if a == r:\n    parent[b] = a\nelse:\n    parent[b] = b",
        "frontend/test_spanning_tree.py",
    ),
    Mutant(
        "matchings with edges that touch",
        "determinants/kernels/sized.py",
        "_matchings",
        "older[i - 1]",
        "newer[i - 1]",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "complements of what is absent are forgotten",
        "exact/pencil.py",
        "Determinant.at",
        "math.prod([y[i] for i in absent], start=self.one)",
        "self.one",
        "determinants/test_exact_det.py",
    ),
    Mutant(
        "slots are free too early",
        "program/schedule.py",
        "_last_uses",
        "np.maximum.at(last, program.args[is_slot], user[is_slot])",
        "np.maximum.at(last, program.args[is_slot], user[is_slot])\nlast = np.maximum(last - 1, -1)",
        "program/test_lowering.py laws/test_strategies.py",
    ),
    Mutant(
        "conditioning keeps lower degrees",
        "passes/condition.py",
        "condition",
        "range(len(ins), len(ins) + 1)",
        "range(len(ins) + 1)",
        "passes/test_condition.py",
    ),
    Mutant(
        "a pair of a determinant leads with less than it has",
        "passes/sizes.py",
        "",
        "[parts.get(top, ZERO) for parts, top in zip(children, tops, strict=True)]",
        "[parts.get(top, ONE) for parts, top in zip(children, tops, strict=True)]",
        "passes/test_condition.py",
    ),
    Mutant(
        "K is taken for L",
        "frontend/dpp.py",
        "_from_k",
        "identity_minus(K)",
        "identity_minus(0 * K)",
        "frontend/test_dpp_forms.py",
    ),
    Mutant(
        "a weight is lost in merging",
        "passes/rules.py",
        "merge_equal_terms",
        "weights[place] = total",
        "pass",
        "passes/test_passes.py",
    ),
    Mutant(
        "the top coefficient without its neighbours",
        "rings/kernels/series.py",
        "find_slack",
        "total - lowest",
        "0",
        "laws/test_strategies.py",
    ),
    Mutant(
        "decimals are doubles",
        "frontend/tokens.py",
        "_decimal",
        "as_number(Fraction(digits, 10**-power))",
        "digits / 10**-power",
        "frontend/test_expression.py",
    ),
]

MUTANTS += [Mutant(*one) for one in [*CHECK_MUTANTS, *FLOAT64_MUTANTS, *EDGE_MUTANTS]]


# Every term of every bound. What a bound is made of is compared with what it must be at least (test_bounds),
# or the bound with exact errors of cases that are made to exceed it (the adversary).
BOUNDS = [
    # the formulas
    Mutant(
        "the floor of a bound",
        "certify/kernels/bounds.py",
        "absolute_error",
        "gamma * (m + floor) / (1.0 - gamma) + floor",
        "gamma * (m + floor) / (1.0 - gamma)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the magnitude that underflow hid",
        "certify/kernels/bounds.py",
        "absolute_error",
        "m + floor",
        "m",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the computed magnitude for the true one",
        "certify/kernels/bounds.py",
        "absolute_error",
        "gamma * (m + floor) / (1.0 - gamma)",
        "gamma * (m + floor)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "relative to the computed value",
        "certify/kernels/bounds.py",
        "relative_bound",
        "error / rest",
        "error / abs(v)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "zero without a floor",
        "certify/kernels/bounds.py",
        "relative_bound",
        "v == 0.0 and m == 0.0 and floor == 0.0",
        "v == 0.0 and m == 0.0",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the error of what divides",
        "certify/kernels/bounds.py",
        "divide",
        "by_bound + 2.0 * UNIT",
        "2.0 * UNIT",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the rounding of a quotient",
        "certify/kernels/bounds.py",
        "divide",
        "by_bound + 2.0 * UNIT",
        "by_bound",
        "certify/test_bounds.py",
    ),
    Mutant(
        "a quotient by what is smaller than it seems",
        "certify/kernels/bounds.py",
        "divide",
        "(1.0 + 4.0 * UNIT) / max(1.0 - by_bound, 0.5)",
        "1.0 + 4.0 * UNIT",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the root's error in a posterior",
        "certify/kernels/bounds.py",
        "posteriors",
        "relative_bound(x, sizes[i, row], gamma, floor[row]) + root_bound",
        "relative_bound(x, sizes[i, row], gamma, floor[row])",
        "certify/test_bounds.py",
    ),
    Mutant(
        "a posterior by what is smaller than it seems",
        "certify/kernels/bounds.py",
        "posteriors",
        "bound / (1.0 - root_bound)",
        "bound",
        "certify/test_bounds.py",
    ),
    Mutant(
        "what the formula of a bound loses below the normal numbers",
        "certify/kernels/bounds.py",
        "absolute_error",
        "1.0001 * (gamma * (m + floor) / (1.0 - gamma) + floor) + _LEAST",
        "1.0001 * (gamma * (m + floor) / (1.0 - gamma) + floor)",
        "certify/test_bounds.py",
    ),
    Mutant(
        "the variable's error in a posterior",
        "certify/kernels/bounds.py",
        "posteriors",
        "relative_bound(x, sizes[i, row], gamma, floor[row]) + root_bound",
        "root_bound",
        "certify/test_bounds.py",
    ),
    Mutant(
        "subnormal floats are as good as others",
        "rings/values.py",
        "Values.float_bounds",
        "np.where(floats > 0.0, 2.0**-1074 / floats, np.inf)[tiny]",
        "0.0",
        "certify/test_bounds.py",
    ),
    Mutant(
        "roundings beyond the first order",
        "certify/certificate.py",
        "rounding_bound",
        "total / (1.0 - total)",
        "total",
        "certify/test_bounds.py",
    ),
    # roundings of operations
    *(
        Mutant(
            f"roundings: {name}",
            "certify/kernels/analysis.py",
            where,
            code,
            becomes,
            "certify/test_bounds.py certify/test_certificates.py",
        )
        for name, where, code, becomes in [
            (
                "of factors",
                "_times",
                "rounds[at] += rounds[x] + system.length",
                "rounds[at] = max(rounds[at], rounds[x]) + 1.0",
            ),
            ("of products", "_times", "rounds[x] + system.length", "rounds[x]"),
            ("of weights", "_add", "s.rounds[x] + 2.0", "s.rounds[x] + 0.0"),
            ("of weights of products", "_add_product", "s.rounds[x] + s.rounds[y] + 2.0", "s.rounds[x] + s.rounds[y]"),
            ("of the second factor", "_add_product", "s.rounds[x] + s.rounds[y]", "s.rounds[x]"),
            (
                "of a product in a sum",
                "_add_product",
                "s.rounds[x] + s.rounds[y] + 2.0 + system.length",
                "s.rounds[x] + s.rounds[y] + 2.0",
            ),
            (
                "of values in sums",
                "_add",
                "s.rounds[x] + 2.0",
                "0.0",
            ),
            ("of additions", "_add", "system.terms[0] += 1.0", ""),
            ("of added series", "_add_product", "system.terms[0] += system.length", "system.terms[0] += 1.0"),
        ]
    ),
    Mutant(
        "roundings: of leaves",
        "certify/certificate.py",
        "leaf_states",
        "np.full(len(size), 2.0)",
        "np.full(len(size), 0.0)",
        "certify/test_bounds.py certify/test_certificates.py",
    ),
    # underflow
    *(
        Mutant(
            f"underflow: {name}",
            file,
            where,
            code,
            becomes,
            "certify/test_bounds.py certify/test_certificates.py",
            "flows_order subnormal scales series_floor deep / prob raw marginals",
        )
        for name, file, where, code, becomes in [
            ("of products", "certify/kernels/analysis.py", "_product", "log_add(error, LOSS + log_length)", "error"),
            (
                "of long products",
                "certify/kernels/analysis.py",
                "_product",
                "LOSS + log_length",
                "LOSS",
            ),
            (
                "of the first factor",
                "certify/kernels/analysis.py",
                "_product",
                "log_add(x_error + y_high, x_high + y_error)",
                "x_high + y_error",
            ),
            (
                "of the second factor",
                "certify/kernels/analysis.py",
                "_product",
                "log_add(x_error + y_high, x_high + y_error)",
                "x_error + y_high",
            ),
            ("of weights", "certify/kernels/analysis.py", "_weighted", "LOSS if lost else -math.inf", "-math.inf"),
            (
                "of terms",
                "certify/kernels/analysis.py",
                "_add_term",
                "log_add(s.error[at], error)",
                "s.error[at]",
            ),
            (
                "of values in sums",
                "certify/kernels/analysis.py",
                "_add",
                "high, low, error = _weighted(system.log_weights[k], s.high[x], s.low[x], s.error[x])",
                "high, low, error = _weighted(system.log_weights[k], s.high[x], s.low[x], s.error[x])"
                "\nerror = s.error[x]",
            ),
            (
                "of leaves",
                "certify/certificate.py",
                "leaf_states",
                "np.where(lost, LOSS, -math.inf)",
                "np.full(len(table), -math.inf)",
            ),
            (
                "of both factors",
                "certify/kernels/analysis.py",
                "_product",
                "log_add(log_add(x_error + y_high, x_high + y_error), x_error + y_error + log_length)",
                "log_add(x_error + y_high, x_high + y_error)",
            ),
            (
                "the least normal number",
                "certify/kernels/analysis.py",
                "",
                "-1021 * math.log(2.0)",
                "-1074 * math.log(2.0)",
            ),
            (
                "of subnormal weights",
                "certify/kernels/analysis.py",
                "_weighted",
                "weight < LEAST_NORMAL",
                "False",
            ),
            ("of weights that are not 1", "certify/kernels/analysis.py", "_weighted", "weight == 0.0", "True"),
            (
                "the largest sum",
                "certify/kernels/analysis.py",
                "_add_term",
                "log_add(s.high[at], high)",
                "max(s.high[at], high)",
            ),
            (
                "of sums with negative terms",
                "certify/kernels/analysis.py",
                "_end_sum",
                "s.positive[at] and s.error[at] == -math.inf",
                "s.error[at] == -math.inf",
            ),
            (
                "signs of weights",
                "certify/kernels/analysis.py",
                "_add",
                "s.positive[x] & (not system.negative[k])",
                "s.positive[x]",
            ),
            (
                "signs of factors in sums",
                "certify/kernels/analysis.py",
                "_add_product",
                "s.positive[x] & s.positive[y]",
                "s.positive[x]",
            ),
            (
                "signs of factors",
                "certify/kernels/analysis.py",
                "_times",
                "positive[at] &= positive[x]",
                "",
            ),
            (
                "the order of weights",
                "certify/kernels/analysis.py",
                "_add_product",
                "system.weight_first",
                "not system.weight_first",
            ),
            (
                "the largest leaf",
                "certify/certificate.py",
                "log_leaves_of",
                "np.abs(program.leaf_table[:, :2]).sum",
                "np.abs(program.leaf_table[:, :2]).max",
            ),
            (
                "the least coefficient of a leaf",
                "certify/certificate.py",
                "Analysis.run",
                "leaves._replace(low=np.full(len(leaves.low), -ENDLESS))",
                "leaves",
            ),
            (
                "signs of leaves",
                "certify/certificate.py",
                "leaf_states",
                "State(np.full(len(size), 2.0), log_leaves_of(program), np.where(lost, -ENDLESS, "
                "np.minimum(least, ENDLESS)), np.where(lost, LOSS, -math.inf), positive)",
                "State(np.full(len(size), 2.0), log_leaves_of(program), np.where(lost, -ENDLESS, "
                "np.minimum(least, ENDLESS)), np.where(lost, LOSS, -math.inf), np.ones(len(size), np.uint8))",
            ),
            (
                "sizes of subnormal weights",
                "certify/certificate.py",
                "log_weights_of",
                "_log_size(program.numbers[k])",
                "min(logs[k], 800.0)",
            ),
            (
                "of the floor itself",
                "certify/certificate.py",
                "Analysis.certificate",
                "_bounded_exp(error + 1.0) + min(gamma, 1.0) * _bounded_exp(beside + 1.0) + 2.0**-1074",
                "_bounded_exp(error + 1.0) + min(gamma, 1.0) * _bounded_exp(beside + 1.0)",
            ),
            (
                "rounding of what is lost",
                "certify/certificate.py",
                "Analysis.certificate",
                "error + 1.0",
                "error",
            ),
            (
                "rounding of what magnitudes lose",
                "certify/certificate.py",
                "Analysis.certificate",
                "beside + 1.0",
                "beside",
            ),
            (
                "of the value",
                "certify/certificate.py",
                "Analysis.certificate",
                "_bounded_exp(error + 1.0) + min(gamma, 1.0) * _bounded_exp(beside + 1.0)",
                "min(gamma, 1.0) * _bounded_exp(beside + 1.0)",
            ),
            (
                "of the magnitude",
                "certify/certificate.py",
                "Analysis.certificate",
                "_bounded_exp(error + 1.0) + min(gamma, 1.0) * _bounded_exp(beside + 1.0)",
                "_bounded_exp(error + 1.0)",
            ),
        ]
    ),
    # determinants
    *(
        Mutant(f"determinants: {name}", file, where, code, becomes, tests, adversary)
        for name, file, where, code, becomes, tests, adversary in [
            (
                "errors of children",
                "certify/certificate.py",
                "Analysis._determinant",
                "bound + _log_growth(below)",
                "-math.inf",
                "certify/test_certificates.py",
                "tiny_beside_determinant composed / prob raw",
            ),
            (
                "growth by children",
                "certify/certificate.py",
                "_log_growth",
                "log_sum + 0.55",
                "log_sum",
                "certify/test_bounds.py",
                "",
            ),
            (
                "growth by wrong children",
                "certify/certificate.py",
                "_log_growth",
                "log_sum + 0.55 if log_sum < 0.0 else min(math.exp(min(log_sum, 30.0)), ENDLESS)",
                "log_sum + 0.55",
                "certify/test_bounds.py",
                "",
            ),
            (
                "Hadamard's bound without V",
                "certify/certificate.py",
                "log_determinant_bound",
                "np.logaddexp(_log_squares(m0, 0), _log_squares(v, 1))",
                "_log_squares(m0, 0)",
                "certify/test_certificates.py::test_a_bound_of_every_value_of_a_determinant",
                "",
            ),
            (
                "Hadamard's bound without complements",
                "certify/certificate.py",
                "log_determinant_bound",
                "np.logaddexp(_log_squares(u, 0) + 2.0 * log_f, 2.0 * log_y)",
                "_log_squares(u, 0) + 2.0 * log_f",
                "certify/test_certificates.py::test_a_bound_of_every_value_of_a_determinant",
                "",
            ),
            (
                "definite by rounding",
                "linalg.py",
                "surely_definite",
                "scaled - shift * np.eye(n)",
                "scaled",
                "certify/test_bounds.py",
                "",
            ),
            (
                "definite though entries are off",
                "linalg.py",
                "surely_definite",
                "off += 1.001 * error / scale / scale[:, None]",
                "pass",
                "certify/test_bounds.py",
                "",
            ),
            (
                "negative coefficients",
                "determinants/staged.py",
                "_Bounds.log_bound",
                "self.is_positive(d, children)",
                "True",
                "certify/test_certificates.py",
                "tiny_beside_determinant / prob raw",
            ),
            (
                "radii of the kernel",
                "determinants/bases.py",
                "_base_of_entries",
                "error += (entries.radii * scaling).max(initial=0.0)",
                "",
                "",
                "orthogonal_columns / prob raw",
            ),
            (
                "the residual of the inverse",
                "determinants/bases.py",
                "refined_inverse",
                "(arb(_sizes(x, r)[1]) * largest / (1.0 - norm) * 1.001).abs_upper()",
                "arb(0)",
                "attacks/test_attacks_det.py determinants/test_near_duplicates.py",
                "cancelling_columns dpp_features / prob raw",
            ),
            (
                "growth, quickly",
                "determinants/kernels/forms.py",
                "_bound_errors",
                "1.11 * (roundings + spread)",
                "1e-3 * (roundings + spread)",
                "attacks/test_attacks_det.py determinants/test_near_duplicates.py",
                "dpp_features dpp_floats / prob raw",
            ),
            (
                "growth",
                "determinants/kernels/forms.py",
                "_bound_errors",
                "1.5 * (roundings + q * spread)",
                "1e-4 * (roundings + q * spread)",
                "attacks/test_attacks_det.py determinants/test_near_duplicates.py",
                "dpp_features dpp_floats / prob raw",
            ),
            (
                "the border's size",
                "determinants/kernels/bordering.py",
                "record_if_better",
                "roundings * UNIT * size + relative * abs(pivot)",
                "relative * abs(pivot)",
                "determinants/test_marginals_det.py attacks/test_attacks_marginals.py",
                "dpp_floats dpp_features / marginals pairwise",
            ),
            (
                "the border's growth",
                "determinants/kernels/bordering.py",
                "record_if_better",
                "roundings * UNIT * growth",
                "0.0 * growth",
                "determinants/test_marginals_det.py attacks/test_attacks_marginals.py",
                "dpp_floats dpp_features / marginals pairwise",
            ),
            (
                "errors of sizes",
                "determinants/kernels/sized.py",
                "_symmetric_polynomial",
                "(np.sqrt(m - j + 1.0) * error + (m - j + 1.0) * shift) * before / e",
                "0.0",
                "determinants/test_sized_det.py frontend/test_dpp_forms.py",
                "dpp_exact / prob raw",
            ),
            (
                "trees",
                "determinants/kernels/laplacian.py",
                "tree_sum",
                "1.01 * roundings * UNIT if reliable else math.nan",
                "0.0 * roundings",
                "frontend/test_spanning_tree.py",
                "trees / prob raw",
            ),
            (
                "slices too wide for their products",
                "determinants/slices.py",
                "cut",
                "(53 - math.ceil(math.log2(len(matrix)))) // 2",
                "27",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: what a sum loses",
                "determinants/kernels/exact_sums.py",
                "add_exactly",
                "max(most, abs(rest))",
                "0.0",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: what is left of the first residual",
                "determinants/large_definite.py",
                "IdentityPlus.inverse",
                "of_first * (known + unseen) + through * (rounding(self.n) * known + unseen)",
                "0.0 * (known + unseen) + 0.0 * through * (rounding(self.n) * known + unseen)",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: cubes of eigenvalues",
                "determinants/large_definite.py",
                "IdentityPlus.determinant",
                "size**3 / (3.0 * (1.0 - size))",
                "0.0 * size**3",
                "determinants/test_definite.py",
                "",
            ),
            (
                "slices: the diagonal is not scaled back",
                "determinants/large_definite.py",
                "IdentityPlus.inverse",
                "x * arb(one)",
                "x",
                "determinants/test_definite.py",
                "",
            ),
        ]
    ),
    # other methods
    *(
        Mutant(f"{name}", file, where, code, becomes, tests, adversary)
        for name, file, where, code, becomes, tests, adversary in [
            (
                "fft: rounding of sums",
                "rings/paper.py",
                "_sum",
                "(len(weights) + 3) * (UNIT * size + _TINY)",
                "0.0 * size",
                "certify/test_bounds.py",
                "entangled cancelling nearly_zero / prob raw",
            ),
            (
                "fft: rounding of products",
                "rings/paper.py",
                "_product",
                "(spread + rounding) * (1 + 64 * UNIT) + _TINY * n",
                "spread",
                "certify/test_bounds.py",
                "entangled entangled_scales / prob raw",
            ),
            (
                "fft: errors of factors",
                "rings/paper.py",
                "_product",
                "(spread + rounding) * (1 + 64 * UNIT) + _TINY * n",
                "rounding",
                "certify/test_bounds.py",
                "entangled entangled_scales / prob raw",
            ),
            (
                "fft: leaves",
                "rings/paper.py",
                "_polynomial",
                "UNIT * abs(value) + _TINY",
                "0.0",
                "certify/test_bounds.py",
                "subnormal / prob raw",
            ),
            (
                "balls: their radius",
                "exact/precision.py",
                "ball_parts",
                "ratio / (1 - ratio) + 2 * UNIT",
                "2 * UNIT",
                "certify/test_bounds.py",
                "",
            ),
            *(
                (f"estimates: {what}", "queries/information.py", where, code, becomes, "certify/test_bounds.py", "")
                for what, where, code, becomes in [
                    (
                        "the entropy of what was not seen",
                        "_sampled_entropy",
                        "part + rtol * (1.0 + part) + max(map(_times_log, u)) + u[1] * most",
                        "part + rtol * (1.0 + part) + max(map(_times_log, u))",
                    ),
                    (
                        "the probability of what was not seen",
                        "_sampled_entropy",
                        "part + rtol * (1.0 + part) + max(map(_times_log, u))",
                        "part + rtol * (1.0 + part)",
                    ),
                    (
                        "what samples miss",
                        "_sampled_entropy",
                        "_MISSED / len(drawn) * (most + np.log(len(drawn)))",
                        "0.0",
                    ),
                    (
                        "the divergence of what was not seen",
                        "_sampled_divergence",
                        "part + slack - u[1] * floor",
                        "part + slack",
                    ),
                    (
                        "the least divergence of what was not seen",
                        "_sampled_divergence",
                        "part + _least_share(*u, v)",
                        "part",
                    ),
                    (
                        "the divergence of what samples miss",
                        "_sampled_divergence",
                        "max(missed * -floor, -_least_share(0.0, missed, v))",
                        "0.0",
                    ),
                    (
                        "what samples miss is more probable under q",
                        "_sampled_divergence",
                        "max(missed * -floor, -_least_share(0.0, missed, v))",
                        "missed * -floor",
                    ),
                ]
            ),
            (
                "counts: relative to the computed value",
                "evaluate/counting.py",
                "_certified",
                "ratio / (1.0 - ratio)",
                "ratio",
                "certify/test_bounds.py",
                "",
            ),
            (
                "logarithms near 0",
                "queries/probability.py",
                "relative_logs",
                "rtol * size",
                "rtol",
                "queries/test_answers.py",
                "",
            ),
            (
                "modes: what is pruned",
                "queries/mode_search.py",
                "Search._push",
                "self.slack",
                "1e-8",
                "queries/test_answers.py::test_a_mode_beside_a_branch_that_is_likelier_as_a_whole",
                "",
            ),
            (
                "gradients: determinants",
                "queries/gradient.py",
                "_grad",
                "not function.sensitivity(codes, share, found) <= _LOST",
                "False",
                "evaluate/test_gradients.py::test_a_determinant_that_cancels_where_the_value_does_not",
                "",
            ),
            (
                "gradients: sums beside determinants",
                "evaluate/differentiation.py",
                "Differentiator.roundings",
                "constants._replace(weights=constants.weights * factors)",
                "constants",
                "attacks/test_attacks_questions.py::test_derivatives_are_not_lost_beside_what_has_no_bounds",
                "",
            ),
            (
                "counts: gamma",
                "evaluate/counting.py",
                "Counting._directly",
                "gamma / (1.0 - gamma)",
                "0.0",
                "evaluate/test_cardinality.py attacks/test_attacks_counts.py",
                "cancelling nearly_zero / cardinality counts",
            ),
            (
                "counts: between two runs",
                "evaluate/counting.py",
                "Counting._between",
                "1.5 * np.maximum(high[0] - below, 0.0) + 5.0 * gamma / (1.0 - gamma) * high[0]",
                "0.0 * high[0]",
                "determinants/test_counted_det.py attacks/test_attacks_counts.py",
                "dpp_exact dpp_floats / cardinality counts",
            ),
            (
                "counts without tails: what is lost",
                "evaluate/counting.py",
                "_error",
                "errors.max() / least + lost",
                "errors.max() / least",
                "certify/test_bounds.py",
                "",
            ),
            (
                "counts without tails: where terms cancel",
                "evaluate/counting.py",
                "Counting._run",
                "atol is None or program.signed",
                "atol is None",
                "evaluate/test_cardinality_long.py",
                "",
            ),
            (
                "counts without tails: a product loses what its factors lose",
                "rings/kernels/counting.py",
                "_times_size",
                "system.cuts[x] + 1",
                "0",
                "evaluate/test_cardinality_long.py",
                "",
            ),
            (
                "logarithms of what is scaled cancel",
                "rings/values.py",
                "Values.logs",
                "exponent.any()",
                "False",
                "queries/test_answers.py",
                "",
            ),
            (
                "products by transforms: their error",
                "rings/fourier.py",
                "multiply",
                "UNIT * (_PASS * math.log2(points) + _BESIDE)",
                "0.0",
                "rings/test_paper.py",
                "",
            ),
            (
                "gradients: what is lost",
                "queries/gradient.py",
                "GradientFunction.errors",
                "self.differentiator.gamma",
                "0.0",
                "evaluate/test_gradients.py::test_a_derivative_that_cancels_where_the_value_does_not",
                "cancelling / gradient",
            ),
            (
                "gradients: certified values",
                "queries/gradient.py",
                "_grad",
                "np.abs(found.logs - logs) <= _AGREEMENT",
                "np.abs(found.logs - logs) <= 1e9",
                "evaluate/test_gradients.py::test_a_value_that_cancels_is_named",
                "cancelling nearly_zero / gradient",
            ),
        ]
    ),
]


# -- running them ---------------------------------------------------------------------------------------------------


def parsed(code: str, becomes: str) -> tuple[list[ast.AST], list[ast.AST]]:
    """Both as one expression each; as statements if one of them is not that."""
    try:
        return [ast.parse(code, mode="eval").body], [ast.parse(becomes, mode="eval").body]
    except SyntaxError:
        return list(ast.parse(code).body), list(ast.parse(becomes).body)


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Functions and classes with their qualified names; functions within functions as "outer.inner"."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, (ast.FunctionDef, ast.ClassDef))
        name = f"{prefix}{node.name}" if named else prefix
        if named:
            yield name, node
        yield from definitions(node, f"{name}." if named else prefix)


def places(scope: ast.AST, code: list[ast.AST]) -> Iterator[Callable[[list[ast.AST]], None]]:
    """Where nodes stand, one after the other, in a tree: a function for each place that puts others there."""
    wanted = [ast.dump(node) for node in code]
    for node in ast.walk(scope):
        for field, value in ast.iter_fields(node):
            several = value if isinstance(value, list) else [value]
            dumps = [ast.dump(x) if isinstance(x, ast.AST) else "" for x in several]
            for i in range(len(several) - len(wanted) + 1):
                if dumps[i : i + len(wanted)] == wanted:
                    yield partial(put, node, field, i, len(wanted))


def put(node: ast.AST, field: str, at: int, length: int, others: list[ast.AST]) -> None:
    value = getattr(node, field)
    if isinstance(value, list):
        value[at : at + length] = others or ([] if len(value) > length else [ast.Pass()])
    else:
        setattr(node, field, others[0])


def replaced(text: str, where: str, code: str, becomes: str) -> str:
    """A file's text with one piece of code changed. A LookupError if it does not stand exactly once in its function."""
    tree = ast.parse(text)
    scopes = [node for name, node in definitions(tree) if name == where] if where else [tree]
    if len(scopes) != 1:
        raise LookupError(f"{where} is defined {len(scopes)} times")
    wanted, others = parsed(code, becomes)
    found = list(places(scopes[0], wanted))
    if len(found) != 1:
        raise LookupError(f"in {where or 'it'} this stands {len(found)} times: {code!r}")
    if list(map(ast.dump, wanted)) == list(map(ast.dump, others)):
        raise LookupError("nothing changes")
    found[0](others)
    return ast.unparse(ast.fix_missing_locations(tree))


def mutated(mutant: Mutant) -> str:
    """The file of a mutant as it becomes."""
    text = (HOME / "pgcc" / mutant.file).read_text(encoding="utf-8")
    return replaced(text, mutant.where, mutant.code, mutant.becomes)


def problem(mutant: Mutant) -> str | None:
    """Why a mutant cannot be made, or not be noticed."""
    try:
        mutated(mutant)
    except (OSError, LookupError, SyntaxError) as error:
        return f"{mutant.name}: pgcc/{mutant.file}: {error}"
    if not (mutant.tests or mutant.adversary):
        return f"{mutant.name}: nothing is to notice it"
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
            (folder / "pgcc" / mutant.file).write_text(mutated(mutant), encoding="utf-8")
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
