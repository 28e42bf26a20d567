"""How many random cases a law is tried on: a third of them in the quick run, all of them among the slow tests."""

thorough = False  # whether slow tests are run: set before tests are collected


def some(cases: int) -> int:
    """This many cases in a thorough run, and a third in a quick one, but three at least."""
    return cases if thorough else min(cases, max(cases // 3, 3))
