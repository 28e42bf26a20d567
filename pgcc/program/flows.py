"""The reverse pass of a program without negative numbers: flows.

The flow of a value is the part of the root that comes through it, v·v' with v' its adjoint. A product passes its flow
to every factor as it is, so that nothing is multiplied twice; where a value is needed as a factor, its adjoint is its
flow over itself. Nothing cancels, so a quotient is as accurate as what it divides; it is 0 where the value is, whose
flow is 0 then. About as many operations as the forward pass, where `reverse`, which divides by nothing, takes twice as
many.

    p = Σ w·x·y           x' += w·p'·y,  y' += w·p'·x
    p = x·y·z·…           flow(p) = p'·p,  flow(x) += flow(p),  x' = flow(x) / x
"""

from __future__ import annotations

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.numbers import Number
from pgcc.program.builder import Builder, Sum
from pgcc.program.program import LEAF, NAMES, SUM, TIMES, Program


def flows(program: Program) -> Program:
    """Values and Pr(evidence, X_i = 1) for every variable i, of a program without negative numbers or determinants.

    Its last instruction names the slots, as in `reverse`: one for every variable, then the root.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> from pgcc.program.reverse import readings
    >>> len(readings(flows(lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25")))))
    3
    """
    return _Flows(program).finish()


class _Flows:
    """Appends the instructions of flows to those of a program.

    What reaches a value is collected while the instructions of the values that read it are written, and is complete
    when its turn comes: `terms` of its adjoint, and `flows` (slot, weight), terms of its flow.
    """

    def __init__(self, program: Program):
        self.program, self.builder = program, Builder(program.n_variables, program)
        self.terms: list[Sum] = [Sum() for _ in range(program.slots)]
        self.flows: list[list[tuple[int, Number]]] = [[] for _ in range(program.slots)]
        self.joint = [Sum() for _ in range(program.n_variables)]
        self.terms[program.value].add(1, self.builder.leaf(-1, 1, 0))
        self.flow_of = [-1] * self.builder.slots
        self._descend()

    def _descend(self) -> None:
        """Every value, after all that read it."""
        program = self.program
        start, args, weights = program.start.tolist(), program.args.tolist(), program.first_weight.tolist()
        alone = program.alone.tolist()
        for i in range(program.instructions - 1, -1, -1):
            op, at, read = int(program.op[i]), int(program.target[i]), args[start[i] : start[i + 1]]
            if not (len(self.terms[at]) or self.flows[at]):
                continue  # nobody reads it
            if op == LEAF:
                self._leaf(at, read[0])
            elif op == TIMES:
                self._product(at, read)
            elif op == SUM:
                self._sum(at, read, program.numbers[weights[i] : weights[i + 1]], alone[i])
            else:
                raise PgccError(f"internal error: nobody has said what flows through {NAMES[op]}; please report it")
            self._belongs_to(at)

    def _belongs_to(self, value: int) -> None:
        """The slots that were taken since the last call belong to the flow of this value (see `Program.flow_of`)."""
        self.flow_of += [value] * (self.builder.slots - len(self.flow_of))

    def _leaf(self, at: int, leaf: int) -> None:
        variable, (_, b) = int(self.program.leaf_variable[leaf]), self.program.leaf_numbers[leaf]
        if variable >= 0 and b != 0:
            self.joint[variable].add(b, self._adjoint(at))

    def _sum(self, at: int, read: list[int], weights: list[Number], alone: int) -> None:
        """A term w·x of the sum p adds w·p' to the adjoint of x; a term w·x·y, w·p'·y."""
        above, terms = self._adjoint(at), self.terms
        for w, x in zip(weights, read[:alone], strict=False):
            terms[x].add(w, above)
        for w, x, y in zip(weights[alone:], read[alone::2], read[alone + 1 :: 2], strict=True):
            terms[x].add(w, above, y)
            terms[y].add(w, above, x)

    def _product(self, at: int, factors: list[int]) -> None:
        """x·y adds p'·y to the adjoint of x. Of more factors the flow is taken: fewer operations, but it divides.

        It is multiplied out again rather than kept, for values have to stay in the cache.
        """
        if len(factors) == 2:
            x, y = factors
            above, weight = self._product_adjoint(at)
            self.terms[x].add(weight, above, y)
            self.terms[y].add(weight, above, x)
            return
        if len(self.terms[at]):
            above, weight = self._product_adjoint(at)
            flow = self.builder.product([above, *factors]), weight
        else:
            flow = self._through(at)
        for x in factors:
            self.flows[x].append(flow)

    def _product_adjoint(self, at: int) -> tuple[int, Number]:
        """The adjoint of a product, and the factor still to be applied."""
        terms = self.terms[at]
        if len(terms.values) == len(terms) == 1 and not self.flows[at]:
            return terms.values[0], terms.value_weights[0]
        return self._adjoint(at), 1

    def _adjoint(self, at: int) -> int:
        """∂root/∂value, with what reaches the value as flow divided by the value."""
        terms = self.terms[at]
        if self.flows[at]:
            flow, weight = self._through(at)
            terms.add(1, self.builder.quotient(weight, flow, at))
        if len(terms) == 1:
            if terms.value_weights == [1]:
                return terms.values[0]
            if terms.pair_weights == [1]:
                return self.builder.product(terms.pairs)
        return self.builder.sum(terms)

    def _through(self, at: int) -> tuple[int, Number]:
        """The flow that a value gets, and the factor still to be applied."""
        flows = self.flows[at]
        if len(flows) == 1:
            return flows[0]
        terms = Sum()
        for slot, weight in flows:
            terms.add(weight, slot)
        return self.builder.sum(terms), 1

    def finish(self) -> Program:
        """The program, with the sums over the leaves of every variable."""
        read = [*map(self.builder.sum, self.joint), self.program.value]
        total = self.builder.emit(SUM, read, [1] * len(read))
        self._belongs_to(-2)
        return self.builder.finish(total, total, np.array(self.flow_of))
