"""What entries of tables do to posteriors, against networks whose tables are changed, by brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pgcc
from pgcc.queries import sensitivity as room

RNG = np.random.default_rng(8)


def tables(zeros: bool) -> dict[str, tuple[list[str], list[str], np.ndarray]]:
    """Four variables with their parents, states and tables."""
    states = {"w": ["sun", "rain", "snow"], "late": ["no", "yes"], "mood": ["a", "b", "c", "d"], "plain": [0, 1]}
    parents = {"w": [], "late": ["w"], "mood": ["w", "late"], "plain": ["mood"]}
    found = {}
    for name, above in parents.items():
        table = RNG.dirichlet(np.ones(len(states[name])), [len(states[p]) for p in above])
        if zeros:
            table = np.where(RNG.random(table.shape) < 0.25, 0.0, table) + 0.0
            table[..., 0] += table.sum(axis=-1) == 0
            table /= table.sum(axis=-1, keepdims=True)
        found[name] = above, states[name], table
    return found


def model_of(network) -> pgcc.Model:
    given = {}
    for name, (above, states, table) in network.items():
        rows = {}
        for key in itertools.product(*(network[parent][1] for parent in above)):
            at = tuple(network[parent][1].index(label) for parent, label in zip(above, key, strict=True))
            rows[key if len(key) > 1 else key[0] if key else ()] = dict(zip(states, table[at].tolist(), strict=True))
        given[name] = (above, rows) if above else rows[()]
    return pgcc.compile(pgcc.builders.bayesian_network(given))


def posterior(network, query, given) -> float:
    """By a sum over all assignments."""
    names = list(network)
    sums = [0.0, 0.0]
    for states in itertools.product(*(states for _, states, _ in network.values())):
        one = dict(zip(names, states, strict=True))
        if any(one[name] != label for name, label in given.items()):
            continue
        p = 1.0
        for name, (above, labels, table) in network.items():
            at = [network[parent][1].index(one[parent]) for parent in above]
            p *= table[(*at, labels.index(one[name]))]
        sums[0] += p
        sums[1] += p if all(one[name] == label for name, label in query.items()) else 0.0
    return sums[1] / sums[0]


def changed(network, one: room.Influence, value: float):
    """The network with another entry, and the others of its row in proportion."""
    above, states, table = network[one.variable]
    row = tuple(network[parent][1].index(one.parents[parent]) for parent in above)
    x, table = states.index(one.state), table.copy()
    table[row] *= (1 - value) / (1 - table[row][x])
    table[(*row, x)] = value
    return {**network, one.variable: (above, states, table)}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("query", "given"),
    [
        ({"w": "snow"}, {"plain": 1}),
        ({"mood": "b", "late": "yes"}, {}),
        ({"late": "no"}, {"mood": "c", "w": "sun"}),
        ({"w": "sun"}, {"w": "sun"}),
    ],
)
def test_changes_are_those_of_changed_tables(zeros, query, given):
    network = tables(zeros)
    if zeros and not posterior_is_defined(network, given):
        pytest.skip("these zeros make the evidence impossible")
    found = model_of(network).sensitivity(query, given, change=0.5)
    listed = sum(int(room._listed(table).sum()) for _, _, table in network.values())
    assert len(found) == listed
    for one in found:
        odds = one.value / (1 - one.value)
        for c, number in ((1 / 1.5, one.low), (1.5, one.high)):
            moved = posterior(changed(network, one, c * odds / (1 + c * odds)), query, given)
            assert number == pytest.approx(moved, rel=1e-9, abs=1e-15)
        step = 1e-5 * min(one.value, 1 - one.value)
        ends = (posterior(changed(network, one, one.value + sign * step), query, given) for sign in (1, -1))
        assert one.derivative == pytest.approx(np.subtract(*ends) / (2 * step), rel=1e-4, abs=1e-6)
    effects = [abs(one.high - one.low) for one in found]
    assert effects == sorted(effects, reverse=True)


def posterior_is_defined(network, given) -> bool:
    with np.errstate(all="ignore"):
        try:
            return posterior(network, {}, given) == 1
        except ZeroDivisionError:
            return False


def test_sets_of_states_and_soft_evidence():
    network = tables(zeros=False)
    model = model_of(network)
    found = model.sensitivity("w in {sun, rain}", "mood!=a", change=0.25)
    one = found[0]
    odds = 1.25 * one.value / (1 - one.value)
    moved = model_of(changed(network, one, odds / (1 + odds)))
    assert one.high == pytest.approx(moved.conditional("w in {sun, rain}", "mood!=a"), rel=1e-9)
    soft = {"mood": {"a": 0.5, "b": 0.25, "c": 0.125, "d": 1}}
    one = model.sensitivity("w=sun", soft, change=0.25)[0]
    odds = 1.25 * one.value / (1 - one.value)
    moved = model_of(changed(network, one, odds / (1 + odds)))
    assert one.high == pytest.approx(moved.conditional("w=sun", soft), rel=1e-9)


def test_small_numbers_keep_their_digits():
    """Both posteriors are about 1e-12, and their difference from 1 is what the other rows have."""
    tiny = {"rain": (1e-12), "wet": (["rain"], {0: 1e-9, 1: 0.75})}
    model = pgcc.compile(pgcc.builders.bayesian_network(tiny))
    by_name = {str(one): one for one in model.sensitivity("rain=1", "wet=1", change=1.0)}
    one = by_name["Pr(rain=1)"]
    odds = 2 * 1e-12 / (1 - 1e-12)
    assert one.high == pytest.approx(odds * 0.75 / (odds * 0.75 + 1e-9), rel=1e-12)


@pytest.mark.parametrize(
    ("circuit", "how", "said"),
    [
        (pgcc.parse("0.5*a + 0.5"), {}, "only a Bayesian network has tables"),
        (pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})}), {"change": 0}, "change=0"),
        (pgcc.builders.bayesian_network({"rain": 0.2}), {"given": [{"rain": 1}, {"rain": 0}]}, "one piece of evidence"),
    ],
)
def test_refusals(circuit, how, said):
    with pytest.raises(pgcc.PgccError, match=said):
        pgcc.compile(circuit).sensitivity(dict.fromkeys(circuit.variables[:1], 1), **how)


def test_parts_of_networks_are_refused():
    network = pgcc.builders.bayesian_network({"rain": 0.2, "wet": (["rain"], {0: 0.1, 1: 0.9})}).network
    part = pgcc.compile(network.asked(["rain"], None).circuit())
    with pytest.raises(pgcc.PgccError, match="a part of a network: compile the whole"):
        part.sensitivity("rain=1")
