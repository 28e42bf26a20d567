"""A random spanning tree of a road network: which roads does it use?"""

import math
from fractions import Fraction

import networkx as nx
import numpy as np

import pgcc

G = nx.Graph()
G.add_weighted_edges_from([("ayr", "bath", 2), ("bath", "cork", 3), ("cork", "ayr", 1), ("cork", "deal", 0.5)])
model = pgcc.compile(pgcc.spanning_tree(G))

# A road is in the tree with probability weight · effective resistance; a bridge always is.
W = nx.to_numpy_array(G)
inverse = np.linalg.pinv(np.diag(W.sum(axis=0)) - W)
place = {town: i for i, town in enumerate(G)}
for u, v, weight in G.edges(data="weight"):
    i, j = place[u], place[v]
    resistance = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
    print(f"Pr({u}-{v}) = {model.prob({f'{u}-{v}': 1}):.4f}, and by resistance {weight * resistance:.4f}")

print("exactly:", model.prob({"ayr-bath": 1, "bath-cork": 1}, exact=True))

# Cayley: the complete graph on n nodes has n^(n − 2) trees, and each edge is in 2/n of them.
n = 12
trees = pgcc.spanning_tree(nx.complete_graph(n))
total = pgcc.compile(trees, normalize=False).logprob({})
print(f"log of the trees of K_{n}: {total:.9f}, by Cayley {(n - 2) * math.log(n):.9f}")
print("Pr(edge) =", round(pgcc.compile(trees).prob({"0-1": 1}), 12), "=", Fraction(2, n))

# Rooted forests: every town may be a root, at rate 1. The smaller the weights, the more trees.
forests = pgcc.compile(pgcc.spanning_forest(G, killing=1))
print(f"Pr(the forest uses no road) = {forests.prob(dict.fromkeys(forests.variables, 0)):.4f}")

# One-way streets: arborescences, from the depot to everywhere.
streets = [("depot", "a", 2), ("depot", "b", 1), ("a", "b", 3), ("b", "a", 1)]
routes = pgcc.compile(pgcc.arborescence(streets, root="depot"))
print("Pr(a->b) =", routes.prob({"a->b": 1}, exact=True))
