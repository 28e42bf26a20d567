"""A network that learns the kernel of a DPP from features of its items, by stochastic gradient descent.

Every item has features x, from which the true kernel is L_ij = q_i·q_j·exp(−|x_i − x_j|²), with a quality q that is a
function of x. The network knows neither: it maps features to a factor B, L = B·Bᵀ, and sees only sets.
"""

from __future__ import annotations

import numpy as np
import torch

import pgcc
import pgcc.torch

ITEMS, FEATURES, SETS, STEPS, BATCH = 8, 2, 2000, 200, 64

rng = np.random.default_rng(0)
torch.manual_seed(0)
torch.set_num_threads(1)  # the matrices are small

# the truth, and sets drawn from it
features = rng.normal(size=(ITEMS, FEATURES))
quality = np.exp(0.5 * features[:, 0])
apart = ((features[:, None] - features) ** 2).sum(axis=2)
truth = quality[:, None] * quality * np.exp(-apart)
model = pgcc.compile(pgcc.dpp(L=truth))
train, test = model.sample(SETS, rng=1), model.sample(SETS, rng=2)


class Kernel(torch.nn.Module):
    """Features of items → L = B·Bᵀ, where B is a small network's output."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(FEATURES, width), torch.nn.Tanh(), torch.nn.Linear(width, ITEMS)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B = self.network(x)
        return B @ B.T


def closed_form(L: np.ndarray, sets: np.ndarray) -> float:
    """The mean of log det(L_S) − log det(I + L)."""
    logs = [np.linalg.slogdet(L[np.ix_(s, s)])[1] for s in sets.astype(bool)]
    return float(np.mean(logs) - np.linalg.slogdet(np.eye(len(L)) + L)[1])


x = torch.from_numpy(features)
net = Kernel().double()
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
before = pgcc.torch.dpp_logprob(test, net(x)).mean().item()
for _ in range(STEPS):
    batch = train[rng.integers(SETS, size=BATCH)]
    loss = -pgcc.torch.dpp_logprob(batch, net(x)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

with torch.no_grad():
    L = net(x)
    learned = pgcc.torch.dpp_logprob(test, L).mean().item()
print(f"before: {before:.3f}")
print(f"learned: {learned:.3f}")
print(f"true kernel: {closed_form(truth, test):.3f}")
print(f"the same by determinants: {abs(learned - closed_form(L.numpy(), test)) < 1e-6}")
