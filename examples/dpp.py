"""Diverse choices: a determinantal point process over a shelf of books, from features of the books."""

import numpy as np

import pgcc

# Each book has a quality and a direction of topics; the kernel is L = B·Bᵀ with a row quality · direction per book.
books = ["whales", "sharks", "novel", "poems", "algebra"]
quality = np.array([1.2, 1.2, 0.9, 0.6, 1.0])
topics = np.array([[1.0, 0.1, 0.0], [0.9, 0.2, 0.1], [0.1, 1.0, 0.0], [0.0, 0.9, 0.2], [0.1, 0.0, 1.0]])
B = quality[:, None] * topics / np.linalg.norm(topics, axis=1, keepdims=True)

model = pgcc.compile(pgcc.dpp(factor=B, names=books))

for name in books:
    print(f"Pr({name}) = {model.prob({name: 1}):.3f}")

# Books on the same topic repel each other.
for pair in (("whales", "sharks"), ("whales", "algebra")):
    together = model.prob(dict.fromkeys(pair, 1))
    alone = model.prob({pair[0]: 1}) * model.prob({pair[1]: 1})
    print(f"Pr({pair[0]}, {pair[1]}) = {together:.3f}, and {alone:.3f} if they were independent")

# There are three topics, so that no four books are ever taken together: exactly never.
print("Pr(four books) =", model.prob(dict.fromkeys(books[:4], 1)))

# What is in, what is out, and what nobody looked at, a row per query.
rows = np.array([[1, 0, -1, -1, -1], [0, 0, 1, 0, 1], [-1, -1, -1, -1, 0]])
print("three queries:", model.prob(rows).round(4))

# The same process by its marginal kernel K = L·(I + L)⁻¹.
K = B @ np.linalg.solve(np.eye(3) + B.T @ B, B.T)
same = pgcc.compile(pgcc.dpp(K=(K + K.T) / 2, names=books))
print("the same by K:", np.allclose(same.prob(rows), model.prob(rows), rtol=1e-12))
