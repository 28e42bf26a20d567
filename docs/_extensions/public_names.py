"""What is public, and where the reference lists it. Needs no Sphinx: `tests/test_site.py` holds it to the package.

`SECTIONS` is the table of contents. A new public name without a place here is an error. The methods of `PAGED` classes
have pages of their own; those of others are on the page of the class.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Section:
    """Names of one module, under a heading of the index."""

    title: str
    module: str
    names: tuple[str, ...]
    guide: str  # the page that explains them

    @property
    def qualified(self) -> list[str]:
        return [f"{self.module}.{name}" for name in self.names]


def section(title: str, module: str, names: str, guide: str) -> Section:
    return Section(title, module, tuple(names.split()), guide)


SECTIONS = [
    section("Write a polynomial", "pgcc", "parse variables from_sympy Circuit", "/guide/polynomials"),
    section("Point processes and trees", "pgcc", "dpp det_pgc determinant", "/guide/dpps"),
    section("", "pgcc", "spanning_tree spanning_forest arborescence", "/guide/trees"),
    section("Combine distributions", "pgcc", "mixture product superpose subsets", "/guide/composition"),
    section("Compile and ask", "pgcc", "compile Model grad", "/guide/questions"),
    section("Is it a distribution?", "pgcc", "check", "/guide/validity"),
    section("Files and source code", "pgcc", "load save emit", "/guide/interop"),
    section(
        "pgcc.pc",
        "pgcc.pc",
        "PC SignedPC pos neg bernoulli categorical true mixture product structure to_pc Structure Offender Smoothing",
        "/guide/circuits",
    ),
    section(
        "pgcc.builders",
        "pgcc.builders",
        "bayesian_network hmm naive_bayes chow_liu cutset_network",
        "/guide/bayesian_networks",
    ),
    section(
        "pgcc.learn",
        "pgcc.learn",
        "StackedEnsemble ContinuousMixture HiddenTree EinsumNetwork SimplePGC DPP ChowLiu MixtureOfTrees Strudel "
        "CircuitMLE BayesianNetworkMLE Imputer Classifier save load",
        "/guide/learning",
    ),
    section(
        "pgcc.plot",
        "pgcc.plot",
        "marginals cardinality covariance tornado learning_curve circuit save",
        "/gallery/pictures",
    ),
    section("pgcc.torch", "pgcc.torch", "logprob dpp_logprob LogProb", "/guide/interop"),
    section("pgcc.cluster", "pgcc.cluster", "logprobs", "/guide/learning"),
    section(
        "pgcc.testing",
        "pgcc.testing",
        "polynomials circuits pcs kernels graphs evidence assert_valid assert_same_distribution assert_laws "
        "random_circuit random_det random_pc random_evidence brute_force oracle_probability KERNEL_KINDS DET_KINDS",
        "/guide/testing",
    ),
    section("What questions return", "pgcc.queries.mode", "Mode", "/guide/questions"),
    section("", "pgcc.queries.information", "Estimate", "/guide/questions"),
    section("", "pgcc.queries.moments", "Moments", "/guide/questions"),
    section("", "pgcc.queries.gradient", "Gradient", "/guide/questions"),
    section("", "pgcc.queries.sensitivity", "Influence", "/guide/bayesian_networks"),
    section("", "pgcc.queries.explain", "Explanation", "/guide/accuracy"),
    section("", "pgcc.explore.page", "Explorer", "/guide/explorer"),
    section("", "pgcc.validity.standing", "Standing", "/guide/validity"),
    section("", "pgcc.validity.check", "Report", "/guide/validity"),
    section("", "pgcc.validity.verdict", "Verdict", "/guide/validity"),
    section("", "pgcc.validity.proof", "Proof verify", "/guide/validity"),
    section(
        "Errors",
        "pgcc",
        "PgccError ParseError CircuitError SemanticsError EvidenceError PrecisionError FormatError",
        "/start/first_minute",
    ),
    section("", "pgcc.errors", "ProofError SpellingError", "/guide/validity"),
]
MODULES = ("pc", "builders", "plot")  # public names of pgcc that are modules: sections of their own
# Classes whose methods have pages of their own, in groups.
PAGED: dict[str, dict[str, tuple[str, ...]]] = {
    "pgcc.Model": {
        "How probable is it?": ("prob", "logprob", "conditional", "condition", "do"),
        "Variables and pairs": ("marginals", "log_odds", "pairwise", "covariance"),
        "How many?": ("cardinality", "any_of", "parity", "expected_count", "moments"),
        "Sets": ("sample", "mode", "top"),
        "Information": ("entropy", "kl", "mutual_information"),
        "About the model": ("states", "explain", "explore", "standing", "grad", "sensitivity"),
    },
    "pgcc.Circuit": {
        "Conditioning and marginalising": ("observe", "do", "marginalize", "restrict", "normalize"),
        "Variables with states": ("domains", "with_states", "network"),
        "Transforming": ("compose", "thin", "tilt", "complement", "relabel", "simplify", "rewrite"),
        "To other libraries and back": ("to_sympy", "to_networkx", "from_networkx"),
    },
    "pgcc.pc.PC": {
        "Methods": ("to_pgc", "smooth", "structure", "evaluate", "to_networkx", "from_networkx"),
    },
}
REST = "More"  # methods that nobody has put into a group yet


def resolve(name: str) -> Any:
    """The object that a qualified name stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as error:
            if error.name is not None and not name.startswith(error.name):
                raise  # a package that the module needs
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


def is_method(owner: type, name: str) -> bool:
    """Something to call, or a property that has to be explained by an example."""
    value = inspect.getattr_static(owner, name)
    return isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value)


def methods(name: str) -> dict[str, list[str]]:
    """The public methods of a class with pages of its own, by group; new ones are in the last."""
    owner, groups = resolve(name), PAGED[name]
    known = {method for group in groups.values() for method in group}
    public = [m for m in dir(owner) if not m.startswith("_") and (is_method(owner, m) or m in known)]
    rest = [m for m in public if m not in known]
    listed = {title: [m for m in group if m in public] for title, group in groups.items()}
    return listed | ({REST: rest} if rest else {})


def pages() -> dict[str, Section]:
    """Every qualified name that has a page, and the section it belongs to."""
    found: dict[str, Section] = {}
    for one in SECTIONS:
        for name in one.qualified:
            found[name] = one
            if name in PAGED:
                found |= {f"{name}.{m}": one for group in methods(name).values() for m in group}
    return found


@cache
def aliases() -> dict[str, str]:
    """What pages call public names, and their qualified names."""
    found = {}
    for name in pages():
        short = name.removeprefix("pgcc.")
        found[name] = name
        if "." in short and not short.startswith(("plot.", "cluster.", "torch.", "testing.")):
            found.setdefault(short, name)
        owner, _, member = name.rpartition(".")
        if owner == "pgcc.Model":
            found[f"model.{member}"] = name
        if owner == "pgcc.Circuit":
            found[f"circuit.{member}"] = name
        if owner in ("pgcc.learn", "pgcc.validity.check", "pgcc.queries.mode"):
            found.setdefault(member, name)
    for name in ("load", "save", "Model", "Circuit", "PC"):
        found.pop(name, None)
    return found | {
        "Model": "pgcc.Model",
        "Circuit": "pgcc.Circuit",
        "PC": "pgcc.pc.PC",
        "PC.to_pgc": "pgcc.pc.PC.to_pgc",
    }


def sections(title: str) -> list[Section]:
    """The section of this title, with those that continue it."""
    found: list[Section] = []
    for one in SECTIONS:
        if one.title == title or (found and not one.title):
            found.append(one)
        elif found:
            break
    return found


def short(name: str) -> str:
    """Without the modules, as it is listed beside others: parse, Model.prob, SimplePGC."""
    owner, _, member = name.rpartition(".")
    return f"{owner.rpartition('.')[2]}.{member}" if owner in PAGED else member
