"""Learn circuits from data: estimators with the interface of scikit-learn, whose result is an ordinary circuit.

The modules, in the order in which data pass through them::

    data        data → rows → data_split       any table → packed rows → training and validation data
    training    training, checkpoint           the training loop with early stopping; its state on disk
                optimizers                     L-BFGS, Adam, epochs of mini-batches
    SimplePGC   partition → encoding           groups of variables, tables of patterns
                → initialization, recipes      EM for the initial parameters; hyper-parameters
                → mixture_training, mixture_likelihood → simple_pgc (circuit)
    trees       tree_mixture → tree_em → trees
    CircuitMLE  matrices → parameters → circuit_likelihood → circuit_trainers → circuit_mle
    several     candidates → search (GridSearch), pgc (stacking, mixing)

    imputing    imputer                        fill missing values with what a model expects
    on disk     saving                         estimators in .npz files, without pickles

`base` has the class that all estimators inherit from, and `kernels` the compiled loops.
"""

from pgcc.learn.circuit_mle import CircuitMLE
from pgcc.learn.imputer import Imputer
from pgcc.learn.pgc import PGC
from pgcc.learn.saving import load, save
from pgcc.learn.search import GridSearch
from pgcc.learn.simple_pgc import DPP, SimplePGC
from pgcc.learn.trees import ChowLiu, MixtureOfTrees

__all__ = [
    "DPP",
    "PGC",
    "ChowLiu",
    "CircuitMLE",
    "GridSearch",
    "Imputer",
    "MixtureOfTrees",
    "SimplePGC",
    "load",
    "save",
]
