"""From a stage of concrete index notation to its diagram: loops, and bodies in lanes or fused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.walk import Term, rebuild
from t2s.graph.graph import RegionKind
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.joins import Join
from t2s.sparse_repr.blocks.lanes import DealLanes, GatherLanes
from t2s.sparse_repr.blocks.plumbing import Root
from t2s.sparse_repr.blocks.repeats import Regroup, Repeat
from t2s.sparse_repr.blocks.scanners import Count, JoinStrategy, Scan, ScanJoin
from t2s.sparse_repr.blocks.splits import Flatten
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    Where,
    assigns_of,
    loops_of,
    reads_of,
    result_of,
)
from t2s.sparse_repr.concrete.merge import (
    Both,
    Either,
    Everything,
    Leaf,
    Merge,
    both,
    either,
    expression_of,
    is_unbounded,
    leaves_of,
    merge_at,
    read_once,
)
from t2s.sparse_repr.concrete.schedule import Schedule, Skip
from t2s.sparse_repr.levels import Level
from t2s.sparse_repr.lowering.compute import (
    Around,
    Computed,
    compute,
    compute_everywhere,
    compute_scalar,
    outermost_vector,
    reduce_loops,
)
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire, TokenKind
from t2s.sparse_repr.lowering.scope import Blocks, LoopLevel, NestOperand, NestScope
from t2s.sparse_repr.lowering.to_graph import construct
from t2s.sparse_repr.notation.ir import Access, Expression, accesses, print_expression


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
        and wired.block.strategy is JoinStrategy.SKIPPING
        and wired.loop == loop.name
    }
    for directive in schedule.directives:
        if isinstance(directive, Skip) and directive.variable not in skipping:
            raise UserError(
                f"skip has no effect at {directive.variable}",
                location=directive.location,
                expected=f"a product of two or more operands with a compressed level at"
                f" {directive.variable}",
                hint="other levels are joined coordinate by coordinate, bitvectors word by word",
            )


@dataclass
class _Root:
    """Creates the root on first use."""

    blocks: Blocks
    stream: DiagramWire | None = None

    def __call__(self) -> DiagramWire:
        if self.stream is None:
            self.stream = self.blocks.stream(TokenKind.REFERENCE, 0, "root")
            self.blocks.add(Root(), [], [self.stream], "")
        return self.stream


def _numbered(stage: Statement) -> Statement:
    """The stage with a unique number for every access that reads a tensor.

    Accesses may share an object, but each needs a stream of its own.
    """
    results = {assign.result.tensor for assign in assigns_of(stage)}
    count = 0

    def number(term: Term) -> Term:
        nonlocal count
        if isinstance(term, Access) and term.tensor not in results:
            count += 1
            return replace(term, occurrence=count)
        return rebuild(term, number)

    return rebuild(stage, number)


def _lower(
    scope: NestScope, statement: Statement, *, top: bool, items: bool = False, clean: bool = True
) -> Computed:
    """Make the blocks of a statement; returns its result over the loops inside ``scope``.

    ``top``: it is the stage, or with ``items`` the body of a loop that is computed in lanes or
    fused, so that each coordinate needs an item.  Without ``clean`` no coordinates are dropped.
    """
    outside, width, result = scope.depth, scope.width, result_of(statement)
    inner: Computed | None = None
    while not isinstance(statement, Assign) and inner is None:
        match statement:
            case Forall(vector=lanes, body=body) if lanes:
                scope, statement = enter_lanes(scope, statement), body
            case Forall(body=body, lanes=lanes) as loop:
                scope = enter_loop(scope, loop, expression_of(loop))
                statement, inside = body, _body(scope, body, result, top)
                if loop.fused:
                    inner = in_fused(scope, loop, expression_of(body), inside)
                elif lanes > 1:
                    inner = in_lanes(scope, expression_of(body), lanes, inside)
            case Where(consumer=consumer, producer=producer):
                scope = _with_temporary(scope, producer, consumer)
                statement = consumer
    if inner is None:
        assert isinstance(statement, Assign)
        if statement.everywhere:
            inner = Computed(loops=(), value=compute_everywhere(scope, statement.value, result))
        elif top or scope.depth > outside or scope.width > width:
            inner = Computed(loops=(), value=compute(scope, statement.value, result))
        else:
            stream, optional = compute_scalar(scope, statement.value, result)
            inner = Computed(loops=(), value=stream, optional=optional)
    computed = replace(inner, loops=scope.loops[outside:] + inner.loops)
    clean = clean and top and not _written_dense(scope.program, result)
    around = Around(
        coordinate=scope.loops[outside - 1].coordinate if outside else None,
        filled=all(level.filled for level in scope.loops[:outside]),
        items=items,
    )
    result_loops = frozenset(result.variables)
    whole = _kept_whole(scope.program, result) if top else frozenset()
    zeros = result.tensor not in scope.program.without_zeros
    return reduce_loops(
        scope.blocks, computed, result_loops, around, clean=clean, whole=whole, zeros=zeros
    )


def _body(
    scope: NestScope, statement: Statement, result: Access, top: bool
) -> Callable[[NestScope], Computed]:
    """The body of a loop that is computed in lanes or fused.

    Inside a loop that a reducer of coordinates sums out, empty fibers stay: the reducer needs
    coordinates and values of the same shape.
    """
    around = [level.variable for level in scope.loops]
    loops = loops_of(statement)
    clean = outermost_vector([*around, *loops], frozenset(result.variables)) >= len(around)
    return lambda inside: _lower(inside, statement, top=top, items=True, clean=clean)


def _kept_whole(program: ConcreteProgram, result: Access) -> frozenset[str]:
    """Variables that keep coordinates even if nothing is stored below them.

    The result stores every coordinate of a dense level.  A coordinate list repeats outer
    coordinates for each entry, and so omits those of empty fibers.
    """
    format = program.format_of(result.tensor)
    variables = [result.variables[mode] for mode in format.modes]
    if format.coordinate_list:
        return frozenset(variables[:-1])
    levels = zip(format.levels, variables, strict=True)
    return frozenset(variable for level, variable in levels if level.full)


def _written_dense(program: ConcreteProgram, result: Access) -> bool:
    return all(level.full for level in program.format_of(result.tensor).levels)


def _with_temporary(scope: NestScope, producer: Statement, consumer: Statement) -> NestScope:
    around, assign = scope.blocks.semiring, next(assigns_of(producer))
    scope.blocks.semiring = assign.semiring or around
    fused = {name: (outer, inner) for outer, inner, name in scope.program.fused}
    loops = (level.variable for level in scope.loops)
    variables = tuple(name for loop in loops for name in fused.get(loop, (loop,)))
    computed = _lower(replace(scope, around=variables), producer, top=False)
    scope.blocks.semiring = around
    pending = tuple(level.coordinate for level in computed.loops)
    operand = NestOperand(
        stream=computed.value,
        missing=computed.optional and not pending,
        pending=pending,
        unsure=not pending
        and assign.accumulate
        and not assign.everywhere
        and any(
            scope.operands[access].missing
            for access in accesses(expression_of(producer))
            if access in scope.operands
        ),
    )
    made = result_of(producer)
    for access in _reads_of_temporary(made, consumer):
        called = dict(zip(made.variables, access.variables, strict=True))
        axes = tuple(called.get(name, name) for name in computed.value.axes)
        read = replace(operand, stream=replace(operand.stream, axes=axes))
        scope = scope.with_operand(access, read)
    return scope


def _reads_of_temporary(result: Access, consumer: Statement) -> tuple[Access, ...]:
    """The accesses of a temporary: statements may call the variables of its levels differently."""
    reads = (access for access in accesses(consumer) if access.tensor == result.tensor)
    return tuple(dict.fromkeys(reads))


def in_lanes(
    scope: NestScope,
    value: Expression,
    lanes: int,
    body: Callable[[NestScope], Computed],
    run: int = 1,
) -> Computed:
    """Compute ``body`` in the innermost loop of a scope by parallel copies.

    The coordinates of the loop, with the operands of ``value``, are distributed over the copies in
    turn, ``run`` at a time; the results are merged in the order of the coordinates.
    """
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    for access in needed:
        _check_one_level(scope, access, scope.operands[access], "dealt to copies or fused")
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
        lane = replace(
            innermost, coordinate=own[0], filled=False
        )  # a lane may get no item of a fiber
        copies.append(body(replace(scope, loops=(*scope.loops[:-1], lane), operands=operands)))
    first = copies[0]

    def joined(parts: tuple[DiagramWire, ...]) -> DiagramWire:
        output = scope.blocks.like(parts[0])
        scope.blocks.add(GatherLanes(run=run), (order, *parts), [output], scope.region)
        return output

    loops = tuple(
        replace(level[0], coordinate=joined(tuple(part.coordinate for part in level)))
        for level in zip(*(copy.loops for copy in copies), strict=True)
    )
    return replace(first, loops=loops, value=joined(tuple(copy.value for copy in copies)))


def in_fused(
    scope: NestScope, loop: Forall, value: Expression, body: Callable[[NestScope], Computed]
) -> Computed:
    """Compute ``body`` in the two innermost loops of a scope, fused; the inner one is ``loop``.

    The coordinates of both, with the operands of ``value``, are flattened; the results are
    regrouped into the lists of the inner loop, so nothing changes outside the loops.
    """
    around, within = scope.loops[-2:]
    outer, inner = around.coordinate, within.coordinate
    needed = [access for access in dict.fromkeys(accesses(value)) if access in scope.operands]
    for access in needed:
        _check_one_level(scope, access, scope.operands[access], "dealt to copies or fused")
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

    loops = tuple(
        replace(level, coordinate=regrouped(level.coordinate)) for level in computed.loops
    )
    return replace(computed, loops=loops, value=regrouped(computed.value))


# Iteration and merging: the scanners, joiners and repeaters of one loop.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    """The coordinates of the next inner loop, with their operands.

    ``full``: every fiber has all coordinates of the variable.
    ``filled``: no fiber is empty.
    """

    coordinate: DiagramWire
    operands: dict[Access, NestOperand]
    full: bool
    filled: bool


def enter_loop(scope: NestScope, loop: Forall, value: Expression) -> NestScope:
    """The scope inside a loop around ``value``."""
    variable = loop.variable
    reads = tuple(dict.fromkeys(accesses(value)))
    merge = read_once(merge_at(loop, scope.semiring))
    _check_read_once(scope, merge, variable)
    located = tuple(a for a in reads if _is_located(scope, loop, a))
    for access in located:
        _check_located(scope, access)
    rest = _without(merge, set(located))
    if is_unbounded(rest) and not is_unbounded(merge):
        raise UserError(
            f"locate leaves no operand to iterate over at {variable}",
            location=scope.program.location,
            expected=f"an operand that is multiplied with {', '.join(loop.located)} and has "
            f"{variable}",
        )
    region = scope.blocks.add_loop(variable, _kind(scope, rest), scope.region or None)
    joined = _lower_merge(replace(scope, skip=loop.skip), rest, variable, region)
    operands = dict(scope.operands)
    for access in reads:
        if access in joined.operands:
            operands[access] = joined.operands[access]
        elif access in scope.operands:
            if variable in access.variables and access not in located:
                raise InternalError(f"nothing reads {access.tensor} at {variable}")
            repeated = _repeat(scope, scope.operands[access], joined.coordinate, region)
            if access in located:
                repeated = _locate(scope, access, repeated, joined.coordinate, region)
            operands[access] = repeated
    entered = LoopLevel(
        variable=variable,
        region=region,
        coordinate=joined.coordinate,
        filled=joined.filled,
        covered=joined.full,
    )
    return replace(scope, loops=(*scope.loops, entered), operands=operands)


def _check_read_once(scope: NestScope, merge: Merge, variable: str) -> None:
    """Refuse a loop in which a level would be scanned once for each of several uses."""
    leaves = leaves_of(merge)
    twice = next((access for access in leaves if leaves.count(access) > 1), None)
    if twice is not None:
        raise UnsupportedError(
            f"the loop over {variable} needs {twice.tensor} in two ways at once",
            location=twice.location or scope.program.location,
            expected=f"uses of {twice.tensor} that one scan of its level at {variable} can serve",
            given=f"{print_expression(twice)} in several factors or terms, through a tensor that is"
            " read twice",
            hint="store the tensor that is read twice",
        )


def _is_located(scope: NestScope, loop: Forall, access: Access) -> bool:
    """Whether an operand is located; by default only dense levels are."""
    if access.tensor not in loop.located or loop.variable not in access.variables:
        return False
    if access.tensor not in loop.by_default:
        return True
    level = _level(scope, access)
    return level is not None and level.locate(loop.variable) is not None


def _check_located(scope: NestScope, access: Access) -> None:
    level = _level(scope, access)
    format = scope.program.format_of(access.tensor)
    variable = access.variables[format.modes[scope.operands[access].level]]
    if level is not None and level.locate(variable) is not None:
        return
    raise UserError(
        f"the level of {access.tensor} at {variable} cannot be located",
        location=access.location or scope.program.location,
        expected="a dense level",
        given="a temporary" if level is None else level.title,
    )


def enter_lanes(scope: NestScope, loop: Forall) -> NestScope:
    """The scope inside the loop over the lanes of vectors, where references number vectors."""
    operands = dict(scope.operands)
    for access, operand in scope.operands.items():
        if operand.stream.kind is TokenKind.REFERENCE and loop.variable in access.variables:
            operands[access] = replace(operand, level=operand.level + 1, lanes=loop.vector)
    return replace(scope, operands=operands, lane=loop.variable, width=loop.vector)


def _kind(scope: NestScope, merge: Merge) -> RegionKind:
    match merge:
        case Leaf(access=access):
            level = _level(scope, access) if access in scope.operands else None
            return RegionKind.RANGE if level is not None and level.full else RegionKind.SCAN
        case Everything():
            return RegionKind.RANGE
        case Both():
            return RegionKind.INTERSECT
        case Either():
            return RegionKind.UNION


def _without(merge: Merge, located: set[Access]) -> Merge:
    """Simplify the merge: located operands are dense, so they exist at every coordinate."""
    match merge:
        case Leaf(access=access):
            return Everything() if access in located else merge
        case Everything():
            return merge
        case Both(members=members):
            return both(*(_without(member, located) for member in members))
        case Either(members=members, everything=everything):
            parts = (_without(member, located) for member in members)
            return either(*parts, everything=everything)


def _level(scope: NestScope, access: Access) -> Level | None:
    """The next level of an operand; ``None`` for a temporary."""
    operand = scope.operands[access]
    if operand.pending:
        return None
    return scope.program.format_of(access.tensor).levels[operand.level]


def _lower_merge(scope: NestScope, merge: Merge, variable: str, region: str) -> _Joined:
    match merge:
        case Leaf(access=access):
            return _scan(scope, access, variable, region)
        case Everything():
            return _count(scope, variable, region)
        case Both(members=members):
            return _intersect(scope, members, variable, region)
        case Either(members=members, everything=everything):
            sides = _sides(scope, BlockKind.UNION, members, variable, region)
            if everything and not any(side.full for side in sides):
                sides.insert(0, _count(scope, variable, region))
            return _unite(scope, sides, region)


def _scan(scope: NestScope, access: Access, variable: str, region: str) -> _Joined:
    operand = scope.operands[access]
    depth = scope.depth + 1
    if operand.pending:  # a temporary that arrives as a fiber
        coordinate, *below = operand.pending
        inside = replace(operand, pending=tuple(below))
        return _Joined(coordinate=coordinate, operands={access: inside}, full=False, filled=False)
    level = scope.program.format_of(access.tensor).levels[operand.level]
    about = f"{access.tensor} {scope.program.format_of(access.tensor).modes[operand.level]}"
    coordinate = scope.blocks.stream(TokenKind.COORDINATE, depth, about)
    child = scope.blocks.stream(TokenKind.REFERENCE, depth, about)
    block = Scan(tensor=access.tensor, level=operand.level)
    scope.blocks.add(block, [operand.stream], [coordinate, child], region, access.location)
    solid = variable not in scope.void and (level.full or _solid(scope, access))
    inside = replace(operand, stream=child, level=operand.level + 1, missing=False)
    return _Joined(
        coordinate=coordinate,
        operands={access: inside},
        full=level.full and not operand.missing,
        filled=solid and not operand.missing,
    )


def _solid(scope: NestScope, access: Access) -> bool:
    """Whether the next level has a coordinate in every fiber."""
    operand = scope.operands[access]
    if operand.level == 0:  # also a temporary, whose fibers may be empty
        return False
    format = scope.program.format_of(access.tensor)
    return not format.levels[operand.level - 1].full


def _count(scope: NestScope, variable: str, region: str) -> _Joined:
    driver = scope.driver
    coordinate = scope.blocks.stream(TokenKind.COORDINATE, scope.depth + 1, variable)
    scope.blocks.add(Count(), [driver], [coordinate], region)
    return _Joined(coordinate=coordinate, operands={}, full=True, filled=variable not in scope.void)


def _intersect(scope: NestScope, members: tuple[Merge, ...], variable: str, region: str) -> _Joined:
    """Intersect members; members that exist at every coordinate are located at the others'
    coordinates.

    Such a member, for example ``1 + b``, does not restrict the coordinates, so its operands are
    united with those of the other members.
    """
    bounded = tuple(member for member in members if not is_unbounded(member))
    sides = _sides(scope, BlockKind.INTERSECT, bounded, variable, region)
    base = sides[0]
    if len(sides) > 1:
        base = _join(scope, BlockKind.INTERSECT, sides, region)
        full = all(side.full for side in sides)
        base = replace(base, full=full, filled=full and all(side.filled for side in sides))
    optional = [
        _unite(
            scope, [replace(base, operands={}), *_optional(scope, member, variable, region)], region
        )
        for member in members
        if isinstance(member, Either) and member.everything
    ]
    if not optional:
        return base
    joined = _join(scope, BlockKind.INTERSECT, [base, *optional], region)
    return replace(joined, full=base.full, filled=base.filled)


def _optional(scope: NestScope, member: Either, variable: str, region: str) -> list[_Joined]:
    return _sides(scope, BlockKind.UNION, member.members, variable, region)


def _sides(
    scope: NestScope, kind: BlockKind, members: tuple[Merge, ...], variable: str, region: str
) -> list[_Joined]:
    """The sides of a joiner; levels that are joined while scanning count as one side."""
    strategy, together = _together(scope, kind, members)
    if strategy is None:
        return [_lower_merge(scope, member, variable, region) for member in members]
    first = _scan_join(scope, kind, strategy, together, region)
    rest = [member for member in members if member not in together]
    return [first, *(_lower_merge(scope, member, variable, region) for member in rest)]


def _together(
    scope: NestScope, kind: BlockKind, members: tuple[Merge, ...]
) -> tuple[JoinStrategy | None, tuple[Leaf, ...]]:
    """The levels that can be joined while scanning: bit vectors, and those that the user skips."""
    leaves = [member for member in members if isinstance(member, Leaf)]
    present = [leaf for leaf in leaves if not scope.operands[leaf.access].missing]
    skips = scope.skip and kind is BlockKind.INTERSECT
    levels = [_level(scope, leaf.access) for leaf in present]
    for strategy in (JoinStrategy.SKIPPING, JoinStrategy.WORDS) if skips else (JoinStrategy.WORDS,):
        kinds = [level for level in levels if level is not None and level.together is strategy]
        pairs = zip(present, levels, strict=True)
        chosen = tuple(leaf for leaf, level in pairs if level in kinds[:1])
        if len(chosen) > 1:
            return strategy, chosen
    return None, ()


def _scan_join(
    scope: NestScope, kind: BlockKind, strategy: JoinStrategy, leaves: tuple[Leaf, ...], region: str
) -> _Joined:
    depth, operands = scope.depth + 1, {}
    coordinate = scope.blocks.stream(TokenKind.COORDINATE, depth)
    scanned = [scope.operands[leaf.access] for leaf in leaves]
    for leaf, operand in zip(leaves, scanned, strict=True):
        tensor = leaf.access.tensor
        child = scope.blocks.stream(TokenKind.REFERENCE, depth, tensor)
        operands[leaf.access] = replace(operand, stream=child, level=operand.level + 1)
    tensors = (leaf.access.tensor for leaf in leaves)
    levels = (operand.level for operand in scanned)
    scope.blocks.add(
        ScanJoin(kind=kind, strategy=strategy, sides=tuple(zip(tensors, levels, strict=True))),
        [operand.stream for operand in scanned],
        [coordinate, *(operand.stream for operand in operands.values())],
        region,
        leaves[0].access.location,
    )
    solid = [_solid(scope, leaf.access) for leaf in leaves]
    if kind is BlockKind.INTERSECT:
        return _Joined(coordinate=coordinate, operands=operands, full=False, filled=False)
    together = frozenset(operands)
    missing = {
        access: replace(operand, missing=True, together=together)
        for access, operand in operands.items()
    }
    return _Joined(coordinate=coordinate, operands=missing, full=False, filled=any(solid))


def _unite(scope: NestScope, sides: list[_Joined], region: str) -> _Joined:
    if len(sides) == 1:
        return sides[0]
    joined = _join(scope, BlockKind.UNION, sides, region)
    full = any(side.full for side in sides)
    filled = any(side.filled for side in sides) or _one_is_there(scope, sides)
    together = frozenset(access for side in sides for access in side.operands)
    if not all(side.operands for side in sides):  # coordinates without any operand
        together = frozenset()
    operands = dict(joined.operands)
    for side in sides:
        for access in side.operands:
            if not side.full:
                operands[access] = replace(operands[access], missing=True, together=together)
    return replace(joined, operands=operands, full=full, filled=filled)


def _one_is_there(scope: NestScope, sides: Iterable[_Joined]) -> bool:
    """Whether these operands were united in the enclosing loop, and those that exist have a
    fiber.
    """
    single = [next(iter(side.operands)) for side in sides if len(side.operands) == 1]
    before = {access: scope.operands[access] for access in single}
    return any(
        operand.together
        and operand.together <= before.keys()
        and all(before[other].together == operand.together for other in operand.together)
        and all(_solid(scope, other) for other in operand.together)
        for operand in before.values()
    )


def _join(scope: NestScope, kind: BlockKind, sides: list[_Joined], region: str) -> _Joined:
    coordinate = scope.blocks.stream(TokenKind.COORDINATE, scope.depth + 1)
    operands: dict[Access, NestOperand] = {}
    inputs: list[DiagramWire] = []
    outputs: list[DiagramWire] = []
    for side in sides:
        inputs.append(side.coordinate)
        for access, operand in side.operands.items():
            _check_one_level(scope, access, operand, "joined with another operand")
            output = scope.blocks.like(operand.stream)
            inputs.append(operand.stream)
            outputs.append(output)
            operands[access] = replace(operand, stream=output)
    block = Join(kind=kind, sides=tuple(1 + len(side.operands) for side in sides))
    scope.blocks.add(block, inputs, [coordinate, *outputs], region)
    return _Joined(coordinate=coordinate, operands=operands, full=False, filled=False)


def _check_one_level(scope: NestScope, access: Access, operand: NestOperand, how: str) -> None:
    """Refuse to treat one by one the coordinates of a temporary that has levels below them."""
    if operand.pending:
        raise UnsupportedError(
            f"{access.tensor} arrives in several levels, and the outer one is {how}",
            location=access.location or scope.program.location,
            expected="loops around that make it fiber by fiber, or an outer level that is alone",
            given=print_expression(access),
            hint=f"store {access.tensor}",
        )


def _repeat(scope: NestScope, operand: NestOperand, by: DiagramWire, region: str) -> NestOperand:
    output = scope.blocks.like(operand.stream, scope.depth + 1)
    scope.blocks.add(Repeat(), [by, operand.stream], [output], region)
    return replace(operand, stream=output)


def _locate(
    scope: NestScope, access: Access, operand: NestOperand, coordinate: DiagramWire, region: str
) -> NestOperand:
    format = scope.program.format_of(access.tensor)
    variable = access.variables[format.modes[operand.level]]
    output = scope.blocks.like(operand.stream)
    block = format.levels[operand.level].locate(variable)
    if block is None:
        raise InternalError(f"a level of {access.tensor} cannot be located")
    inputs = [coordinate, operand.stream]
    scope.blocks.add(block, inputs, [output], region, access.location)
    return replace(operand, stream=output, level=operand.level + 1)
