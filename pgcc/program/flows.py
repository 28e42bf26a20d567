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

from dataclasses import replace

import numpy as np

from pgcc.errors import PgccError
from pgcc.ir.numbers import Number, nearest_float
from pgcc.program.program import DOT, LEAF, MORE, NAMES, QUOTIENT, SUM, TIMES, Program


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
    return _Writer(program).finish()


class _Writer:
    """Appends the instructions of flows to those of a program.

    What reaches a value is collected while the values that read it are written, and is complete when its turn comes:
    `linear` (slot, weight) and `pairs` (slot, other slot, weight) are terms of its adjoint, `flows` (slot, weight) of
    its flow.
    """

    def __init__(self, program: Program):
        self.program = program
        self.slots, self.numbers = program.slots, list(program.numbers)
        self.op: list[int] = []
        self.target: list[int] = []
        self.lengths: list[int] = []
        self.args: list[int] = []
        self.first_weight: list[int] = []
        self.linear: list[list[tuple[int, Number]]] = [[] for _ in range(program.slots)]
        self.pairs: list[list[tuple[int, int, Number]]] = [[] for _ in range(program.slots)]
        self.flows: list[list[tuple[int, Number]]] = [[] for _ in range(program.slots)]
        self.adjoint: dict[int, int] = {}  # of sums
        self.joint: list[list[tuple[int, Number]]] = [[] for _ in range(program.n_variables)]
        self.mirrored = [-1] * program.slots
        self.turn = -1  # the value that is being written; see `Program.mirrored`
        self.one = self._emit(LEAF, [len(program.leaf_numbers)])
        self._descend()

    def _emit(self, op: int, args: list[int], weights: list[Number] | None = None, target: int | None = None) -> int:
        if target is None:
            target = self.slots
            self.slots += 1
            self.mirrored.append(self.turn)
        self.op.append(op)
        self.target.append(target)
        self.lengths.append(len(args))
        self.args += args
        self.first_weight.append(len(self.numbers))
        self.numbers += weights or []
        return target

    def _descend(self) -> None:
        """Every value, after all that read it."""
        program = self.program
        start, args, weights = program.start.tolist(), program.args.tolist(), program.first_weight.tolist()
        self.linear[program.value].append((self.one, 1))
        for i in range(program.instructions - 1, -1, -1):
            op, at, read = int(program.op[i]), int(program.target[i]), args[start[i] : start[i + 1]]
            if not (self.linear[at] or self.pairs[at] or self.flows[at]):
                continue  # nobody reads it
            self.turn = at
            if op == LEAF:
                self._leaf(at, read[0])
            elif op == TIMES:
                self._product(at, read)
            elif op in (SUM, DOT, MORE):
                self._sum(at, read, weights[i], 1 if op == SUM else 2)
            else:
                raise PgccError(f"internal error: nobody has said what flows through {NAMES[op]}; please report it")

    def _leaf(self, at: int, leaf: int) -> None:
        variable, (_, b) = int(self.program.leaf_variable[leaf]), self.program.leaf_numbers[leaf]
        if variable >= 0 and b != 0:
            self.joint[variable].append((self._adjoint(at), b))

    def _sum(self, at: int, read: list[int], weight: int, stride: int) -> None:
        """A term w·x of the sum p adds w·p' to the adjoint of x; a term w·x·y, w·p'·y."""
        if at not in self.adjoint:  # a sum may take several instructions
            self.adjoint[at] = self._adjoint(at)
        above, numbers = self.adjoint[at], self.program.numbers
        for k, x in enumerate(read[::stride]):
            w = numbers[weight + k]
            if stride == 1:
                self.linear[x].append((above, w))
            else:
                y = read[2 * k + 1]
                self.pairs[x].append((above, y, w))
                self.pairs[y].append((above, x, w))

    def _product(self, at: int, factors: list[int]) -> None:
        """x·y adds p'·y to the adjoint of x. Of more factors the flow is taken: fewer operations, but it divides.

        It is multiplied out again rather than kept, for values have to stay in the cache.
        """
        if len(factors) == 2:
            x, y = factors
            above, weight = self._product_adjoint(at)
            self.pairs[x].append((above, y, weight))
            self.pairs[y].append((above, x, weight))
            return
        if self.linear[at] or self.pairs[at]:
            above, weight = self._product_adjoint(at)
            flow = self._emit(TIMES, [above, *factors]), weight
        else:
            flow = self._through(at)
        for x in factors:
            self.flows[x].append(flow)

    def _product_adjoint(self, at: int) -> tuple[int, Number]:
        """The adjoint of a product, and the factor still to be applied."""
        linear = self.linear[at]
        return linear[0] if len(linear) == 1 and not self.pairs[at] and not self.flows[at] else (self._adjoint(at), 1)

    def _adjoint(self, at: int) -> int:
        """∂root/∂value, with what reaches the value as flow divided by the value."""
        linear, pairs = self.linear[at], self.pairs[at]
        if self.flows[at]:
            flow, weight = self._through(at)
            linear = [*linear, (self._emit(QUOTIENT, [flow, at], [weight]), 1)]
        if not pairs:
            return linear[0][0] if len(linear) == 1 and linear[0][1] == 1 else self._emit(SUM, *_columns(linear))
        slots, weights = [x for above, other, _ in pairs for x in (above, other)], [w for *_, w in pairs]
        if linear:
            return self._emit(MORE, slots, weights, self._emit(SUM, *_columns(linear)))
        if len(pairs) == 1 and weights[0] == 1:
            return self._emit(TIMES, slots)
        return self._emit(DOT, slots, weights)

    def _through(self, at: int) -> tuple[int, Number]:
        """The flow that a value gets, and the factor still to be applied."""
        flows = self.flows[at]
        return flows[0] if len(flows) == 1 else (self._emit(SUM, *_columns(flows)), 1)

    def finish(self) -> Program:
        """The program, with the sums over the leaves of every variable."""
        program = self.program
        self.turn = -2
        read = [self._emit(SUM, *_columns(leaves)) for leaves in self.joint]
        read.append(program.value)
        total = self._emit(SUM, read, [1] * len(read))
        weights = [nearest_float(w) for w in self.numbers[len(program.numbers) :]]
        return replace(
            program,
            op=np.concatenate([program.op, np.array(self.op, np.uint8)]),
            target=np.concatenate([program.target, np.array(self.target, np.int32)]),
            start=np.concatenate([program.start, program.start[-1] + np.cumsum(self.lengths)]),
            args=np.concatenate([program.args, np.array(self.args, np.int32)]),
            first_weight=np.concatenate([program.first_weight, np.array(self.first_weight, np.int64)]),
            weights=np.concatenate([program.weights, weights]),
            leaf_variable=np.append(program.leaf_variable, np.int32(-1)),
            leaf_table=np.concatenate([program.leaf_table, [(1.0, 0.0, 1.0)]]),
            slots=self.slots,
            value=total,
            magnitude=total,
            numbers=self.numbers,
            leaf_numbers=[*program.leaf_numbers, (1, 0)],
            mirrored=np.array(self.mirrored),
        )


def _columns(terms: list[tuple[int, Number]]) -> tuple[list[int], list[Number]]:
    return [slot for slot, _ in terms], [weight for _, weight in terms]
