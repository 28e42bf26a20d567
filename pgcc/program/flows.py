"""The reverse pass of a program without negative numbers, by flows.

The *flow* of a value v with the adjoint v' is v·v': the part of the root's value that comes from terms with v as a
factor. The flow of a product is also the flow of each of its factors, so products need no multiplications. The adjoint
of a value is its flow divided by the value, or 0 where both are 0. Nothing cancels, so the quotient is as accurate as
the flow. This takes about as many operations as the forward pass; `reverse`, which does not divide, takes twice as
many.

    p = Σ w·x·y           x' += w·p'·y,  y' += w·p'·x
    p = x·y·z·…           flow(p) = p'·p,  flow(x) += flow(p),  x' = flow(x) / x
"""

from __future__ import annotations

import numpy as np

from pgcc.ir.flat import spread
from pgcc.program.builder import Builder, BySlot
from pgcc.program.dependence import needed_slots
from pgcc.program.program import ARITHMETIC, QUOTIENT, SUM, TIMES, Program
from pgcc.program.reverse import joint_sums, terms_of

_ONE = -1  # the position of a weight that is 1


def flows(program: Program) -> Program:
    """Values and Pr(evidence, X_i = 1) for every variable i, of a program without negative numbers or determinants.

    The arguments of its last instruction are the slots of the results, as in `reverse`: one for every variable, then
    the root.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.program.lower import lower
    >>> from pgcc.program.reverse import result_slots
    >>> len(result_slots(flows(lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25")))))
    3
    """
    return _Flows(program).finish()


class _Flows:
    """Appends the instructions of flows to those of a program, for all values at once.

    The adjoint of a value is a sum, with a term for every sum or product of two that reads it, and the quotient
    flow / value as a last term. Here, the flow is a sum with a term for every other product that reads the value. The
    numbers of these terms decide which instructions are written (see `_choose`). Arrays are indexed by slot. They have
    one more entry, for the constant 1: the adjoint of the root.

    Attributes
    ----------
    to, of, other, weight : int arrays
        The terms of adjoints: weight · (adjoint of `of`) · other is a term of the adjoint of `to`; −1 for 1.
    flow_to, flow_of : int arrays
        The terms of flows: the flow of the product `flow_of` is a term of the flow of `flow_to`.
    single, paired, flowing : int arrays
        By value, the number of terms of its adjoint without and with `other`, and of terms of its flow.
    """

    def __init__(self, program: Program):
        self.program = program.expect(*ARITHMETIC)
        self.builder = Builder(program.n_variables, program)
        self.one = self.builder.leaf(-1, 1, 0)
        self.sized = program.slots + 1
        self._collect()
        self._choose()
        self._place()
        self._write()

    # -- the terms of adjoints and flows --------------------------------------------------------------

    def _collect(self) -> None:
        """Collect the terms, and the values whose adjoints or flows are needed (`wanted`)."""
        program = self.program
        needed = np.append(needed_slots(program, [program.value]), False)
        lengths = np.diff(program.start)
        self.product, self.wide, leaf = np.zeros((3, self.sized), bool)
        self.product[program.target[program.op == TIMES]] = True
        wide = (program.op == TIMES) & (lengths != 2) & needed[program.target]
        self.wide[program.target[wide]] = True
        leaf[program.leaves[0]] = True
        terms = terms_of(program)
        kept = needed[terms.of] & ~self.wide[terms.of]
        of, x, y, weight = terms.of[kept], terms.x[kept], terms.y[kept], terms.weight[kept]
        second = y >= 0
        # the adjoint of the root is 1
        self.to = np.concatenate([[program.value], x, y[second]])
        self.of = np.concatenate([[program.slots], of, of[second]])
        self.other = np.concatenate([[-1], y, x[second]])
        self.weight = np.concatenate([[_ONE], weight, weight[second]])
        self.flow_to = program.args[spread(program.start[:-1][wide], lengths[wide])].astype(np.int64)
        self.flow_of = np.repeat(program.target[wide], lengths[wide]).astype(np.int64)
        self.single = np.bincount(self.to[self.other < 0], minlength=self.sized)
        self.paired = np.bincount(self.to[self.other >= 0], minlength=self.sized)
        self.flowing = np.bincount(self.flow_to, minlength=self.sized)
        self.wanted = needed & ~leaf
        self.wanted[program.literals] = True

    # -- which instructions are needed, and their slots -----------------------------------------------

    def _choose(self) -> None:
        """Decide which instructions are written for every value.

        adds_flows : SUM, of the terms of its flow, if there are several
        divides : QUOTIENT, of its flow and its value: a term of its adjoint
        adds, multiplies : SUM, its adjoint; or TIMES, if that has only one term, x·y
        flows_on : TIMES, the flow of a product of more than two: adjoint · value

        If the adjoint of a value is a single term w·p', no instruction is needed if w is 1, or if the value is a
        product: then the terms of its factors have the weight w. In both cases, `source` is p and `factor` is w.
        """
        there, one_term = self.single + self.paired > 0, self.single + self.paired == 1
        only = np.zeros(self.sized, np.int64)
        only[self.to] = np.arange(len(self.to))  # the only term, where there is one
        handed = self.wanted & self.product & one_term & (self.single == 1) & (self.flowing == 0)
        self.factor = np.where(handed, self.weight[only], _ONE)
        self.weight = np.where(self.product[self.of], self.factor[self.of], self.weight)
        adjoint = self.wanted & ~handed & (there | ~self.wide)
        self.divides = adjoint & (self.flowing > 0)
        alone = adjoint & one_term & ~self.divides & self._is_one(self.weight[only])
        same = alone & (self.single == 1)
        self.multiplies = alone & (self.paired == 1)
        self.adds = adjoint & there & ~alone
        self.flows_on = self.wanted & self.wide & there
        self.adds_flows = (self.divides | (self.wanted & self.wide & ~there)) & (self.flowing > 1)
        self.source = np.where(handed | same, self.of[only], np.arange(self.sized))

    def _is_one(self, weight: np.ndarray) -> np.ndarray:
        """Which weights, given by position, are exactly 1."""
        program = self.program
        one = np.append(program.weights == 1.0, True)
        for k in np.flatnonzero(one[:-1]).tolist():
            one[k] = program.numbers[k] == 1
        return one[weight]

    def _place(self) -> None:
        """The slots of all instructions: values in reverse order, and for each those of `_choose` in that order."""
        kinds = np.stack([self.adds_flows, self.divides, self.adds | self.multiplies, self.flows_on], axis=1)
        back = self.program.target[::-1]
        count = kinds.sum(axis=1)[back]
        begin = np.zeros(self.sized, np.int64)
        begin[back] = self.builder.new_slots(int(count.sum())) + np.cumsum(count) - count
        self.flow_sum, self.quotient, self.own, self.product_flow = (
            begin[:, None] + np.cumsum(kinds, axis=1) - kinds
        ).T
        self.belongs_to = np.repeat(back, count)
        own = np.where(self.divides & ~self.adds, self.quotient, self.own)
        own[-1] = self.one
        self.adjoint = own[_ends(self.source)]
        # if a product has one term of its flow, and none of its adjoint, its flow is that term
        passes_on = (self.wide & ~self.flows_on & ~self.adds_flows)[self.flow_to]
        source = np.arange(self.sized)
        source[self.flow_to[passes_on]] = self.flow_of[passes_on]
        source = _ends(source)
        self.flow = np.where(self.flows_on, self.product_flow, self.flow_sum)[source]
        self.flow_factor = np.where(self.flows_on, self.factor, _ONE)[source]

    # -- the instructions -----------------------------------------------------------------------------

    def _write(self) -> None:
        """All instructions: their operations, and their arguments and weights sorted by their slots."""
        args, weights = BySlot(), BySlot()
        # Σ of the terms of a flow
        several = self.adds_flows[self.flow_to]
        to, of = self.flow_to[several], self.flow_of[several]
        args.add(self.flow_sum[to], self.flow[of])
        weights.add(self.flow_sum[to], self.flow_factor[of])
        # flow / value
        flow, factor = self.flow_sum.copy(), np.full(self.sized, _ONE)
        to, of = self.flow_to[~several], self.flow_of[~several]
        flow[to], factor[to] = self.flow[of], self.flow_factor[of]
        at = np.flatnonzero(self.divides)
        args.add(self.quotient[at], flow[at], at)
        weights.add(self.quotient[at], factor[at])
        # adjoints: single terms, then the quotient, then pairs
        single = self.adds[self.to] & (self.other < 0)
        args.add(self.own[self.to[single]], self.adjoint[self.of[single]])
        weights.add(self.own[self.to[single]], self.weight[single])
        at = np.flatnonzero(self.divides & self.adds)
        args.add(self.own[at], self.quotient[at])
        weights.add(self.own[at], np.full(len(at), _ONE))
        pair = (self.adds | self.multiplies)[self.to] & (self.other >= 0)
        to, of = self.to[pair], self.of[pair]
        args.add(self.own[to], self.adjoint[of], self.other[pair])
        weights.add(self.own[to][self.adds[to]], self.weight[pair][self.adds[to]])
        # the flow of a product: its adjoint and its factors
        at = np.flatnonzero(self.flows_on)
        args.add(self.product_flow[at], self.adjoint[at])
        chosen = self.flows_on[self.flow_of]
        args.add(self.product_flow[self.flow_of[chosen]], self.flow_to[chosen])

        first, count = self.one + 1, len(self.belongs_to)
        op = np.full(count, SUM)
        op[self.quotient[self.divides] - first] = QUOTIENT
        op[self.own[self.multiplies] - first] = TIMES
        op[self.product_flow[self.flows_on] - first] = TIMES
        (read, lengths), (used, counts) = args.sorted(first, count), weights.sorted(first, count)
        numbers = self.program.numbers
        self.builder.emit_all(
            op, first + np.arange(count), lengths, read, counts, np.append(self.program.weights, 1.0)[used],
            [1 if w < 0 else numbers[w] for w in used.tolist()],
        )  # fmt: skip

    def finish(self) -> Program:
        """The program, with the sums over the leaves of every variable."""
        program, builder = self.program, self.builder
        read = [*joint_sums(builder, program, np.where(self.wanted, self.adjoint, -1)), program.value]
        total = builder.sum(read, [1] * len(read))
        flow_of = np.full(builder.slots, -2)
        flow_of[: self.one + 1] = -1
        flow_of[self.one + 1 :][: len(self.belongs_to)] = self.belongs_to
        return builder.finish(total, total, flow_of)


def _ends(source: np.ndarray) -> np.ndarray:
    """By place, the end of the chain source[place], source[source[place]], …: a place that is its own source."""
    while True:
        further = source[source]
        if (further == source).all():
            return source
        source = further
