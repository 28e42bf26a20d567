"""CircuitMLE: any circuit from data; its parameters, gradients and optimizers."""

import math
from fractions import Fraction

import numpy as np
import pytest

import pgcc
from pgcc.cluster import crew
from pgcc.errors import PgccError
from pgcc.ir.node import Op
from pgcc.learn import ChowLiu, CircuitMLE
from pgcc.learn.circuits.circuit_likelihood import CircuitLikelihood
from pgcc.learn.common.optimizers import LBFGS
from pgcc.learn.tables.read_rows import read_rows
from pgcc.program.parameters import parametrize
from pgcc.testing import brute_force
from pgcc.trainable.trainable_matrices import parametrization_of
from pgcc.trainable.trainable_parameters import TrainableParameters, with_weights_only


def rows(n, columns, seed=0, p=0.4):
    return (np.random.default_rng(seed).random((n, columns)) < p).astype(np.int8)


def likelihood_of(circuit, X, free=False):
    with crew() as workers:
        return CircuitLikelihood(circuit, read_rows(X), None, workers, free)


def circuits():
    rng = np.random.default_rng(3)
    B = rng.standard_normal((4, 4)) / 2
    A = rng.standard_normal((4, 4)) / 4
    names = ["a", "b", "c", "d"]
    leaves = [pgcc.parse("0.5*a*b + 0.25*a + 0.25*b"), pgcc.parse("c"), pgcc.parse("d")]
    return {
        "sums": pgcc.parse("0.3*(0.5*a + 0.5)*(0.25*b + 0.75)*c + 0.7*(0.6*a*b + 0.4)*(0.5*d + 0.5)"),
        "chow-liu": ChowLiu().fit(rows(50, 4)).circuit_.relabel({f"x{i + 1}": names[i] for i in range(4)}),
        "L": pgcc.dpp(L=B @ B.T + np.eye(4) / 9, names=names),
        "nonsymmetric": pgcc.dpp(L=B @ B.T + np.eye(4) / 2 + A - A.T, names=names, symmetric=False),
        "factor": pgcc.dpp(factor=rng.standard_normal((4, 3)) / 2, names=names),
        "mixture": pgcc.mixture([0.4, 0.6], [pgcc.dpp(L=B @ B.T + np.eye(4) * x, names=names) for x in (0.1, 0.5)]),
        "det_pgc": pgcc.det_pgc(np.eye(3) + 0.1, leaves),
    }


def matrices():
    """Determinants of every kind whose matrices are learned; of the last ones only as free matrices."""
    rng = np.random.default_rng(4)
    B, A = rng.standard_normal((2, 4, 4)) / 2
    Q = np.linalg.qr(B)[0]
    names = ["a", "b", "c", "d"]
    skew = B @ B.T + np.eye(4) / 2 + A - A.T
    edges = [("u", "v", 2.0), ("v", "w", 0.5), ("w", "u", 1.0), ("w", "v", 3.0)]
    leaves = [pgcc.parse("0.5*a*b + 0.25*a + 0.25*b"), pgcc.parse("0.3*c + 0.7"), pgcc.parse("d")]
    half = Fraction(1, 2)
    return {
        "K": pgcc.dpp(K=Q * [0.9, 0.6, 0.3, 0.1] @ Q.T, names=names),
        "K with certain eigenvalues": pgcc.dpp(
            K=[[half, half, 0, 0], [half, half, 0, 0], [0, 0, half, half / 2], [0, 0, half / 2, half]], names=names
        ),
        "spectrum of K": pgcc.dpp(K=Q * [1.0, 0.6, 0.3, 0.0] @ Q.T, names=names),
        "projection": pgcc.dpp(K=Q[:, :2] @ Q[:, :2].T, names=names),
        "nonsymmetric K": pgcc.dpp(K=np.linalg.solve(np.eye(4) + skew, skew), names=names, symmetric=False),
        "low rank": pgcc.dpp(factor=B[:, :1], names=names),
        "positive M0, leaves": pgcc.determinant(np.eye(2) + 0.5, A[:2, :3] * [1, 2, 4], A[:2, :3], leaves),
        "tree": pgcc.spanning_tree([*edges[:3], ("w", "x", 3.0), ("x", "u", 1.0)]),
        "tree with an edge of weight 0": pgcc.spanning_tree([*edges[:3], ("w", "x", 0.5), ("v", "x", 0.0)]),
        "exact tree": pgcc.spanning_tree([(u, v, Fraction(w) / 3) for u, v, w in edges[:3]]),
        "forest": pgcc.spanning_forest(edges[:3], killing=1.0),
        "k-DPP": pgcc.dpp(L=(B @ B.T)[:3, :3], names=names[:3]).observe(size=2),
        "K, one size of some": pgcc.dpp(K=(Q * [0.9, 0.6, 0.3, 0.1] @ Q.T)[:3, :3]).observe(size=1, over=["x1", "x2"]),
        "arborescence": pgcc.arborescence([*edges[:2], ("u", "w", 1.5), ("w", "v", 0.5)], "u"),
        "mixture": pgcc.mixture([0.5, 0.5], [pgcc.dpp(K=np.eye(4) / x + 0.05, names=names) for x in (2, 3)]),
        "free L": pgcc.dpp(L=np.triu(np.full((4, 4), 3.0)) - 2 * np.eye(4), names=names, symmetric=False),
        "free U, V": pgcc.determinant(np.eye(2), [[1.0, 0.5, 0.2], [0, 1, 1]], [[1.0, 0.4, 0.0], [0.1, 1, 2]], leaves),
    }


def kinds(circuit):
    program = parametrize(circuit).program
    return [type(parametrization_of(structure)).__name__ for structure in program.structures]


def test_what_a_determinant_is():
    found = {name: kinds(circuit) for name, circuit in {**circuits(), **matrices()}.items()}
    assert found == {
        "sums": [], "chow-liu": [], "L": ["Kernel"], "nonsymmetric": ["Kernel"], "factor": ["Factor"],
        "det_pgc": ["Kernel"], "K": ["MarginalKernel"], "K with certain eigenvalues": ["MarginalKernel"],
        "spectrum of K": ["Factor"], "projection": ["Factor"], "nonsymmetric K": ["SkewMarginalKernel"],
        "low rank": ["Factor"], "positive M0, leaves": ["Factor"], "tree": ["Edges"], "exact tree": ["Edges"],
        "tree with an edge of weight 0": ["Edges"], "forest": ["Edges"], "arborescence": ["Edges"],
        "k-DPP": ["Kernel"], "K, one size of some": ["MarginalKernel"],
        "mixture": ["MarginalKernel"] * 2, "free L": ["NoneType"], "free U, V": ["NoneType"],
    }  # fmt: skip


def possible_rows(circuit, count, seed):
    """Random rows as far as they are possible, some of the model's own, and one with a gap."""
    model, n = pgcc.compile(circuit), len(circuit.variables)
    X = np.concatenate([rows(count, n, seed), model.sample(count // 2, rng=seed)])
    X = X[np.isfinite(model.logprob(X))]
    X[0, 0] = -1
    return X


EVERY = {**circuits(), **{f"{name} (matrices)": circuit for name, circuit in matrices().items()}}


@pytest.mark.parametrize("name", EVERY)
def test_gradients_by_finite_differences(name):
    circuit = EVERY[name]
    likelihood = likelihood_of(circuit, possible_rows(circuit, 30, 1), free="free" in name)
    start = likelihood.parameters.start
    theta = start + 0.05 * np.random.default_rng(0).standard_normal(len(start))
    value, gradient = likelihood.mean(theta)
    assert math.isfinite(value)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-5
        slope = (likelihood.mean(theta + step)[0] - likelihood.mean(theta - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_what_is_learned_is_a_distribution(name, tmp_path):
    circuit = EVERY[name]
    X = possible_rows(circuit, 60, 2)[1:]
    before = float(np.mean(pgcc.compile(circuit).logprob(X)))
    for optimizer in ("auto", "adam"):
        estimator = CircuitMLE(circuit, optimizer, max_iter=8, learning_rate=0.003, free_matrices="free" in name)
        learned = estimator.fit(X)
        table = brute_force(learned.circuit_)
        total = sum(table.values())
        assert "free" in name or all(p >= -1e-12 * total for p in table.values())
        expected = [math.log(table[frozenset(np.array(circuit.variables)[row == 1].tolist())] / total) for row in X]
        np.testing.assert_allclose(learned.score_samples(X), expected, rtol=1e-9, atol=1e-9)
        assert learned.score(X) > before
        told = learned.history_["train"][learned.best_epoch_]  # of mini-batches: before the last step of the epoch
        assert told == pytest.approx(learned.score(X), abs=1e-3 if optimizer == "adam" else 1e-12)
        assert told < learned.score(X) or optimizer == "auto"
    assert kinds(learned.circuit_) == kinds(circuit)
    # what is saved is learned on
    path = tmp_path / "learned.npz"
    pgcc.save(learned.circuit_, path)
    loaded = pgcc.load(path)
    assert loaded == learned.circuit_
    again = likelihood_of(loaded, X, free="free" in name)
    assert len(again.parameters.start) == len(likelihood_of(circuit, X, free="free" in name).parameters.start)
    assert again.mean(again.parameters.start)[0] == pytest.approx(learned.score(X), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in matrices() if "free" not in name])
def test_whatever_the_parameters_are(name):
    """No coefficient is negative, far from the start too."""
    circuit, rng = with_weights_only(matrices()[name]), np.random.default_rng(5)
    parameters = TrainableParameters(parametrize(circuit))
    for scale in (1.0, 5.0):
        moved = parameters.circuit(circuit, scale * rng.standard_normal(len(parameters.start)))
        table = list(brute_force(moved).values())
        assert min(table) >= -1e-12 * sum(table)
        assert kinds(moved) == kinds(circuit)


def test_slopes_of_trees():
    """∂ log Pr(T) / ∂ log w_e = [e ∈ T] − Pr(e ∈ T), with Pr(e ∈ T) exactly."""
    circuit = matrices()["exact tree"]
    model = pgcc.compile(circuit)
    X = model.sample(1, rng=0)
    inside = [float(model.prob({name: 1}, exact=True)) for name in circuit.variables]
    likelihood = likelihood_of(circuit, X)
    _, gradient = likelihood.mean(likelihood.parameters.start)
    np.testing.assert_allclose(gradient, X[0] - inside, rtol=1e-12, atol=1e-13)


def test_slopes_of_marginal_kernels():
    """Pr(all are in) = det K = det(B)² / det(Bᵀ·B + R), with the derivative 2·B⁻ᵀ − 2·B·(Bᵀ·B + R)⁻¹."""
    circuit = matrices()["K"]
    K = circuit.root.matrices[2].floats()
    likelihood = likelihood_of(circuit, np.ones((1, 4), np.int8))
    B = likelihood.parameters.start.reshape(4, 4) + 0.1 * np.random.default_rng(0).standard_normal((4, 4))
    expected = 2 * np.linalg.inv(B).T - 2 * B @ np.linalg.inv(B.T @ B + np.eye(4) - K)
    value, gradient = likelihood.mean(B.ravel())
    np.testing.assert_allclose(gradient.reshape(4, 4), expected, rtol=1e-10)
    assert value == pytest.approx(np.log(np.linalg.det(B) ** 2 / np.linalg.det(B.T @ B + np.eye(4) - K)), rel=1e-12)


@pytest.mark.parametrize("name", ["K", "nonsymmetric K", "spectrum of K", "forest", "arborescence", "k-DPP"])
def test_the_model_that_made_the_data_is_found(name):
    """From another start of the same kind."""
    truth = matrices()[name]
    model, X = pgcc.compile(truth), pgcc.compile(truth).sample(2000, rng=1)
    parameters = likelihood_of(truth, X).parameters
    moved = parameters.start + np.random.default_rng(2).uniform(-0.5, 0.5, len(parameters.start))
    fitted = CircuitMLE(parameters.circuit(truth, moved), "lbfgs", max_iter=200, n_iter_no_change=200).fit(X)
    assert fitted.score(X) > float(np.mean(model.logprob(X))) - 1e-9


def test_what_is_not_learned_stays_exact():
    third = Fraction(1, 3)
    circuit = pgcc.dpp(L=[[third, 1], [0, third]], symmetric=False) * pgcc.parse("(0.1*a + 0.2*b) * (1/7*c + 6/7)")
    circuit = circuit * pgcc.determinant([[third, 0], [0, third]], [[3], [0]], [[1], [-2]], [pgcc.parse("d")])
    learned = CircuitMLE(circuit, max_iter=3).fit([[1, 0, 1, 0, 1, 1], [0, 0, 1, 0, 0, 1]]).circuit_
    kept = [node for node in circuit.order if node.op is Op.DET]
    assert [node for node in learned.order if node.op is Op.DET] == kept


def test_circuits_made_by_operators_learn_by_em():
    a, b = pgcc.variables("a b")
    circuit = 0.4 * ((0.2 * a + 0.8) * (0.3 * b + 0.7)) + 0.6 * ((0.7 * a + 0.3) * (0.5 * b + 0.5))
    X = rows(200, 2, 5)
    fitted = CircuitMLE(circuit, "em", smoothing=0, max_iter=30).fit(X)
    same = pgcc.parse("0.4*((0.2*a + 0.8)*(0.3*b + 0.7)) + 0.6*((0.7*a + 0.3)*(0.5*b + 0.5))")
    by_text = CircuitMLE(same, max_iter=30, smoothing=0).fit(X)
    assert fitted.history_["train"] == pytest.approx(by_text.history_["train"], abs=1e-12)


def test_em_improves_every_time_and_finds_counts():
    """Of a Bayesian network whose every variable is seen, one step of EM is the counts."""
    X = rows(500, 3, 5)
    X[:, 1] |= X[:, 0]
    circuit = ChowLiu().fit(rows(100, 3, 6)).circuit_.relabel({"x1": "a", "x2": "b", "x3": "c"})
    fitted = CircuitMLE(circuit, "em", smoothing=0, max_iter=30).fit(X)
    assert (np.diff(fitted.history_["train"]) >= -1e-12).all()
    assert fitted.history_["train"][1] == pytest.approx(fitted.history_["train"][-1], abs=1e-9)
    mixture = pgcc.mixture(
        [0.5, 0.5],
        [
            pgcc.parse("(0.2*a + 0.8)*(0.3*b + 0.7)*(0.6*c + 0.4)"),
            pgcc.parse("(0.7*a + 0.3)*(0.5*b + 0.5)*(0.1*c + 0.9)"),
        ],
    )
    by_em = CircuitMLE(mixture, "em", smoothing=0, max_iter=400, n_iter_no_change=400).fit(X)
    assert (np.diff(by_em.history_["train"]) >= -1e-12).all()
    by_lbfgs = CircuitMLE(mixture, "lbfgs", max_iter=200).fit(X)
    assert by_lbfgs.score(X) == pytest.approx(by_em.score(X), abs=2e-3)


def test_missing_values_are_summed_out():
    """With a column that is never seen, the likelihood is that of the others."""
    X = rows(200, 3, 7).astype(float)
    X[:, 2] = np.nan
    circuit = pgcc.parse("(0.2*a + 0.8)*(0.3*b + 0.7)*(0.6*c + 0.4)")
    fitted = CircuitMLE(circuit, smoothing=0).fit(X)
    model = fitted.model_
    np.testing.assert_allclose(model.marginals()[:2], np.nanmean(X[:, :2], axis=0), atol=1e-6)


def test_dpp_reaches_the_likelihood_of_the_dpp_that_made_the_data():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((5, 5)) / 2
    truth = pgcc.compile(pgcc.dpp(L=B @ B.T))
    X = truth.sample(3000, rng=1)
    start = pgcc.dpp(L=np.eye(5) + 0.1 * np.ones((5, 5)))
    fitted = CircuitMLE(start, "lbfgs", max_iter=200).fit(X)
    assert fitted.score(X) > float(np.mean(truth.logprob(X))) - 0.01


def test_lbfgs_on_a_quadratic():
    A = np.diag([1.0, 10.0, 100.0])
    trainer = LBFGS(lambda x: (float(-x @ A @ x / 2 + x.sum()), 1 - A @ x), np.zeros(3), 1e-14)
    values = list(iter(trainer.advance, None))
    np.testing.assert_allclose(trainer.theta, [1.0, 0.1, 0.01], atol=1e-6)
    assert 1 < len(values) < 100
    assert values == sorted(values)


def test_same_seed_same_model():
    circuit = circuits()["mixture"]
    X = rows(100, 4, 8)
    first, second = (CircuitMLE(circuit, "adam", max_iter=3, random_state=5).fit(X).circuit_ for _ in range(2))
    assert first == second


def test_what_is_refused():
    X = rows(10, 2)
    with pytest.raises(PgccError, match="nothing to learn"):
        CircuitMLE(pgcc.parse("a*b")).fit(np.ones((3, 2), int))
    with pytest.raises(PgccError, match="CircuitMLE learns"):
        CircuitMLE("a").fit(X)
    with pytest.raises(PgccError, match=r"whatever their numbers are: two factors of .* share"):
        CircuitMLE(pgcc.parse("0.5*(a + 1)*(a + b) - 0.5*a*a")).fit(X)
    with pytest.raises(PgccError, match="choose one of"):
        CircuitMLE(pgcc.parse("0.5*a*b + 0.5"), "sgd").fit(X)
    with pytest.raises(PgccError, match="EM needs"):
        CircuitMLE(pgcc.dpp(L=np.eye(2)), "em").fit(X)
    with pytest.raises(PgccError, match="free_matrices=True"):
        CircuitMLE(matrices()["free L"]).fit(rows(10, 4))
    for optimizer in ("em", "adam", "lbfgs"):
        with pytest.raises(PgccError, match="probability 0"):
            CircuitMLE(pgcc.parse("0.5*a*b + 0.5"), optimizer).fit([[1, 0]])
    with pytest.raises(PgccError, match="n_iter_no_change"):
        CircuitMLE(pgcc.parse("0.5*a*b + 0.5"), n_iter_no_change=0).fit(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rate", [1e100, 1e160, 1e300])
def test_divergence_is_told(rate):
    """It was a LinAlgError of LAPACK, or that a row is impossible."""
    rows = np.random.default_rng(0).integers(0, 2, (60, 3))
    with pytest.raises(PgccError, match="training diverged: try a lower `learning_rate`"):
        CircuitMLE(pgcc.dpp(K=np.eye(3) / 2), "adam", learning_rate=rate, max_iter=5).fit(rows)
