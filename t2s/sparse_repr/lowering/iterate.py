"""Iteration and merging: the scanners, joiners and repeaters of one loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from t2s.core.errors import InternalError, UserError
from t2s.graph.graph import RegionKind
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.joins import Join
from t2s.sparse_repr.blocks.repeats import Repeat
from t2s.sparse_repr.blocks.scanners import Count
from t2s.sparse_repr.blocks.storage import Manner, Scan, ScanJoin
from t2s.sparse_repr.concrete.ir import Forall
from t2s.sparse_repr.concrete.merge import (
    Both,
    Either,
    Everything,
    Leaf,
    Merge,
    both,
    either,
    is_unbounded,
    merge_of,
)
from t2s.sparse_repr.levels import Level
from t2s.sparse_repr.lowering.diagram import DiagramWire, TokenKind
from t2s.sparse_repr.lowering.scope import LoopLevel, NestOperand, NestScope
from t2s.sparse_repr.notation.ir import Access, Expression, accesses


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    """Coordinates one loop further in, and the operands that go with them.

    ``full``: all coordinates of the variable are there, in every fiber.
    ``filled``: no fiber is empty.
    """

    coordinate: DiagramWire
    operands: dict[Access, NestOperand]
    full: bool
    filled: bool


def enter_loop(scope: NestScope, loop: Forall, value: Expression) -> NestScope:
    """The scope inside of a loop around ``value``."""
    variable = loop.variable
    merge = merge_of(value, variable, scope.program.semiring)
    located = tuple(a for a in accesses(value) if _is_located(scope, loop, a))
    for access in located:
        _check_located(scope, access)
    rest = _without(merge, set(located))
    if is_unbounded(rest) and not is_unbounded(merge):
        raise UserError(
            f"nothing is left at {variable} to locate with",
            location=scope.program.location,
            expected=f"an operand that is multiplied with {', '.join(loop.located)} and has "
            f"{variable}",
        )
    region = scope.blocks.add_loop(variable, _kind(scope, rest), scope.region or None)
    joined = _lower(replace(scope, skip=loop.skip), rest, variable, region)
    operands = dict(scope.operands)
    for access in accesses(value):
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


def _is_located(scope: NestScope, loop: Forall, access: Access) -> bool:
    """Whether an operand is located into; by default only dense levels of a tensor are."""
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
        f"the level of {access.tensor} at {variable} cannot be located into",
        location=access.location or scope.program.location,
        expected="a dense level",
        given="a temporary" if level is None else level.title,
    )


def enter_lanes(scope: NestScope, loop: Forall) -> NestScope:
    """The scope inside of the loop over the lanes of vectors: references are those of vectors."""
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
    """The merge where operands that are located, being dense, are there at every coordinate."""
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
    if operand.pending is not None:
        return None
    return scope.program.format_of(access.tensor).levels[operand.level]


def _lower(scope: NestScope, merge: Merge, variable: str, region: str) -> _Joined:
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
    if operand.pending is not None:  # a temporary that comes as a fiber
        inside = replace(operand, pending=None)
        return _Joined(
            coordinate=operand.pending, operands={access: inside}, full=False, filled=False
        )
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
    """Whether the next level has a coordinate in every fiber: what is stored is not empty."""
    operand = scope.operands[access]
    format = scope.program.format_of(access.tensor)
    return operand.level > 0 and not format.levels[operand.level - 1].full


def _count(scope: NestScope, variable: str, region: str) -> _Joined:
    driver = scope.driver
    coordinate = scope.blocks.stream(TokenKind.COORDINATE, scope.depth + 1, variable)
    scope.blocks.add(Count(), [driver], [coordinate], region)
    return _Joined(coordinate=coordinate, operands={}, full=True, filled=variable not in scope.void)


def _intersect(scope: NestScope, members: tuple[Merge, ...], variable: str, region: str) -> _Joined:
    """The coordinates of all members; those that go on without an end are looked up at the others.

    Such a member, as ``1 + b``, is there wherever the others are, so its operands are united with
    the coordinates of these alone.
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
    """The sides of a joiner; levels that are joined as they are scanned are one side."""
    manner, together = _together(scope, kind, members)
    if manner is None:
        return [_lower(scope, member, variable, region) for member in members]
    first = _scan_join(scope, kind, manner, together, region)
    rest = [member for member in members if member not in together]
    return [first, *(_lower(scope, member, variable, region) for member in rest)]


def _together(
    scope: NestScope, kind: BlockKind, members: tuple[Merge, ...]
) -> tuple[Manner | None, tuple[Leaf, ...]]:
    """The levels that can be joined as they are scanned: bitvectors, or where the user skips."""
    leaves = [member for member in members if isinstance(member, Leaf)]
    there = [leaf for leaf in leaves if not scope.operands[leaf.access].missing]
    skips = scope.skip and kind is BlockKind.INTERSECT
    levels = [_level(scope, leaf.access) for leaf in there]
    for manner in (Manner.SKIPPING, Manner.WORDS) if skips else (Manner.WORDS,):
        kinds = [level for level in levels if level is not None and level.together is manner]
        pairs = zip(there, levels, strict=True)
        found = tuple(leaf for leaf, level in pairs if level in kinds[:1])
        if len(found) > 1:
            return manner, found
    return None, ()


def _scan_join(
    scope: NestScope, kind: BlockKind, manner: Manner, leaves: tuple[Leaf, ...], region: str
) -> _Joined:
    depth, operands = scope.depth + 1, {}
    coordinate = scope.blocks.stream(TokenKind.COORDINATE, depth)
    given = [scope.operands[leaf.access] for leaf in leaves]
    for leaf, operand in zip(leaves, given, strict=True):
        tensor = leaf.access.tensor
        child = scope.blocks.stream(TokenKind.REFERENCE, depth, tensor)
        operands[leaf.access] = replace(operand, stream=child, level=operand.level + 1)
    tensors = (leaf.access.tensor for leaf in leaves)
    levels = (operand.level for operand in given)
    scope.blocks.add(
        ScanJoin(kind=kind, manner=manner, sides=tuple(zip(tensors, levels, strict=True))),
        [operand.stream for operand in given],
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
    """Whether these operands were united in the loop around, and each that is there has a fiber."""
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
            output = scope.blocks.like(operand.stream)
            inputs.append(operand.stream)
            outputs.append(output)
            operands[access] = replace(operand, stream=output)
    block = Join(kind=kind, sides=tuple(1 + len(side.operands) for side in sides))
    scope.blocks.add(block, inputs, [coordinate, *outputs], region)
    return _Joined(coordinate=coordinate, operands=operands, full=False, filled=False)


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
        raise InternalError(f"a level of {access.tensor} cannot be located into")
    given = [coordinate, operand.stream]
    scope.blocks.add(block, given, [output], region, access.location)
    return replace(operand, stream=output, level=operand.level + 1)
