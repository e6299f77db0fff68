"""From a stage of concrete index notation to its diagram: loops, and bodies in lanes or fused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.walk import Term, rebuild, walk
from t2s.graph.graph import RegionKind
from t2s.sparse_repr.blocks.lanes import DealLanes, GatherLanes
from t2s.sparse_repr.blocks.plumbing import Root
from t2s.sparse_repr.blocks.repeats import Regroup
from t2s.sparse_repr.blocks.splits import Flatten
from t2s.sparse_repr.blocks.storage import Manner, ScanJoin
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    Where,
    assigns_of,
    reads_of,
    result_of,
)
from t2s.sparse_repr.concrete.merge import expression_of
from t2s.sparse_repr.concrete.schedule import Schedule, Skip
from t2s.sparse_repr.lowering.compute import (
    Around,
    Computed,
    compute,
    outermost_vector,
    reduce_loops,
)
from t2s.sparse_repr.lowering.construct import construct
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire, TokenKind
from t2s.sparse_repr.lowering.iterate import enter_lanes, enter_loop
from t2s.sparse_repr.lowering.scope import Blocks, LoopLevel, NestOperand, NestScope
from t2s.sparse_repr.notation.ir import Access, Expression, accesses


def lower_stage(
    program: ConcreteProgram, stage: Statement, void: frozenset[str] = frozenset()
) -> Diagram:
    """The diagram of a stage.  ``void`` are variables of extent 0, if that is known."""
    stage = _numbered(stage)
    blocks = Blocks()
    root = _Root(blocks)
    operands = {access: NestOperand(stream=root()) for access in reads_of(stage)}
    scope = NestScope(program=program, blocks=blocks, root=root, operands=operands, void=void)
    computed = _lower(scope, stage, top=True)
    result = result_of(stage)
    construct(scope, result, computed)
    return Diagram(
        blocks=tuple(blocks.blocks),
        loops=tuple(blocks.loops),
        result=result.tensor,
        semiring=program.semiring,
    )


def check_skips(schedule: Schedule, diagrams: Sequence[Diagram]) -> None:
    """Raise ``UserError`` for a ``skip`` where no intersecter skips."""
    skipping = {
        loop.index
        for diagram in diagrams
        for wired in diagram.blocks
        for loop in diagram.loops
        if isinstance(wired.block, ScanJoin)
        and wired.block.manner is Manner.SKIPPING
        and wired.loop == loop.name
    }
    for one in schedule.directives:
        if isinstance(one, Skip) and one.variable not in skipping:
            raise UserError(
                f"there is nothing to skip at {one.variable}",
                location=one.location,
                expected=f"a product of two or more operands with a compressed level at"
                f" {one.variable}",
                hint="other levels are joined coordinate by coordinate, bitvectors word by word",
            )


@dataclass
class _Root:
    """Makes the root when it is first needed."""

    blocks: Blocks
    stream: DiagramWire | None = None

    def __call__(self) -> DiagramWire:
        if self.stream is None:
            self.stream = self.blocks.stream(TokenKind.REFERENCE, 0, "root")
            self.blocks.add(Root(), [], [self.stream], "")
        return self.stream


def _numbered(stage: Statement) -> Statement:
    """The stage with a number of its own for every access that reads a tensor.

    Also where one object stands for several accesses: each is a stream.
    """
    made = {assign.result.tensor for assign in assigns_of(stage)}
    count = 0

    def number(term: Term) -> Term:
        nonlocal count
        if isinstance(term, Access) and term.tensor not in made:
            count += 1
            return replace(term, occurrence=count)
        return rebuild(term, number)

    return rebuild(stage, number)


def _lower(
    scope: NestScope, statement: Statement, *, top: bool, items: bool = False, clean: bool = True
) -> Computed:
    """Blocks for a statement; what it computes, over the loops inside of ``scope``.

    ``top``: it is the stage, or with ``items`` the part of it inside of a loop whose coordinates
    have to get an item each, since it is computed in lanes or in fused loops.  Without ``clean`` no
    coordinates are dropped.
    """
    outside, result = scope.depth, result_of(statement)
    inner: Computed | None = None
    while not isinstance(statement, Assign) and inner is None:
        match statement:
            case Forall(vector=width, body=body) if width:
                scope, statement = enter_lanes(scope, statement), body
            case Forall(body=body, lanes=lanes) as loop:
                scope = enter_loop(scope, loop, expression_of(loop))
                statement, inside = body, _body(scope, body, result, top)
                if loop.fused:
                    inner = in_fused(scope, loop, expression_of(body), inside)
                elif lanes > 1:
                    inner = in_lanes(scope, expression_of(body), lanes, inside)
            case Where(consumer=consumer, producer=producer):
                scope = _with_temporary(scope, producer)
                statement = consumer
    if inner is None:
        assert isinstance(statement, Assign)
        inner = Computed(loops=(), value=compute(scope, statement.value, result))
    computed = replace(inner, loops=scope.loops[outside:] + inner.loops)
    clean = clean and top and not _written_dense(scope.program, result)
    around = Around(
        coordinate=scope.loops[outside - 1].coordinate if outside else None,
        filled=all(level.filled for level in scope.loops[:outside]),
        items=items,
    )
    kept = frozenset(result.variables)
    whole = _kept_whole(scope.program, result) if top else frozenset()
    zeros = result.tensor not in scope.program.without_zeros
    return reduce_loops(scope.blocks, computed, kept, around, clean=clean, whole=whole, zeros=zeros)


def _body(
    scope: NestScope, statement: Statement, result: Access, top: bool
) -> Callable[[NestScope], Computed]:
    """What is inside of a loop that is computed in lanes or fused.

    Inside of a loop that a reducer of coordinates sums out, empty fibers stay: it needs coordinates
    and values of one shape.
    """
    around = [level.variable for level in scope.loops]
    loops = [term.variable for term in walk(statement) if isinstance(term, Forall)]
    clean = outermost_vector([*around, *loops], frozenset(result.variables)) >= len(around)
    return lambda inside: _lower(inside, statement, top=top, items=True, clean=clean)


def _kept_whole(program: ConcreteProgram, result: Access) -> frozenset[str]:
    """Variables that keep their coordinates also where nothing is inside of them.

    The result stores every coordinate of a dense level.  In a list of coordinates those of the
    outer loops are repeated for each entry, and so for none of an empty fiber.
    """
    format = program.format_of(result.tensor)
    variables = [result.variables[mode] for mode in format.modes]
    if format.coordinate_list:
        return frozenset(variables[:-1])
    levels = zip(format.levels, variables, strict=True)
    return frozenset(variable for level, variable in levels if level.full)


def _written_dense(program: ConcreteProgram, result: Access) -> bool:
    return all(level.full for level in program.format_of(result.tensor).levels)


def _with_temporary(scope: NestScope, producer: Statement) -> NestScope:
    computed = _lower(scope, producer, top=False)
    result = result_of(producer)
    pending = computed.loops[0].coordinate if computed.loops else None
    access = Access(tensor=result.tensor, variables=result.variables)
    return scope.with_operand(access, NestOperand(stream=computed.value, pending=pending))


def in_lanes(
    scope: NestScope,
    value: Expression,
    lanes: int,
    body: Callable[[NestScope], Computed],
    run: int = 1,
) -> Computed:
    """What ``body`` computes in the innermost loop of a scope, by copies of it.

    The coordinates of the loop, and the operands of ``value`` with them, are dealt to the copies in
    turn, ``run`` at a time, and what comes out is joined in the order of the coordinates.
    """
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    innermost = scope.loops[-1]
    order = innermost.coordinate
    inputs = (order, *(scope.operands[access].stream for access in needed))
    dealt = tuple(tuple(scope.blocks.like(stream) for stream in inputs) for _ in range(lanes))
    everywhere = [wire for lane in dealt for wire in lane]
    scope.blocks.add(DealLanes(lanes=lanes, run=run), inputs, everywhere, scope.region)
    copies = []
    for own in dealt:
        operands = dict(scope.operands)
        for access, stream in zip(needed, own[1:], strict=True):
            operands[access] = replace(operands[access], stream=stream)
        lane = replace(innermost, coordinate=own[0], filled=False)  # it may get nothing of a fiber
        copies.append(body(replace(scope, loops=(*scope.loops[:-1], lane), operands=operands)))
    first = copies[0]

    def joined(parts: tuple[DiagramWire, ...]) -> DiagramWire:
        output = scope.blocks.like(parts[0])
        scope.blocks.add(GatherLanes(run=run), (order, *parts), [output], scope.region)
        return output

    loops = tuple(
        replace(level[0], coordinate=joined(tuple(one.coordinate for one in level)))
        for level in zip(*(copy.loops for copy in copies), strict=True)
    )
    return replace(first, loops=loops, value=joined(tuple(copy.value for copy in copies)))


def in_fused(
    scope: NestScope, loop: Forall, value: Expression, body: Callable[[NestScope], Computed]
) -> Computed:
    """What ``body`` computes in the two innermost loops of a scope, the last of them ``loop``.

    The coordinates of both, and the operands of ``value`` with them, are flattened; what comes of
    them is put into the lists of the inner loop again.  So around the loops nothing changes.
    """
    around, within = scope.loops[-2:]
    outer, inner = around.coordinate, within.coordinate
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    beside = tuple(scope.operands[access].stream for access in needed)
    region = scope.blocks.add_loop(loop.fused, RegionKind.SCAN, scope.region)
    coordinate = scope.blocks.like(inner, outer.depth)
    outputs = tuple(scope.blocks.like(stream, outer.depth) for stream in beside)
    block = Flatten(extent=within.variable)
    scope.blocks.add(block, (outer, inner, *beside), (coordinate, *outputs), region)
    operands = dict(scope.operands)
    for access, stream in zip(needed, outputs, strict=True):
        operands[access] = replace(operands[access], stream=stream)
    fused = LoopLevel(
        variable=loop.fused,
        region=region,
        coordinate=coordinate,
        filled=around.filled and within.filled,
        covered=around.covered and within.covered,
    )
    inside = replace(scope, loops=(*scope.loops[:-2], fused), operands=operands)
    if loop.lanes > 1:
        computed = in_lanes(inside, value, loop.lanes, body, loop.run)
    else:
        computed = body(inside)

    def regrouped(stream: DiagramWire) -> DiagramWire:
        output = scope.blocks.like(stream, stream.depth + 1)
        scope.blocks.add(Regroup(), [stream, inner], [output], region)
        return output

    loops = tuple(replace(one, coordinate=regrouped(one.coordinate)) for one in computed.loops)
    return replace(computed, loops=loops, value=regrouped(computed.value))
