"""One grammar: what people type is the same in every question, and answers have the form of what was asked."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pgcc
from pgcc import builders, pc
from pgcc.errors import OTHER_WORDS, SpellingError
from pgcc.learn import ChowLiu

pandas = pytest.importorskip("pandas")

# What comes before evidence, and its name; evidence comes first in all other questions.
LEADS = {
    "top": ["k", "evidence"],
    "conditional": ["query", "given"],
    "kl": ["other", "evidence"],
    "mutual_information": ["a", "b", "evidence"],
    "sample": ["n", "evidence", "rng"],
}
SHARED = ["over", "size", "rtol", "threads"]
# Answers are about variables.
BY_VARIABLE = {"marginals", "log_odds"}  # a number for every variable
NAMED = {*BY_VARIABLE, "pairwise", "covariance", "sample"}
# Public, but no questions about the distribution.
OTHERS = {"condition", "do", "explain", "explore", "grad", "sensitivity", "standing", "states"}


def public(owner: type) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


QUESTIONS = sorted(set(public(pgcc.Model)) - OTHERS)
MODEL = pgcc.compile(pgcc.parse("0.3*a*b + 0.2*a + 0.1*b*c + 0.2*c + 0.2"))
OTHER = pgcc.compile(pgcc.parse("(a + 1)*(b + 1)*(c + 3)/16"))
FIRST: dict[str, list[Any]] = {
    "conditional": [{"b": 1}],
    "kl": [OTHER],
    "mutual_information": ["b", "c"],
    "sample": [3],
    "top": [2],
}
MORE: dict[str, dict[str, Any]] = {"sample": {"rng": 0}}


def ask(model: pgcc.Model, question: str, evidence: Any = None, **how: Any) -> Any:
    first = [
        other.condition(size=2) if other is OTHER and model is not MODEL else other for other in FIRST.get(question, [])
    ]
    return getattr(model, question)(*first, evidence, **MORE.get(question, {}), **how)


def plain(answer: Any) -> Any:
    """The numbers of an answer, in whatever form."""
    if isinstance(answer, tuple):
        return [plain(part) for part in answer]
    if isinstance(answer, (pandas.Series, pandas.DataFrame)):
        return plain(answer.to_numpy())
    if isinstance(answer, dict):
        return list(answer.values())
    if isinstance(answer, list) or (isinstance(answer, np.ndarray) and answer.dtype == object):
        return [plain(one) for one in answer]
    if type(answer).__name__ == "Mode":
        return [answer.logprob, *answer.assignment.values()]
    return np.asarray(answer).tolist()


def numbers(answer: Any) -> list[float]:
    """All of them, in order; rows of a table may have more or fewer."""
    found = plain(answer)
    return [number for part in found for number in numbers(part)] if isinstance(found, list) else [float(found)]


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-8)


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS)
def test_evidence_comes_first_and_the_rest_has_names(question: str) -> None:
    parameters = list(inspect.signature(getattr(pgcc.Model, question)).parameters.values())[1:]
    leads = LEADS.get(question, ["evidence"])
    first = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in first] == leads
    assert first[leads.index("given" if question == "conditional" else "evidence")].default is None
    keywords = {p.name: p for p in parameters[len(first) :]}
    assert all(p.kind is p.KEYWORD_ONLY for p in keywords.values())
    expected = ["over", "size", "names", "rtol", "threads"] if question in NAMED else SHARED
    assert list(keywords)[: len(expected)] == expected
    assert all(keywords[name].default is None for name in expected)
    assert all(p.default is not p.empty for p in keywords.values())


def test_models_and_circuits_are_conditioned_alike() -> None:
    for method in (pgcc.Model.condition, pgcc.Circuit.observe):
        parameters = inspect.signature(method).parameters
        assert list(parameters) == ["self", "evidence", "over", "size"]
        assert [p.default for p in parameters.values()][1:] == [None] * 3
        assert parameters["size"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_takes_the_shared_arguments(question: str) -> None:
    plainly = ask(MODEL, question, {"a": 1})
    same(ask(MODEL, question, {"a": 1}, rtol=1e-12, threads=2), plainly)
    with pytest.raises(pgcc.PrecisionError, match="rtol=2"):
        ask(MODEL, question, {"a": 1}, rtol=2)
    with pytest.raises(pgcc.PgccError, match="threads=0"):
        ask(MODEL, question, {"a": 1}, threads=0)
    with pytest.raises(pgcc.EvidenceError, match="unknown variable 'aa': did you mean 'a'"):
        ask(MODEL, question, "aa=1")
    with pytest.raises(TypeError, match=r"no argument 'siz': .*over, size"):
        ask(MODEL, question, "a=1", siz=1)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_size_is_given(question: str) -> None:
    sized = MODEL.condition(size=2)
    same(ask(MODEL, question, size=2), ask(sized, question))
    same(ask(MODEL, question, "a=1", size=2), ask(sized, question, "a=1"))
    same(ask(MODEL, question, over="a, b, c", size=(2, 2)), ask(sized, question))


@pytest.mark.parametrize("question", QUESTIONS)
def test_over_alone_is_for_questions_that_count(question: str) -> None:
    if question in ("cardinality", "any_of", "parity", "expected_count", "moments"):
        alone = pgcc.compile(MODEL.circuit.restrict(["a", "c"]))
        same(ask(MODEL, question, over=["a", "c"]), ask(alone, question))
    elif question == "mode":  # of these variables, with the others summed out
        assert list(ask(MODEL, question, over=["a", "c"]).assignment) == ["a", "c"]
    else:
        with pytest.raises(pgcc.EvidenceError, match="`over` says what `size` counts"):
            ask(MODEL, question, over=["a"])
    with pytest.raises(pgcc.EvidenceError, match="unknown variable 'd'"):
        ask(MODEL, question, over="a, d", size=1)


@pytest.mark.parametrize("question", QUESTIONS)
def test_names_may_be_read_once_only(question: str) -> None:
    same(ask(MODEL, question, over=iter(["a", "b", "c"]), size=2), ask(MODEL, question, size=2))
    same(plain(MODEL.condition(size=1, over=iter("ab")).marginals()), MODEL.marginals(size=1, over="a, b"))


def test_a_size_that_was_asked_before_is_checked_again() -> None:
    assert (
        MODEL.prob(size=1)
        == MODEL.prob(size=(1, 1))
        == MODEL.prob(size=[1])
        == MODEL.prob(size=range(1, 2))
        == MODEL.prob(size=np.int64(1))
        == 1
    )
    for size in (True, 1.0, (True, 1), "1", np.array([1, 1]), (), [], (0, 1, 2), (2, 1), [-1], {1.5}, range(0)):
        with pytest.raises(pgcc.CircuitError, match="size="):
            MODEL.prob(size=size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "sizes"), [([0, 2], {0, 2}), ({3, 1}, {1, 3}), ((0, 2), {0, 1, 2}), (range(3, 0, -2), {1, 3})]
)
def test_a_list_of_sizes_is_a_set(size, sizes) -> None:
    """[0, 2] meant 0 to 2, as (0, 2) does."""
    raw = pgcc.compile(MODEL.circuit, normalize=False)
    counts = MODEL.cardinality()
    observed = pgcc.compile(MODEL.circuit.observe(size=size), normalize=False)
    assert observed.prob() == pytest.approx(sum(counts[k] for k in sizes))
    inside = sum(
        raw.prob(dict(zip("abc", row, strict=True)))
        for row in itertools.product((0, 1), repeat=3)
        if row[0] and sum(row) in sizes
    )
    assert MODEL.prob("a=1", size=size) == pytest.approx(inside / sum(counts[k] for k in sizes))
    assert {*MODEL.sample(50, rng=0, size=size).sum(axis=1).tolist()} <= sizes


# -- forms of evidence and of answers ----------------------------------------------------------------------------------

ONE = {"a": 1, "b": -1, "c": 0}
FORMS = [ONE, "a=1, c=0", np.array([1, -1, 0]), [1, None, 0], pandas.Series({"c": 0, "a": 1})]
ROWS = [{"a": 1}, {"b": 0, "c": 1}]
TABLES = [
    ROWS,
    ["a=1", "b=0, c=1"],
    np.array([[1, -1, -1], [-1, 0, 1]]),
    pandas.DataFrame({"c": [None, 1], "a": [1, None], "b": [None, 0]}, index=["r1", "r2"]),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_piece_of_evidence_has_one_answer_in_its_form(question: str) -> None:
    answers = [ask(MODEL, question, form) for form in FORMS]
    for answer in answers:
        same(answer, answers[0])
    if question in BY_VARIABLE:
        kinds = [dict, dict, np.ndarray, np.ndarray, pandas.Series]
        assert list(answers[0]) == list(MODEL.variables) == list(answers[4].index)
    else:
        kinds = [type(answers[2])] * 5
    assert list(map(type, answers)) == kinds


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_table_has_one_answer_for_each_row(question: str) -> None:
    answers = [ask(MODEL, question, table) for table in TABLES]
    if question != "sample":  # every row has random numbers of its own
        singly = [plain(ask(MODEL, question, row, **({"names": False} if question in NAMED else {}))) for row in ROWS]
        if question == "moments":
            singly = list(map(list, zip(*singly, strict=True)))
        for answer in answers:
            same(answer, singly)
    framed = answers[3]
    if question == "moments":
        assert all(list(part.index) == ["r1", "r2"] for part in framed)
    elif question in NAMED - BY_VARIABLE:
        assert list(framed.columns) == list(MODEL.variables)
        assert [label for label, _ in framed.index][:: len(framed) // 2] == ["r1", "r2"]
    else:
        assert list(framed.index) == ["r1", "r2"]
        assert isinstance(framed, pandas.DataFrame) == (question in {*BY_VARIABLE, "cardinality"})
    if question in BY_VARIABLE:
        assert list(map(list, answers[0])) == [list(MODEL.variables)] * 2
        assert list(framed.columns) == list(MODEL.variables)


@pytest.mark.parametrize("question", sorted(NAMED))
def test_names_come_back_or_do_not(question: str) -> None:
    for evidence in (None, "a=1", np.array([1, -1, -1]), TABLES[0], TABLES[2], TABLES[3]):
        bare = ask(MODEL, question, evidence, names=False)
        assert type(bare) is np.ndarray
        labelled = ask(MODEL, question, evidence, names=True)
        same(labelled, bare)
        if question in BY_VARIABLE:
            single, table = (dict, dict), (list, pandas.DataFrame)
            assert type(labelled) in (single if bare.ndim == 1 else table)
        else:
            assert list(labelled.columns) == list(MODEL.variables)
    with pytest.raises(pgcc.PgccError, match="names='a'"):
        ask(MODEL, question, names="a")


def test_tables_with_names_need_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    assert MODEL.marginals("a=1", names=True)["a"] == 1
    for question in ("sample", "pairwise", "covariance"):
        with pytest.raises(pgcc.PgccError, match="pandas is not installed"):
            ask(MODEL, question, names=True)


def test_probabilities_with_bounds_and_fractions_of_a_frame() -> None:
    value, bound = MODEL.prob(TABLES[3], bound=True)
    assert list(value.index) == list(bound.index) == ["r1", "r2"]
    assert MODEL.prob(TABLES[3], exact=True)["r1"] == MODEL.prob("a=1", exact=True)
    same(MODEL.conditional(TABLES[3], "a=1"), [MODEL.conditional(row, "a=1") for row in ROWS])
    assert list(MODEL.conditional(TABLES[3], "a=1").index) == ["r1", "r2"]


# -- names -------------------------------------------------------------------------------------------------------------


def test_an_undirected_edge_is_found_both_ways() -> None:
    tree = pgcc.compile(pgcc.spanning_tree([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]))
    assert tree.prob("c-a=1") == tree.prob({"a-c": 1}) == pytest.approx(2 / 3)
    assert tree.any_of(over=["b-a", "c-a"]) == 1
    assert tree.marginals(pandas.DataFrame({"b-a": [1, 0]}))["a-b"].tolist() == [1, 0]
    assert tree.prob({("c", "a"): 1}) == tree.prob({("a", "c"): 1}) == tree.prob({"a-c": 1})
    assert tree.circuit.observe("d-c=1").edges
    with pytest.raises(pgcc.EvidenceError, match="'a-c' is observed twice: 'c-a' is the same"):
        tree.prob({"a-c": 1, "c-a": 0})
    with pytest.raises(pgcc.EvidenceError, match="'a-b' occurs twice"):
        tree.parity(over=["a-b", "b-a"])
    with pytest.raises(pgcc.EvidenceError, match="unknown variable 'd-a'"):
        tree.prob("d-a=1")
    # a name that several could mean is nobody's
    odd = pgcc.compile(pgcc.parse("""0.5*"b-c-a"*"c-a-b" + 0.5"""))
    assert odd.prob({"b-c-a": 1}) == 0.5
    with pytest.raises(pgcc.EvidenceError, match="unknown variable 'a-b-c'"):
        odd.prob({"a-b-c": 1})


def test_default_names_count_from_one(tmp_path: Path) -> None:
    uai = tmp_path / "three.uai"
    uai.write_text("MARKOV 3 2 2 2 1 1 0 2 1 1")
    kernel = tmp_path / "kernel.csv"
    kernel.write_text("1, 0, 0\n0, 1, 0\n0, 0, 1\n")
    data = tmp_path / "data.csv"
    data.write_text("1,0,1\n0,?,1\n")
    circuits = [
        pgcc.dpp(L=np.eye(3)),
        pgcc.dpp(factor=np.ones((3, 1))),
        builders.naive_bayes([1.0], [[0.5, 0.5, 0.5]]),
        pgcc.load(uai),
        pgcc.load(kernel),
        ChowLiu().fit([[1, 0, 1], [0, 1, 1]]).circuit_,
        ChowLiu().fit(data).circuit_,
    ]
    assert [circuit.variables for circuit in circuits] == [("x1", "x2", "x3")] * len(circuits)


@pytest.mark.parametrize("header", ["tea,milk,coffee\n", ""])
def test_data_are_not_loaded_but_learned_from(tmp_path: Path, header: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(header + "1,0,1\n0,?,1\n1,,0\n0,0,1\n")
    with pytest.raises(
        pgcc.FormatError, match=r"table of observations \(4 rows of 3 columns\).*pgcc fit .*data.csv -o"
    ):
        pgcc.load(path)


# -- the names that there are ------------------------------------------------------------------------------------------

OWNERS = {"Model": MODEL, "Circuit": MODEL.circuit, "PC": pc.pos("a"), "Estimator": ChowLiu()}


@pytest.mark.parametrize("word", OTHER_WORDS)
def test_a_word_of_another_library_says_ours(word: str) -> None:
    told = re.escape(f": write {OTHER_WORDS[word]}")
    if "(" in word:
        word = word.replace("question(", "marginals(")  # any of them
        function, argument = re.fullmatch(r"(\w+)\((\w+)=\)", word).groups()  # type: ignore[union-attr]
        lead = ["a=1"] if function == "conditional" else []
        with pytest.raises(SpellingError, match=f"{function} has no argument {argument!r}{told}"):
            getattr(MODEL if hasattr(pgcc.Model, function) else pgcc, function)(*lead, **{argument: 1})
        return
    owner, name = word.split(".")
    value = pgcc if owner == "pgcc" else OWNERS[owner]
    assert not hasattr(value, name)
    with pytest.raises(SpellingError, match=f"{owner} has no {name!r}{told}"):
        getattr(value, name)


def test_what_is_written_instead_is_there() -> None:
    for own in OTHER_WORDS.values():
        for owner, name in re.findall(r"\b(pgcc|model)\.(\w+)", own):
            assert hasattr(pgcc if owner == "pgcc" else MODEL, name), own


def test_a_size_is_no_number_of_samples() -> None:
    """In numpy, `size` is the number of draws: asked for ten of them, one row given |S| = 10 was the answer."""
    for size in (1, (1, 2)):
        with pytest.raises(
            pgcc.PgccError, match=r"two things: sample\(n\) draws n samples, sample\(1, size=.*in which"
        ):
            MODEL.sample(size=size)  # type: ignore[arg-type]
    assert MODEL.sample().shape == (1, 3)
    assert (MODEL.sample(20, size=1, rng=0).sum(axis=1) == 1).all()


def test_marginals_are_found_by_name() -> None:
    found = MODEL.marginals()
    assert found["b"] == found[1] == MODEL.marginals(names=True)["b"]
    assert MODEL.log_odds()["c"] == MODEL.log_odds([-1, -1, -1])[2]
    assert type(found[:2]) is type(np.asarray(found)) is np.ndarray
    assert repr(found) == repr(np.asarray(found))
    assert isinstance(found.sum(), float)
    assert type(1 - found) is type(np.zeros((2, 3)) + found) is np.ndarray
    with pytest.raises(pgcc.EvidenceError, match="unknown variable 'aa': did you mean 'a'"):
        found["aa"]
    tree = pgcc.compile(pgcc.spanning_tree([(0, 1), (1, 2), (0, 2)]))
    assert tree.marginals()["2-0"] == tree.marginals()[2, 0] == pytest.approx(2 / 3)


def test_other_names_are_not_there() -> None:
    for owner in OWNERS.values():
        with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
            _ = owner.nothing  # type: ignore[attr-defined]


def documented() -> Iterator[tuple[str, Any]]:
    for name in pgcc.__all__:
        value = getattr(pgcc, name)
        if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, Exception)):
            yield f"pgcc.{name}", value
    for name in builders.__all__:
        yield f"builders.{name}", getattr(builders, name)
    for owner in (pgcc.Model, pgcc.Circuit, pc.PC):
        for name in public(owner):
            member = inspect.getattr_static(owner, name)
            if inspect.isfunction(member) or isinstance(member, classmethod):
                yield f"{owner.__name__}.{name}", getattr(owner, name)


@pytest.mark.parametrize(("name", "value"), list(documented()), ids=lambda x: x if isinstance(x, str) else "")
def test_everything_public_is_documented_with_an_example(name: str, value: Any) -> None:
    text = inspect.getdoc(value)
    assert text, name
    assert ">>>" in text or name == "pgcc.Model", f"{name} has no example"


PUBLIC_MODULES = ["builders", "cluster", "learn", "pc", "plot", "testing"]


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_modules_are_imported_under_the_names_that_people_see(name: str) -> None:
    """`from pgcc.builders import hmm` was a ModuleNotFoundError, and `pgcc.learn` was there only once imported."""
    code = f"import pgcc; from pgcc import {name} as a; import pgcc.{name} as b; assert a is b is pgcc.{name}"
    subprocess.run([sys.executable, "-c", code], check=True)
    subprocess.run([sys.executable, "-c", f"import pgcc; assert pgcc.{name}.__name__ == 'pgcc.{name}'"], check=True)


def test_dir_shows_public_names_only() -> None:
    assert set(dir(pgcc)) == {*pgcc.__all__, *PUBLIC_MODULES, "torch", "__version__"}
    assert dir(builders) == sorted(builders.__all__)
    assert dir(pc) == sorted(pc.__all__)


def test_conditioning_is_one_thing() -> None:
    g = MODEL.circuit
    for evidence, how in [("a=1", {}), (None, {"size": 1}), ({"b": 0}, {"size": (1, 2), "over": ["a", "c"]})]:
        part, whole = g.observe(evidence, **how), MODEL.condition(evidence, **how)
        assert part.variables == whole.variables
        total = pgcc.compile(part, normalize=False).prob()
        given = pgcc.compile(g.observe(size=how["size"], over=how.get("over")), normalize=False).prob() if how else 1.0
        assert total == pytest.approx(MODEL.prob(evidence, **how) * given)
        same(pgcc.compile(part).marginals(), whole.marginals())
    for table in (np.zeros((2, 3)), ROWS):
        for conditioned in (g.observe, MODEL.condition):
            with pytest.raises(pgcc.EvidenceError, match="one piece of evidence"):
                conditioned(table)


def test_a_gradient_is_asked_of_the_model() -> None:
    assert MODEL.grad("a=1").logprob == pytest.approx(math.log(MODEL.prob("a=1")))
    same(MODEL.grad("a=1")[MODEL.circuit], pgcc.grad(MODEL.circuit, {"a": 1})[MODEL.circuit])
    raw = pgcc.compile(pgcc.parse("3*a + 1"), normalize=False)
    same(raw.grad("a=1")[raw.circuit], [1 / 3, 0])


@pytest.mark.parametrize("how", [{"size": 2}, {"over": "a, b", "size": 2}])
def test_a_gradient_given_a_size_is_asked_of_the_conditional_model(how: dict[str, Any]) -> None:
    with pytest.raises(pgcc.PgccError, match=re.escape("size=k).grad(evidence), with the derivatives by the numbers")):
        MODEL.grad("a=1", **how)
    given = MODEL.condition(**how)
    assert given.grad("a=1").logprob == pytest.approx(MODEL.logprob("a=1", **how))
    with pytest.raises(TypeError, match="unexpected keyword argument 'sizes'"):
        MODEL.grad("a=1", sizes=2)  # type: ignore[call-arg]
