"""A million rows of evidence, in blocks: memory for the answers, and none that grows with the rows."""

import time

import numpy as np

import pgcc

# A mixture of fifty independent coin flips: one is biased, the other is not.
n = 50
zs = pgcc.variables([f"z{i}" for i in range(n)])
fair, biased = zs[0] * 0 + 1, zs[0] * 0 + 1
for z in zs:
    fair, biased = fair * (0.5 * z + 0.5), biased * (0.9 * z + 0.1)
model = pgcc.compile(0.3 * fair + 0.7 * biased)

rows = np.random.default_rng(0).integers(-1, 2, (1_000_000, n), np.int8)  # 1, 0 and -1 for unobserved
model.logprob(rows[:1])  # the first call loads the compiled loops

start = time.perf_counter()
logs = model.logprob(rows, threads=-1)
seconds = time.perf_counter() - start
print(f"{len(rows):,} rows of {n} variables in {seconds:.2f} s")

# The same for one row, by hand.
one = rows[123]
heads, tails = (one == 1).sum(), (one == 0).sum()
by_hand = np.log(0.3 * 0.5 ** (heads + tails) + 0.7 * 0.9**heads * 0.1**tails)
print("the same as by hand:", bool(abs(logs[123] - by_hand) < 1e-9 * abs(by_hand)))
