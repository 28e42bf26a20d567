"""`pgcc fit`: a model from data."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from typing import Any

import pgcc
from pgcc.cli.arguments import OPTIONS
from pgcc.cli.files import check_output, table_name
from pgcc.cli.output import json_text
from pgcc.data.tables import Csv
from pgcc.errors import PgccError, plural
from pgcc.formats import check_can_save
from pgcc.interrupts import tidily
from pgcc.learn import (
    DPP,
    ChowLiu,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
    Strudel,
)
from pgcc.learn.common.estimator import Estimator
from pgcc.learn.tables.packed_rows import Rows
from pgcc.learn.tables.read_rows import read_rows

MODELS: dict[str, type[Estimator]] = {
    "simple-pgc": SimplePGC,
    "dpp": DPP,
    "chow-liu": ChowLiu,
    "mixture-of-trees": MixtureOfTrees,
    "continuous-mixture": ContinuousMixture,
    "hidden-tree": HiddenTree,
    "einsum-network": EinsumNetwork,
    "strudel": Strudel,
    "stacked-ensemble": StackedEnsemble,
}
# Parameters of estimators that options of the command line give.
_PARAMETERS = (
    "max_group", "n_components", "recipe", "max_iter", "n_init", "budget", "smoothing", "random_state", "n_jobs",
)  # fmt: skip


def fit(args: argparse.Namespace) -> None:
    """Read the data, learn, and write the circuit."""
    check_output(args, "expected -o MODEL, the file to write")
    check_can_save(args.output)
    estimator = _estimator(args)
    rows = read_data(args.file)
    validation = None if args.validation is None else read_data(args.validation, rows)
    began = time.perf_counter()
    with tidily():  # Ctrl-C ends the training, and what was found is written
        model = estimator.fit(rows, validation=validation, checkpoint=args.checkpoint, cluster=args.cluster)
    seconds = time.perf_counter() - began
    pgcc.save(model.circuit_, args.output)
    told: dict[str, Any] = {
        "model": " ".join(repr(estimator).split()),
        "file": args.output,
        "rows": len(rows),
        "variables": len(rows.variables),
        "edges": model.circuit_.edges,
        "train": _score(model, rows),
        "validation": None if validation is None else _score(model, validation),
        "seconds": seconds,
    }
    print(json_text(told) if args.json else _text(told))
    if isinstance(model, StackedEnsemble) and not args.json:
        print(model.summary())


def _score(model: Estimator, rows: Rows) -> float:
    """The mean log-likelihood; NaN, with a warning, if it cannot be computed, because the model is already written."""
    try:
        return model.score(rows)
    except PgccError as error:
        warnings.warn(f"the model was written, but rows could not be scored: {error}", stacklevel=2)
        return math.nan


def _estimator(args: argparse.Namespace) -> Estimator:
    model = args.model or ("simple-pgc" if args.budget is None else "stacked-ensemble")
    kind = MODELS[model]
    known = kind().get_params()
    options = {name: OPTIONS.get(name, name) for name in _PARAMETERS}
    given = {name: value for name, option in options.items() if (value := getattr(args, option)) is not None}
    for name in given:
        if name not in known:
            args.parser.error(f"--{options[name].replace('_', '-')} means nothing for {model}")
    return kind(**given)


def read_data(path: str, like: Rows | None = None) -> Rows:
    """A table of 1, 0 and ? or nothing, or of labels (or an array in .npy), in pieces; - is standard input."""
    names, where = None if like is None else like.names, table_name(path)
    return read_rows(Csv(sys.stdin, where, names) if path == "-" else path, names, where)


def _text(told: dict[str, Any]) -> str:
    lines = [
        f"wrote {told['file']}: {plural(told['variables'], 'variable')}, {plural(told['edges'], 'edge')}",
        f"{told['model']}, learned from {plural(told['rows'], 'row')} in {told['seconds']:.1f} s",
        f"average log-likelihood {told['train']:.6f} of these rows",
    ]
    if told["validation"] is not None:
        lines[-1] += f", {told['validation']:.6f} of the validation data"
    return "\n".join(lines)
