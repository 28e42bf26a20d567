"""The estimators are estimators of scikit-learn: clone, pipelines, searches, `check_estimator`."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import pgcc
from pgcc.errors import EvidenceError, PgccError
from pgcc.learn import (
    DPP,
    BayesianNetworkMLE,
    ChowLiu,
    CircuitMLE,
    ContinuousMixture,
    EinsumNetwork,
    HiddenTree,
    Imputer,
    MixtureOfTrees,
    SimplePGC,
    StackedEnsemble,
    Strudel,
)


def independent(names: list[str]) -> pgcc.Circuit:
    """A circuit for any number of columns."""
    return pgcc.product([0.5 * x + 0.5 for x in pgcc.variables(names)])


# Numbers above 0 are 1: the checks have data of real numbers.
KINDS = {
    "SimplePGC": SimplePGC(2, 2, "paper", max_iter=1, binarize=0.0),
    "DPP": DPP("paper", max_iter=1, binarize=0.0),
    "ChowLiu": ChowLiu(binarize=0.0),
    "MixtureOfTrees": MixtureOfTrees(2, max_iter=2, binarize=0.0),
    "ContinuousMixture": ContinuousMixture("product", 4, 1, max_iter=2, binarize=0.0),
    "HiddenTree": HiddenTree(2, max_iter=2, binarize=0.0),
    "EinsumNetwork": EinsumNetwork(2, 1, 2, max_iter=2, binarize=0.0),
    "Strudel": Strudel((1, 2), max_iter=2, binarize=0.0),
    "CircuitMLE": CircuitMLE(independent, max_iter=2, binarize=0.0),
    "BayesianNetworkMLE": BayesianNetworkMLE([], binarize=0.0),
    "StackedEnsemble": StackedEnsemble([ChowLiu()], binarize=0.0),
    "Imputer": Imputer(ChowLiu(binarize=0.0)),
}
EVERY = pytest.mark.parametrize("kind", KINDS)

# Without a threshold. These checks are about something else, but none of their data are 0 and 1.
NO_BINARY_DATA = "its data are real numbers, which are refused where no threshold is set"
EXPECTED_FAILURES = dict.fromkeys(
    [
        "check_fit_score_takes_y",
        "check_estimators_overwrite_params",
        "check_dont_overwrite_parameters",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
        "check_n_features_in_after_fitting",
        "check_positive_only_tag_during_fit",
        "check_estimators_dtypes",
        "check_complex_data",
        "check_dtype_object",
        "check_pipeline_consistency",
        "check_estimator_sparse_tag",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit2d_1sample",
        "check_fit2d_1feature",
        "check_dict_unchanged",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
        "check_fit2d_predict1d",
        "check_sample_weights_list",
        "check_sample_weights_not_an_array",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_all_zero_sample_weights_error",
    ],
    NO_BINARY_DATA,
)


def some_rows(rows: int = 60, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).integers(0, 2, (rows, 4))
    X[:, 1] |= X[:, 0]
    return X


def checked(estimator, expected=None) -> list[dict]:
    """The checks that did not pass, and were not skipped."""
    told = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert len(told) >= 40
    return [one for one in told if one["status"] not in ("passed", "skipped")]


@EVERY
def test_check_estimator(kind):
    """All of it: no check is expected to fail."""
    assert [(one["check_name"], one["exception"]) for one in checked(KINDS[kind])] == []


def test_without_a_threshold_all_that_fails_is_for_the_data():
    failed = checked(ChowLiu(), EXPECTED_FAILURES)
    assert {one["check_name"] for one in failed} == set(EXPECTED_FAILURES)
    for one in failed:
        assert one["status"] == "xfail"
        error = one["exception"]
        causes = [error, error.__cause__, error.__context__]
        told = " ".join(str(cause) for cause in causes if isinstance(cause, EvidenceError))
        assert any(
            part in told for part in ("whole numbers", "evidence is 1 (in), 0 (out)", "neither texts nor numbers")
        )


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"Imputer"}))
def test_cross_validation_of_a_pipeline(kind):
    pipe = make_pipeline(Binarizer(threshold=1), clone(KINDS[kind]))
    scores = cross_val_score(pipe, 2 * some_rows(), cv=2, error_score="raise")
    assert np.isfinite(scores).all()
    assert (scores < 0).all()


@pytest.mark.parametrize("kind", ["SimplePGC", "MixtureOfTrees"])
def test_grid_search_over_a_pipeline(kind):
    pipe = make_pipeline(Imputer(ChowLiu(), random_state=0), clone(KINDS[kind]))
    grid = {f"{kind.lower()}__n_components": [1, 2], "imputer__strategy": ["most_frequent", "sample"]}
    gaps = np.where(np.random.default_rng(1).random((60, 4)) < 0.1, np.nan, some_rows())
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(gaps)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(gaps) == search.best_estimator_.score(gaps)


def test_a_search_on_validation_data():
    """The recipe of the guide: what is fitted sees the rows for training only, and the validation data choose."""
    X, V = some_rows(100), some_rows(50, seed=1)
    split = PredefinedSplit([-1] * len(X) + [0] * len(V))
    search = GridSearchCV(MixtureOfTrees(max_iter=9), {"n_components": [1, 2, 4]}, cv=split, refit=False)
    search.fit(np.vstack([X, V]), validation=V)
    scores = [MixtureOfTrees(n, max_iter=9).fit(X, validation=V).score(V) for n in (1, 2, 4)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-12)


@EVERY
def test_before_fit(kind):
    estimator = clone(KINDS[kind])
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    ask = estimator.transform if kind == "Imputer" else estimator.score
    with pytest.raises(PgccError, match="call fit first") as told:
        ask(some_rows())
    assert isinstance(told.value, NotFittedError)
    assert repr(pickle.loads(pickle.dumps(told.value))) == repr(told.value)
    assert not hasattr(estimator, "n_features_in_")
    check_is_fitted(estimator.fit(some_rows()))
    assert estimator.n_features_in_ == 4
    assert not hasattr(estimator, "feature_names_in_")
    if kind != "Imputer":
        with pytest.raises(PgccError, match="call fit first"):
            clone(estimator).model_  # noqa: B018


@EVERY
def test_pictures_of_pipelines_have_them(kind):
    assert kind in make_pipeline(Binarizer(), KINDS[kind])._repr_html_()
    assert "sk-container" in KINDS[kind]._repr_html_()


def test_names_of_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(some_rows(), columns=list("abcd"))
    model = ChowLiu().fit(frame)
    assert model.feature_names_in_.dtype == object
    assert model.feature_names_in_.tolist() == list("abcd") == list(model.circuit_.variables)
    assert (model.score_samples(frame[list("dcba")]) == model.score_samples(frame.to_numpy())).all()
    assert not hasattr(model.fit(frame.to_numpy()), "feature_names_in_")
    assert CircuitMLE(independent).fit(frame).feature_names_in_.tolist() == list("abcd")


# -- what fit takes ---------------------------------------------------------------------------------------------


def test_the_target_is_ignored():
    X = some_rows()
    assert ChowLiu().fit(X, X[:, 0]).circuit_ == ChowLiu().fit(X).circuit_
    for table in (X, X.tolist(), "valid.csv"):  # as validation data were given once
        with pytest.raises(PgccError, match=r"fit\(X, validation=V\)"):
            ChowLiu().fit(X, table)


@EVERY
def test_sparse_matrices(kind):
    scipy = pytest.importorskip("scipy.sparse")
    X = some_rows()
    fitted = [clone(KINDS[kind]).fit(data) for data in (X, scipy.csr_array(X), scipy.coo_matrix(X))]
    for one in fitted[1:]:
        if kind == "Imputer":
            assert (one.transform(scipy.csc_array(X)) == X).all()
        else:
            assert one.circuit_ == fitted[0].circuit_
            assert (one.score_samples(scipy.csc_array(X)) == fitted[0].score_samples(X)).all()


def test_numbers_above_a_threshold():
    X = some_rows()
    numbers = np.where(X, 2.5, 1.5)
    numbers[0, 0] = np.nan
    model = ChowLiu(binarize=2).fit(numbers)
    X[0, 0] = -1
    assert model.circuit_ == ChowLiu().fit(X).circuit_
    assert (model.score_samples(numbers) == ChowLiu().fit(X).score_samples(X)).all()
    masked = np.ma.masked_invalid(numbers)
    assert model.fit(masked).circuit_ == ChowLiu().fit(X).circuit_
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(numbers, columns=list("abcd")).convert_dtypes()
    assert model.fit(frame).score(frame) == pytest.approx(ChowLiu().fit(X).score(X), rel=1e-12)
    with pytest.raises(EvidenceError, match="is for arrays"):
        ChowLiu(binarize=0).fit("data.csv")
    for bad in ("high", np.nan, True):
        with pytest.raises(PgccError, match="binarize="):
            ChowLiu(binarize=bad).fit(X)


def test_members_of_a_stack_get_what_is_above_its_threshold():
    """A gap is −1 then, which must not be taken for a number below the member's own threshold."""
    X = some_rows().astype(float)
    X[:20, 0] = np.nan
    stack = StackedEnsemble([ChowLiu(binarize=0.5)], binarize=0.5).fit(X)
    assert stack.score(X) == pytest.approx(stack.model_.logprob(X).mean(), rel=1e-12)


# -- one column given the others --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SimplePGC", "ChowLiu", "CircuitMLE"])
def test_a_column_given_the_others(kind):
    X = some_rows()
    model = clone(KINDS[kind]).set_params(binarize=None).fit(X)
    rows = np.array([[1, 1, 0, -1], [0, -1, -1, 1], [1, 1, 0, 0]])
    for j, name in enumerate(model.circuit_.variables):
        found = model.conditional_proba(rows, name)
        assert found.shape == (3, 2)
        for row, (no, yes) in zip(rows, found, strict=True):
            given = {v: x for v, x in zip(model.circuit_.variables, row.tolist(), strict=True) if x >= 0 and v != name}
            assert yes == pytest.approx(model.model_.conditional({name: 1}, given=given), rel=1e-9)
            assert no + yes == pytest.approx(1, rel=1e-9)
        assert (found == model.conditional_proba(rows, j)).all()
    for column in ("y", 4, -1, True, None):
        with pytest.raises(EvidenceError, match=r"one of the variables x1, x2, x3, x4, or its number"):
            model.conditional_proba(rows, column)
    pd = pytest.importorskip("pandas")
    without = pd.DataFrame(rows[:, :3], columns=["x1", "x2", "x3"])
    assert (model.conditional_proba(without, "x4") == model.conditional_proba(rows, 3)).all()


# -- parameters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["prob", "marginals", "mode", "grad"])
def test_questions_are_put_to_the_model(question):
    for estimator in (MixtureOfTrees(), ChowLiu().fit([[0, 1], [1, 0]])):
        told = f"{type(estimator).__name__} has no '{question}': ask its model, estimator.model_.{question}"
        with pytest.raises(AttributeError, match=f"^{told}$"):
            getattr(estimator, question)
        assert not hasattr(estimator, question)


@pytest.mark.parametrize(
    ("word", "own"), [("predict_proba", r"conditional_proba\(X, column\)"), ("save", r"pgcc\.learn\.save\(")]
)
def test_words_of_other_libraries(word, own):
    with pytest.raises(pgcc.PgccError, match=f"Estimator has no '{word}': write .*{own}"):
        getattr(ChowLiu(), word)
    assert not hasattr(ChowLiu(), word)


def test_the_contract_says_components():
    model = SimplePGC(max_group=2, components=3)
    assert model.get_params() == SimplePGC(2, 3).get_params()
    assert clone(model).n_components == 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'components'"):
        DPP(components=2)


def test_random_state(tmp_path):
    X = some_rows()

    def fitted(random_state, **options):
        return MixtureOfTrees(3, max_iter=2, random_state=random_state).fit(X, **options).circuit_

    assert fitted(np.random.RandomState(0)) == fitted(np.random.RandomState(0))
    assert fitted(np.random.default_rng(0)) == fitted(np.random.default_rng(0))
    assert len({fitted(None) for _ in range(3)}) > 1
    with pytest.raises(PgccError, match="needs a number"):
        fitted(None, checkpoint=tmp_path / "run.npz")
    for bad in ("seed", 1.5, True):
        with pytest.raises(PgccError, match="random_state="):
            fitted(bad)
    model = ChowLiu().fit(X)
    for generator in (np.random.RandomState, np.random.default_rng, int):
        assert (model.sample(9, generator(3)) == model.sample(9, generator(3))).all()


def test_n_jobs():
    X = some_rows()
    one = MixtureOfTrees(3, max_iter=2).fit(X)
    for n_jobs in (1, 2, -1, -100):
        assert MixtureOfTrees(3, max_iter=2, n_jobs=n_jobs).fit(X).circuit_ == one.circuit_
    for bad in (0, True, 1.5):
        with pytest.raises(PgccError, match="n_jobs="):
            MixtureOfTrees(n_jobs=bad).fit(X)


def test_circuits_for_any_columns():
    X = some_rows()
    assert CircuitMLE(independent).fit(X).circuit_.variables == ("x1", "x2", "x3", "x4")
    in_stack = StackedEnsemble([CircuitMLE(independent, smoothing=0.0)]).fit(X)
    assert in_stack.circuit_.variables == ("x1", "x2", "x3", "x4")
    np.testing.assert_allclose(in_stack.model_.marginals(), X.mean(axis=0), atol=0.1)
    with pytest.raises(PgccError, match="learns the numbers of a Circuit"):
        CircuitMLE(lambda names: names).fit(X)
    with pytest.raises(EvidenceError, match="have the columns"):
        CircuitMLE(lambda names: independent(names[1:])).fit(X)


def test_without_scikit_learn(tmp_path):
    """One command is said, and whatever does not learn goes on."""
    (tmp_path / "data.csv").write_text("a,b\n1,0\n0,1\n")
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import pgcc, pgcc.cli\n"
        "try: pgcc.learn\n"
        "except pgcc.PgccError as error: print(isinstance(error, ImportError), error)\n"
        f"print(pgcc.cli.main(['fit', {str(tmp_path / 'data.csv')!r}, '-o', {str(tmp_path / 'model.npz')!r}]))\n"
        "print(pgcc.compile(pgcc.parse('0.5*a + 0.5')).prob('a=1'))\n"
        "import pgcc.cli.warmup; print('learning' in pgcc.cli.warmup.JOBS, 'determinants' in pgcc.cli.warmup.JOBS)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    needed = "pgcc.learn needs scikit-learn: pip install scikit-learn"
    first, code, *rest = done.stdout.splitlines()
    assert first == f"True {needed}"
    assert int(code) > 0
    assert needed in done.stderr
    assert "Traceback" not in done.stderr
    assert rest == ["0.5", "False True"]
