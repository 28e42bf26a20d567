"""Learn circuits from data: estimators of scikit-learn, whose result is an ordinary circuit.

The folders, in the order in which data pass through them::

    tables      read_rows → packed_rows → data_split       any table → packed rows → training and validation data
    common      estimator                   the class that all estimators inherit from
                training, checkpoint        the training loop with early stopping; its state on disk
                optimizers                  L-BFGS, Adam, epochs of mini-batches
                mixing                      mixtures of learned circuits
    mixtures    partition → encoding        SimplePGC: groups of variables, tables of patterns
                → initialization, recipes   EM for the initial parameters; hyper-parameters
                → mixture_likelihood → mixture_training → simple_pgc
    trees       tree_mixture → tree_rows → tree_em → tree_estimators    (missing_trees: of one structure)
    strudel     decisions → growth → strudel                deterministic circuits that grow by splits
    circuits    circuit_likelihood → circuit_trainers → circuit_mle     (parameters: `pgcc.trainable`)
                network_mle                 the tables of a Bayesian network
    continuous  log_linear → tied_mixture → continuous_mixture              thousands of components, tied by a net
    regions     layers → layer_training                     circuits as matrix products, EM for their tables
                cluster_start, tied_tables  a start for EM; tables tied by a net → hidden_tree, einsum_network
    ensembles   stacking → entrants → race → stacked_ensemble           several estimators, raced and mixed

    imputer     fill missing values with what a model expects
    classifier  predict labels by the joint distribution of rows and labels
    saving      estimators in .npz files, without pickles

`kernels` has the compiled loops.
"""

from pgcc.learn.circuits.circuit_mle import CircuitMLE
from pgcc.learn.circuits.network_mle import BayesianNetworkMLE
from pgcc.learn.classifier import Classifier
from pgcc.learn.continuous.continuous_mixture import ContinuousMixture
from pgcc.learn.ensembles.stacked_ensemble import StackedEnsemble
from pgcc.learn.imputer import Imputer
from pgcc.learn.mixtures.simple_pgc import DPP, SimplePGC
from pgcc.learn.regions.einsum_network import EinsumNetwork
from pgcc.learn.regions.hidden_tree import HiddenTree
from pgcc.learn.saving import load, save
from pgcc.learn.strudel.strudel import Strudel
from pgcc.learn.trees.tree_estimators import ChowLiu, MixtureOfTrees

__all__ = [
    "DPP",
    "BayesianNetworkMLE",
    "ChowLiu",
    "CircuitMLE",
    "Classifier",
    "ContinuousMixture",
    "EinsumNetwork",
    "HiddenTree",
    "Imputer",
    "MixtureOfTrees",
    "SimplePGC",
    "StackedEnsemble",
    "Strudel",
    "load",
    "save",
]
