"""Break the compiler in known ways, and show that the tests notice: ``python tests/mutations.py [NAME …]``.

Every mutant is a copy of the package with one line changed, on which a few test files are run. It is killed if one of
their tests fails; the script ends with an error if one survives, or if a line that it wants to change is not there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from mutations_check import CHECK_MUTANTS

HOME = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    """One line of one file, what it becomes, and the tests that should notice."""

    name: str
    file: str
    line: str
    becomes: str
    tests: str


MUTANTS = [
    Mutant(
        "a product of small numbers loses nothing",
        "backend/kernels/analysis.py",
        "        low, error = -ENDLESS, log_add(error, loss + log_length)",
        "        low = -ENDLESS",
        "test_certificates.py",
    ),
    Mutant(
        "coefficients of series lose no more than numbers",
        "backend/kernels/analysis.py",
        "        low, error = -ENDLESS, log_add(error, loss + log_length)",
        "        low, error = -ENDLESS, log_add(error, loss)",
        "test_certificates.py",
    ),
    Mutant(
        "a quotient by what underflowed is right",
        "backend/kernels/analysis.py",
        "    if y_error > -math.inf or y_low < _NORMAL:",
        "    if False:",
        "test_certificates.py",
    ),
    Mutant(
        "a quotient has two roundings",
        "backend/kernels/analysis.py",
        "count[x] + count[y] + 3.0",
        "count[x] + count[y] + 2.0",
        "test_certificates.py",
    ),
    Mutant(
        "complements are dropped beside large children",
        "backend/kernels/scaled_staged.py",
        " or (m[y] != 0.0 and top - e[y] > 2)",
        "",
        "test_certificates.py",
    ),
    Mutant(
        "sums miss variables",
        "passes/padding.py",
        "            self._missing[key] = self.absent(lacking) if size(lacking) else None",
        "            self._missing[key] = None",
        "test_lowering.py",
    ),
    Mutant(
        "a free leaf is an absent one",
        "lowering/lower.py",
        "nearest_sum(a, b)) for a, b in self.leaf_numbers]",
        "nearest_float(a)) for a, b in self.leaf_numbers]",
        "test_paper.py",
    ),
    Mutant(
        "weights are no part of identity",
        "ir/node.py",
        "    key = (op, children, _ratios(data) if Fraction in kinds else data, kinds)",
        "    key = (op, children, None if op == Op.SUM else data, kinds)",
        "test_ir.py",
    ),
    Mutant(
        "bounds that are always small",
        "backend/kernels/bounds.py",
        "    return 1.0001 * (gamma * (m + floor) / (1.0 - gamma) + floor)",
        "    return 1e-17 * abs(m)",
        "test_accuracy.py",
    ),
    Mutant(
        "the sign of Bird's determinant",
        "passes/expand_det.py",
        "    return F[0][0] if n % 2 else _minus(F[0][0])",
        "    return F[0][0]",
        "test_passes.py test_determinant.py",
    ),
    Mutant(
        "what is out counts as in",
        "backend/determinants.py",
        "-change if form == FREE else change, diagonal, other",
        "change, diagonal, other",
        "test_dpp_forms.py",
    ),
    Mutant(
        "the diagonal of what is out",
        "backend/determinants.py",
        "other, other_low = -base.gap, -base.gap_low",
        "other, other_low = base.gap, base.gap_low",
        "test_dpp_forms.py",
    ),
    Mutant(
        "borders forget what was eliminated",
        "backend/kernels/bordering.py",
        "            pivot[j] -= right[at + j] * left[at + j] * inverse",
        "            pivot[j] -= 0.0 * inverse",
        "test_marginals_det.py",
    ),
    Mutant(
        "everything counts in a determinant of a size",
        "ir/interpret.py",
        "[zero, x] if counts else [x]",
        "[zero, x]",
        "test_counted_det.py",
    ),
    Mutant(
        "any combination of determinants is proved",
        "queries/extraction.py",
        "    return None if len(found) > 1 else found.pop() if found else 0",
        "    return 1",
        "test_extraction.py",
    ),
    Mutant(
        "trees subtract",
        "backend/kernels/laplacian.py",
        "                    other[j] += share * row[j]",
        "                    other[j] -= share * row[j]",
        "test_spanning_tree.py",
    ),
    Mutant(
        "edges that must be in are left away",
        "backend/kernels/laplacian.py",
        "            parent[a] = b\n        inside",
        "            parent[b] = b\n        inside",
        "test_spanning_tree.py",
    ),
    Mutant(
        "matchings with edges that touch",
        "backend/kernels/sized.py",
        "            next_[i] = newer[i] + path[t] * older[i - 1]",
        "            next_[i] = newer[i] + path[t] * newer[i - 1]",
        "test_dpp_forms.py",
    ),
    Mutant(
        "complements of what is absent are forgotten",
        "backend/pencil.py",
        "        factor = math.prod([y[i] for i in absent], start=self.one)",
        "        factor = self.one",
        "test_exact_det.py",
    ),
    Mutant(
        "slots are free too early",
        "lowering/schedule.py",
        "    last[list(roots)] = len(start)",
        "    last = np.maximum(last - 1, -1)\n    last[list(roots)] = len(start)",
        "test_lowering.py test_strategies.py",
    ),
    Mutant(
        "conditioning keeps lower degrees",
        "passes/condition.py",
        "for w, c in iter_edges(node) if degree[c] == d)",
        "for w, c in iter_edges(node))",
        "test_condition.py",
    ),
    Mutant(
        "K is taken for L",
        "frontend/dpp.py",
        "    return _circuit(kernel, _one_minus(kernel), _identity(kernel), _transposed(kernel))",
        "    return _circuit(kernel, _identity(kernel), _identity(kernel), _transposed(kernel))",
        "test_dpp_forms.py",
    ),
    Mutant(
        "a weight is lost in merging",
        "passes/simplify.py",
        "            weights[place] = total",
        "            pass",
        "test_passes.py",
    ),
    Mutant(
        "the top coefficient without its neighbours",
        "backend/kernels/series.py",
        "                slack[args[j]] = max(slack[args[j]], total - lowest)",
        "                slack[args[j]] = max(slack[args[j]], 0)",
        "test_strategies.py",
    ),
    Mutant(
        "decimals are doubles",
        "frontend/expression.py",
        "    return digits * 10**power if power >= 0 else as_number(Fraction(digits, 10**-power))",
        "    return digits * 10**power if power >= 0 else digits / 10**-power",
        "test_expression.py",
    ),
]

MUTANTS += [Mutant(*one) for one in CHECK_MUTANTS]


def mutate(folder: Path, mutant: Mutant) -> None:
    """Change the one line."""
    path = folder / "pgcc" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.line) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.file} has this line {text.count(mutant.line)} times: {mutant.line!r}")
    path.write_text(text.replace(mutant.line, mutant.becomes), encoding="utf-8")


def is_killed(mutant: Mutant) -> bool:
    """Whether a test fails on the mutant."""
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room) / "copy"
        # Machine code kept by Numba is as good as new, unless a kernel changes: its callers do not notice.
        stale = ["*.nbi", "*.nbc"] if "kernels" in mutant.file else []
        shutil.copytree(HOME, folder, ignore=shutil.ignore_patterns(".git", ".venv", *stale))
        mutate(folder, mutant)
        tests = [f"tests/{name}" for name in mutant.tests.split()]
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 1


def main(names: list[str]) -> None:
    wanted = [m for m in MUTANTS if not names or m.name in names]
    survivors = []
    for i, mutant in enumerate(wanted, 1):
        killed = is_killed(mutant)
        print(f"{i:3}/{len(wanted)}  {'killed  ' if killed else 'SURVIVED'}  {mutant.name}", flush=True)
        if not killed:
            survivors.append(mutant.name)
    if survivors:
        raise SystemExit(f"{len(survivors)} of {len(wanted)} mutants survived: {', '.join(survivors)}")


if __name__ == "__main__":
    main(sys.argv[1:])
