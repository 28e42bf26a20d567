"""CircuitMLE: maximum likelihood for the weights and matrices of any decomposable circuit."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

from pgcc.cluster import crew
from pgcc.errors import EvidenceError, PgccError, brief
from pgcc.formats.npz import to_arrays
from pgcc.ir.circuit import Circuit
from pgcc.learn.base import Estimator, check_positive, check_whole
from pgcc.learn.checkpoint import Checkpoint, Place, State
from pgcc.learn.circuit_ascents import CircuitBatches, ExpectationMaximization, FullBatch
from pgcc.learn.circuit_likelihood import CircuitLikelihood
from pgcc.learn.data import read_rows
from pgcc.learn.mini_batches import MiniBatches
from pgcc.learn.optimizers import Adam
from pgcc.learn.rows import Rows
from pgcc.learn.shared import Shared
from pgcc.learn.training import Ascent, Attempt, train

OPTIMIZERS = ("auto", "adam", "lbfgs", "em")


class CircuitMLE(Estimator):
    """The numbers of a circuit, learned from data; its structure stays.

    Weights of sums stay on their simplex, kernels of DPPs (L, K or factors, symmetric or not) stay positive, and so do
    the weights of the edges of graphs: what is learned is a distribution, as the circuit is. All else stays as it is.
    See `pgcc.learn.parameters` and `pgcc.learn.matrices`.

    Parameters
    ----------
    circuit : Circuit
        Decomposable; training starts from its numbers. Columns of data are its variables, in their order.
    optimizer : str
        "em" (for circuits without negative weights or determinants, whose sums choose between distributions: every
        epoch is an improvement), "lbfgs" (all rows at a time), "adam" (mini-batches); "auto" takes EM where it can, and
        L-BFGS elsewhere.
    epochs : int
        Passes over the data, at most.
    patience : int
        Stop after as many epochs without a better likelihood of the validation data.
    smoothing : float
        For EM: rows added to every sum, spread like its first weights.
    rate, decay, batch
        For Adam: the learning rate, weight decay, and rows per step.
    free_matrices : bool
        Learn also determinants that no parametrisation keeps a distribution. They are normalised by their total, and
        that no coefficient becomes negative is yours to see to: ask `pgcc.check`.
    seed : int
    verbose : bool
        Tell of every epoch, on standard error.

    Attributes
    ----------
    circuit_ : Circuit
    history_ : dict of lists
        Mean log-likelihoods of training and validation data after every epoch, and seconds.
    best_epoch_ : int
        The epoch whose numbers were kept.

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

    def __init__(
        self,
        circuit: Circuit,
        optimizer: str = "auto",
        *,
        epochs: int = 100,
        patience: int = 10,
        smoothing: float = 0.1,
        rate: float = 0.01,
        decay: float = 0.0,
        batch: int = 128,
        free_matrices: bool = False,
        seed: int = 0,
        verbose: bool = False,
    ):
        self.circuit = circuit
        self.optimizer = optimizer
        self.epochs = epochs
        self.patience = patience
        self.smoothing = smoothing
        self.rate = rate
        self.decay = decay
        self.batch = batch
        self.free_matrices = free_matrices
        self.seed = seed
        self.verbose = verbose

    def fit(self, X: Any, validation: Any = None, *, checkpoint: Place | None = None, cluster: Any = None) -> Self:
        """Learn the numbers of the circuit from data.

        Parameters
        ----------
        X : array, list of rows, DataFrame or path
            0 and 1; −1, NaN or None for what is missing, which is summed out. A path is of a CSV file or an array in
            .npy, which is read in pieces: it may be longer than memory.
        validation : the same, optional
            The epoch with the largest likelihood of these data is kept; without them, that of the training data.
        checkpoint : path, optional
            Where the state of the run is written every few epochs. A run that was killed goes on from there, and ends
            with the same numbers.
        cluster : str or distributed.Client, optional
            The address of the scheduler of a Dask cluster, whose workers share the blocks of rows of every epoch of EM
            and every step of L-BFGS, and of the validation data. What is learned is the same.
        """
        if not isinstance(self.circuit, Circuit):
            raise PgccError(f"circuit={self.circuit!r}: CircuitMLE learns the numbers of a Circuit")
        if self.circuit.overlap is not None:
            node, name = self.circuit.overlap
            raise PgccError(
                f"CircuitMLE learns decomposable circuits, which have no squares whatever their numbers are: {node!r} "
                f"has {name!r} in two of its children"
            )
        epochs, patience = check_whole("epochs", self.epochs), check_whole("patience", self.patience)
        circuit, rows, held_out = self._over(X, validation)
        self.feature_names_in_ = list(circuit.variables)
        settings = {name: value for name, value in self.get_params().items() if name not in ("circuit", "verbose")}
        data = [rows] if held_out is None else [rows, held_out]
        kept = Checkpoint(checkpoint, {"model": "CircuitMLE", **settings}, *to_arrays(circuit).values(), *data)
        with crew(cluster) as workers:
            likelihood = CircuitLikelihood(circuit, rows, held_out, workers, bool(self.free_matrices))
            attempt = Attempt(partial(self._begin, likelihood), epochs, patience)
            (run,) = train([attempt], kept, verbose=self.verbose)
        self.history_, self.best_epoch_ = run.history, run.best_epoch
        self.circuit_ = likelihood.parameters.circuit(likelihood.circuit, run.best["theta"])
        return self

    def _over(self, X: Any, validation: Any) -> tuple[Circuit, Rows, Rows | None]:
        """The circuit over the columns of the data, training and validation data."""
        names = list(self.circuit.variables)
        if not isinstance(X, Shared):
            held_out = None if validation is None else read_rows(validation, names, "the validation data")
            return self.circuit, read_rows(X, names), held_out
        columns = X.rows.names
        if len(columns) != len(names) or (X.named and set(columns) != set(names)):
            raise EvidenceError(f"the data have the columns {brief(columns)}, and the circuit {brief(names)}")
        if X.named:
            return Circuit(self.circuit.root, columns), X.rows, X.held_out
        return self.circuit.relabel(dict(zip(names, columns, strict=True))), X.rows, X.held_out

    def _begin(self, likelihood: CircuitLikelihood, state: State | None) -> Ascent:
        match _choose(self.optimizer, likelihood):
            case "em":
                smoothing = check_positive("smoothing", self.smoothing, zero=True)
                return ExpectationMaximization(likelihood, smoothing, state)
            case "lbfgs":
                return FullBatch(likelihood, state)
        rate, decay = check_positive("rate", self.rate), check_positive("decay", self.decay, zero=True)
        batch, seed = check_whole("batch", self.batch), check_whole("seed", self.seed, 0)
        adam = Adam(likelihood.parameters.start, decay)
        if state is not None:
            adam.restore(state)
        return MiniBatches(CircuitBatches(likelihood, batch), adam, rate, 0.0, self.epochs, seed)


def _choose(optimizer: str, likelihood: CircuitLikelihood) -> str:
    if optimizer not in OPTIMIZERS:
        raise PgccError(f"optimizer={optimizer!r}: choose one of {', '.join(map(repr, OPTIMIZERS))}")
    if optimizer == "auto":
        return "em" if likelihood.has_em else "lbfgs"
    if optimizer == "em" and not likelihood.has_em:
        raise PgccError(
            "EM needs a circuit without negative weights and determinants, in which all terms of a sum have the same "
            "total: 'lbfgs' and 'adam' take any"
        )
    return optimizer
