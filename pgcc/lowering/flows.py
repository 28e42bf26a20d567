"""The reverse pass of a program without negative numbers: flows.

The flow of a value is the part of the root that comes through it, v·v' with v' its adjoint. A product passes its flow
to every factor as it is, so that nothing is multiplied twice; where a value is needed as a factor, its adjoint is its
flow over itself. Nothing cancels, so a quotient is as accurate as what it divides; it is 0 where the value is, whose
flow is 0 then. About as many operations as the forward pass, where `reverse`, which divides by nothing, takes twice as
many.

    p = Π x         flow(x) += flow(p)
    p = Σ w·x·y     x' += w·p'·y,  y' += w·p'·x,  and flow(x) = x·x'
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pgcc.ir.numbers import Number, nearest_float
from pgcc.lowering.program import DOT, LEAF, MORE, QUOTIENT, SUM, TIMES, Program


def flows(program: Program) -> Program:
    """Values and Pr(evidence, X_i = 1) for every variable i, of a program without negative numbers or determinants.

    Its last instruction names the slots, as in `reverse`: one for every variable, then the root.

    Examples
    --------
    >>> import pgcc
    >>> from pgcc.lowering.lower import lower
    >>> from pgcc.lowering.reverse import readings
    >>> len(readings(flows(lower(pgcc.parse("0.5*a*b + 0.25*a + 0.25")))))
    3
    """
    return _Writer(program).finish()


class _Uses:
    """Who reads each value: products (by number of the instruction), and terms of sums."""

    def __init__(self, program: Program):
        self.products: list[list[int]] = [[] for _ in range(program.slots)]
        self.linear: list[list[tuple[int, int]]] = [[] for _ in range(program.slots)]  # (sum, weight)
        self.pairs: list[list[tuple[int, int, int]]] = [[] for _ in range(program.slots)]  # (sum, weight, other)
        start, args, weights = program.start.tolist(), program.args.tolist(), program.first_weight.tolist()
        for i, (op, at) in enumerate(zip(program.op.tolist(), program.target.tolist(), strict=True)):
            read = args[start[i] : start[i + 1]]
            if op == TIMES:
                for x in read:
                    self.products[x].append(at)
            elif op == SUM:
                for k, x in enumerate(read):
                    self.linear[x].append((at, weights[i] + k))
            elif op != LEAF:
                for k, (x, y) in enumerate(zip(read[::2], read[1::2], strict=True)):
                    self.pairs[x].append((at, weights[i] + k, y))
                    self.pairs[y].append((at, weights[i] + k, x))


class _Writer:
    """Appends the instructions of flows to those of a program."""

    def __init__(self, program: Program):
        self.program, self.uses = program, _Uses(program)
        self.slots, self.numbers = program.slots, list(program.numbers)
        self.op: list[int] = []
        self.target: list[int] = []
        self.lengths: list[int] = []
        self.args: list[int] = []
        self.first_weight: list[int] = []
        self.adjoint: dict[int, int] = {}
        self.flow: dict[int, tuple[int, Number]] = {}  # of a product: the slot, and the factor still to be applied
        self.joint: list[list[tuple[int, Number]]] = [[] for _ in range(program.n_variables)]
        self.one = self._emit(LEAF, [len(program.leaf_numbers)])
        self._descend()

    def _emit(self, op: int, args: list[int], weights: list[Number] | None = None, target: int | None = None) -> int:
        if target is None:
            target = self.slots
            self.slots += 1
        self.op.append(op)
        self.target.append(target)
        self.lengths.append(len(args))
        self.args += args
        self.first_weight.append(len(self.numbers))
        self.numbers += weights or []
        return target

    def _descend(self) -> None:
        """Every value once, after all that read it."""
        program = self.program
        start, args = program.start.tolist(), program.args.tolist()
        for i in range(program.instructions - 1, -1, -1):
            op, at = int(program.op[i]), int(program.target[i])
            if op == MORE:
                continue  # the value is complete at the instruction that began it
            read = args[start[i] : start[i + 1]]
            if op == TIMES:
                self._product(at, read)
            elif op != LEAF:
                self.adjoint[at] = self._adjoint(at)
            else:
                self._leaf(at, read[0])

    def _leaf(self, at: int, leaf: int) -> None:
        variable, (_, b) = int(self.program.leaf_variable[leaf]), self.program.leaf_numbers[leaf]
        if variable >= 0 and b != 0 and self._is_read(at):
            self.joint[variable].append((self._adjoint(at), b))

    def _is_read(self, at: int) -> bool:
        uses = self.uses
        return bool(uses.products[at] or uses.linear[at] or uses.pairs[at]) or at == self.program.value

    def _adjoint(self, at: int) -> int:
        """∂root/∂value, with what reaches the value through products divided by the value."""
        if at == self.program.value:
            return self.one
        uses, numbers = self.uses, self.program.numbers
        linear = [(self.adjoint[s], numbers[w]) for s, w in uses.linear[at]]
        if uses.products[at]:
            through, factor = self._through_products(at)
            linear.append((self._emit(QUOTIENT, [through, at], [factor]), 1))
        pairs = [(x, numbers[w]) for s, w, other in uses.pairs[at] for x in (self.adjoint[s], other)]
        if not pairs:
            return linear[0][0] if len(linear) == 1 and linear[0][1] == 1 else self._emit(SUM, *_columns(linear))
        slots, weights = [x for x, _ in pairs], [w for _, w in pairs[::2]]
        if not linear:
            return self._emit(DOT, slots, weights)
        return self._emit(MORE, slots, weights, self._emit(SUM, *_columns(linear)))

    def _through_products(self, at: int) -> tuple[int, Number]:
        """The flow that a value gets from the products it is a factor of, and the factor still to be applied."""
        parts = [self.flow[p] for p in self.uses.products[at]]
        return parts[0] if len(parts) == 1 else (self._emit(SUM, *_columns(parts)), 1)

    def _product(self, at: int, factors: list[int]) -> None:
        """The flow of a product; it is multiplied out again rather than kept, for values have to stay in the cache."""
        uses = self.uses
        if at != self.program.value and not uses.linear[at] and not uses.pairs[at]:
            self.flow[at] = self._through_products(at)
        elif len(uses.linear[at]) == 1 and not uses.pairs[at] and not uses.products[at]:
            ((above, weight),) = uses.linear[at]
            self.flow[at] = self._emit(TIMES, [self.adjoint[above], *factors]), self.program.numbers[weight]
        else:
            self.flow[at] = self._emit(TIMES, [self._adjoint(at), *factors]), 1

    def finish(self) -> Program:
        """The program, with the sums over the leaves of every variable."""
        program = self.program
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
            node=np.concatenate([program.node, np.full(len(self.op), -1, np.int32)]),
            leaf_variable=np.append(program.leaf_variable, np.int32(-1)),
            leaf_table=np.concatenate([program.leaf_table, [(1.0, 0.0, 1.0)]]),
            slots=self.slots,
            value=total,
            magnitude=total,
            numbers=self.numbers,
            leaf_numbers=[*program.leaf_numbers, (1, 0)],
        )


def _columns(terms: list[tuple[int, Number]]) -> tuple[list[int], list[Number]]:
    return [slot for slot, _ in terms], [weight for _, weight in terms]
