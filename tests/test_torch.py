"""`pgcc.torch`: values against models, gradients against finite differences (`gradcheck`), layers that learn."""

from __future__ import annotations

import copy
import io
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pgcc
from pgcc.errors import CircuitError, EvidenceError, PgccError, SemanticsError

torch = pytest.importorskip("torch", reason="torch is not installed: pip install '.[torch]' to test pgcc.torch")

import pgcc.torch  # noqa: E402
from pgcc.torch import LogProb, dpp_logprob, logprob  # noqa: E402

gradcheck = torch.autograd.gradcheck

ROWS = np.array([[1, 0, 1, -1], [0, 0, 0, 0], [-1, 1, -1, 1], [-1, -1, -1, -1]])
TRIANGLE = [("a", "b", 2.0), ("b", "c", 3.0), ("a", "c", 1.0), ("c", "d", 0.5), ("d", "a", 4.0)]


def kernel(n: int = 4, seed: int = 0) -> torch.Tensor:
    B = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, n)))
    return (B @ B.T / n).requires_grad_()


def doubles(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=True)


def sums(circuit: pgcc.Circuit) -> list:
    return [node for node in circuit.order if node.op.name == "SUM"]


# -- gradients -----------------------------------------------------------------------------------------------


def test_sums_and_products():
    g = pgcc.parse("(0.3*a*b + 0.5*a + 0.2)*(0.4*c + 0.6*d)")
    first, second = sums(g)
    rows = [[1, 1, 0, -1], [0, -1, 1, 0], [-1, 1, -1, -1]]
    numbers = doubles(0.3, 0.5, 0.7), doubles(0.2, 0.9)
    assert gradcheck(lambda u, v: logprob(g, rows, {first: u, second: v}), numbers)
    assert gradcheck(lambda u: logprob(g, rows, {first: u}, normalize=False), numbers[:1])


def test_a_circuit_that_is_not_decomposable():
    g = pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")
    weights = doubles(0.1, -0.4)
    root = next(node for node in sums(g) if any(w < 0 for w in node.weights))
    assert gradcheck(lambda w: logprob(g, [[1, 1, -1], [0, 1, 1]], {root: w}), (weights,))


def test_determinants():
    L = kernel()
    assert gradcheck(lambda L: dpp_logprob(ROWS, L), (L,))
    assert gradcheck(lambda K: dpp_logprob(ROWS, K=K), ((L.detach() / 10).requires_grad_(),))
    assert gradcheck(lambda B: dpp_logprob(ROWS, factor=B), (L.detach()[:, :3].clone().requires_grad_(),))
    assert gradcheck(lambda L: dpp_logprob(ROWS[[0, 2]], L, size=2), (L,))


def test_any_determinant():
    d = pgcc.determinant(np.eye(2), np.ones((2, 3)), [[1.0, 2.0, 0.5], [0.0, 1.0, 2.0]], ["a", "b", "c"])
    M0, U, V = (
        (torch.eye(2).double() * 2).requires_grad_(),
        kernel(3).detach()[:2].abs(),
        kernel(3, 1).detach()[:2].abs(),
    )
    rows = [[1, 0, -1], [-1, -1, -1]]
    assert gradcheck(lambda M0: logprob(d, rows, {d: (M0, None, None)}), (M0,))
    assert gradcheck(lambda U, V: logprob(d, rows, {d: (None, U, V)}), (U.requires_grad_(), V.requires_grad_()))


def test_where_a_matrix_is_singular():
    """L of rank 2: finite differences by its factor, and no division by 0."""
    B = kernel().detach()[:, :2].clone().requires_grad_()
    assert gradcheck(lambda B: dpp_logprob(ROWS[:3], B @ B.T), (B,))


@pytest.mark.parametrize("make", [pgcc.spanning_tree, pgcc.spanning_forest, lambda G: pgcc.arborescence(G, "a")])
def test_trees_by_the_weights_of_their_edges(make):
    edges = [*TRIANGLE, ("d", "b", 1.5), ("a", "d", 0.25)]
    tree = make(edges if make is not pgcc.spanning_tree else TRIANGLE)
    m = len(tree.variables)
    rows = np.array([[-1] * m, [1, *[-1] * (m - 1)], [0, *[-1] * (m - 2), 1]])
    weights = doubles(*np.linspace(0.5, 3.0, m))
    assert gradcheck(lambda w: logprob(tree, rows, {tree: w}), (weights,))
    start = torch.tensor([w for *_, w in edges][:m], dtype=torch.float64)
    expected = pgcc.compile(tree).logprob(rows)
    np.testing.assert_allclose(logprob(tree, rows, {tree: start}), expected, rtol=1e-12, atol=1e-14)
    unsure = make([(u, v, w * (i > 0)) for i, (u, v, w) in enumerate(edges[:m])])  # an edge of weight 0 may get another
    np.testing.assert_allclose(logprob(unsure, rows, {unsure: start}), expected, rtol=1e-12, atol=1e-14)


def test_a_mixture_of_everything():
    d = pgcc.dpp(L=kernel(2).detach(), names=["a-b", "b-c"])
    tree = pgcc.spanning_tree(TRIANGLE[:3])
    g = pgcc.mixture([0.25, 0.75], [d, tree])
    rows = [[1, 1, 0], [1, -1, -1], [0, 1, -1]]
    numbers = doubles(0.4, 0.6), kernel(2, 1), doubles(1.0, 2.0, 3.0)
    assert gradcheck(lambda p, L, w: logprob(g, rows, {g: p, d: L, tree: w}), numbers)


def test_numbers_for_every_row():
    kernels = torch.stack([kernel(seed=i).detach() for i in range(len(ROWS))]).requires_grad_()
    assert gradcheck(lambda L: dpp_logprob(ROWS, L), (kernels,))
    alone = [dpp_logprob(row, L) for row, L in zip(ROWS, kernels, strict=True)]
    assert torch.equal(dpp_logprob(ROWS, kernels), torch.stack(alone))
    g = pgcc.parse("0.5*a*b + 0.5")
    weights = torch.rand(3, 2, dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda w: logprob(g, [[1, 1], [0, 0], [1, -1]], {g: w}), (weights,))
    tree = pgcc.spanning_tree(TRIANGLE)
    weights = (torch.rand(2, 5, dtype=torch.float64) + 0.5).requires_grad_()
    assert gradcheck(lambda w: logprob(tree, [[1, -1, -1, -1, -1], [0, -1, -1, 1, -1]], {tree: w}), (weights,))


def test_the_gradient_is_that_of_grad():
    L, share = kernel(), torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    (dpp_logprob(ROWS, L) @ share).backward()
    d = pgcc.dpp(L=L.detach(), rank="full")
    expected = pgcc.grad(d, ROWS, weights=share)[d][2].T
    np.testing.assert_allclose(L.grad, expected, rtol=1e-12, atol=1e-12)


# -- values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [True, False])
def test_a_mean_has_the_gradient_of_its_rows(normalize):
    """Equal shares take what the forward pass has found; other shares, and rows by themselves, do not."""
    d = pgcc.mixture([0.3, 0.7], [pgcc.dpp(L=kernel(4, seed).detach().numpy()) for seed in (1, 2)])
    parts = sums(d)

    def gradients(loss):
        weights = doubles(0.4, 0.6)
        loss(logprob(d, ROWS, {parts[-1]: weights}, normalize=normalize)).backward()
        return weights.grad.numpy()

    mean = gradients(lambda logs: logs.mean())
    each = [gradients(lambda logs, row=row: logs[row]) for row in range(len(ROWS))]
    np.testing.assert_allclose(mean, np.mean(each, axis=0), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradients(lambda logs: 3 * logs.sum()), 3 * np.sum(each, axis=0), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradients(lambda logs: logs.sum() * 0), 0, atol=0)


def test_values_are_those_of_the_model():
    L = kernel().detach()
    model = pgcc.compile(pgcc.dpp(L=L))
    np.testing.assert_allclose(dpp_logprob(ROWS, L), model.logprob(ROWS), rtol=1e-12)
    np.testing.assert_allclose(dpp_logprob({"x1": 1}, L).item(), model.logprob({"x1": 1}), rtol=1e-12)
    k_dpp = model.condition(size=2)
    np.testing.assert_allclose(dpp_logprob(ROWS[[0, 2]], L, size=2), k_dpp.logprob(ROWS[[0, 2]]), rtol=1e-9)


def test_constants_are_weights():
    """0.3*a + 0.7 has two weights, whatever way it was written."""
    g = pgcc.parse("0.3*a + 0.7")
    assert logprob(g, {"a": 1}, {g: doubles(3.0, 1.0)}).exp().item() == pytest.approx(0.75)


def test_types_and_shapes():
    L = kernel().detach().float().requires_grad_()
    logs = dpp_logprob(torch.from_numpy(ROWS), L)
    assert (logs.dtype, logs.shape) == (torch.float32, (4,))
    assert dpp_logprob({"x2": 1}, L).shape == ()
    logs.sum().backward()
    assert L.grad.dtype == torch.float32
    assert not dpp_logprob(ROWS, L.detach()).requires_grad


def test_rows_may_be_changed_before_backward():
    L, rows = kernel(), np.array([[1, 0, 1, 0]], np.int8)
    value = dpp_logprob(rows, L).sum()
    rows[:] = 0
    value.backward()
    again = kernel()
    dpp_logprob([[1, 0, 1, 0]], again).sum().backward()
    assert torch.equal(L.grad, again.grad)


def test_impossible_rows():
    """−inf, as `logprob` says; they have no gradient, and where none is asked for they do not disturb others."""
    B = kernel().detach()[:, :1].clone().requires_grad_()
    logs = dpp_logprob([[1, 1, -1, -1], [1, 0, 0, 0]], factor=B)
    assert logs[0].item() == -np.inf
    logs[1].backward()
    assert torch.isfinite(B.grad).all()
    logs = dpp_logprob([[1, 1, -1, -1], [1, 0, 0, 0]], factor=B)
    with pytest.raises(SemanticsError, match=r"evidence x1=1, x2=1 \(row 0\) has probability 0"):
        logs.sum().backward()


# -- layers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "circuit",
    [
        pgcc.parse("(0.3*a*b + 0.7)*(0.4*c + 0.6)"),
        pgcc.dpp(L=[[1.0, 0.5, 0.0], [0.5, 2.0, 0.25], [0.0, 0.25, 3.0]]),
        pgcc.dpp(K=[[0.5, 0.125], [0.125, 0.25]]),
        pgcc.dpp(factor=[[1.0, 0.5], [0.25, 2.0], [0.5, 0.5]]),
        pgcc.spanning_tree(TRIANGLE),
        pgcc.mixture([0.5, 0.5], [pgcc.parse("x1/2 + 1/2"), pgcc.dpp(L=[[1.0, 0.5], [0.5, 2.0]])]),
    ],
    ids=["sums", "L", "K", "factor", "tree", "mixture"],
)
def test_layers(circuit):
    layer = LogProb(circuit)
    n = len(circuit.variables)
    rows = np.stack([np.full(n, -1), np.r_[1, np.full(n - 1, -1)], np.r_[np.full(n - 1, -1), 0]])
    np.testing.assert_allclose(layer(rows).detach(), pgcc.compile(circuit).logprob(rows), atol=1e-12)
    assert gradcheck(lambda theta: layer(rows, theta), (layer.theta.detach().clone().requires_grad_(),))
    each = layer.theta.detach() + torch.linspace(0.0, 0.1, 3, dtype=torch.float64)[:, None]
    assert gradcheck(lambda theta: layer(rows, theta), (each.requires_grad_(),))
    with torch.no_grad():
        layer.theta += 0.25
    moved = layer(rows).detach()
    np.testing.assert_allclose(pgcc.compile(layer.circuit()).logprob(rows), moved, rtol=1e-9, atol=1e-12)
    assert torch.equal(copy.deepcopy(layer)(rows), moved)


def test_layers_are_saved():
    layer, other = (LogProb(pgcc.parse("0.5*a*b + 0.25*a + 0.25")) for _ in range(2))
    with torch.no_grad():
        layer.theta += torch.arange(3)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(layer([[1, 1]]), other([[1, 1]]))
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)([[1, 1]]), layer([[1, 1]]))


def test_one_circuit_in_two_layers_and_a_function():
    """Evaluation sets the numbers of a program: nobody sees those of another."""
    g = pgcc.parse("0.5*a*b + 0.25*a + 0.25")
    logprob(g, [[1, 1]], {g: doubles(1.0, 2.0, 3.0)})
    first, second = LogProb(g), LogProb(g)
    with torch.no_grad():
        second.theta += torch.arange(3)
    second([[1, 1]])
    assert first([[1, 1]]).exp().item() == pytest.approx(0.5)
    (part,) = [node for node in pgcc.parse("(0.5*a*b + 0.25*a + 0.25)*c").order if node.op.name == "SUM"]
    whole = pgcc.parse("(0.5*a*b + 0.25*a + 0.25)*c")
    assert logprob(whole, [[1, 1, 1]], {part: doubles(1.0, 1.0, 2.0)}).exp().item() == pytest.approx(0.25)


# -- mistakes ------------------------------------------------------------------------------------------------

D = pgcc.dpp(L=[[1.0, 0.5], [0.5, 2.0]])
G = pgcc.parse("0.5*a*b + 0.5")
MISTAKES = {
    "no mapping": (lambda: logprob(D, [[1, 1]], kernel(2)), CircuitError, "numbers is a mapping from parts"),
    "another circuit": (lambda: logprob(D, [[1, 1]], {G: doubles(1.0)}), CircuitError, "is not a part of the circuit"),
    "a variable": (
        lambda: logprob(G, [[1, 1]], {pgcc.parse("a"): doubles(1.0)}),
        CircuitError,
        "has no numbers: sums have weights",
    ),
    "shape of a kernel": (
        lambda: logprob(D, [[1, 1]], {D: kernel(3)}),
        CircuitError,
        r"takes the kernel L as a tensor of shape \(2, 2\) \(or rows × \(2, 2\)\), not \(3, 3\)",
    ),
    "number of weights": (
        lambda: logprob(G, [[1, 1]], {G: doubles(1.0, 2.0, 3.0)}),
        CircuitError,
        r"a weight for each of its terms as a tensor of shape \(2,\)",
    ),
    "an array": (lambda: logprob(G, [[1, 1]], {G: [0.5, 0.5]}), CircuitError, "are a tensor, not list"),
    "rows of numbers": (
        lambda: dpp_logprob([[1, 1]], torch.stack([kernel(2)] * 3)),
        CircuitError,
        "there are numbers for 3 rows, and 1 row",
    ),
    "two kernels": (lambda: dpp_logprob([[1]], kernel(1), K=kernel(1)), CircuitError, "exactly one of L, K and factor"),
    "not square": (lambda: dpp_logprob([[1, 1]], kernel(3)[:2]), CircuitError, "has to be square: it has 2 rows"),
    "columns": (lambda: dpp_logprob([[1, 1, 1]], kernel(2)), EvidenceError, "does not fit"),
    "negative": (lambda: dpp_logprob([[1, 0]], -kernel(2)), SemanticsError, "the circuit is not a distribution"),
    "nothing to learn": (lambda: LogProb(pgcc.parse("a")), PgccError, "has nothing to learn"),
    "theta": (lambda: LogProb(D)([[1, 1]], doubles(1.0)), CircuitError, "theta has 4 parameters"),
    "no circuit": (lambda: LogProb(pgcc.compile(G)), PgccError, "Circuit"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes(what):
    ask, kind, message = MISTAKES[what]
    with pytest.raises(kind, match=message):
        ask()


# -- the example, and the import -----------------------------------------------------------------------------


def test_the_example_reaches_the_closed_form(capsys):
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "torch_dpp.py"), run_name="__main__")
    told = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    truth, start, learned = (float(told[name]) for name in ("true kernel", "before", "learned"))
    assert start < truth - 0.3
    assert abs(learned - truth) < 0.05
    assert told["the same by determinants"] == "True"


def test_pgcc_does_not_import_torch():
    code = "import sys, pgcc, pgcc.learn; pgcc.compile(pgcc.parse('z')).prob({}); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
