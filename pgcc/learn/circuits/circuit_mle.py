"""CircuitMLE: maximum-likelihood estimates of the weights and matrices of any decomposable circuit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from pgcc.cluster import Crew
from pgcc.errors import EvidenceError, PgccError, brief
from pgcc.formats.npz import to_arrays
from pgcc.ir.circuit import Circuit
from pgcc.ir.domains import domains_of
from pgcc.ir.operands import check_decomposable
from pgcc.learn.circuits.circuit_likelihood import CircuitLikelihood
from pgcc.learn.circuits.circuit_trainers import ExpectationMaximization, FullBatch, circuit_batches
from pgcc.learn.common.checkpoint import Shapes, State
from pgcc.learn.common.estimator import Estimator, check_choice, check_positive, check_whole
from pgcc.learn.common.optimizers import LBFGS, Adam, MiniBatches
from pgcc.learn.common.training import Run, RunPlan, Trainer
from pgcc.learn.tables.data_split import DataSplit
from pgcc.queries.gradient import GradientFunction
from pgcc.trainable.trainable_parameters import TrainableParameters, with_weights_only

OPTIMIZERS = ("auto", "adam", "lbfgs", "em")
_NOT_DECOMPOSABLE = "CircuitMLE learns decomposable circuits, which have no squares whatever their numbers are: {}"


@dataclass(eq=False, repr=False)
class CircuitMLE(Estimator):
    """Learn the numbers of a circuit from data, keeping its structure.

    The weights of sums stay on the simplex, kernels of DPPs (L, K or factors, symmetric or not) stay positive, and so
    do the edge weights of graphs. So if the circuit is a distribution, the learned circuit is one too. All other
    numbers keep their values. See `pgcc.trainable`.

    Parameters
    ----------
    circuit : Circuit, or function that returns one
        A decomposable circuit; training starts from its numbers. The columns of the data are its variables, in the same
        order. A function is called with the list of column names.
    optimizer : str
        "em" (for circuits without negative weights or determinants, whose sums choose between distributions; every
        epoch is an improvement), "lbfgs" (all rows at a time), or "adam" (mini-batches). "auto" uses EM where possible
        and L-BFGS otherwise.
    max_iter : int
        The largest number of epochs (passes over the data).
    n_iter_no_change : int
        Stop after this many epochs without a better likelihood of the validation data.
    smoothing : float
        For EM: the number of rows added to every sum, in proportion to its initial weights.
    learning_rate, weight_decay, batch_size
        For Adam; `batch_size` is the number of rows per step. The weight decay is decoupled (as in AdamW): a step
        multiplies the parameters by 1 − learning_rate · weight_decay. It is not an L2 penalty, as in `SimplePGC`.
    free_matrices : bool
        Also learn determinants for which no parametrization guarantees a distribution. They are normalized by their
        total, but their coefficients may become negative: check the result with `pgcc.check`.
    binarize : float, optional
        The threshold above which numbers count as 1. By default, data are 0 and 1 (or −1, NaN, None if missing).
    exclude_empty : bool or "auto"
        Whether to take the empty set away from what was learned (`Circuit.exclude_empty`). "auto": if no row is, though
        at least ten would be if the variables were independent.
    random_state : int, numpy Generator or RandomState, or None
        For Adam: the same number gives the same model.
    verbose : bool, optional
        Report every epoch on standard error. By default, a bar shows the progress if that is a terminal; False shows
        nothing.

    Attributes
    ----------
    circuit_ : Circuit
        The distribution that was learned.
    n_iter_ : int
        The number of epochs made.
    history_ : dict of lists
        For every epoch: the mean log-likelihoods of training and validation data after it, and the seconds it took.
    best_epoch_ : int
        The epoch whose numbers were kept.

    See Also
    --------
    pgcc.grad : derivatives with respect to the numbers of a circuit
    pgcc.torch.LogProb : a circuit as a PyTorch layer

    Examples
    --------
    >>> import numpy as np
    >>> import pgcc
    >>> from pgcc.learn import CircuitMLE
    >>> X = np.array([[1, 1], [1, 1], [0, 0], [1, 0]])
    >>> model = CircuitMLE(pgcc.parse("0.5*(0.4*a + 0.6)*b + 0.5*(0.5*a + 0.5)"), smoothing=0).fit(X)
    >>> round(model.model_.prob({"b": 1}), 6), round(model.model_.conditional({"a": 1}, given={"b": 1}), 6)
    (0.5, 1.0)
    """

    circuit: Circuit | Callable[[list[str]], Circuit]
    optimizer: str = "auto"
    _: KW_ONLY
    max_iter: int = 100
    n_iter_no_change: int = 10
    smoothing: float = 0.1
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    batch_size: int = 128
    free_matrices: bool = False
    binarize: float | None = None
    exclude_empty: bool | str = False
    random_state: Any = 0
    verbose: bool | None = None

    _validation, _has_total_1 = "if given", False

    def _plans(self, data: DataSplit, seed: int, workers: Crew) -> list[RunPlan]:
        """One run. Workers share the rows of every epoch of EM and every step of L-BFGS."""
        epochs, patience = self._limits()
        circuit = self._circuit_over(data.rows.names, data.named)
        check_decomposable(circuit, _NOT_DECOMPOSABLE, PgccError)
        likelihood = CircuitLikelihood(circuit, data.rows, data.validation, workers, bool(self.free_matrices))
        make_trainer, state = self._trainer(likelihood, seed)
        learned = {"theta": (float, len(likelihood.parameters.start))}
        return [RunPlan(make_trainer, epochs, patience, learned, state, scores=likelihood.scores)]

    def _finish(self, runs: Sequence[Run], data: DataSplit) -> None:
        circuit = with_weights_only(self._circuit_over(data.rows.names, data.named))
        parameters = TrainableParameters(GradientFunction(circuit).parametrized, bool(self.free_matrices))
        self.circuit_ = parameters.circuit(circuit, self._keep_history(runs[0])["theta"])

    def _columns(self) -> Sequence[str] | None:
        return self.circuit.variables if isinstance(self.circuit, Circuit) else None

    def _settings(self, seed: int) -> dict[str, Any]:
        return super()._settings(seed) | {"circuit": None}

    def _arrays(self, data: DataSplit) -> Iterable[np.ndarray]:
        return to_arrays(self._circuit_over(data.rows.names, data.named)).values()

    def _circuit_over(self, columns: Sequence[str], named: bool) -> Circuit:
        """The circuit with its variables in the order of the columns; renamed to x1, x2, … if these have no names."""
        circuit = self.circuit
        if not isinstance(circuit, Circuit):
            circuit, named = circuit(list(columns)) if callable(circuit) else circuit, True
            if not isinstance(circuit, Circuit):
                raise PgccError(f"circuit={brief(circuit)}: CircuitMLE learns the numbers of a Circuit")
        names = circuit.variables
        if len(columns) != len(names) or (named and set(columns) != set(names)):
            raise EvidenceError(
                f"the data have the columns {brief(list(columns))}, and the circuit {brief(list(names))}"
            )
        if _shown(names) and _shown(columns) != _shown(names):
            raise EvidenceError("the data have other states than the circuit: fit(X, states=…) says which they have")
        return Circuit(circuit.root, columns) if named else circuit.relabel(dict(zip(names, columns, strict=True)))

    def _trainer(self, likelihood: CircuitLikelihood, seed: int) -> tuple[Callable[[State | None], Trainer], Shapes]:
        """The trainer as a function of the state to resume from, and what the arrays of a state are."""
        start = likelihood.parameters.start
        match _choose_optimizer(self.optimizer, likelihood):
            case "em":
                smoothing = check_positive("smoothing", self.smoothing, zero=True)
                shapes = ExpectationMaximization.shapes(likelihood)
                return partial(ExpectationMaximization, likelihood, smoothing), shapes
            case "lbfgs":
                return partial(FullBatch, likelihood), LBFGS.shapes(len(start))
        rate = check_positive("learning_rate", self.learning_rate)
        decay = check_positive("weight_decay", self.weight_decay, zero=True)
        batch = check_whole("batch_size", self.batch_size)

        def make_adam(state: State | None) -> MiniBatches:
            adam = Adam(start, state, weight_decay=decay)
            return MiniBatches(circuit_batches(likelihood, batch), adam, rate, 0.0, self.max_iter, seed)

        return make_adam, Adam.shapes(len(start))


def _shown(columns: Sequence[str]) -> dict[str | None, Any]:
    """The state that each column shows, if it is not simply in or out."""
    domains = (domains_of(columns) or {}).values()
    return {c: s for d in domains if not d.is_plain for c, s in zip(d.columns, d.states, strict=True) if c}


def _choose_optimizer(optimizer: str, likelihood: CircuitLikelihood) -> str:
    if check_choice("optimizer", optimizer, OPTIMIZERS) == "auto":
        return "em" if likelihood.has_em else "lbfgs"
    if optimizer == "em" and not likelihood.has_em:
        raise PgccError(
            "EM needs a circuit without negative weights and determinants, in which all terms of a sum have the same "
            "total: 'lbfgs' and 'adam' work for any circuit"
        )
    return optimizer
