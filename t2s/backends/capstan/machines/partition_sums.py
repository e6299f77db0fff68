"""A reduction that the partitions share: a vector of their values goes along a chain.

As in every reduction, ``p`` values make a tree, and the trees are combined in order; the ``p``
values are those of the partitions' iterations with the same number.  The first partition makes the
vector, each one puts its value into its lane, and the last one reduces it.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.capstan.machines.bodies import BodyUnit, PatternBody
from t2s.backends.capstan.machines.kit import LAST, UnitHead, Wire, put, rule, when, write
from t2s.backends.capstan.machines.partitions import PARTITION, is_place, to_next_place
from t2s.backends.capstan.machines.vectors import number, spread, stages, where
from t2s.core.expr import Expr, Index, Insert, ReduceLanes, apply, const, equals
from t2s.graph.body import Role, Statement
from t2s.graph.machine import Choice, Put
from t2s.patterns.ir import Reduce, start_of


def reduced_over_partitions(body: PatternBody, statement: Reduce) -> Wire:
    """The result of a reduction that is dealt to partitions: a local of the program."""
    return _PartitionSum(body, statement).made()


class _PartitionSum:
    """The unit while it is made; ``ended`` says that a partition has no more values."""

    def __init__(self, body: PatternBody, statement: Reduce) -> None:
        unit = BodyUnit(body, f"reduce_{statement.target}", Role.COMPUTE, statement.location)
        self._unit, self._statement = unit, statement
        (self._parts,) = body.control.shape
        self._type = statement.value.type
        start = start_of(statement)
        assert start is not None
        self._neutral = const(start, self._type)
        self._value = where(unit.valid, unit.vector(statement.value), self._neutral)
        self._total = unit.register("total", self._type, start)
        self._ended = unit.register("ended")
        vector, times = self._type.with_lanes(self._parts), body.draft.times
        chain = f"{statement.target}_on"
        self._chain = to_next_place(unit, chain, vector, self._parts, tagged=True)
        one = apply(
            statement.operator,
            self._neutral,
            ReduceLanes(
                operator=statement.operator,
                value=spread(self._neutral, self._parts),
                type=self._type,
            ),
        )
        self._out = replace(
            unit.output(statement.target, self._type, latency=times.hop + stages(one)),
            sink_at=(const(self._parts - 1),),
        )
        self._before = unit.take(self._chain, unit.local("before"))

    def made(self) -> Wire:
        """The wire of the result."""
        unit, own = self._unit, self._unit.control
        first = self._with_own("first", spread(self._neutral, self._parts), own.is_last, [])
        later = [
            when(equals(self._ended, number(1)), self._without_own()),
            when(
                None,
                self._with_own("own", self._before.value, self._before.is_last, [self._before]),
                needs=[own, *unit.operands],
            ),
        ]
        unit.mode(
            "run",
            when(is_place(0), first, needs=[own, *unit.operands]),
            when(None, later, needs=[self._before]),
        )
        unit.mode("end", when(None, rule("done", None, takes=[own])), needs=[own])
        unit.finish()
        return self._out

    def _with_own(
        self, name: str, vector: Expr, is_last: Expr, taken: list[UnitHead]
    ) -> list[Choice]:
        """A partition puts its value into the vector; ``is_last`` says that it is the last one."""
        unit = self._unit
        here = Index(name=PARTITION)
        mine = Insert(vector=vector, lane=here, value=self._value, type=vector.type)
        ends: list[Statement] = [write(self._ended, number(1))]
        heads = [unit.control, *taken]
        whole, part = [*heads, *unit.operands], [*heads, *unit.own_operands]
        return [
            when(
                unit.control.is_last,
                self._passed(f"{name} last", mine, is_last, whole, ends),
            ),
            when(None, self._passed(name, mine, is_last, part, [])),
        ]

    def _without_own(self) -> list[Choice]:
        taken = [self._before]
        return self._passed("none", self._before.value, self._before.is_last, taken, [])

    def _passed(
        self, name: str, vector: Expr, is_last: Expr, takes: list[UnitHead], body: list[Statement]
    ) -> list[Choice]:
        """The vector goes on, or is reduced by the last partition."""
        on = put(self._chain, vector)
        over = put(self._chain, vector, const(LAST))
        operator = self._statement.operator
        tree = ReduceLanes(operator=operator, value=vector, type=self._type)
        total = apply(operator, self._total, tree)
        added = [*body, write(self._total, total)]
        reducing = [
            self._ruled(f"{name} result", "end", takes, [put(self._out, total)], body, is_last),
            self._ruled(f"{name} add", "run", takes, [], added, None),
        ]
        passing = [
            self._ruled(f"{name} over", "end", takes, [over], body, is_last),
            self._ruled(f"{name} on", "run", takes, [on], body, None),
        ]
        return [when(is_place(self._parts - 1), reducing), when(None, passing)]

    def _ruled(
        self,
        name: str,
        after: str,
        takes: list[UnitHead],
        puts: list[Put],
        body: list[Statement],
        condition: Expr | None,
    ) -> Choice:
        return when(condition, rule(name, after, takes=takes, puts=puts, body=body))
