"""Derivatives of log-probabilities with respect to the numbers of a circuit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from pgcc.compiler import GRADIENTS, Compiled, climb
from pgcc.data.evidence import Evidence
from pgcc.errors import EvidenceError, PgccError, PrecisionError, SemanticsError, circuit_from, plural
from pgcc.evaluate.differentiation import Differentiator, Gradients, WeightedRows
from pgcc.evaluate.differentiation_at_points import PointDifferentiator
from pgcc.ir.blocks import has_one_state
from pgcc.ir.circuit import Circuit, over_columns
from pgcc.ir.facts import multiplications
from pgcc.ir.node import Node, Op
from pgcc.kernels.policy import tier
from pgcc.program.parameters import Parametrized, parametrize

# The accuracy of certified values, and how well those of float64 must agree with them.
_CERTAIN, _AGREEMENT = 1e-11, 1e-10
# If underflow causes a larger relative error at the root, the row is computed in scaled numbers.
_UNDERFLOW = 1e-13
# The largest error of a derivative that is accepted, relative to it (or to 1).
_LOST = 1e-6


class Gradient:
    """The derivatives ∂/∂θ Σ_rows weight · log Pr(row) for every number θ of a circuit. Made by `pgcc.grad`.

    Attributes
    ----------
    logprob : float or array
        log Pr(row).
    weights : dict
        For every sum of the circuit, an array with one derivative per weight.
    constants : dict
        For every constant of the circuit, the derivative with respect to it.
    matrices : dict
        For every determinant, the arrays of derivatives with respect to the entries of M0, U and V.

    Examples
    --------
    >>> import pgcc
    >>> g = pgcc.parse("3*a + 1")
    >>> pgcc.grad(g, "a=1")[g].round(6)
    array([ 0.083333, -0.25    ])
    """

    def __init__(
        self,
        logprob: Any,
        weights: dict[Node, np.ndarray],
        constants: dict[Node, float],
        matrices: dict[Node, tuple[np.ndarray, ...]],
    ):
        self.logprob, self.weights, self.constants, self.matrices = logprob, weights, constants, matrices

    def __getitem__(self, node: Node | Circuit) -> Any:
        """The derivatives with respect to the numbers of one node (for a circuit, of its root)."""
        node = node.root if isinstance(node, Circuit) else node
        kinds: tuple[dict[Node, Any], ...] = (self.weights, self.constants, self.matrices)
        for kind in kinds:
            if node in kind:
                return kind[node]
        raise PgccError(f"{node!r} has no numbers, or is not in this circuit")

    def __iter__(self) -> Iterator[Node]:
        yield from self.weights
        yield from self.constants
        yield from self.matrices

    def __repr__(self) -> str:
        count = sum(map(len, self.weights.values())) + len(self.constants)
        count += sum(m.size for ms in self.matrices.values() for m in ms)
        sums, dets = plural(len(self.weights), "sum"), plural(len(self.matrices), "determinant")
        return f"<Gradient: {plural(count, 'derivative')}, of {sums} and {dets}>"


class GradientFunction:
    """The gradients of one circuit, prepared once, for learning to call repeatedly.

    Parameters
    ----------
    circuit : Circuit
        Any circuit. Decomposable circuits without determinants of a fixed size are by far the fastest.
    normalize : bool
        Whether to differentiate log Pr = log g(evidence) − log g(1); otherwise log g(evidence).
    """

    def __init__(self, circuit: Circuit, normalize: bool = True):
        if not isinstance(circuit, Circuit):
            raise PgccError(
                f"gradients are taken of a Circuit, not of {type(circuit).__name__}: {circuit_from(circuit)}"
            )
        circuit = circuit if has_one_state(circuit) else over_columns(circuit)
        self.circuit, self.normalize = circuit, normalize
        self.parametrized: Parametrized = parametrize(circuit)
        decomposable = circuit.facts.decomposable
        sized = any(node.op is Op.DET and node.size is not None for node in circuit.order)
        program = self.parametrized.program
        self.one_number = decomposable and not sized
        self.differentiator = Differentiator(program) if self.one_number else PointDifferentiator(program, decomposable)

    def unnormalized(
        self, codes: np.ndarray, share: np.ndarray | None = None, by: Differentiator | None = None
    ) -> Gradients:
        """Σ share · ∂ log g(row), with 0 for shares that are not given: climbs the ladder for gradients."""
        differentiator = self.differentiator if by is None else by
        if not len(codes):
            return differentiator.zeros(0)[0]
        rows = WeightedRows(codes, np.zeros(len(codes)) if share is None else share)
        return climb(GRADIENTS[self.one_number], differentiator, rows, _UNDERFLOW)[0]

    def evaluate(self, codes: np.ndarray, share: np.ndarray) -> Gradients:
        """Σ share · ∂ log Pr(row) as flat arrays, in the order of `parametrized`."""
        found = self.unnormalized(codes, share)
        if self.normalize:
            total = self.unnormalized(_free(codes), np.array([share.sum()]))
            found -= total
            with np.errstate(invalid="ignore"):
                found.logs -= total.logs
        return found

    def logs(self, codes: np.ndarray) -> np.ndarray:
        """log Pr of every row."""
        found = self.unnormalized(codes).logs
        return found - self.unnormalized(_free(codes)).logs if self.normalize else found

    def errors(self, codes: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Bounds on the rounding errors of derivatives with respect to weights and constants, without determinants.

        A derivative is a sum of products, and is off by γ times the same sum with absolute numbers, over the same root.
        """
        sizes = self.differentiator.absolute()

        def of(rows: np.ndarray, parts: np.ndarray) -> np.ndarray:
            roots = self.unnormalized(rows).logs
            with np.errstate(over="ignore", invalid="ignore"):
                parts = np.abs(parts) * np.exp(self.unnormalized(rows, by=sizes).logs - roots)
            found = self.unnormalized(rows, parts, sizes)
            return np.concatenate([found.weights, found.constants])

        total = of(codes, share)
        if self.normalize:
            total += of(_free(codes), np.array([np.abs(share).sum()]))
        return self.differentiator.gamma * total

    def sensitivity(self, codes: np.ndarray, share: np.ndarray, found: Gradients) -> float:
        """How much derivatives change, relative to them or to 1, if all weights and matrices change by a few roundings.

        Where terms cancel, in a determinant or a sum, derivatives cannot be known any better, because the nearest
        doubles of the numbers are off by as much. Later factors may hide that from the value of a row.
        """
        matrices = self.differentiator.matrices
        with self.differentiator.roundings(8, np.random.default_rng(0)):
            other = self.evaluate(codes, share)
        pairs = [(found.weights, other.weights), (found.constants, other.constants)]
        apart = [(np.abs(a - b) / np.maximum(1.0, np.abs(a))).max(initial=0.0) for a, b in pairs]
        # θ·∂ log F/∂θ does not depend on the scales of rows and columns, which may be many orders of magnitude apart
        for m, a, b in zip(chain(*matrices), chain(*found.matrices), chain(*other.matrices), strict=True):
            size = np.abs(m)
            apart.append((size * np.abs(a - b) / np.maximum(1.0, size * np.abs(a))).max(initial=0.0))
        return float(max(apart))

    def named(self, found: Gradients, logprob: Any) -> Gradient:
        """The derivatives, grouped by node."""
        parametrized = self.parametrized
        weights = {node: found.weights[first : first + len(node.weights)].copy() for node, first in parametrized.sums}
        constants = {node: float(found.constants[slot]) for node, slot in parametrized.constants}
        return Gradient(logprob, weights, constants, dict(zip(parametrized.dets, found.matrices, strict=True)))


def grad(circuit: Circuit, evidence: Any = None, *, weights: Any = None, normalize: bool = True) -> Gradient:
    """Derivatives of log Pr(evidence) with respect to every number of a circuit.

    The numbers are the weights of all sums, all constants, and the entries of all matrices. It takes one forward and
    one reverse pass, in float64 or, outside its range, in scaled numbers. The derivatives are correct even where a
    factor is 0 or a matrix is singular, because nothing is divided by. They are differences of the derivatives of
    log g(evidence) and of log g(1), and are accurate relative to the size of these: unlike probabilities, they may
    cancel. Circuits that are not decomposable, and determinants of a fixed size, are differentiated at complex points.

    Parameters
    ----------
    circuit : Circuit
        The circuit whose numbers are the parameters, with their current values.
    evidence : dict, array, DataFrame or list of dicts
        As in `Model.prob`. Evidence of probability 0 is an error.
    weights : array, optional
        One weight per row: the derivatives are those of Σ weight · log Pr(row). By default, every weight is 1.
    normalize : bool
        Divide by the total g(1), which depends on the parameters too. Otherwise, log g(evidence) is differentiated.

    Returns
    -------
    Gradient

    See Also
    --------
    pgcc.Model.grad : derivatives of the log-probability of evidence
    pgcc.learn.CircuitMLE : learn the numbers of any circuit from data
    pgcc.torch.logprob : log-probabilities of any circuit, for PyTorch

    Examples
    --------
    log Pr(a = 1) = log p − log(p + q) for g = p·a + q:

    >>> import pgcc
    >>> g = pgcc.parse("3*a + 1")
    >>> pgcc.grad(g, {"a": 1})[g].round(6)
    array([ 0.083333, -0.25    ])

    A DPP by its kernel L is det(I + diag(z)·L): its matrix V is Lᵀ.

    >>> d = pgcc.dpp(L=[[1.0, 0.5], [0.5, 2.0]])
    >>> pgcc.grad(d, {"x1": 1, "x2": 1})[d][2].T.round(6)      # L⁻¹ − (I + L)⁻¹
    array([[ 0.621118, -0.198758],
           [-0.198758,  0.223602]])
    """
    function = GradientFunction(circuit, normalize)
    given = Evidence(circuit.variables, evidence)
    with tier(multiplications(circuit) * given.rows):
        return _grad(function, given, _shares(weights, given.rows))


def _grad(function: GradientFunction, given: Evidence, share: np.ndarray) -> Gradient:
    """`grad` of rows with these weights."""
    circuit, normalize = function.circuit, function.normalize
    codes = given.chunk(slice(None))
    found = function.evaluate(codes, share)
    logs = found.logs if circuit.facts.monotone else certain_logs(circuit, codes, normalize)
    for row in np.flatnonzero(~np.isfinite(logs))[:1].tolist():
        what = "a negative value" if np.isnan(logs[row]) and not circuit.facts.monotone else "probability 0"
        raise SemanticsError(f"{given.describe(row)} has {what}: its logarithm has no derivative")
    for row in np.flatnonzero(logs > _AGREEMENT)[:1].tolist() if normalize else ():
        raise SemanticsError(f"the 'probability' of {given.describe(row)} is above 1: the circuit is no distribution")
    # where a float64 value is not the certified one, its derivatives are not right either
    for row in np.flatnonzero(~(np.abs(found.logs - logs) <= _AGREEMENT))[:1].tolist():
        raise PrecisionError(f"the terms of {given.describe(row)} cancel so far that float64 has lost its derivatives")
    if not all(np.isfinite(x).all() for x in (found.weights, found.constants, *chain(*found.matrices))):
        raise PrecisionError("a derivative is outside of the range of doubles: numbers of the circuit are too small")
    if found.spread > _LOST:
        raise PrecisionError("terms cancel so far that float64 has lost some derivatives")
    if circuit.facts.monotone or not len(codes):
        is_lost = False
    elif circuit.facts.decomposable and not circuit.facts.dets:
        slopes = np.concatenate([found.weights, found.constants])
        is_lost = not (function.errors(codes, share) <= _LOST * np.maximum(1.0, np.abs(slopes))).all()
    else:
        is_lost = not function.sensitivity(codes, share, found) <= _LOST
    if is_lost:
        what = "a determinant cancels, or terms do," if circuit.facts.dets else "terms cancel"
        raise PrecisionError(f"{what} so far that float64 has lost some derivatives")
    return function.named(found, float(logs[0]) if given.single else logs)


def _free(codes: np.ndarray) -> np.ndarray:
    """A row in which nothing is observed."""
    return np.full((1, codes.shape[1]), -1, np.int8)


def _shares(weights: Any, rows: int) -> np.ndarray:
    try:
        share = np.ones(rows) if weights is None else np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        share = np.full(rows, np.nan)
    if share.shape != (rows,) or not np.isfinite(share).all():
        raise EvidenceError(f"weights must be {rows} finite numbers, one per row")
    return share


def certain_logs(circuit: Circuit, codes: np.ndarray, normalize: bool) -> np.ndarray:
    """Certified log Pr of every row."""
    if not len(codes):
        return np.zeros(0)
    compiled = Compiled(circuit, validate=False)
    certain = compiled.values(codes, _CERTAIN).logs()
    return certain - compiled.total(_CERTAIN).logs() if normalize else certain
