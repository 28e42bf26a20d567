"""The two tables of the paper on the data sets in a folder, its numbers beside ours: python -m benchmarks.paper FOLDER

The t-tests of its appendix need SciPy: without it their column stays empty.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from benchmarks.published import BABY_REGISTRIES, COLUMNS, TWENTY_DATASETS, published
from pgcc import plot
from pgcc.cli.files import check_can_draw, check_can_write, write_text
from pgcc.errors import PgccError
from pgcc.learn import DPP, EinsumNetwork, MixtureOfTrees, SimplePGC, StackedEnsemble, Strudel
from pgcc.learn.common.estimator import Estimator

PARTS = ("train", "valid", "test")
_LONGEST_LINE = 1 << 24  # bytes
# The level of the t-tests in the appendix.
LEVEL = 0.1


@dataclass(frozen=True)
class DataSet:
    """Files NAME.train.data, NAME.valid.data and NAME.test.data of comma-separated 0 and 1."""

    name: str
    folder: Path

    def path(self, part: str) -> Path:
        """Of one file."""
        return self.folder / f"{self.name}.{part}.data"

    def check(self) -> None:
        """Refuse files with different numbers of columns, by their first lines: before hours of work, not after it."""
        width: dict[int, Path] = {}
        for path in map(self.path, PARTS):
            try:
                with open(path, "rb") as file:
                    width.setdefault(file.readline(_LONGEST_LINE).count(b",") + 1, path)
            except OSError as error:
                raise PgccError(f"{path}: {error.strerror or error}") from None
        if len(width) > 1:
            raise PgccError(
                " and ".join(f"{path} has {n} columns" for n, path in width.items()) + ": these are one set"
            )

    def part(self, part: str) -> np.ndarray:
        """The rows of one file."""
        path = self.path(part)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a file is empty is said below
                rows = np.loadtxt(path, delimiter=",", dtype=np.int8, ndmin=2)
        except (OSError, ValueError, OverflowError) as error:
            raise PgccError(f"{path}: {error}") from None
        if not rows.size or not np.isin(rows, (0, 1)).all():
            raise PgccError(f"{path}: rows of 0 and 1, separated by commas, were expected")
        return rows


@dataclass
class Result:
    """How one model did on one data set."""

    data: str
    model: str
    validation: float
    test: float
    seconds: float
    edges: int
    versus: dict[str, str] = field(default_factory=dict)


def find_sets(folder: str | Path, names: Iterable[str] | None = None) -> list[DataSet]:
    """The data sets in a folder: sub-folders NAME with three files each, in the order of the paper's tables."""
    root = Path(folder)
    if not root.is_dir():
        raise PgccError(f"{root} is not a folder of data sets")
    found = {
        path.name: DataSet(path.name, path)
        for path in sorted(root.iterdir())
        if all((path / f"{path.name}.{part}.data").is_file() for part in PARTS)
    }
    if names is not None:
        wanted = list(names)
        missing = [name for name in wanted if name not in found and f"amzn_{name}" not in found]
        if missing:
            raise PgccError(f"{root} has no data set {missing[0]!r}: it has {', '.join(found) or 'none'}")
        found = {key: found[key] for name in wanted for key in (name, f"amzn_{name}") if key in found}
    if not found:
        raise PgccError(f"{root} has no data sets: folders NAME with NAME.train.data, NAME.valid.data, NAME.test.data")
    order = {name: i for i, name in enumerate([*TWENTY_DATASETS, *BABY_REGISTRIES])}
    return sorted(found.values(), key=lambda one: order.get(one.name.removeprefix("amzn_"), len(order)))


def fit_model(
    kind: str,
    data: DataSet,
    train: np.ndarray,
    valid: np.ndarray,
    recipe: str = "auto",
    grid: bool = False,
    threads: int = 1,
) -> Estimator:
    """The model of a column: with the paper's hyper-parameters where they are known, else by a search."""
    line = published(data.name)
    match kind:
        case "DPP":
            return DPP(recipe=recipe, exclude_empty=False).fit(train, validation=valid)
        case "Strudel":
            return Strudel().fit(train, validation=valid)
        case "EiNet":
            return EinsumNetwork().fit(train, validation=valid)
        case "MT":
            return _best_of(
                MixtureOfTrees(exclude_empty=False), {"n_components": (2, 5, 10, 20)}, train, valid, threads
            )
        case "StackedEnsemble":
            return StackedEnsemble(n_jobs=threads).fit(train, validation=valid)
        case "SimplePGC":
            if line is None or line.hyperparameters is None or grid:
                return _best_of(SimplePGC(recipe=recipe, exclude_empty=False), GRID, train, valid, threads)
            max_group, components = line.hyperparameters
            model = SimplePGC(max_group, components, recipe=recipe, n_jobs=threads, exclude_empty=False)
            return model.fit(train, validation=valid)
    raise PgccError(f"no model {kind!r}: choose from {', '.join(MODELS)}")


MODELS = ("DPP", "Strudel", "EiNet", "MT", "SimplePGC", "StackedEnsemble")
# K and C of SimplePGC among which the paper chooses.
GRID = {"max_group": (1, 2, 5, 7), "n_components": (1, 4, 7, 10, 20)}


def _best_of(
    model: Estimator, grid: Mapping[str, Sequence[int]], train: np.ndarray, valid: np.ndarray, jobs: int
) -> Estimator:
    """The model with the parameters of a grid that are best on validation data, fitted."""
    split = PredefinedSplit([-1] * len(train) + [0] * len(valid))
    search = GridSearchCV(model, grid, cv=split, refit=False, n_jobs=jobs)
    search.fit(np.vstack([train, valid]), validation=valid)
    return clone(model).set_params(**search.best_params_).fit(train, validation=valid)


def run_one(data: DataSet, kind: str, **options: Any) -> Result:
    """Fit to the training data, choose on the validation data, score the test data."""
    train, valid, test = map(data.part, PARTS)
    began = time.perf_counter()
    model = fit_model(kind, data, train, valid, **options)
    seconds = time.perf_counter() - began
    logs = model.score_samples(test)
    line = published(data.name)
    theirs = line.columns if line is not None and has_scipy() else {}
    versus = {column: t_test(logs, value) for column, value in theirs.items()}
    return Result(data.name, kind, model.score(valid), float(np.mean(logs)), seconds, model.circuit_.edges, versus)


def run(
    sets: Sequence[DataSet], kinds: Sequence[str], tell: Callable[[Result], None] = lambda result: None, **options: Any
) -> list[Result]:
    """Every model on every data set, one after another; `tell` hears of each result as it comes.

    A model that fails has no result, and a warning; if all of them fail, that is an error.
    """
    for data in sets:
        data.check()
    results: list[Result] = []
    failure: PgccError | None = None
    for data in sets:
        for kind in kinds:
            try:
                results.append(run_one(data, kind, **options))
            except PgccError as error:
                failure = failure or error
                warnings.warn(f"{data.name}, {kind} failed, and is left out: {error}", stacklevel=2)
            else:
                tell(results[-1])
    if failure is not None and not results:
        raise failure
    return results


def t_test(logs: np.ndarray, value: float, level: float = LEVEL) -> str:
    """Whether the mean of log-likelihoods is better (>), worse (<) or not surely different (=) from a published one.

    One-sample and two-sided, as in the appendix of the paper.

    >>> rows = np.random.default_rng(0).normal(-6.0, 1.0, 1000)
    >>> t_test(rows, -6.5), t_test(rows, -6.0), t_test(rows, -5.5)  # doctest: +SKIP
    ('>', '=', '<')
    """
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    if not math.isfinite(error) or error == 0.0:
        return "="
    t = (float(logs.mean()) - value) / error
    if two_sided_p(t, len(logs) - 1) >= level:
        return "="
    return ">" if t > 0 else "<"


def two_sided_p(t: float, freedom: int) -> float:
    """Pr(|T| ≥ |t|) for Student's t with so many degrees of freedom."""
    from scipy import stats

    return 2.0 * float(stats.t.sf(abs(t), freedom))


def has_scipy() -> bool:
    """Whether t-tests can be computed."""
    try:
        import scipy.stats  # noqa: F401
    except ImportError:
        return False
    return True


def as_tables(results: Sequence[Result]) -> str:
    """The results as the paper prints them: a table for each benchmark, ours after its columns.

    A * marks the best of a line. After the likelihood of each of our models stands how it compares, by t-tests, with
    DPP, Strudel, EiNet, MT and SimplePGC of the paper.
    """
    names = list(dict.fromkeys(result.data for result in results))
    kinds = list(dict.fromkeys(result.model for result in results))
    parts = []
    for title, lines in (
        ("Twenty Datasets", [n for n in names if n in TWENTY_DATASETS]),
        ("Amazon Baby Registries", [n for n in names if n.removeprefix("amzn_") in BABY_REGISTRIES]),
        ("Others", [n for n in names if published(n) is None]),
    ):
        if lines:
            parts.append(_table(title, lines, kinds, {(r.data, r.model): r for r in results}))
    return "\n\n".join(parts)


def _table(title: str, names: list[str], kinds: list[str], of: dict[tuple[str, str], Result]) -> str:
    header = [title, *(f"{c} (paper)" for c in COLUMNS), *kinds]
    rows = []
    for name in names:
        line = published(name)
        theirs = [None] * len(COLUMNS) if line is None else list(line.columns.values())
        ours = [of.get((name, kind)) for kind in kinds]
        numbers = [*theirs, *(None if r is None else r.test for r in ours)]
        best = max((round(x, 2) for x in numbers if x is not None), default=0.0)
        cells = [
            "–" if x is None else f"{x:.2f}{'*' if round(x, 2) == best else ''}" for x in numbers
        ]  # fmt: skip
        for i, result in enumerate(ours):
            if result is not None and result.versus:
                cells[len(theirs) + i] += f" {''.join(result.versus.values())}"
        rows.append([name.removeprefix("amzn_"), *cells])
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    )


def as_data(results: Sequence[Result]) -> dict[str, Any]:
    """The same as plain data, for JSON."""
    lines = {r.data: line for r in results if (line := published(r.data)) is not None}
    return {
        "results": [asdict(result) for result in results],
        "published": {name: line.columns for name, line in lines.items()},
    }


def picture(results: Mapping[str, Any]) -> Any:
    """Log-likelihoods less that of the paper's SimplePGC (or of our first model), from `as_data`; matplotlib Axes."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(result["data"] for result in results["results"]))
    columns: dict[str, dict[str, float]] = {}
    for name, line in results["published"].items():
        for column, value in line.items():
            columns.setdefault(f"{column} (paper)", {})[name] = value
    for result in results["results"]:
        columns.setdefault(result["model"], {})[result["data"]] = result["test"]
    base = columns.get("SimplePGC (paper)", {})
    first = next(iter(columns.values()), {})
    ax = Figure(figsize=(7.0, 1.5 + 0.3 * len(names)), layout="constrained").add_subplot()
    for column, values in columns.items():
        places = [i for i, name in enumerate(names) if name in values]
        gains = [values[names[i]] - base.get(names[i], first.get(names[i], 0.0)) for i in places]
        ours = not column.endswith("(paper)")
        ax.plot(gains, places, "o" if ours else "|", markersize=7 if ours else 10, label=column)
    ax.set_yticks(range(len(names)), [name.removeprefix("amzn_") for name in names])
    ax.invert_yaxis()
    ax.axvline(0.0, color="0.8", zorder=0)
    ax.set_xlabel("mean test log-likelihood, less that of the paper's SimplePGC (nats)")
    ax.legend(fontsize="small")
    return ax


# -- the command ----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and score, telling of every result on standard error; then print the tables."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        _run(options)
    except PgccError as error:
        parser.error(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="sub-folders NAME with NAME.train.data, .valid. and .test.")
    parser.add_argument("--models", metavar="NAMES", help=f"of {', '.join(MODELS)} (all)")
    parser.add_argument("--sets", metavar="NAMES", help="of the data sets (all)")
    parser.add_argument("--recipe", choices=("auto", "paper"), default="auto", help="how SimplePGC and DPP are trained")
    parser.add_argument("--grid", action="store_true", help="search K and C, even where the paper's are known")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads (1)")
    parser.add_argument("-o", "--output", metavar="PATH", help="also write the results as JSON")
    parser.add_argument("--plot", metavar="PATH", help="also draw them (.svg, .png, .pdf; needs matplotlib)")
    parser.add_argument("--force", action="store_true", help="replace files if they exist")
    return parser


def _run(options: argparse.Namespace) -> None:
    if options.output is not None:
        check_can_write(options.output, options.force)
    if options.plot is not None:
        check_can_draw(options.plot, options.force)
    kinds = _listed(options.models) or list(MODELS)
    unknown = [kind for kind in kinds if kind not in MODELS]
    if unknown:
        raise PgccError(f"no model {unknown[0]!r}: choose from {', '.join(MODELS)}")
    sets = find_sets(options.folder, _listed(options.sets) or None)
    results = run(sets, kinds, _tell, recipe=options.recipe, grid=options.grid, threads=options.threads)
    if options.output is not None:
        write_text(options.output, json.dumps(as_data(results), indent=1) + "\n")
    if options.plot is not None:
        plot.save(picture(as_data(results)), options.plot)
    print(as_tables(results))


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _tell(result: Result) -> None:
    told = f"{result.data}, {result.model}: test {result.test:.4f}, validation {result.validation:.4f}"
    print(f"{told} ({result.seconds:.1f} s, {result.edges:,} edges)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
