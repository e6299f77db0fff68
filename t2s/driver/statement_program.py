"""``Program``: statements of index notation that read each other's results, with the verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import Type
from t2s.core.validate import checked_seconds
from t2s.driver.design import Array
from t2s.driver.program_design import CompiledProgram
from t2s.driver.program_fusion import Fusion, chosen, kept, said
from t2s.driver.program_result import ProgramResult
from t2s.driver.simulate import cycles, simulate
from t2s.graph.graph import UNBOUNDED, Graph
from t2s.sparse_repr.concrete.fusion import PassOn, StatementGroup, Way
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.schedule_text import parse_schedule
from t2s.sparse_repr.concrete.unsupported import refuse_blocks
from t2s.sparse_repr.formats import Format, as_format, checked_shape, dense
from t2s.sparse_repr.notation.grouping import grouping_of, regrouped
from t2s.sparse_repr.notation.ir import TensorDeclaration, accesses
from t2s.sparse_repr.notation.program import (
    WrittenStatement,
    make_program,
    print_program,
)
from t2s.sparse_repr.notation.program_text import parse_statements
from t2s.sparse_repr.notation.symbols import Tensor

if TYPE_CHECKING:
    from t2s.driver.program_search import ProgramSearchResult
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.random_stalls import RandomStalls


class Program(CompiledProgram, NotebookDisplay):
    """Statements that read each other's results; ``simulate`` and ``graphs`` need inputs.

    ``print`` shows the statements that kernels compute: those of the user, and those that functions
    of rows take.  All verbs of ``t2s`` take it, with unbounded channels.

    Attributes
    ----------
    statements: the statements as text, in the order in which they run.
    inputs: the names of the tensors that none of them assigns.
    """

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements as text, in the order in which they run."""
        return tuple(print_program(self.program).splitlines())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the tensors that no statement assigns."""
        return tuple(declared.name for declared in self.program.inputs)

    @property
    def name(self) -> str:
        """The tensor that the last statement assigns."""
        return self.program.statements[-1].name

    def __repr__(self) -> str:
        names = ", ".join(statement.name for statement in self.program.statements)
        return f"<Program {names}>"

    def __str__(self) -> str:
        return print_program(self.program)

    def _card(self) -> NotebookCard:
        summary = (("inputs", ", ".join(self.inputs)),)
        parts = (Preformatted(title="", text=str(self)),)
        return NotebookCard(title="Program", summary=summary, parts=parts)

    def schedule(self, name: str, schedule: Schedule | str) -> Program:
        """The program with a schedule for the statement that assigns a tensor.

        ``program.schedule("T", "reorder(i,k,j)")``, with the directives of kernels or as a text.
        Raises ``UserError`` for a tensor that no statement assigns, for one that has a schedule
        already, and for a schedule that does not fit.
        """
        location = user_location()
        assigned = [statement.name for statement in self.program.statements]
        if name not in assigned or name in self.schedules:
            raise UserError(
                f"{name} has a schedule already" if name in assigned else f"nothing assigns {name}",
                location=location,
                expected="one schedule for a statement"
                if name in assigned
                else f"one of {', '.join(assigned)}",
                given=repr(name),
            )
        wanted = (
            parse_schedule(schedule, location=location) if isinstance(schedule, str) else schedule
        )
        if not isinstance(wanted, Schedule) or wanted.has_external:
            raise UserError(
                "this is not a schedule of a statement",
                location=location,
                expected='a Schedule, or its directives as a text such as "reorder(i,k,j)", without'
                " external functions",
                given=repr(schedule),
            )
        changed = Program(self.program, {**self.schedules, name: wanted}, self.said, self.chosen)
        changed.design().compiled(name)
        return changed

    def stream(self, *names: str) -> Program:
        """The program with these results streamed to the statements that read them.

        A result that is streamed is not stored: the graph of its reader computes it, and gets it in
        the order in which it is made.  So the loops of a reader begin with the variables of the
        result, in that order; several readers are in one graph, and share a loop.

        Raises ``UserError`` for a result of which that is not so, and for one whose way is said
        already.
        """
        return self._passing(names, Way.STREAM, user_location())

    def recompute(self, *names: str) -> Program:
        """The program with these results computed again wherever a statement reads them.

        A statement such as ``U(i,h) = A(i,k)*H(k,h)`` reads the rows of H that A has coordinates
        of, each as often as that is so.  Its graph computes such a row in the loop over ``k``.

        Raises ``UserError`` for a result that is not gathered, and for one whose way is said
        already.
        """
        return self._passing(names, Way.RECOMPUTE, user_location())

    def store(self, *names: str) -> Program:
        """The program with these results stored, whatever ``fuse`` would choose, or has chosen.

        What it has chosen and does not fit any more is stored too.
        """
        return self._passing(names, Way.STORE, user_location())

    def regroup(self, name: str, *first: str) -> Program:
        """The program with some factors of a statement multiplied first.

        If ``L(i,h) = T(i,j)*W(j,h)`` reads a product ``T(i,j) = A(i,k)*X(k,j)`` that nothing else
        reads, ``regroup("L", "X", "W")`` makes it ``A*(X*W)``: a new statement computes the product
        ``X_W``, and T is not computed any more.  Sums may differ in the last bits.

        Raises ``UserError`` for statements that are no such products, for factors that a statement
        does not have, and for blocks; also if a schedule or a way of T or L is given already, since
        it is about other loops.
        """
        location = user_location()
        assigned = [statement.name for statement in self.program.statements]
        if name not in assigned:
            raise UserError(
                f"nothing assigns {name}",
                location=location,
                expected=f"one of {', '.join(assigned)}",
                given=repr(name),
            )
        grouping = grouping_of(self.program, name, first, location)
        gone = grouping.instead
        statement = self.program.statement(name)
        product = self.program.statement(gone)
        for one in (statement, product):
            refuse_blocks(one.assignment.tensors, "regroup", "makes products of elements")
        ways = {passing.tensor: passing for passing in (*self.said, *self.chosen)}
        for other in (gone, name):
            if other in self.schedules or (other == gone and other in ways):
                raise UserError(
                    f"{other} has a {'schedule' if other in self.schedules else 'way'} already,"
                    f" which is not one of {name} regrouped",
                    location=location,
                    expected="regroup before what is said about its statements, and before fuse",
                    given=f"regroup{(name, *first)}",
                )
        return Program(regrouped(self.program, grouping), self.schedules, self.said, self.chosen)

    def fuse(self, wanted: str) -> Program:
        """The program with results passed on wherever that can be, unless it is said otherwise.

        ``"none"`` stores all of them, as a program does by default; ``"layer"`` streams what can be
        streamed; ``"all"`` recomputes also what is gathered, which may take many times the cycles.
        """
        location = user_location()
        names = [fusion.value for fusion in Fusion]
        if wanted not in names:
            raise UserError(
                "this is not a kind of fusion",
                location=location,
                expected=f"one of {', '.join(names)}",
                given=repr(wanted),
            )
        read = {name for statement in self.program.statements for name in statement.reads}
        results = [one.name for one in self.program.statements if one.name in read]
        found = chosen(results, Fusion(wanted), self.said, self._groups, location)
        return Program(self.program, self.schedules, self.said, found)

    def search(
        self,
        inputs: Mapping[str, Any],
        *,
        device: str | Device = "ideal",
        seconds: float = 60.0,
        progress: bool | None = None,
    ) -> ProgramSearchResult[Program]:
        """Find the fastest way to pass results on, and orders of loops, by exact runs on inputs.

        What the user has said, and schedules of statements, stay.  The search ends after so many
        ``seconds``, with the best program so far; Ctrl-C does that too.  Raises ``UserError`` for
        inputs that do not fit.
        """
        from t2s.driver.program_search import search_program

        location = user_location()
        return search_program(
            self,
            inputs,
            device=device,
            seconds=checked_seconds("seconds=", seconds),
            progress=progress,
            location=location,
        )

    def _passing(self, names: Sequence[object], way: Way, location: SourceLocation) -> Program:
        more = said(self.said, names, way, location)
        left = kept(self.chosen, more, self._groups)
        return Program(self.program, self.schedules, more, left)

    def _groups(self, passed: Sequence[PassOn]) -> tuple[StatementGroup, ...]:
        """The graphs with other results passed on."""
        return replace(self.design(), passed=tuple(passed)).groups_of_any_size

    def print_loop_nest(self) -> str:
        """The loops of every graph."""
        return self.design().loops({})

    def interpret(self, inputs: Mapping[str, Any], *, type: Type | None = None) -> dict[str, Array]:
        """The values of every tensor that a statement assigns, by numpy: the reference."""
        return self.design(type=type).interpret(inputs)

    def graphs(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> dict[str, tuple[Graph, ...]]:
        """The graphs of every statement for these inputs, by the tensor that it assigns."""
        design = self.design(type=type, capacity=capacity, latency=latency, balance=balance)
        return design.graphs(inputs)

    def cycles(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        device: str | Device = "ideal",
        memory: str | Dram | None = None,
        max_cycles: int | None = None,
        progress: bool | None = None,
        stalls: RandomStalls | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> int:
        """The cycles of all graphs, one after the other; see ``t2s.cycles``."""
        return cycles(
            self.design(type=type, capacity=capacity, latency=latency, balance=balance),
            inputs,
            device=device,
            memory=memory,
            max_cycles=max_cycles,
            progress=progress,
            stalls=stalls,
        )

    def simulate(
        self,
        inputs: Mapping[str, Any],
        *,
        type: Type | None = None,
        device: str | Device = "ideal",
        memory: str | Dram | None = None,
        engine: str = "native",
        max_cycles: int | None = None,
        progress: bool | None = None,
        stalls: RandomStalls | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> ProgramResult:
        """Run all statements on the inputs, one after the other; see ``t2s.sparse.simulate``."""
        result: ProgramResult = simulate(
            self.design(type=type, capacity=capacity, latency=latency, balance=balance),
            inputs,
            device=device,
            memory=memory,
            engine=engine,
            max_cycles=max_cycles,
            progress=progress,
            stalls=stalls,
        )
        return result


def program_of_text(
    text: str,
    formats: Mapping[str, Format],
    shapes: Mapping[str, Sequence[int]],
    location: SourceLocation,
) -> Program:
    """The program of a text with a statement on each line."""
    written = parse_statements(text, location)
    orders = {
        access.tensor: len(access.variables)
        for statement in written
        for access in (*accesses(statement.value), statement.result)
    }
    declared = {
        name: TensorDeclaration(
            name=name,
            format=formats.get(name, dense(orders.get(name, 0))),
            shape=checked_shape(shapes[name], name, location) if name in shapes else None,
            location=location,
        )
        for name in dict.fromkeys((*formats, *shapes))
    }
    return Program(make_program(written, declared, ordered=True, location=location))


def program_of_tensors(tensors: Sequence[object], location: SourceLocation) -> Program:
    """The program of tensors that were assigned to, in any order."""
    assigned = []
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise UserError(
                "a program is made of tensors that were assigned to",
                location=location,
                expected="tensors of t2s.sparse, such as H after H[i, j] = ...",
                given=repr(tensor),
            )
        if tensor.definition is None or tensor.written is None:
            raise UserError(
                f"nothing is assigned to {tensor.name}",
                location=tensor.location,
                expected=f"an assignment to {tensor.name} before the program is made",
                hint=f"leave {tensor.name} out of the list if it is an input",
            )
        assigned.append(tensor)
    declared: dict[str, TensorDeclaration] = {}
    known: dict[str, Tensor] = {}
    for tensor in assigned:
        for other in (tensor, *tensor.operands.values()):
            same = known.setdefault(other.name, other)
            if same is not other:
                raise UserError(
                    f"two tensors are named {other.name}",
                    location=other.location,
                    expected="a name for each tensor of a program",
                    notes=[(same.location, "the other one")],
                )
            if other.definition is not None and all(other is not one for one in assigned):
                raise UserError(
                    f"{other.name} is assigned, and is not in the list of the program",
                    location=other.definition.location,
                    expected="all tensors that are computed, in any order",
                    given=", ".join(one.name for one in assigned),
                    hint=f"add {other.name} to the list; an input is a tensor without assignment",
                )
            declared[other.name] = other.declaration()
    written = [
        WrittenStatement(
            result=tensor.definition.result,
            value=tensor.written,
            location=tensor.definition.location,
        )
        for tensor in assigned
        if tensor.definition is not None and tensor.written is not None
    ]
    return Program(make_program(written, declared, ordered=False, location=location))


def checked_formats(
    formats: Mapping[str, Format | str], location: SourceLocation
) -> dict[str, Format]:
    """Formats by name.  Raises ``UserError`` for what is none."""
    return {
        name: as_format(format, what=str(name), location=location)
        for name, format in formats.items()
    }
