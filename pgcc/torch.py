"""Circuits in PyTorch: log-probabilities whose parameters are tensors, with gradients (needs `torch`).

    logprob(circuit, rows, {part: tensor})    a function: you compute numbers of the circuit in any way you like
    dpp_logprob(rows, L=L)                    the same for a DPP given by its kernel
    LogProb(circuit)                          a layer that owns the parameters

All three use the same `torch.autograd.Function`. Its forward pass evaluates the program of the circuit with the given
numbers. Its backward pass is the reverse pass of `pgcc.grad`, which is correct even where a factor is 0 or a matrix is
singular. Everything is computed in float64 on the CPU, whatever the type and device of the tensors. Values and
gradients are not certified: to ask the learned circuit questions, `pgcc.compile` it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pgcc.data.evidence import Evidence
from pgcc.determinants.cofactors import Matrices
from pgcc.errors import CircuitError, PrecisionError, SemanticsError, brief, plural
from pgcc.evaluate.differentiation import Gradients
from pgcc.ir.circuit import Circuit
from pgcc.ir.facts import multiplications
from pgcc.ir.node import Node, Op, det, var
from pgcc.ir.numbers import nearest_float
from pgcc.ir.printer import describe
from pgcc.kernels.policy import tier
from pgcc.locks import new_lock
from pgcc.program.det_structure import DetStructure, Laplacian
from pgcc.program.parameters import Parametrized
from pgcc.queries.gradient import GradientFunction, certain_logs
from pgcc.trainable.trainable_matrices import graph_of
from pgcc.trainable.trainable_parameters import TrainableParameters, nodes_with_weights_only, with_numbers

try:
    import torch
except ImportError as reason:
    raise ImportError("pgcc.torch needs PyTorch: pip install torch") from reason

__all__ = ["LogProb", "dpp_logprob", "logprob"]

# Derivatives are refused if two ways of computing them differ by more than this, relative to them or to 1.
_LOST = 1e-6
# θ·∂ log g/∂θ says how much a rounding error in θ changes log g; if it is larger than this, float64 cannot tell g.
_ILL_CONDITIONED = 1e9


def logprob(circuit: Circuit, rows: Any, numbers: Mapping[Any, Any], *, normalize: bool = True) -> torch.Tensor:
    """Log-probabilities of rows of evidence, as a differentiable function of numbers of the circuit.

    Parameters
    ----------
    circuit : Circuit
        The structure of the model. Numbers that you do not replace keep their values.
    rows : dict, array, tensor, DataFrame or list of dicts
        Evidence, as for `Model.prob`: 1 means in, 0 out, −1 unobserved.
    numbers : mapping
        From parts of the circuit (a `Circuit` that it was built from, or its `Node`) to tensors:

        - a sum: its weights, one per term; a number c that is added, as in 0.3·a + 0.7, is a term c·1 of weight c;
        - a DPP: the kernel that it was made from: L or K of shape n × n, or a factor of shape n × r (the kernel L = I
          and the factor I make the same circuit; a tensor for it is taken to be L);
        - a graph (of `spanning_tree`, `spanning_forest` or `arborescence`): the weights of its edges;
        - any determinant: a tuple (M0, U, V), in which None keeps a matrix as it is.

        A tensor with an additional first dimension, as long as the number of rows, has separate numbers for each row.
        It is up to you to make the result a distribution: kernels L should be positive semi-definite, and weights
        nonnegative. This is not checked.
    normalize : bool
        Divide by the total g(1), which also depends on the numbers.

    Returns
    -------
    Tensor
        One log-probability per row (a single number for a single piece of evidence), with the dtype and the device of
        the numbers. Impossible evidence has −inf, and no gradient.

    Raises
    ------
    CircuitError
        If a key is not a part of the circuit, or a tensor does not have the shape of its part.
    SemanticsError
        If a value is negative; from `backward`, if a row has probability 0.
    PrecisionError
        From `backward`, if so many digits cancel that derivatives are lost.

    Notes
    -----
    Equal parts of a circuit count as one part and share one tensor. Second derivatives are not available.

    See Also
    --------
    pgcc.torch.dpp_logprob : log-probabilities of a DPP
    pgcc.torch.LogProb : a circuit as a PyTorch layer
    pgcc.grad : derivatives with respect to the numbers of a circuit

    Examples
    --------
    >>> import pgcc, pgcc.torch, torch
    >>> d = pgcc.dpp(L=[[1.0, 0.0], [0.0, 1.0]])
    >>> L = torch.tensor([[1.0, 0.5], [0.5, 2.0]], requires_grad=True)
    >>> value = pgcc.torch.logprob(d, {"x1": 1, "x2": 1}, {d: L})
    >>> value.backward()
    >>> L.grad                                         # L⁻¹ − (I + L)⁻¹
    tensor([[ 0.6211, -0.1988],
            [-0.1988,  0.2236]])
    """
    prepared = _prepared(circuit, bool(normalize))
    parts = {prepared.part(key): tensor for key, tensor in _checked(numbers).items()}
    if len(parts) < len(numbers):
        raise CircuitError("two of the parts with numbers are equal, so they are the same part of the circuit")
    read = {node: _read(node, given) for node, given in parts.items()}
    theta = _flat(list(chain.from_iterable(read.values())))
    logs = _evaluate(prepared, _Parts(prepared.parametrized, list(read)), theta, rows)
    return logs.to(_example(parts.values()))


def dpp_logprob(
    rows: Any,
    L: torch.Tensor | None = None,
    *,
    K: torch.Tensor | None = None,
    factor: torch.Tensor | None = None,
    size: int | None = None,
) -> torch.Tensor:
    """Log-probabilities of rows of evidence under a determinantal point process (DPP), given by one of three kernels.

    Parameters
    ----------
    rows : array, tensor or dict
        Evidence over the items x1, …, xn.
    L, K, factor : tensor
        Exactly one kernel, as for `pgcc.dpp`: n × n or n × r, or with a first dimension for the rows to give each row a
        kernel of its own. It is not checked that the kernel belongs to a DPP.
    size : int, optional
        Condition on this many items being in: a k-DPP.

    See Also
    --------
    pgcc.dpp : determinantal point processes
    pgcc.torch.logprob : log-probabilities of any circuit, for PyTorch

    Examples
    --------
    >>> import pgcc.torch, torch
    >>> B = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], requires_grad=True)
    >>> logs = pgcc.torch.dpp_logprob([[1, 1, 0], [1, 0, 1]], factor=B)     # the first two are alike
    >>> logs.exp()
    tensor([0.0018, 0.1773], grad_fn=<ExpBackward0>)
    """
    given = {form: m for form, m in (("L", L), ("K", K), ("factor", factor)) if m is not None}
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise CircuitError(f"a DPP is given by exactly one of L, K and factor, not by {found}")
    ((form, kernel),) = given.items()
    if not isinstance(kernel, torch.Tensor) or kernel.ndim not in (2, 3):
        raise CircuitError(f"{form} is a tensor of two dimensions, or three with one for the rows: not {brief(kernel)}")
    n, columns = kernel.shape[-2:]
    if form != "factor" and n != columns:
        raise CircuitError(
            f"the kernel {form} has to be square: it has {plural(n, 'row')} and {plural(columns, 'column')}"
        )
    matrices = {"L": _by_l, "K": _by_k, "factor": _by_factor}[form](kernel)
    process = _determinant_of_shape(columns, n, size)
    return logprob(process, rows, {process: matrices})


class LogProb(torch.nn.Module):
    """A circuit as a PyTorch layer: rows of evidence in, log-probabilities out, with its numbers as parameters.

    The layer has a single, unconstrained parameter vector θ. The circuit stays a distribution for every θ, as in
    `pgcc.learn.CircuitMLE`: weights of sums are softmax(θ), kernels of DPPs are B·Bᵀ, edge weights are exp(θ).

    Parameters
    ----------
    circuit : Circuit
        The circuit whose numbers training starts from. Sums with negative weights, and determinants that are not known
        to be distributions, keep their numbers.

    Attributes
    ----------
    theta : torch.nn.Parameter
        The parameters, of dtype float64.

    See Also
    --------
    pgcc.learn.CircuitMLE : learn the numbers of any circuit from data
    pgcc.torch.logprob : log-probabilities of any circuit, for PyTorch

    Examples
    --------
    >>> import pgcc, pgcc.torch, torch
    >>> layer = pgcc.torch.LogProb(pgcc.parse("0.5*a*b + 0.25*a + 0.25"))
    >>> rows = torch.tensor([[1, 1], [1, 1], [1, 0], [0, 0]])
    >>> optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=50)
    >>> def loss():
    ...     optimizer.zero_grad()
    ...     value = -layer(rows).mean()
    ...     value.backward()
    ...     return value
    >>> _ = optimizer.step(loss)
    >>> round(pgcc.compile(layer.circuit()).prob({"b": 1}), 3)
    0.5
    """

    def __init__(self, circuit: Circuit):
        super().__init__()
        self._prepared = _Prepared(circuit, True)
        self._chart = TrainableParameters(self._prepared.parametrized)
        self.theta = torch.nn.Parameter(torch.from_numpy(self._chart.start.copy()))

    def forward(self, rows: Any, theta: torch.Tensor | None = None) -> torch.Tensor:
        """Log-probabilities of rows of evidence.

        Parameters
        ----------
        rows : dict, array, tensor, DataFrame or list of dicts
            Evidence, as for `Model.prob`.
        theta : tensor, optional
            Parameters, for instance from another layer, in place of the layer's own: one vector for all rows, or rows ×
            parameters.
        """
        given = self.theta if theta is None else theta
        if given.shape[-1:] != self.theta.shape:
            raise CircuitError(f"theta has {len(self.theta)} parameters, not the shape {tuple(given.shape)}")
        return _evaluate(self._prepared, self._chart, _flat([_Read(given, 1)]), rows).to(given)

    def circuit(self) -> Circuit:
        """The circuit with its current numbers, ready to be compiled, saved or drawn."""
        return self._chart.circuit(self._prepared.circuit, self.theta.detach().cpu().double().numpy())

    def __reduce__(self) -> Any:
        return _layer, (self._prepared.given, self.theta.detach().clone())


def _layer(circuit: Circuit, theta: torch.Tensor) -> LogProb:
    """A layer that was pickled or copied."""
    layer = LogProb(circuit)
    layer.theta.data = theta
    return layer


# -- the function and its derivative -------------------------------------------------------------------------


# How a vector θ determines the numbers of a program. (As text: `_Parts` comes later.)
_Chart: TypeAlias = "TrainableParameters | _Parts"


class _Prepared:
    """A circuit with its program, in which constants are weights, and a lock, because evaluation sets its numbers."""

    def __init__(self, given: Circuit, normalize: bool):
        if not isinstance(given, Circuit):
            raise CircuitError(f"pgcc.torch differentiates a Circuit, not {type(given).__name__}")
        self.given, self.normalize = given, normalize
        new = nodes_with_weights_only(given)
        self._new = dict(zip(given.order, new, strict=True))
        self.circuit = Circuit(new[-1], given.variables)
        self.function = GradientFunction(self.circuit, normalize)
        self.free = np.full((1, len(given.variables)), -1, np.int8)
        self.parametrized = self.function.parametrized
        self.work = multiplications(self.circuit)
        self._lock = new_lock()

    def part(self, key: Any) -> Node:
        """The sum or determinant of the program that corresponds to a part of the circuit."""
        node = key.root if isinstance(key, Circuit) else key
        found = self._new.get(node) if isinstance(node, Node) else None
        if found is None:
            raise CircuitError(
                f"{brief(key)} is not a part of the circuit: a part is a Circuit that it was built from, or a Node"
            )
        if found.op is not Op.SUM and found.op is not Op.DET:
            raise CircuitError(f"{describe(node)} has no numbers: sums have weights, and determinants matrices")
        return found

    def logs(self, chart: _Chart, theta: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, Gradients | None]:
        """log Pr of rows, all with the numbers of θ, and Σ ∂ log Pr(row) unless a row is doubtful in float64."""
        with self._lock, tier(self.work * len(codes)):
            numbers = chart.numbers(theta)
            self.function.differentiator.update(*numbers)
            found = self.function.unnormalized(codes, np.ones(len(codes)))
            logs, rows, sure = found.logs, codes, _is_sure(found, numbers)
            if self.normalize:
                total = self.function.unnormalized(self.free, np.array([float(len(codes))]))
                logs, rows = np.append(logs, total.logs), np.concatenate([codes, self.free])
                sure = sure and _is_sure(total, numbers)
                found -= total
            doubtful = [] if sure else self._doubtful(rows, numbers)
        if doubtful:
            logs[doubtful] = certain_logs(chart.circuit(self.circuit, theta), rows[doubtful], False)
        return logs[:-1] - logs[-1] if self.normalize else logs, None if doubtful else found

    def _doubtful(self, rows: np.ndarray, numbers: _Numbers) -> list[int]:
        """The rows whose values are not accurate in float64."""
        each = (self.function.unnormalized(rows[i : i + 1], np.ones(1)) for i in range(len(rows)))
        return [i for i, found in enumerate(each) if not _is_sure(found, numbers)]

    def gradient(
        self, chart: _Chart, theta: np.ndarray, codes: np.ndarray, share: np.ndarray, known: Gradients | None
    ) -> np.ndarray:
        """Σ share · ∂ log Pr(row) / ∂θ; `known` is that with all shares 1, where `logs` found it."""
        numbers = chart.numbers(theta)
        if known is not None and len(share) and (share == share[0]).all() and known.spread <= _LOST:
            found = known.times(share[0])
        else:
            with self._lock, tier(self.work * len(codes)):
                self.function.differentiator.update(*numbers)
                found = self.function.evaluate(codes, share)
        _check_derivatives(found, numbers, max(1.0, float(np.abs(share).sum())))
        return chart.gradient(theta, found.weights, found.matrices)


@lru_cache(maxsize=32)
def _prepared(circuit: Circuit, normalize: bool) -> _Prepared:
    return _Prepared(circuit, normalize)


_Numbers = tuple[np.ndarray, list[Matrices]]  # all weights and matrices of a program


def _condition(found: Gradients, numbers: _Numbers) -> float:
    """The largest |θ·∂/∂θ|; NaN if a derivative is."""
    weights, matrices = numbers
    pairs = chain([(weights, found.weights)], zip(chain(*matrices), chain(*found.matrices), strict=True))
    with np.errstate(over="ignore", invalid="ignore"):
        return max(float(np.abs(theta * slope).max(initial=0.0)) for theta, slope in pairs)


def _is_sure(found: Gradients, numbers: _Numbers) -> bool:
    return not np.isnan(found.logs).any() and _condition(found, numbers) <= _ILL_CONDITIONED


def _check_derivatives(found: Gradients, numbers: _Numbers, share: float) -> None:
    if not all(np.isfinite(x).all() for x in (found.weights, *chain(*found.matrices))):
        raise PrecisionError("a derivative is outside of the range of doubles: numbers of the circuit are too small")
    if found.spread > _LOST or not _condition(found, numbers) <= share * _ILL_CONDITIONED:
        raise PrecisionError("so many digits cancel that float64 has lost some derivatives")


def _evaluate(prepared: _Prepared, chart: _Chart, theta: torch.Tensor, rows: Any) -> torch.Tensor:
    given = Evidence(prepared.given.variables, rows)
    if theta.ndim == 2 and len(theta) != given.rows:
        raise CircuitError(f"there are numbers for {plural(len(theta), 'row')}, and {plural(given.rows, 'row')}")
    logs = _LogProbFunction.apply(theta, prepared, chart, given)
    return logs[0] if given.single else logs


class _LogProbFunction(torch.autograd.Function):
    """log Pr of rows as a function of θ, which is one vector for all rows or one for each row."""

    @staticmethod
    def forward(ctx: Any, theta: torch.Tensor, prepared: _Prepared, chart: _Chart, given: Evidence) -> torch.Tensor:
        codes, numbers = given.chunk(slice(None)).copy(), theta.detach().numpy()  # rows may be changed until `backward`
        logs, known = np.empty(len(codes)), []
        for some, vector in _batches(numbers, len(codes)):
            logs[some], gradients = prepared.logs(chart, vector, codes[some])
            known.append(gradients)
        for row in np.flatnonzero(np.isnan(logs))[:1].tolist():
            raise SemanticsError(
                f"{given.describe(row)} has a negative value, or the total is not positive: with these numbers the "
                "circuit is not a distribution"
            )
        ctx.save_for_backward(theta)
        ctx.rest = prepared, chart, given, codes, np.isneginf(logs), known
        return torch.from_numpy(logs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *outputs: Any) -> Any:
        (theta,), (prepared, chart, given, codes, impossible, known) = ctx.saved_tensors, ctx.rest
        share = np.ascontiguousarray(outputs[0].detach().numpy(), np.float64)
        for row in np.flatnonzero(impossible & (share != 0.0))[:1].tolist():
            raise SemanticsError(f"{given.describe(row)} has probability 0: its logarithm has no derivative")
        numbers = theta.detach().numpy()
        slopes = np.zeros_like(numbers)
        for (some, vector), gradients in zip(_batches(numbers, len(codes)), known, strict=True):
            at = some if numbers.ndim == 2 else slice(None)
            slopes[at] = prepared.gradient(chart, vector, codes[some], share[some], gradients)
        return torch.from_numpy(slopes), None, None, None


def _batches(numbers: np.ndarray, rows: int) -> Sequence[tuple[slice, np.ndarray]]:
    """The batches of rows that have the same numbers, each with these numbers."""
    if numbers.ndim == 1:
        return [(slice(0, rows), numbers)]
    return [(slice(row, row + 1), vector) for row, vector in enumerate(numbers)]


# -- tensors for parts of a circuit --------------------------------------------------------------------------


class _Parts:
    """Weights of sums and matrices of determinants as one vector θ, part after part; other numbers are fixed."""

    def __init__(self, parametrized: Parametrized, parts: Sequence[Node]):
        program, first = parametrized.program, dict(parametrized.sums)
        self.sums = {node: slice(first[node], first[node] + len(node.weights)) for node in parts if node in first}
        self.dets = {node: parametrized.dets.index(node) for node in parts if node not in first}
        weights = np.array([nearest_float(x) for x in program.numbers], np.float64)  # evaluation sets the others
        arrays = [weights, *chain.from_iterable(structure.floats for structure in program.structures)]
        self.shapes, self.ends = [array.shape for array in arrays], np.cumsum([array.size for array in arrays])
        self.all = np.concatenate([array.ravel() for array in arrays])
        ranges = self.sums | {node: slice(self.ends[3 * i], self.ends[3 * i + 3]) for node, i in self.dets.items()}
        self.which = np.concatenate([np.arange(len(self.all))[ranges[node]] for node in parts])  # the places of θ

    def numbers(self, theta: np.ndarray) -> tuple[np.ndarray, list[Matrices]]:
        """All weights and matrices of the program."""
        numbers = self.all.copy()
        numbers[self.which] = theta
        parts = zip(np.split(numbers, self.ends[:-1]), self.shapes, strict=True)
        weights, *matrices = (part.reshape(shape) for part, shape in parts)
        return weights, list(zip(matrices[::3], matrices[1::3], matrices[2::3], strict=True))

    def circuit(self, circuit: Circuit, theta: np.ndarray) -> Circuit:
        """The circuit with the numbers of θ."""
        weights, matrices = self.numbers(theta)
        of_sums = {node: weights[at].tolist() for node, at in self.sums.items()}
        return with_numbers(circuit, of_sums, {node: matrices[i] for node, i in self.dets.items()})

    def gradient(self, theta: np.ndarray, by_weights: np.ndarray, by_matrices: list[Matrices]) -> np.ndarray:
        """Part after part."""
        return np.concatenate([by_weights, *(slopes.ravel() for slopes in chain(*by_matrices))])[self.which]


# M0, U, V; None stays as it is. (As text: the site is built without torch, too.)
_Matrices: TypeAlias = "tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]"


class _Read(NamedTuple):
    """A tensor, and how many dimensions it has without the one for rows."""

    tensor: torch.Tensor
    dimensions: int


def _checked(numbers: Any) -> Mapping[Any, Any]:
    if not isinstance(numbers, Mapping) or not numbers:
        raise CircuitError(
            f"numbers is a mapping from parts of the circuit to tensors, {{part: tensor}}, not {brief(numbers)}"
        )
    return numbers


def _read(node: Node, given: Any) -> list[_Read]:
    """The numbers of a part as its weights, or as its matrices M0, U and V."""
    if node.op is Op.SUM:
        return [_shaped(node, given, (len(node.weights),), "a weight for each of its terms")]
    structure = DetStructure.of(node)
    matrices = given if isinstance(given, (tuple, list)) else _by_kind(node, structure, given)
    if len(matrices) != 3:
        raise CircuitError(f"the numbers of {describe(node)} are a tuple (M0, U, V), not {len(matrices)} tensors")
    return [
        _Read(torch.tensor(stays), 2) if one is None else _shaped(node, one, stays.shape, f"the matrix {name}")
        for name, one, stays in zip(("M0", "U", "V"), matrices, structure.floats, strict=True)
    ]


def _by_kind(node: Node, structure: DetStructure, given: Any) -> _Matrices:
    """Matrices of a DPP given by its kernel, or of a graph given by the weights of its edges."""
    n, r = structure.children, structure.rank
    if structure.identity_u and structure.identity_m0:
        return _by_l(_shaped(node, given, (n, n), "the kernel L").tensor)
    if structure.is_marginal_kernel:
        return _by_k(_shaped(node, given, (n, n), "the kernel K").tensor)
    if (graph := _graph(structure)) is not None:
        return _by_edges(structure, graph, _shaped(node, given, (n,), "the weights of its edges").tensor)
    if structure.ratio is not None:
        return _by_factor(_shaped(node, given, (n, r), "the factor of its kernel").tensor)
    raise CircuitError(f"{describe(node)} is neither a DPP nor a graph: its numbers are a tuple (M0, U, V)")


def _by_l(L: torch.Tensor) -> _Matrices:
    """det(I + diag(z)·L)"""
    return None, None, L.mT


def _by_k(K: torch.Tensor) -> _Matrices:
    """det(I − K + diag(z)·K)"""
    K = _double(K)
    return torch.eye(K.shape[-1], dtype=torch.float64) - K, torch.eye(K.shape[-1]), K.mT


def _by_factor(B: torch.Tensor) -> _Matrices:
    """det(M0 + Bᵀ·diag(z)·B)"""
    return None, B.mT, B.mT


def _by_edges(structure: DetStructure, graph: Laplacian, weights: torch.Tensor) -> _Matrices:
    """det(M0 + Σ w_e·z_e·u_e·v_eᵀ), with the weights in U, as in `pgcc.spanning_tree`.

    If an edge has weight 0, u_e is derived from v_e = e_u − e_v: it is the same vector or, in a directed graph, e_u.
    """
    _, u, v = structure.floats
    size = np.abs(u).max(axis=0) * np.abs(v).max(axis=0)
    alone = (np.maximum(v, 0.0) if graph.directed else v) / np.abs(v).max(axis=0) ** 2
    unit = np.where(size > 0.0, u / np.where(size > 0.0, size, 1.0), alone)
    return None, torch.tensor(unit) * _double(weights)[..., None, :], None


def _graph(structure: DetStructure) -> Laplacian | None:
    """The graph of a Laplacian. (A factor with one entry per item looks like a graph whose edges share an end.)"""
    graph = graph_of(structure)
    if graph is None or (structure.floats[0].any() and not (graph.head < structure.rank).any()):
        return None
    return graph


def _shaped(node: Node, given: Any, shape: tuple[int, ...], what: str) -> _Read:
    if not isinstance(given, torch.Tensor):
        raise CircuitError(f"the numbers of {describe(node)} are a tensor, not {type(given).__name__}")
    if given.shape[-len(shape) :] != shape or given.ndim > len(shape) + 1:
        raise CircuitError(
            f"{describe(node)} takes {what} as a tensor of shape {shape} (or rows × {shape}), not {tuple(given.shape)}"
        )
    return _Read(given, len(shape))


def _double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("cpu", torch.float64)


def _example(given: Iterable[Any]) -> torch.Tensor:
    """A tensor with the dtype and device of the answer: the first one that requires a gradient."""
    tensors = [t for one in given for t in (one if isinstance(one, (tuple, list)) else [one]) if t is not None]
    return next((tensor for tensor in tensors if tensor.requires_grad), tensors[0])


def _flat(tensors: Sequence[_Read]) -> torch.Tensor:
    """All numbers in one tensor of doubles: one vector, or one for every row."""
    counts = {len(tensor) for tensor, dimensions in tensors if tensor.ndim > dimensions}
    if len(counts) > 1:
        raise CircuitError(f"tensors have numbers for {' and for '.join(map(str, sorted(counts)))} rows")
    parts = []
    for tensor, dimensions in tensors:
        alone = _double(tensor).flatten(tensor.ndim - dimensions)
        parts.append(alone.expand(*counts, alone.shape[-1]) if counts else alone)
    return torch.cat(parts, dim=-1).contiguous()


@lru_cache(maxsize=32)
def _determinant_of_shape(rank: int, children: int, size: int | None) -> Circuit:
    """det(I + U·diag(x1, …)·Vᵀ), whatever U and V are going to be."""
    items = [var(f"x{i}") for i in range(1, children + 1)]
    ones = np.eye(rank, children)
    return Circuit(det(np.eye(rank), ones, ones, items, size=size), [item.name for item in items])
