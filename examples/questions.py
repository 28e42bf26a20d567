"""Everything one can ask of a distribution: a shelf of books from which readers pick diverse sets."""

import numpy as np

import pgcc

books = ["whales", "sharks", "novel", "poems", "algebra"]
topics = np.array([[1.2, 0.1, 0.0], [1.1, 0.2, 0.1], [0.1, 0.9, 0.0], [0.0, 0.6, 0.2], [0.1, 0.0, 1.0]])
model = pgcc.compile(pgcc.dpp(factor=topics, names=books))

# Who has read about whales, what else do they read? One pass up the circuit and one down.
posterior = {book: round(p, 3) for book, p in model.marginals("whales=1").items()}
print("given whales:", posterior)
print("Pr(sharks | whales) =", round(model.conditional({"sharks": 1}, given={"whales": 1}), 3))

# Books on one topic repel each other.
print("covariance of whales and sharks:", model.covariance().round(3)[0, 1])

# How many books, and which ones if there are exactly two?
print("how many:", model.cardinality().round(3))
print("given two:", dict(zip(books, model.marginals(size=2).round(3).tolist(), strict=True)))
print("at least one of the sea:", round(model.any_of(over=["whales", "sharks"]), 3))

# Exact samples, the same for the same seed.
for row in model.sample(3, rng=1):
    print("a reader:", [book for book, taken in zip(books, row, strict=True) if taken])

# The most probable shelf, and how uncertain it is.
print(model.mode())
print("entropy:", round(model.entropy(), 3), "nats")

# Which entry of the features would make a given choice likelier? The derivative of its log-probability.
gradient = model.grad(dict.fromkeys(books, 0) | {"whales": 1, "novel": 1})
print(gradient)
