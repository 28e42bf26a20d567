"""Every question: how it is asked, the exact answer, and the accuracy that is promised."""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from flint import arb, fmpq

import pgcc
from pgcc.compiler import methods_for
from pgcc.ir.node import ONE, Op, product, var, weighted_sum

from .oracle import BITS, Table, ball, log, rational, weight_derivatives
from .runner import Asking
from .states import compiled

UNIT = 2.0**-53
LEAST_NORMAL = 2.0**-1022


# -- probabilities ---------------------------------------------------------------------------------------------------


def prob(asking: Asking) -> None:
    """A bound on the relative error of the float, by every method; by "auto" it is below rtol."""
    for method in ("auto", *methods_for(asking.circuit.simplify()._overlap is None)):
        found = asking.attempt_rows(
            method, lambda rows, method=method: _pairs(asking.model.prob(rows, bound=True, method=method)), asking.rows
        )
        for codes, (value, bound) in found:
            exact = asking.table.prob(codes)
            if method == "auto" and exact and LEAST_NORMAL < float_of(abs(exact)) < math.inf:
                asking.fact(method, bound <= asking.rtol, f"bound {bound:.3g} above rtol for {asking.evidence(codes)}")
            asking.number(method, value, exact, bound + asking.slack, about=asking.evidence(codes), tiny=False)


def raw(asking: Asking) -> None:
    """The same of the polynomial as it stands."""
    if not asking.case.raw:
        return
    for method in ("auto", *methods_for(asking.circuit.simplify()._overlap is None)):
        found = asking.attempt(
            method, lambda method=method: _pairs(asking.raw_model.prob(asking.rows, bound=True, method=method)),
            len(asking.rows),
        )  # fmt: skip
        for codes, (value, bound) in zip(asking.rows.tolist(), found or [], strict=found is not None):
            exact = asking.table.raw(codes)
            about = asking.evidence(codes)
            asking.number(method, value, exact, bound, about=about, probability=False, tiny=False)


def _pairs(both: tuple[np.ndarray, np.ndarray]) -> list[tuple[float, float]]:
    return list(zip(*(x.tolist() for x in both), strict=True))


def float_of(x: fmpq) -> float:
    try:
        return float(Fraction(int(x.p), int(x.q)))
    except OverflowError:
        return math.inf


def prob_without_bound(asking: Asking) -> None:
    """The relative error is below rtol; rounding to a subnormal aside."""
    for codes, value in asking.attempt_rows("auto", lambda rows: asking.model.prob(rows), asking.rows):
        asking.number("auto", value, asking.table.prob(codes), asking.rtol + asking.slack, about=asking.evidence(codes))
    if asking.table.is_distribution:
        many = np.tile(asking.rows, (1 + 1000 // len(asking.rows), 1))
        found = asking.attempt("many rows", lambda: asking.model.prob(many)[: len(asking.rows)], len(asking.rows))
        for codes, value in zip(asking.rows.tolist(), [] if found is None else found, strict=found is not None):
            exact = asking.table.prob(codes)
            asking.number("many rows", value, exact, asking.rtol + asking.slack, about=asking.evidence(codes))


def exact(asking: Asking) -> None:
    """The very fraction."""
    if not asking.case.raw:
        return
    for codes, value in asking.attempt_rows("exact", lambda r: asking.model.prob(r, exact=True), asking.rows[:8]):
        true = asking.table.prob(codes)
        asking.fact("exact", rational(value) == true and 0 <= true <= 1, f"{value} for {true} {asking.evidence(codes)}")


def logprob(asking: Asking) -> None:
    """rtol relative to the logarithm, −inf exactly where it is 0."""
    for codes, value in asking.attempt_rows("auto", lambda rows: asking.model.logprob(rows), asking.rows):
        p, about = asking.table.prob(codes), asking.evidence(codes)
        if p == 0:
            asking.fact("auto", value == -math.inf, f"{value} for −inf {about}")
        elif not 0 < p <= 1:
            asking.fact("auto", False, f"{value} is no logarithm of a probability, and was not refused {about}")
        else:
            true = log(p)
            with flint.ctx.workprec(BITS):
                asking.near("auto", value, true, abs(true) * (asking.rtol + 2 * UNIT), about)


def marginals(asking: Asking) -> None:
    """Every marginal to rtol."""
    for codes, values in asking.attempt_rows("auto", lambda rows: asking.model.marginals(rows), asking.possible):
        for i, value in enumerate(values):
            true = asking.table.given(codes, (i, 1))
            asking.number("auto", value, true, asking.rtol + asking.slack, about=(i, asking.evidence(codes)))


def conditional(asking: Asking) -> None:
    """A quotient to rtol."""
    given = asking.possible
    if not len(given):
        return
    queries = asking.rows[asking.pick.rng.integers(0, len(asking.rows), len(given))]

    def ask(rows: np.ndarray, asked: np.ndarray = queries) -> Any:
        return asking.model.conditional(asked, given=rows)

    if asking.table.is_distribution:
        answers = asking.attempt_rows("auto", ask, given)
        chosen = list(queries)
    else:
        answers, chosen = [], []
        for query, row in list(zip(queries, given, strict=True))[:8]:
            for found in asking.attempt_rows("auto", lambda rows, query=query: ask(rows, query), row[None]):
                answers.append(found)
                chosen.append(query)
    for (codes, value), query in zip(answers, chosen, strict=False):
        fixed = [(i, int(c)) for i, c in enumerate(query) if c >= 0]
        about = (asking.evidence(query), asking.evidence(codes))
        asking.number("auto", value, asking.table.given(codes, *fixed), asking.rtol + asking.slack, about=about)


def condition(asking: Asking) -> None:
    """The same from the conditioned model."""
    for codes in asking.possible[asking.pick.rng.permutation(len(asking.possible))[:2]].tolist():
        inner = asking.attempt("auto", lambda codes=codes: asking.model.condition(asking.evidence(codes)))
        if inner is None:
            continue
        free = [i for i, c in enumerate(codes) if c < 0 and asking.table.names[i] in inner.variables]
        if not free:
            continue
        for _ in range(3):
            fixed = [(i, asking.pick(2)) for i in free if asking.pick.chance(0.6)]
            query = {asking.table.names[i]: v for i, v in fixed}
            if not asking.can_show(query, inner):
                continue
            found = asking.attempt("auto", lambda query=query, inner=inner: inner.prob(query, bound=True))
            if found is not None:
                true, about = asking.table.given(codes, *fixed), (query, asking.evidence(codes))
                asking.number("auto", found[0], true, found[1] + asking.slack, about=about, tiny=False)


def pairwise(asking: Asking) -> None:
    """Every pair to rtol."""
    rows = asking.possible[:3]
    for codes, joint in asking.attempt_rows("auto", lambda rows: asking.model.pairwise(rows), rows):
        for i, j in zip(*np.triu_indices(len(codes)), strict=True):
            true = asking.table.given(codes, (int(i), 1), (int(j), 1))
            about = (int(i), int(j), asking.evidence(codes))
            asking.number("auto", joint[i, j], true, asking.rtol + asking.slack, about=about)
            asking.fact("auto", joint[i, j] == joint[j, i], f"not symmetric at {about}")


def covariance(asking: Asking) -> None:
    """An error below 3·rtol·max(Pr(i, j), Pr(i)·Pr(j)), and rtol·Pr(i) on the diagonal."""
    rows = asking.possible[:3]
    for codes, found in asking.attempt_rows("auto", lambda rows: asking.model.covariance(rows), rows):
        for i, j in zip(*np.triu_indices(len(codes)), strict=True):
            a, b = (asking.table.given(codes, (int(k), 1)) for k in (i, j))
            if not (0 <= a <= 1 and 0 <= b <= 1):
                asking.fact("auto", False, f"a marginal of {float_of(a)}, {float_of(b)} was not refused")
                continue
            both = asking.table.given(codes, (int(i), 1), (int(j), 1))
            error = asking.rtol * float_of(a if i == j else 3 * max(both, a * b)) + 1e-320
            about = (int(i), int(j), asking.evidence(codes))
            asking.number("auto", found[i, j], both - a * b, 0.0, absolute=error, about=about, probability=False)


# -- counts ----------------------------------------------------------------------------------------------------------


def _over(asking: Asking) -> list[int]:
    n = len(asking.table.names)
    some = [i for i in range(n) if asking.pick.chance(0.6)]
    return some if some and asking.pick.chance(0.5) else list(range(n))


def cardinality(asking: Asking) -> None:
    """Every number to rtol, or to atol."""
    over = _over(asking)
    names = [asking.table.names[i] for i in over]
    for atol in (None, 1e-9):
        label = "auto" if atol is None else "atol"

        def ask(rows: np.ndarray, atol: float | None = atol) -> np.ndarray:
            return asking.model.cardinality(evidence=rows, over=names, atol=atol)

        for codes, values in asking.attempt_rows(label, ask, asking.possible):
            for k, (value, true) in enumerate(zip(values, asking.table.counts(codes, over), strict=True)):
                relative = asking.rtol + asking.slack  # with atol, either of them is enough
                about = (k, names, asking.evidence(codes))
                asking.number(label, value, true, relative, absolute=atol or 0.0, about=about)


def counts(asking: Asking) -> None:
    """At least one, none, all, exactly k, an odd number, and how many on average: to rtol."""
    over = _over(asking)
    names = [asking.table.names[i] for i in over]
    k = asking.pick.between(0, len(over))
    questions: dict[str, tuple[Callable, Callable]] = {
        "any_of": (lambda m, e: m.any_of(e, over=names), lambda c: sum(c[1:], fmpq(0))),
        "none_of": (lambda m, e: m.conditional(dict.fromkeys(names, 0), e), lambda c: c[0]),
        "all_of": (lambda m, e: m.conditional(dict.fromkeys(names, 1), e), lambda c: c[-1]),
        "exactly": (lambda m, e: m.cardinality(e, over=names)[..., k], lambda c: c[k]),
        "parity": (lambda m, e: _over_names(m.parity, names, e), lambda c: sum(c[1::2], fmpq(0))),
        "expected_count": (
            lambda m, e: m.expected_count(evidence=e, over=names),
            lambda c: sum((j * x for j, x in enumerate(c)), fmpq(0)),
        ),
    }
    for label, (ask, read) in questions.items():
        if label in ("none_of", "all_of") and not asking.can_show(dict.fromkeys(names, int(label == "all_of"))):
            continue
        rows = asking.possible[:6]
        for codes, value in asking.attempt_rows(label, lambda rows, ask=ask: ask(asking.model, rows), rows):
            c = asking.table.counts(codes, over)
            fine = all(0 <= x <= 1 for x in c)
            if not fine and not 0 <= read(c) <= len(over):
                asking.fact(label, False, f"{value} from counts that are no probabilities {asking.evidence(codes)}")
                continue
            about = (names, asking.evidence(codes))
            asking.number(label, value, read(c), 2 * asking.rtol, about=about, probability=label != "expected_count")


def _over_names(question: Callable, names: list[str], evidence: Any) -> Any:
    """`parity` calls its set of variables `names` or `over`."""
    try:
        return question(evidence=evidence, over=names)
    except TypeError:
        return question(evidence=evidence, names=names)


def moments(asking: Asking) -> None:
    """To rtol; the skewness, whose terms cancel, to an absolute error of rtol·√kurtosis."""
    over = _over(asking)
    names = [asking.table.names[i] for i in over]
    for codes in asking.possible[:4].tolist():
        evidence = asking.evidence(codes)
        found = asking.attempt("auto", lambda evidence=evidence: asking.model.moments(evidence=evidence, over=names))
        c = asking.table.counts(codes, over)
        if found is None or not all(0 <= x <= 1 for x in c):
            asking.fact("auto", found is None, "moments of what is no distribution")
            continue
        mean = sum((j * x for j, x in enumerate(c)), fmpq(0))
        second, third, fourth = (sum(((j - mean) ** p * x for j, x in enumerate(c)), fmpq(0)) for p in (2, 3, 4))
        asking.number("mean", found.mean, mean, asking.rtol, about=evidence, probability=False)
        asking.number("variance", found.variance, second, asking.rtol, about=evidence, probability=False)
        if second and float_of(second) > 1e-150:
            with flint.ctx.workprec(BITS):
                spread = ball(second)
                kurtosis = ball(fourth) / spread**2
                asking.near("kurtosis", found.kurtosis, kurtosis, kurtosis * asking.rtol, evidence)
                skewness = ball(third) / spread.sqrt() ** 3
                asking.near("skewness", found.skewness, skewness, kurtosis.sqrt() * asking.rtol, evidence)


def sized(asking: Asking) -> None:
    """Given how many are in: marginals and probabilities to rtol."""
    if not asking.table.is_distribution:
        return
    n = len(asking.table.names)
    k = asking.pick.between(0, n)
    inside = Table.by_sets(
        asking.table.names,
        lambda s: asking.table.coefficients[tuple(int(i in s) for i in range(n))] if len(s) == k else 0,
    )
    if inside.total == 0:
        return
    found = asking.attempt("marginals", lambda: asking.model.marginals(size=k), n)
    for i, value in enumerate([] if found is None else found):
        true = inside.given([-1] * n, (i, 1))
        asking.number("marginals", value, true, asking.rtol, about=(k, i))
    sub = asking.attempt("prob", lambda: asking.model.condition(size=k))
    if sub is not None:
        for codes, (value, bound) in asking.attempt_rows(
            "prob", lambda rows: _pairs(sub.prob(rows, bound=True)), asking.rows
        ):
            about = (k, asking.evidence(codes))
            asking.number("prob", value, inside.prob(codes), bound, about=about, tiny=False)


# -- information -----------------------------------------------------------------------------------------------------


def log_odds(asking: Asking) -> None:
    """rtol relative to the log-odds, however near to 0."""
    for codes, values in asking.attempt_rows("auto", lambda rows: asking.model.log_odds(rows), asking.possible[:6]):
        for i, value in enumerate(values):
            p, about = asking.table.given(codes, (i, 1)), (i, asking.evidence(codes))
            if p in (0, 1):
                asking.fact("auto", value == (math.inf if p else -math.inf), f"{value} for certainty {about}")
            elif not 0 < p < 1:
                asking.fact("auto", False, f"log-odds {value} of {float_of(p)} {about}")
            else:
                true = log(p / (1 - p))
                with flint.ctx.workprec(BITS):
                    asking.near("auto", value, true, abs(true) * (asking.rtol + 2 * UNIT), about)


def entropy(asking: Asking) -> None:
    """To rtol where it is exact; within eight standard errors where it is estimated."""
    for codes in asking.possible[:3].tolist():
        evidence = asking.evidence(codes)
        seed = asking.pick(1 << 30)
        value = asking.attempt(
            "auto", lambda evidence=evidence, seed=seed: asking.model.entropy(evidence, samples=1000, rng=seed)
        )
        if value is None:
            continue
        base = asking.table.raw(codes)
        terms = [x / base for _, x in asking.table.listed(codes) if x]
        if any(x < 0 for x in terms):
            asking.fact("auto", False, f"entropy {value} of what is no distribution {evidence}")
            continue
        with flint.ctx.workprec(BITS):
            true = -sum((ball(p) * log(p) for p in terms), arb(0))
            if value.exact:
                allowed = true * (4 * asking.rtol) + 1e-320
            else:
                allowed = (
                    arb(8 * value.standard_error) + true * (4 * asking.rtol)
                    if value.standard_error < math.inf
                    else arb("inf")
                )
            asking.near("exact" if value.exact else "estimate", value, true, allowed, evidence)


def kl(asking: Asking) -> None:
    """To rtol·(D + √D) where it is exact; eight standard errors where it is estimated; inf where q excludes."""
    names = asking.table.names
    match asking.pick(3):
        case 0:  # a tilt of the same
            weight = Fraction(asking.pick.between(1, 9), asking.pick.between(1, 9))
            other = asking.circuit.tilt({names[0]: weight})
            factor = np.array([fmpq(1), rational(weight)], object).reshape(2, *(1,) * (len(names) - 1))
            table = Table(names, asking.table.coefficients * factor)
        case 1:  # independent coins
            root = product([weighted_sum([Fraction(1, 2)] * 2, [var(n), ONE]) for n in names])
            other = pgcc.Circuit(root, names)
            table = Table.of(other)
        case _:  # something is excluded
            root = product([var(names[0]), *(weighted_sum([Fraction(1, 2)] * 2, [var(n), ONE]) for n in names[1:])])
            other = pgcc.Circuit(root, names)
            table = Table.of(other)
    if asking.circuit.domains is not None and other.domains is None:
        return
    model = asking.attempt("compile", lambda: compiled(other, rtol=asking.rtol))
    if model is None or table.total <= 0:
        return
    seed = asking.pick(1 << 30)
    value = asking.attempt("auto", lambda: asking.model.kl(model, samples=1000, rng=seed))
    if value is None:
        return
    if not asking.table.is_distribution or not table.is_distribution:
        asking.fact("auto", False, f"divergence {value} of what is no distribution")
        return
    label = "exact" if value.exact else "estimate"
    pairs = [(p / asking.table.total, q / table.total) for (_, p), (_, q) in zip(
        asking.table.listed([-1] * len(names)), table.listed([-1] * len(names)), strict=True) if p]  # fmt: skip
    if any(q == 0 for _, q in pairs):
        asking.fact(label, value == math.inf or value.standard_error == math.inf, f"{value!r} for inf")
        return
    with flint.ctx.workprec(BITS):
        true = sum((ball(p) * log(p / q) for p, q in pairs), arb(0))
        allowed = _close_to(true, asking.rtol)
        if not value.exact:
            allowed = allowed + 8 * value.standard_error if value.standard_error < math.inf else arb("inf")
        asking.near(label, value, true, allowed)


def _close_to(divergence: arb, rtol: float) -> arb:
    """rtol·(D + √D), and rtol² where D is nearly 0: a divergence is quadratic in what probabilities are off by."""
    size = abs(divergence).upper()  # a ball around 0 has no root
    return (size + size.sqrt()) * (4 * rtol) + (4 * rtol) ** 2


def mutual_information(asking: Asking) -> None:
    """To rtol·(I + √I)."""
    n = len(asking.table.names)
    if n < 2 or not asking.table.is_distribution or asking.circuit.domains is not None:
        return
    for codes in asking.possible[:3].tolist():
        i, j = (int(x) for x in asking.pick.rng.permutation(n)[:2])
        a, b, evidence = asking.table.names[i], asking.table.names[j], asking.evidence(codes)
        value = asking.attempt(
            "auto", lambda a=a, b=b, evidence=evidence: asking.model.mutual_information([a], [b], evidence)
        )
        if value is None:
            continue
        with flint.ctx.workprec(BITS):
            true = arb(0)
            for x in (0, 1):
                for y in (0, 1):
                    both = asking.table.given(codes, (i, x), (j, y))
                    if both:
                        apart = asking.table.given(codes, (i, x)) * asking.table.given(codes, (j, y))
                        true += ball(both) * log(both / apart)
            true = abs(true)
            asking.near("auto", value, true, _close_to(true, asking.rtol), (a, b, evidence))


# -- mode, samples, derivatives, source, totals, proofs --------------------------------------------------------------


def mode(asking: Asking) -> None:
    """What is called exact is the most probable, to rtol; otherwise nothing is above the bound."""
    for codes in asking.possible[:2].tolist():
        evidence = asking.evidence(codes)
        found = asking.attempt("auto", lambda evidence=evidence: asking.model.mode(evidence))
        if found is None:
            continue
        listed = dict(asking.table.listed(codes))
        if min(listed.values()) < 0:
            asking.fact("auto", False, f"the mode of what is no distribution {evidence}")
            continue
        chosen = tuple(found.assignment[name] for name in asking.table.names)
        best = max(listed.values())
        p = listed.get(chosen, fmpq(0))
        if p == 0:
            asking.fact("auto", False, f"an impossible mode {chosen} {evidence}")
            continue
        with flint.ctx.workprec(BITS):
            true = log(p / asking.table.total)
            asking.near("logprob", found.logprob, true, abs(true) * (4 * asking.rtol) + 4 * asking.rtol, evidence)
            top = log(best / asking.table.total)
            if found.exact:
                holds = p >= best * rational(1 - 8 * asking.rtol)
                asking.fact("exact", holds, f"{chosen} is not the most probable: {float_of(p / best)} of it {evidence}")
            else:
                holds = bool(top <= arb(found.bound) + abs(top) * 8 * asking.rtol + 8 * asking.rtol)
                asking.fact("bound", holds, f"above the bound {found.bound} {evidence}")


def sample(asking: Asking) -> None:
    """What is drawn is possible and agrees, and is as frequent as it should be."""
    drawn = 1000
    for codes in asking.possible[:2].tolist():
        seed, evidence = asking.pick(1 << 30), asking.evidence(codes)
        found = asking.attempt("auto", lambda e=evidence, seed=seed: asking.model.sample(drawn, e, rng=seed))
        if found is None:
            continue
        listed, base = dict(asking.table.listed(codes)), asking.table.raw(codes)
        if min(listed.values()) < 0:
            asking.fact("auto", False, f"samples of what is no distribution {evidence}")
            continue
        seen, count = np.unique(found, axis=0, return_counts=True)
        times = dict(zip(map(tuple, seen.tolist()), count.tolist(), strict=True))
        asking.fact("support", all(listed.get(s, 0) > 0 for s in times), f"impossible samples {evidence}")
        for s, x in listed.items():
            p = float_of(x / base)
            off = abs(times.get(s, 0) - drawn * p)
            asking.fact(
                "frequency", off <= 7 * math.sqrt(drawn * p * (1 - p)) + 7, f"{times.get(s, 0)} of {drawn}, p={p} {s}"
            )


def gradient(asking: Asking) -> None:
    """Derivatives by the weights of one sum: 1e-6 of the larger of the two parts, or of 1."""
    sums = [node for node in asking.circuit.order if node.op is Op.SUM and len(node.children) <= 6]
    if not sums or not asking.case.raw or asking.circuit.facts.degree > 60 or not asking.table.is_distribution:
        return
    node = asking.pick.of(sums)
    codes = asking.pick.of(asking.possible.tolist())
    found = asking.attempt("auto", lambda: pgcc.grad(asking.circuit, asking.told(codes))[node], len(node.children))
    if found is None:
        return
    codes = asking.closed(codes)
    slopes = [weight_derivatives(asking.circuit, node, row) for row in (codes, [-1] * len(codes))]
    for value, here, all_ in zip(found, *slopes, strict=True):
        here, all_ = here / asking.table.raw(codes), all_ / asking.table.total
        size = max(fmpq(1), abs(here), abs(all_))
        if float_of(size) == math.inf:
            continue
        asking.number(
            "auto", float(value), here - all_, 0.0, absolute=2e-6 * float_of(size), probability=False,
            about=asking.evidence(codes),
        )  # fmt: skip


def emitted(asking: Asking) -> None:
    """Emitted source computes in plain float64 and certifies nothing; but ordinary monotone circuits come out right."""
    ordinary = ("probabilistic", "floats", "rare", "many_terms", "near_one", "shared_sums", "states")
    if asking.generator not in ordinary:
        return
    if not asking.circuit.facts.monotone:
        return
    source = asking.attempt("emit", lambda: pgcc.emit(asking.circuit))
    module = asking.attempt("load", lambda: _without_numba(source)) if source is not None else None
    if module is None:
        return
    for codes in asking.rows[:5].tolist():
        value = asking.attempt("prob", lambda codes=codes: float(module.prob(asking.evidence(codes))))
        if value is not None:
            asking.number("prob", value, asking.table.prob(codes), 1e-9, about=asking.evidence(codes))


def _without_numba(source: str) -> types.ModuleType:
    """The module, with its functions as Python runs them: compiling takes seconds each."""
    plain = types.ModuleType("numba")

    def njit(*args: Any, **_: Any) -> Any:
        return args[0] if args and callable(args[0]) else lambda function: function

    plain.njit = plain.jit = njit  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_loader("emitted", None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get("numba")
    sys.modules["numba"] = plain
    try:
        exec(compile(source, "emitted", "exec"), module.__dict__)
    finally:
        if before is None:
            del sys.modules["numba"]
        else:
            sys.modules["numba"] = before
    return module


def total(asking: Asking) -> None:
    """g(1): exact if all numbers are and it does not become enormous, else to 1e-12."""
    from pgcc.exact.bounded import LARGEST, bits
    from pgcc.passes.total import total as find_total

    if not asking.case.raw:
        return
    value = asking.attempt("auto", lambda: find_total(asking.circuit))
    if value is None:
        return
    is_short = bits(Fraction(int(asking.table.total.p), int(asking.table.total.q))) <= LARGEST
    error = 0.0 if asking.circuit.facts.exact and is_short and not isinstance(value, float) else 1.1e-12
    off = abs(rational(value) - asking.table.total)
    holds = off <= rational(error) * abs(asking.table.total)
    asking.fact(
        "auto", holds, f"{value!r} for {float_of(asking.table.total)}: off by {float_of(off / asking.table.total)}"
    )


def check(asking: Asking) -> None:
    """A distribution is not refuted, and what is none is not proved; a proof verifies, where that can be asked."""
    report = asking.attempt("auto", lambda: pgcc.check(asking.circuit, time=0.05, normalize=True, rng=0))
    if report is None:
        return
    if asking.table.is_distribution:
        asking.fact("auto", asking.case.rounded > 0 or report.nonnegative.state != "refuted", str(report))
    else:
        asking.fact("auto", not report.ok, str(report))
    if hasattr(report, "verify"):
        asking.attempt("verify", report.verify)


QUESTIONS: dict[str, Callable[[Asking], None]] = {
    question.__name__.replace("_", " "): question
    for question in (
        *(prob, raw, prob_without_bound, exact, logprob, marginals, conditional, condition, pairwise, covariance),
        *(cardinality, counts, moments, sized, log_odds, entropy, kl, mutual_information, mode, sample, gradient),
        *(emitted, total, check),
    )
}
