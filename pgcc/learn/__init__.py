"""Models from data: estimators with the manners of scikit-learn, whose result is an ordinary circuit."""

from pgcc.learn.circuit_mle import CircuitMLE
from pgcc.learn.pgc import PGC
from pgcc.learn.search import GridSearch
from pgcc.learn.simple_pgc import DPP, SimplePGC
from pgcc.learn.trees import ChowLiu, MixtureOfTrees

__all__ = ["DPP", "PGC", "ChowLiu", "CircuitMLE", "GridSearch", "MixtureOfTrees", "SimplePGC"]
