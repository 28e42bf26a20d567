"""Mutants of the float64 interpreter, and of what attacks by reading have found (see `mutations`)."""

from __future__ import annotations

_ROWS, _EVIDENCE = "rings/float64/kernels/rows.py", "rings/float64/kernels/packed_evidence.py"
_INTERPRETER, _SUMS = "rings/float64/kernels/interpreter.py", "rings/float64/kernels/sums.py"
_BOUNDS = "certify/kernels/bounds.py"
_CONDENSE = "program/test_condense.py"

# The name, the file, the function, its code, what that becomes, and the tests that should notice.
FLOAT64_MUTANTS = [
    # what is certain enough
    (
        "rows: the floor is no part of the bound",
        _ROWS,
        "certify_block",
        "max(offset, low * rtol, 2.0 * _LEAST_NORMAL)",
        "max(low * rtol, 2.0 * _LEAST_NORMAL)",
        _CONDENSE,
    ),
    (
        "rows: the bound has no roundings",
        _BOUNDS,
        "error_line",
        "1.0001 * gamma / (1.0 - gamma)",
        "0.0",
        _CONDENSE,
    ),
    (
        "rows: magnitudes are values",
        _ROWS,
        "certify_block",
        "muladd(splat(slope), m, splat(offset))",
        "muladd(splat(slope), v, splat(offset))",
        _CONDENSE,
    ),
    (
        "rows: errors are relative to what was computed",
        _ROWS,
        "certify_block",
        "minus(v, error)",
        "v",
        _CONDENSE,
    ),
    (
        "rows: quotients leave the range of doubles",
        _ROWS,
        "certify_block",
        "x = if_less(v, splat(high), x, splat(math.nan))",
        "",
        _CONDENSE,
    ),
    (
        "rows: small quotients leave the range of doubles",
        _ROWS,
        "certify_block",
        "max(offset, low * rtol, 2.0 * _LEAST_NORMAL)",
        "max(offset, 2.0 * _LEAST_NORMAL)",
        _CONDENSE,
    ),
    (
        "rows: logarithms near 0 are certain",
        _ROWS,
        "certify_block",
        "x = if_less(v, splat(left_from), x, if_less(splat(left_to), v, x, splat(math.nan)))",
        "",
        "queries/test_answers.py",
    ),
    ("rows: nothing is divided", _ROWS, "certify_block", "v if total == 1.0 else div(v, splat(total))", "v", _CONDENSE),
    ("rows: doubt is forgotten", _ROWS, "certify_block", "doubt = muladd(x, splat(0.0), doubt)", "", _CONDENSE),
    (
        "rows: codes are not checked",
        _ROWS,
        "write_certified",
        "not are_codes(flat, first * variables, (first + here) * variables)",
        "False",
        _CONDENSE,
    ),
    # which column
    (
        "evidence: the last bytes are codes",
        _EVIDENCE,
        "are_codes",
        "evidence[first:last]",
        "evidence[first : last - 1]",
        _CONDENSE,
    ),
    (
        "evidence: the pair is turned round",
        _EVIDENCE,
        "_join_pairs",
        "pairs[p, 0] * lanes, pairs[p, 1] * lanes, (variables + p) * lanes",
        "pairs[p, 1] * lanes, pairs[p, 0] * lanes, (variables + p) * lanes",
        _CONDENSE,
    ),
    (
        "evidence: planes are exchanged",
        _EVIDENCE,
        "_number_states",
        "np.uint16(1 << (k + i))",
        "np.uint16(1 << i)",
        _CONDENSE,
    ),
    ("evidence: a row too few", _EVIDENCE, "pack_block", "count - 1", "count - 2", _CONDENSE),
    (
        "interpreter: the column of another table",
        _INTERPRETER,
        "run_block",
        "program.pairs.column[t]",
        "program.pairs.column[0]",
        _CONDENSE,
    ),
    (
        "interpreter: the state of another scope",
        _INTERPRETER,
        "run_block",
        "program.wide.scope[t]",
        "program.wide.scope[0]",
        _CONDENSE,
    ),
    (
        "interpreter: what is free is 1",
        _INTERPRETER,
        "run_block",
        "choose(block.columns, variable + lane, table[leaf, 0], table[leaf, 1], table[leaf, 2])",
        "choose(block.columns, variable + lane, table[leaf, 0], table[leaf, 1], table[leaf, 1])",
        _CONDENSE,
    ),
    # sums
    ("interpreter: products begin anew", _INTERPRETER, "run_block", "alone == 0", "True", _CONDENSE),
    (
        "sums: the weights of other products",
        _SUMS,
        "add_products",
        "k + 2",
        "k + 4",
        _CONDENSE,
    ),
    # found by reading
    (
        "trees: a share may be subnormal",
        "determinants/kernels/laplacian.py",
        "_star_mesh",
        "least_share > _TINY and least * least_share > _TINY",
        "least * least_share > _TINY",
        "attacks/test_attacks_det.py::test_star_mesh_elimination_knows_of_its_subnormal_shares",
    ),
    (
        "determinants: the product of a child and its base",
        "determinants/kernels/filling.py",
        "shifted_diagonal",
        "scale / -change * (f / phi)",
        "scale * (f / (phi * -change))",
        "attacks/test_attacks_det.py::test_children_below_the_base_whose_product_with_it_is_subnormal",
    ),
    (
        "samplers: a matrix that is nearly singular",
        "determinants/samplers.py",
        "_marginal_kernel",
        "[len(m0) * products, 4.0 * through, 1.0]",
        "[len(m0) * products, 1.0]",
        "evaluate/test_sampling.py::test_a_kernel_from_a_matrix_that_is_nearly_singular",
    ),
    (
        "samplers: weights as they are",
        "determinants/samplers.py",
        "_near_one",
        "int(exponents[there].max(initial=0))",
        "0",
        "evaluate/test_sampling.py::test_weights_at_the_ends_of_the_range",
    ),
]
