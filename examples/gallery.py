"""The pictures of docs/gallery/pictures.md: `python examples/gallery.py [folder]` (needs matplotlib)."""

import sys
from pathlib import Path

import networkx as nx
import numpy as np

import pgcc
from pgcc import plot

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "gallery" / "pictures"
folder.mkdir(parents=True, exist_ok=True)


def show(name, ax):
    path = folder / f"{name}.svg"
    plot.save(ax, path)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


# Points on a line, of which near ones are alike: a DPP, given that the second one is in.
x = np.array([0.0, 0.6, 1.5, 4.0, 4.4, 7.0, 9.0, 9.3, 9.6, 9.9])
model = pgcc.compile(pgcc.dpp(L=3 * np.exp(-(np.subtract.outer(x, x) ** 2))))
show("marginals", plot.marginals(model, {"x2": 1}))

# How many roads of a grid of towns a random rooted forest uses.
forest = pgcc.compile(pgcc.spanning_forest(nx.grid_2d_graph(6, 6), killing=0.5))
show("cardinality", plot.cardinality(forest))

# Four parties on a line, of which neighbours compete; members of one come together.
parties = [pgcc.parse(f"0.7*{p}1*{p}2*{p}3 + 0.1*{p}1 + 0.1*{p}2 + 0.1*{p}3") for p in "abcd"]
assembly = pgcc.compile(pgcc.det_pgc([[4, 3, 1, 0], [3, 4, 3, 1], [1, 3, 4, 3], [0, 1, 3, 4]], parties))
show("covariance", plot.covariance(assembly))

# The running example of the paper: Equation 3 of Zhang, Juba and Van den Broeck (ICML 2021).
beta = pgcc.parse("(0.1*(z1 + 1)*(6*z2 + 1) - 0.4*z1*z2) * (0.8*z3 + 0.2)")
show("circuit", plot.circuit(beta))

# The assembly: a determinant over circuits.
show("determinant", plot.circuit(assembly.circuit))

# Of a large circuit, the neighbourhood of one variable.
chain = pgcc.builders.hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.7], length=100)
show("part", plot.circuit(chain, around="x50"))
