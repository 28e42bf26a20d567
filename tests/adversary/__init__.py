"""An adversary: random distributions made to break bounds, asked every question, compared with exact rationals.

    generators    the cases, by name: what is hard about each is in its docstring
    oracle        exact answers from the table of all 2ⁿ coefficients, without any code of pgcc's passes or backend
    questions     every question: how it is asked, the exact answer, the accuracy that is promised
    thresholds    the sizes at which pgcc changes its ways, made so small that small circuits take all of them
    runner        asks, and counts what was asked, refused, left without a bound, and wrong

``python -m tests.adversary 200000 --seed 1`` asks so many numbers and prints the table; `test_adversary` asks a few
thousand in every run of the tests (``pytest --adversary 50000`` for more).
"""
