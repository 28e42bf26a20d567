"""The explorer in a real browser: its numbers are pgcc's, by mouse and by keyboard, and names do no harm."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from explore.browsing import start_browser
from real_data import DATA

import pgcc
from pgcc.learn import SimplePGC

keys = pytest.importorskip("selenium.webdriver.common.keys", reason="pgcc[browser] is not installed").Keys
READY = "return document.documentElement.dataset.ready !== undefined"
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from start_browser(tmp_path_factory.mktemp("profile"))


class Page:
    """A page of a model, open in the browser."""

    def __init__(self, browser, model, folder, **how):
        self.browser, self.model = browser, model
        browser.get(model.explore(**how).save(folder / "page.html").as_uri())
        self.wait("document.documentElement.dataset.ready !== undefined")

    def wait(self, condition: str) -> None:
        """Until an expression of the page is true."""
        script = f"""
            const done = arguments[0], look = () => ({condition}) ? done(true) : setTimeout(look, 10);
            look();"""
        assert self.browser.execute_async_script(script)

    def ask(self, expression: str):
        return self.browser.execute_script(f"return {expression}")

    def find(self, selector: str):
        return self.browser.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return self.find(selector).text

    def click(self, variable: int, times: int = 1) -> None:
        for _ in range(times):
            self.browser.execute_script(
                "document.querySelector(arguments[0]).scrollIntoView({block: 'center'})",
                f"[data-variable='{variable}']",
            )
            self.find(f".row[data-variable='{variable}'] .bar").click()

    @property
    def marginals(self) -> np.ndarray:
        return np.array(self.ask("Array.from(explorer.answer.marginal)"), float)

    @property
    def evidence(self) -> np.ndarray:
        codes = np.array(self.ask("Array.from(explorer.codes)"))
        return np.where(codes == 2, -1, codes)

    def check(self) -> None:
        """All numbers, with the evidence that the page has, are those of the model, and within their bounds."""
        row = self.evidence
        expected = self.model.marginals(row)
        np.testing.assert_allclose(self.marginals, expected, rtol=0, atol=1e-9)
        errors = np.array(self.ask("Array.from(explorer.answer.error)"))
        assert (np.abs(self.marginals - expected) <= errors + 1e-9 * expected).all()
        assert self.ask("explorer.answer.evidence.value") == pytest.approx(self.model.prob(row), rel=1e-9)
        self.wait("explorer.sizes !== null")
        sizes = self.ask("Array.from(explorer.sizes.probability)")
        np.testing.assert_allclose(sizes, self.model.cardinality(row), rtol=0, atol=1e-9)
        shown = self.browser.execute_script(
            "return [...document.querySelectorAll('.row')].map((row) => "
            "[Number(row.dataset.variable), row.querySelector('.number').textContent])"
        )
        assert shown
        for variable, text in shown:
            if "·" not in text and "<" not in text and ">" not in text:
                assert float(text) == pytest.approx(expected[variable], abs=6e-5)


def dpp() -> pgcc.Circuit:
    B = RNG.normal(size=(50, 50)) / 4
    return pgcc.dpp(L=B @ B.T)


def learned() -> pgcc.Circuit:
    X = (RNG.random((300, 8)) < 0.4).astype(np.int8)
    X[:, 1] |= X[:, 0]
    X[:, 3] &= X[:, 2]
    return SimplePGC(n_components=2, max_group=4, max_iter=5, n_init=1, random_state=0).fit(X).circuit_


def mixture() -> pgcc.Circuit:
    spread = pgcc.dpp(L=[[2, 1, 0], [1, 2, 1], [0, 1, 2]], names=["a", "b", "c"])
    return pgcc.mixture([0.3, 0.7], [spread, pgcc.parse("(0.5*a*b + 0.5)*(0.2*c + 0.8)")])


def composed() -> pgcc.Circuit:
    parts = {"x1": pgcc.parse("0.3*a*b + 0.7*a"), "x2": pgcc.parse("0.4*c*d + 0.6"), "x3": pgcc.parse("e")}
    return pgcc.dpp(L=[[2, 1, 0.5], [1, 2, 1], [0.5, 1, 2]]).compose(parts)


def psdd() -> pgcc.Circuit:
    if not (DATA / "circuits" / "nltcs.psdd").exists():
        pytest.skip("nltcs.psdd is not here")
    return pgcc.load(DATA / "circuits" / "nltcs.psdd")


MODELS = {
    "psdd": psdd,
    "dpp": dpp,
    "marginal kernel": lambda: pgcc.dpp(K=np.diag([0.2, 0.5, 0.9]) + 0.1 - 0.1 * np.eye(3)),
    "factor": lambda: pgcc.dpp(factor=RNG.normal(size=(12, 4))),
    "tree": lambda: pgcc.spanning_tree(nx.karate_club_graph()),
    "forest": lambda: pgcc.spanning_forest(nx.petersen_graph(), 0.5),
    "learned": learned,
    "mixture": mixture,
    "composed": composed,
    "negative weights": lambda: pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2)*(0.8*z3 + 0.2)"),
    "sized": lambda: pgcc.dpp(L=np.diag([1.0, 2.0, 3.0, 0.5, 1.5]) + 0.3).observe(size=2),
}


@cache
def model_of(kind: str) -> pgcc.Model:
    return pgcc.compile(MODELS[kind]())


@pytest.mark.parametrize("kind", MODELS)
def test_numbers_are_those_of_the_model(kind, browser, tmp_path):
    model = model_of(kind)
    page = Page(browser, model, tmp_path)
    page.check()
    (sample,) = model.sample(1, rng=1)
    for variable in (0, len(model.variables) // 2):
        page.click(variable, 1 if sample[variable] else 2)
    assert (page.evidence >= 0).sum() == 2
    page.check()
    assert browser.get_log("browser") == []  # no error, no request that was refused


def test_very_improbable_evidence_does_not_underflow(browser, tmp_path):
    model = pgcc.compile(pgcc.parse("*".join(f"(1e-9*z{i} + 1)" for i in range(60))))
    page = Page(browser, model, tmp_path)
    browser.execute_script("explorer.replace(explorer.codes.slice().fill(1, 0, 59))")
    assert page.text("#probability").startswith("1.00·10⁻⁵³¹")
    assert page.marginals[59] == pytest.approx(1e-9)


def test_numbers_beyond_doubles(browser, tmp_path):
    page = Page(browser, pgcc.compile(pgcc.parse("1e400*a + 3e400*b*c + 1e-400")), tmp_path)
    np.testing.assert_allclose(page.marginals, [0.25, 0.75, 0.75], atol=1e-9)


# -- what is not certain -----------------------------------------------------------------------------------------------


def test_cancellation_is_told(browser, tmp_path):
    # Pr(a out) = 1e-12 is the difference of numbers near 1
    model = pgcc.compile(pgcc.parse("a*c + (0.6*b + 0.4)*(0.3*d + 0.7) - (0.6*b + 0.4)*(0.3*d + 0.699999999999)"))
    page = Page(browser, model, tmp_path)
    page.click(0, 2)
    assert page.text("#probability").startswith("≈?")
    assert 'model.marginals({"a": 0})' in page.text("#notice")
    page.find("#clear").click()
    assert not page.find("#notice").is_displayed()


def test_impossible_evidence_is_told(browser, tmp_path):
    page = Page(browser, pgcc.compile(pgcc.parse("0.5*a*b + 0.5")), tmp_path)
    page.click(0)
    page.click(1, 2)
    assert page.text("#probability").startswith("0")
    assert "impossible" in page.text("#notice")
    assert not page.find("#draw").is_enabled()
    page.find("#undo").click()
    page.find("#undo").click()
    page.check()


def test_why_no_tree_agrees_is_told(browser, tmp_path):
    page = Page(browser, pgcc.compile(pgcc.spanning_tree([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])), tmp_path)
    page.click(3, 2)
    assert "the graph falls apart" in page.text("#notice")
    page.find("#clear").click()
    for edge in range(3):
        page.click(edge)
    assert "close a cycle" in page.text("#notice")


# -- sets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["psdd", "dpp", "tree", "composed", "negative weights"])
def test_samples_follow_the_marginals(kind, browser, tmp_path):
    model = model_of(kind)
    page = Page(browser, model, tmp_path)
    page.click(0, 1)
    count = 1000 if page.ask("explorer.about.positive") else 200
    browser.execute_script(f"explorer.drawSamples({count}, 7)")
    page.wait("explorer.samples !== null")
    samples = np.array(page.ask("explorer.samples.map((row) => Array.from(row))"))
    expected = np.clip(page.marginals, 0, 1)
    deviation = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(samples.mean(axis=0) - expected) <= 5 * deviation + 1e-6).all()
    assert np.isfinite(model.logprob(samples[:50].astype(np.int8))).all()


@pytest.mark.parametrize("kind", ["psdd", "tree", "composed", "sized"])
def test_the_most_probable_set(kind, browser, tmp_path):
    model = model_of(kind)
    page = Page(browser, model, tmp_path)
    page.find("#find-mode").click()
    page.wait("explorer.mode !== null && document.getElementById('mode-verdict') !== null")
    found = np.array(page.ask("Array.from(explorer.mode.row)"))
    assert "Exact" in page.text("#mode-verdict")
    assert model.logprob(found) == pytest.approx(model.mode().logprob, abs=1e-8)


def test_a_mode_says_what_it_takes_for_granted(browser, tmp_path):
    circuit = pgcc.parse("0.3 + 0.3*a + 0.4*(0.5*b*c - 0.1*b + 0.6)*a - 0.1*a*c")
    page = Page(browser, pgcc.compile(circuit, validate=False), tmp_path)
    page.find("#find-mode").click()
    page.wait("explorer.mode !== null && document.getElementById('mode-verdict') !== null")
    assert "if no coefficient is negative, which is not proved" in page.text("#mode-verdict")


def test_a_set_that_is_not_proved_to_be_best_is_called_so(browser, tmp_path):
    page = Page(browser, model_of("dpp"), tmp_path)
    # no time to come to an end
    browser.execute_script(
        "const now = performance.now; let late = 0; performance.now = () => now.call(performance) + (late += 50)"
    )
    page.find("#find-mode").click()
    page.wait("document.getElementById('mode-verdict') !== null")
    assert "Best found" in page.text("#mode-verdict")


# -- variables with states ---------------------------------------------------------------------------------------------


def weather_and_more() -> pgcc.Circuit:
    """A mixture of two: three states, two with names, one state, and a plain variable."""
    pc = pgcc.pc
    here = pc.categorical("here", {"always": 1})
    parts = [
        pc.categorical("weather", dict(zip(("sun", "light rain", "snow"), weather, strict=True)))
        * pc.bernoulli("late", late)
        * pc.categorical("smoker", {"yes": smoker, "no": 1 - smoker})
        * pc.categorical("sex", {"M": 1 - smoker, "F": smoker})
        * here
        for weather, late, smoker in [((0.5, 0.25, 0.25), 0.25, 0.125), ((0.125, 0.25, 0.625), 0.5, 0.75)]
    ]
    return (0.5 * parts[0] + 0.5 * parts[1]).to_pgc()


def states_of_a_determinant() -> pgcc.Circuit:
    """Exactly one of three is in, which the structure does not show; and whether another one is."""
    one = pgcc.dpp(L=np.diag([1.0, 2.0, 5.0]), names=["w=a", "w=b", "w=c"]).observe(size=1)
    return (one * pgcc.parse("0.25*x + 0.75")).with_states({"w": ["a", "b", "c"], "x": ["M", "F"]})


def check_states(page: Page, evidence: str) -> None:
    """All numbers of states are those of the model given this evidence, and so are its own probability and codes."""
    row = page.model._asked.read(evidence)
    assert page.evidence.tolist() == row.chunk(slice(None))[0].tolist()
    assert page.ask("explorer.answer.evidence.value") == pytest.approx(page.model.prob(evidence), rel=1e-9)
    told = "[one.title, one.getAttribute('aria-label')]"
    shown = page.ask(f"[...document.querySelectorAll('.state')].map((one) => {told})")
    expected = page.model.marginals(row, names=True)
    states = [(v, s) for v, numbers in expected.items() if isinstance(numbers, dict) for s in numbers]
    assert len(shown) == len(states)
    for (title, told), (variable, state) in zip(shown, states, strict=True):
        assert told.startswith(f"{variable}={state}: ")
        assert title.startswith(f"{state}: ")
        assert float(title.rpartition(" ")[2]) == pytest.approx(expected[variable][state], abs=6e-5)


@pytest.mark.parametrize("circuit", [weather_and_more, states_of_a_determinant])
def test_states_are_clicked(circuit, browser, tmp_path):
    page = Page(browser, pgcc.compile(circuit()), tmp_path)
    variable, domain = next(iter(page.model.circuit.domains.items()))
    first, second, third = domain.states
    check_states(page, "")

    def button(state):
        return page.find(f".state[aria-label^='{variable}={state}: ']")

    button(second).click()
    check_states(page, f"{variable}='{second}'")
    assert button(second).get_attribute("aria-pressed") == "true"
    assert button(first).get_attribute("aria-label") == f"{variable}={first}: ruled out"
    assert page.text("#chips") == f"{variable}={second} ×"
    button(second).click()
    check_states(page, "")
    page.find(".segment").click()
    check_states(page, f"{variable}='{first}'")
    page.find("#chips button").click()
    button(third).send_keys("0")  # ruled out
    check_states(page, f"{variable}!='{third}'")
    assert page.text("#chips") == f"{variable} in {{{first}, {second}}} ×"
    button(third).send_keys(keys.ARROW_LEFT)
    assert active(browser).startswith(f"{variable}={second}: ")
    browser.switch_to.active_element.send_keys("0")
    check_states(page, f"{variable}='{first}'")  # nothing else is left
    browser.switch_to.active_element.send_keys(keys.BACKSPACE)
    check_states(page, "")
    assert browser.get_log("browser") == []


def test_what_is_told_of_states(browser, tmp_path):
    model = pgcc.compile(weather_and_more())
    page = Page(browser, model, tmp_path)
    assert page.text("#subtitle").startswith("5 variables")
    assert page.text("#size-title") == "How many of 2 yes/no variables are in"
    page.wait("explorer.sizes !== null")
    sizes = page.ask("Array.from(explorer.sizes.probability)")
    np.testing.assert_allclose(sizes, model.cardinality(over="late, smoker"), atol=1e-9)
    page.find("#find-mode").click()
    page.wait("explorer.mode !== null && document.getElementById('mode-verdict') !== null")
    assert "Exact" in page.text("#mode-verdict")
    inside = [told for told in model.mode().inside if told != "here=always"]
    assert sorted(page.text("#mode .set").split("\n")) == sorted(inside)
    browser.execute_script("explorer.drawSamples(1000, 7)")
    page.wait("explorer.samples !== null")
    samples = np.array(page.ask("explorer.samples.map((row) => Array.from(row))"))
    assert (samples[:, :3].sum(axis=1) == 1).all()
    np.testing.assert_allclose(samples.mean(axis=0), page.marginals[:6], atol=5 * 0.5 / 1000**0.5)
    assert "weather=" in page.text("#samples .drawn li")


def test_the_most_probable_states_of_a_network(browser, tmp_path):
    """In one pass: the largest term of a deterministic circuit."""
    model = pgcc.compile(pgcc.load(Path(__file__).parents[2] / "examples" / "cough.bif"))
    page = Page(browser, model, tmp_path)
    page.find(".state[aria-label^='fever=high: ']").click()
    page.find("#find-mode").click()
    page.wait("explorer.mode !== null && document.getElementById('mode-verdict') !== null")
    assert "Exact" in page.text("#mode-verdict")
    assert page.ask("explorer.about.deterministic")
    assert sorted(page.text("#mode .set").split("\n")) == sorted(model.mode("fever=high").inside)
    page.find("#mode button").click()
    assert page.ask("explorer.answer.evidence.value") == pytest.approx(np.exp(model.mode("fever=high").logprob))


def test_samples_one_after_another_have_one_state(browser, tmp_path):
    page = Page(browser, pgcc.compile(states_of_a_determinant()), tmp_path)
    browser.execute_script("explorer.drawSamples(200, 7)")
    page.wait("explorer.samples !== null")
    samples = np.array(page.ask("explorer.samples.map((row) => Array.from(row))"))
    assert (samples[:, :3].sum(axis=1) == 1).all()
    np.testing.assert_allclose(samples.mean(axis=0), page.marginals[:4], atol=5 * 0.5 / 200**0.5)


# -- keyboard, labels, search ------------------------------------------------------------------------------------------


def active(browser) -> str:
    return browser.switch_to.active_element.get_attribute("aria-label")


def test_everything_by_keyboard(browser, tmp_path):
    model = pgcc.compile(pgcc.parse("0.3*a*b*c + 0.2*a*c + 0.1*b*c + 0.2*a + 0.2"))
    page = Page(browser, model, tmp_path)
    row = page.find(".row .bar")
    assert row.get_attribute("tabindex") == "0"
    row.send_keys(keys.ENTER)
    assert page.evidence.tolist() == [1, -1, -1]
    assert active(browser) == "a: observed in"
    row.send_keys(keys.ARROW_DOWN)
    assert active(browser) == f"b: open, probability {model.marginals('a=1')['b']:.4f}"
    browser.switch_to.active_element.send_keys("0")
    assert active(browser) == "b: observed out"
    browser.switch_to.active_element.send_keys(keys.BACKSPACE)
    browser.switch_to.active_element.send_keys(keys.END, "1")
    assert page.evidence.tolist() == [1, -1, 1]
    page.check()
    browser.switch_to.active_element.send_keys(keys.CONTROL, "z")
    assert page.evidence.tolist() == [1, -1, -1]
    browser.switch_to.active_element.send_keys("/")
    assert active(browser) == "Search names of variables"
    browser.switch_to.active_element.send_keys("c")
    assert page.ask("[...document.querySelectorAll('.row .name')].map((name) => name.textContent)") == ["c"]


def test_the_circuit_by_keyboard(browser, tmp_path):
    page = Page(browser, pgcc.compile(pgcc.parse("0.4*a*b + 0.6*c")), tmp_path)
    page.find("#circuit .node.focus").send_keys(keys.ARROW_DOWN)
    assert "value 1" in active(browser)
    page.click(0)
    assert "value 0.4" in page.find("#circuit .node.focus").get_attribute("aria-label")
    view = "document.querySelector('#circuit svg').style.width"
    before = page.ask(view)
    page.find("#circuit .node.focus").send_keys("+")
    assert page.ask(view) != before
    page.find("#circuit .node.focus").send_keys(keys.ARROW_DOWN, keys.ENTER)
    assert page.find("#circuit-top").is_displayed()
    page.find("#circuit-top").click()
    assert not page.find("#circuit-top").is_displayed()


def test_a_graph_is_clicked(browser, tmp_path):
    model = pgcc.compile(pgcc.spanning_tree([("a", "b", 2), ("b", "c", 1), ("a", "c", 1), ("c", "d", 5)]))
    page = Page(browser, model, tmp_path)
    edge = page.find("#graph .edge")
    assert edge.get_attribute("aria-label") == f"edge a-b: open, probability {model.prob('a-b=1'):.4f}"
    wide = [float(path.get_attribute("stroke-width")) for path in browser.find_elements("css selector", "#graph .seen")]
    assert np.corrcoef(wide, model.marginals())[0, 1] == pytest.approx(1)
    edge.send_keys("1")
    assert edge.get_attribute("aria-label") == "edge a-b: observed in"
    page.check()
    assert sorted(text.text for text in browser.find_elements("css selector", ".vertex-text")) == ["a", "b", "c", "d"]


def test_everything_that_is_operated_has_a_name(browser, tmp_path):
    Page(browser, pgcc.compile(pgcc.spanning_tree(nx.cycle_graph(5))), tmp_path)
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, input, select, [role=button], [role=img], svg')].filter((e) => "
        "!e.closest('[hidden]') && !e.getAttribute('aria-label') && !e.textContent.trim() && !e.labels?.length)"
        ".map((e) => e.outerHTML.slice(0, 200))"
    )
    assert nameless == []
    headings = [heading.text for heading in browser.find_elements("css selector", "h2") if heading.is_displayed()]
    assert headings == ["Variables", "Graph", "How many are in", "Most probable set", "Samples", "Circuit"]


def test_a_thousand_variables_come_in_groups(browser, tmp_path):
    text = "*".join(f"(0.{1 + i % 8}*{'left' if i < 500 else 'right'}_{i} + 0.{9 - i % 8})" for i in range(1000))
    page = Page(browser, pgcc.compile(pgcc.parse(text)), tmp_path)
    assert len(browser.find_elements("css selector", ".group")) == 10
    assert len(browser.find_elements("css selector", ".row")) == 100  # of the group that is open
    page.find("#search").send_keys("right_77")
    names = page.ask("[...document.querySelectorAll('.row .name')].map((name) => name.textContent)")
    assert names == [f"right_77{i}" for i in range(10)]
    page.click(770)
    assert page.evidence[770] == 1
    page.wait("explorer.sizes !== null")
    mean = np.dot(page.ask("Array.from(explorer.sizes.probability)"), np.arange(1001))
    assert mean == pytest.approx(page.marginals.sum(), rel=1e-9)


# -- harm --------------------------------------------------------------------------------------------------------------

WICKED = [
    "</script><script>document.title='harm'</script>",
    "\"><img src=x onerror=document.title='harm'>",
    "<!--<script>",
    "{{script}}",
    "a&lt;b\\u003c",
]


def test_names_and_titles_do_no_harm(browser, tmp_path):
    model = pgcc.compile(pgcc.dpp(L=np.eye(5) + 0.1, names=WICKED))
    page = Page(browser, model, tmp_path, title=WICKED[0], groups={WICKED[1]: WICKED[:2]})
    page.click(1)
    page.find("#find-mode").click()
    page.wait("document.getElementById('mode-verdict') !== null")
    browser.execute_script("explorer.drawSamples(10, 1)")
    page.wait("explorer.samples !== null")
    assert browser.title == WICKED[0]
    assert page.ask("document.querySelectorAll('img').length") == 0
    assert page.ask("[...document.querySelectorAll('.row .name')].map((name) => name.textContent)") == WICKED
    assert page.text("#title") == WICKED[0]
    page.check()
    assert browser.get_log("browser") == []


def test_a_notebook_shows_it_in_a_frame(browser, tmp_path):
    page = pgcc.compile(pgcc.parse("0.4*a*b + 0.3*a + 0.3")).explore(height=500)
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{page._repr_html_()}", encoding="utf-8")
    browser.get((tmp_path / "notebook.html").as_uri())
    browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    script = f"const done = arguments[0], look = () => (() => {{ {READY} }})() ? done() : setTimeout(look, 10); look()"
    browser.execute_async_script(script)
    assert browser.execute_script("return Array.from(explorer.answer.marginal)") == pytest.approx([0.7, 0.4])
