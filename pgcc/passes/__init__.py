"""Passes: rewritings of circuits, Circuit → Circuit. Every one walks `circuit.order`; none recurses.

What `pgcc.compile` runs, in this order (`pgcc.compiler.STAGES` says when):

    module        function        law
    pipeline      simplify        the same polynomial by a circuit that is not larger: repeats
      simplify      flatten         Σ w·(Σ v·c) = Σ (w·v)·c and Π a·(Π b) = Π a·b
      simplify      fold            constants, zeros, ones, equal and lone children: the table `rules.RULES`
    homogenize    homogenize      the same polynomial where every ȳ_i is 1; every term of a sum names all its variables.
                                  For decomposable circuits
    expand_det    expand_small    the same polynomial without determinants of one size. For the other circuits

What methods of `Circuit` and the frontends ask for (documented at the methods; `observe` is the first and the third):

    condition     condition       the coefficient of t^|A| of g(z_A = t, z_B = 0): Pr(evidence, rest), by `sizes`
                  marginalize     g at z_i = 1: Pr(rest)
    sizes         of_size         the terms with k of the variables T: Pr(S, |S ∩ T| = k)
    compose       compose         z_i ↦ f_i, of total 1: hierarchical composition
                  thin, tilt, complement, add, restrict   other substitutions for z_i and ȳ_i
    homogenize    smooth          missing variables of a probabilistic circuit as factors z_i + ȳ_i
    total         normalize       g / g(1)
    expand_det    expand_det      the same polynomial without determinants, by `berkowitz`
    berkowitz     berkowitz       the determinant of a matrix of nodes as sums and products

What passes compute with: `building` (sums and products without zeros and ones), and `pgcc.exact` (rational numbers that
do not become enormous, and interval arithmetic).

There are three exact determinants, each for another purpose: `pgcc.ir.interpret.determinant` is the specification, over
any ring, and shares no code with the others on purpose; `pgcc.exact.bounded.constant_determinant` eliminates (numbers
only, and fast); `berkowitz.berkowitz` builds a circuit.
"""
