"""The frame of a node's function: a loop over its places, and what begins and ends a visit of one.

``node(arena, budget)`` returns the number of firings, at most ``budget``, or -1 after a fault.  The
shape of the code::

    for each place that has not finished:       # visit
        ...                                     # what the node does there; it counts its firings
        if that may help, visit the place again # leave
"""

from __future__ import annotations

from t2s.graph.graph import Graph
from t2s.graph.machine import Machine
from t2s.graph.nodes import PEArray
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import I32, I64, POINTER, Module, Slot, Value, integer
from t2s.simulator.values.emit_context import NodeContext
from t2s.simulator.values.layout import FINISHED, Key, Layout, Section
from t2s.simulator.values.shared_code import Table

FAULTED = -1
"""What the function returns after a fault."""


class Frame:
    """The function under construction, in ``context``; what changes lives in stack slots.

    ``visit``, ``leave`` and ``next`` are blocks: the code of a visit begins in the first one (with
    ``begin_visit``) and ends in the second one (with ``end_visit``), or goes to the third one at
    once if there is nothing to do.
    """

    def __init__(
        self,
        module: Module,
        graph: Graph,
        node: PEArray | Machine,
        layout: Layout,
        number: int,
        faults: list[str],
        places: list[Key] | None = None,
    ) -> None:
        """With ``places`` the function has a table of these as its last argument."""
        shared = [] if places is None else [POINTER]
        function = module.function(
            f"node{number}",
            I64,
            [POINTER, I64, *shared],
            attributes="nounwind noinline",
            noalias=True,
        )
        builder, abandon = Builder(function), function.block("abandon")
        self.function = function
        self.context = NodeContext(
            graph=graph,
            node=node,
            layout=layout,
            function=function,
            builder=builder,
            arena=function.args[0],
            faults=faults,
            abandon=abandon,
            table=None if places is None else Table(pointer=function.args[2], keys=places),
        )
        self._builder = builder
        self._abandon = abandon
        self._pe, self._budget, self._fired = (builder.alloca(I64) for _ in range(3))
        self.visit, self.leave, self.next = (
            function.block(name) for name in ("visit", "leave", "next")
        )

    def emit_loop(self) -> None:
        """The loop over the places, and the exits."""
        context, builder = self.context, self._builder
        budget = self.function.args[1]
        builder.store(integer(0), self._pe)
        builder.store(budget, self._budget)
        select, leave = context.block("select"), context.block("return")
        unfinished = builder.load(context.address(self._unfinished), I64)
        builder.cbranch(builder.icmp_signed("==", unfinished, integer(0)), leave, select)

        builder.position_at_end(select)
        context.pe = self.load(self._pe)
        more = builder.icmp_signed("<", context.pe, integer(context.node.place_count))
        left = builder.icmp_signed(">", self.budget(), integer(0))
        builder.cbranch(builder.and_(more, left), self.visit, leave)

        builder.position_at_end(self.next)
        builder.store(builder.add(context.pe, integer(1)), self._pe)
        builder.branch(select)

        builder.position_at_end(leave)
        builder.ret(builder.sub(budget, self.budget()))
        builder.position_at_end(self._abandon)
        builder.ret(integer(FAULTED))

    def begin_visit(self) -> tuple[Value, Value]:
        """Where the state of the place is, and its first word, the status; it is not finished."""
        context, builder = self.context, self._builder
        live = context.block("live")
        builder.position_at_end(self.visit)
        section = context.layout.state(context.node.name)
        state = context.address(section, context.pe, 4 * section.shape[1])
        status = builder.load(state, I32)
        done = builder.icmp_signed(">=", status, integer(FINISHED, I32))
        builder.cbranch(done, self.next, live)
        builder.position_at_end(live)
        context.bind_space()
        builder.store(integer(0), self._fired)
        return state, status

    def budget(self) -> Value:
        """How many firings are left."""
        return self.load(self._budget)

    def fired(self) -> Value:
        """How many firings this visit has made."""
        return self.load(self._fired)

    def count(self, fired: Value) -> None:
        """There were so many, and now one more."""
        builder = self._builder
        builder.store(builder.add(fired, integer(1), "nuw nsw"), self._fired)

    def finish(self) -> None:
        """The place will not fire any more."""
        builder, where = self._builder, self.context.address(self._unfinished)
        builder.store(builder.sub(builder.load(where, I64), integer(1)), where)

    def end_visit(self, fired: Value, useful: Value) -> None:
        """Pay; visit the place again if it fired, may fire, and a further visit is ``useful``."""
        builder = self._builder
        left = builder.sub(self.budget(), fired)
        builder.store(left, self._budget)
        moved = builder.icmp_signed(">", fired, integer(0))
        funded = builder.icmp_signed(">", left, integer(0))
        again = builder.and_(useful, builder.and_(moved, funded))
        builder.cbranch(again, self.visit, self.next)

    def load(self, slot: Slot) -> Value:
        """What is in a slot."""
        return self._builder.load(slot, slot.kept)

    @property
    def _unfinished(self) -> Section:
        return self.context.layout.unfinished(self.context.node.name)
