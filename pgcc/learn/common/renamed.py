"""Parameters have scikit-learn's names: old ones are an error that says the new one."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

from pgcc.errors import PgccError

Function = TypeVar("Function", bound=Callable[..., Any])

# Old names of parameters and attributes, and what scikit-learn calls them.
NEW_NAMES = {
    "components": "n_components",
    "epochs": "max_iter",
    "batch": "batch_size",
    "rate": "learning_rate",
    "decay": "weight_decay",
    "patience": "n_iter_no_change",
    "restarts": "n_init",
    "seed": "random_state",
    "rng": "random_state",
    "threads": "n_jobs",
    "grid": "param_grid",
    "results_": "cv_results_",
}
# Still accepted, with a warning.
_DEPRECATED = ("components",)


def with_new_names(function: Function) -> Function:
    """Let a function refuse the old names of its parameters with an error that says the new ones.

    Its signature stays: the old names are not in it.

    Examples
    --------
    >>> @with_new_names
    ... def fit(max_iter=100): ...
    >>> fit(epochs=3)
    Traceback (most recent call last):
    pgcc.errors.PgccError: the parameter epochs is called max_iter now, as in scikit-learn
    """
    known = list(inspect.signature(function).parameters)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **new_names(kwargs, known))

    return call  # type: ignore[return-value]


def new_names(params: Mapping[str, Any], known: list[str]) -> dict[str, Any]:
    """Parameters with `components` replaced by n_components; other old names are refused."""
    found = dict(params)
    for old, new in NEW_NAMES.items():
        if old not in found or old in known or new not in known:
            continue
        message = f"the parameter {old} is called {new} now, as in scikit-learn"
        if old not in _DEPRECATED:
            raise PgccError(message)
        if new in found:
            raise PgccError(f"{message}: give one of both")
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        found[new] = found.pop(old)
    return found
