"""The steps of a chain: the effect of each on a layout, and when it is refused.

A step is refused if it is meaningless at its place in the chain, or if it would lose information
that the inverse map needs: the column of a value, the end of a row, the order of jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.validate import as_int
from t2s.func.func import Var
from t2s.sparse_repr.representation.chain_layout import (
    Blocking,
    BlockJob,
    BlockPadding,
    ChainLayout,
    DenseTile,
    FiberJob,
    Grouping,
    Index,
    Length,
    MatrixDimension,
    NamedStructure,
    Packing,
    Policy,
    Scheduling,
    WholeExtent,
)
from t2s.sparse_repr.representation.inverse_map import Order, job_order


@dataclass(frozen=True, kw_only=True)
class StepPlace:
    """A step in the user's program: its text, the layout before it, and its line."""

    text: str
    before: str
    location: SourceLocation
    known: Mapping[str, NamedStructure]

    def refuse(
        self, reason: str, *, expected: str, hint: str | None = None, given: str | None = None
    ) -> NoReturn:
        """Raise the error for this step."""
        raise UserError(
            f"{self.text} {reason}",
            location=self.location,
            expected=expected,
            given=given if given is not None else f"after {self.before}",
            hint=hint,
        )

    def structure(
        self,
        parts: Sequence[object],
        kind: type[NamedStructure],
        allowed: tuple[type[NamedStructure], ...] = (Index, Length),
    ) -> NamedStructure | None:
        """The part of that kind; checks that all are allowed and that names are new."""
        wrong = next((part for part in parts if not isinstance(part, allowed)), None)
        if wrong is not None:
            self.refuse(
                "has an unknown argument",
                expected=" or ".join(f"{each.__name__}(variable)" for each in allowed),
                given=repr(wrong),
            )
        matching = [part for part in parts if isinstance(part, kind)]
        if len(matching) > 1:
            self.refuse(
                f"has two parts of kind {kind.__name__}",
                expected=f"one {kind.__name__}",
                given=", ".join(map(repr, matching)),
            )
        others = [part for part in parts if isinstance(part, NamedStructure)]
        names = [part.name for part in others]
        for part in others:
            if part.name in self.known or names.count(part.name) > 1:
                self.refuse(
                    f"uses the name {part.name} a second time",
                    expected="a Var of its own for each part of the structure",
                    given=f"{part!r} after {self.before}",
                )
        return matching[0] if matching else None


def skew(layout: ChainLayout, at: StepPlace, dimension: object) -> ChainLayout:
    """Columns become diagonals."""
    if layout != ChainLayout():
        at.refuse("comes too late", expected="skew as the first step, A.dense().skew(Columns)")
    if dimension is not MatrixDimension.COLUMNS:
        at.refuse("applies to columns only", expected="skew(Columns)", given=repr(dimension))
    return replace(layout, skewed=True)


def pack(
    layout: ChainLayout,
    at: StepPlace,
    target: object,
    index: NamedStructure | None,
    length: NamedStructure | None,
) -> ChainLayout:
    """Pack the units of fibers, or the fibers themselves."""
    _check_open(layout, at)
    dimension = _dimension_of(layout, at, target)
    if index is None:
        at.refuse(
            f"loses the {_singular(dimension)} of every value",
            expected=f"an Index that records it, as in pack({dimension!r}, Index(idx))",
        )
    packing = Packing(
        dimension=dimension,
        index=index.name,
        length=length.name if length is not None else None,
        location=at.location,
    )
    if layout.minor is None:
        return replace(layout, minor=packing, major=layout.other(dimension))
    if layout.minor.dimension is dimension or layout.fiber is not None:
        at.refuse(
            f"packs {dimension!r} a second time", expected="every dimension packed at most once"
        )
    if layout.blocks or layout.groups:
        at.refuse(
            "comes after a block of what is packed",
            expected="both dimensions packed before either is blocked",
        )
    if length is not None:
        at.refuse(
            f"cannot record {length!r}: there is one sequence of {dimension.value.lower()} only",
            expected=f"pack({dimension!r}, {index!r})",
        )
    return replace(layout, fiber=packing)


def block(
    layout: ChainLayout,
    at: StepPlace,
    target: object,
    factor: object,
    padding: object,
    length: NamedStructure | None,
) -> ChainLayout:
    """Blocks of a dense dimension, of the units of a fiber, or of fibers."""
    _check_open(layout, at)
    if not isinstance(padding, BlockPadding):
        at.refuse("needs a padding", expected="Zero or Longest", given=repr(padding))
    size = as_int(factor)
    if factor is not WholeExtent.WHOLE and (size is None or size < 1):
        at.refuse(
            "needs a factor of at least 1",
            expected="a positive integer, or Whole before pack",
            given=repr(factor),
        )
    name = length.name if length is not None else None
    if layout.minor is None:
        return _tile(layout, at, target, size, padding, name)
    if size is None:
        at.refuse(
            "blocks a whole dimension that is packed",
            expected="an integer factor; Whole stands before pack",
        )
    if _is_minor(layout, target):
        return _block_units(layout, at, target, size, padding, name)
    _check_fiber(layout, at, target)
    if padding is not BlockPadding.ZERO:
        at.refuse(
            "pads blocks of rows to the longest block",
            expected=f"{BlockPadding.ZERO!r}: the last block is filled with empty"
            f" {_fibers(layout)}",
            hint=f"to make the {_fibers(layout)} of a block equally long, block "
            f"{layout.minor.dimension!r} with Longest afterwards",
        )
    return replace(layout, groups=(*layout.groups, Grouping(size=size, name=name)))


def schedule(
    layout: ChainLayout,
    at: StepPlace,
    target: object,
    machines: object,
    policy: object,
    padding: object,
    index: NamedStructure | None,
) -> ChainLayout:
    """The last step: assign jobs to machines."""
    _check_open(layout, at)
    count = as_int(machines)
    if count is None or count < 1:
        at.refuse(
            "needs machines", expected="a number of machines, at least 1", given=repr(machines)
        )
    if not isinstance(policy, Policy):
        at.refuse("needs a policy", expected="ASAP, RoundRobin or LongestFirst", given=repr(policy))
    if padding is not BlockPadding.ZERO:
        at.refuse(
            "has the wrong padding",
            expected="Zero: the machines' streams are filled up at their ends",
            given=repr(padding),
            hint="to keep machines in step, block Rows by their number and Columns with Longest",
        )
    if layout.minor is None:
        layout = replace(layout, major=_dimension_of(layout, at, target))
    scheduled = replace(
        layout,
        schedule=Scheduling(
            job=_job(layout, at, target),
            machines=count,
            policy=policy,
            index=index.name if index is not None else None,
            location=at.location,
        ),
    )
    _check_invertible(scheduled, at)
    return scheduled


def _job(layout: ChainLayout, at: StepPlace, target: object) -> FiberJob | BlockJob:
    if layout.minor is None:
        return FiberJob(fibers=1)
    if _is_minor(layout, target):
        slots = 1
        for blocking in layout.blocks:
            slots *= blocking.factor
            if _named(target, blocking.name):
                return BlockJob(slots=slots)
        return BlockJob(slots=1)
    fibers = 1
    for group in layout.groups:
        fibers *= group.size
        if _named(target, group.name):
            return FiberJob(fibers=fibers)
    _check_fiber(layout, at, target)
    return FiberJob(fibers=1)


def _check_invertible(layout: ChainLayout, at: StepPlace) -> None:
    """Refuse a chain that does not record all that its inverse map needs."""
    assert layout.schedule is not None
    order = job_order(layout)
    if order is Order.FREE or layout.minor is None:
        return
    if layout.lengths is None:
        unnamed = next((block for block in layout.blocks if block.name is None), None)
        what = _singular(layout.other(layout.minor.dimension))
        where = "block" if unnamed is not None and layout.minor.length is not None else "pack"
        at.refuse(
            f"cannot be undone: nothing records where a {what} ends",
            expected=f"a Length in {where}, as in "
            f"pack({layout.minor.dimension!r}, Length(len), Index({layout.minor.index}))"
            if where == "pack"
            else "a Length in block(..., Longest, Length(b))",
            hint=None
            if where == "block"
            else f"packing {layout.major!r} too would record the {what} of every value",
        )
    if order is None:
        at.refuse(
            "cannot be undone: nothing records which job is which",
            expected="an Index(job) as its last argument",
            hint="ASAP and RoundRobin follow from the lengths alone",
        )


def _tile(
    layout: ChainLayout,
    at: StepPlace,
    target: object,
    factor: int | None,
    padding: BlockPadding,
    name: str | None,
) -> ChainLayout:
    dimension = _dimension_of(layout, at, target)
    if padding is not BlockPadding.ZERO:
        at.refuse(
            "pads dense blocks", expected="Zero: all blocks of a dense dimension are equally long"
        )
    earlier = [tile for tile in layout.tiles if tile.dimension is dimension]
    if any(tile.factor is None for tile in earlier):
        at.refuse(f"blocks {dimension!r} again, which is a single block", expected="no block")
    return replace(
        layout, tiles=(*layout.tiles, DenseTile(dimension=dimension, factor=factor, name=name))
    )


def _block_units(
    layout: ChainLayout,
    at: StepPlace,
    target: object,
    size: int,
    padding: BlockPadding,
    name: str | None,
) -> ChainLayout:
    assert layout.minor is not None
    last = layout.blocks[-1] if layout.blocks else None
    if last is not None and not _named(target, last.name):
        at.refuse(
            f"blocks {layout.minor.dimension!r} a second time",
            expected="a block of the last blocks, by the name that their Length gives them",
        )
    group = None
    if padding is BlockPadding.LONGEST and layout.groups:
        group = layout.groups[0].size
    blocking = Blocking(factor=size, padding=padding, name=name, group=group)
    return replace(layout, blocks=(*layout.blocks, blocking))


def _check_open(layout: ChainLayout, at: StepPlace) -> None:
    if layout.schedule is not None:
        at.refuse("comes after the schedule", expected="the schedule as the last step")


def _dimension_of(layout: ChainLayout, at: StepPlace, target: object) -> MatrixDimension:
    """The dimension of the matrix that a step before packing names."""
    for tile in layout.tiles:
        if _named(target, tile.name):
            return tile.dimension
    if isinstance(target, MatrixDimension) and target in layout.dimensions:
        return target
    return _unknown(layout, at, target)


def _is_minor(layout: ChainLayout, target: object) -> bool:
    assert layout.minor is not None
    names = [tile.name for tile in layout.tiles if tile.dimension is layout.minor.dimension]
    names += [blocking.name for blocking in layout.blocks]
    return _named(target, layout.minor.dimension) or any(_named(target, name) for name in names)


def _check_fiber(layout: ChainLayout, at: StepPlace, target: object) -> None:
    names = [tile.name for tile in layout.tiles if tile.dimension is layout.major]
    names += [group.name for group in layout.groups]
    if not (_named(target, layout.major) or any(_named(target, name) for name in names)):
        _unknown(layout, at, target)


def _named(target: object, name: object) -> bool:
    if isinstance(target, Var):
        return isinstance(name, str) and target.name == name
    return name is not None and target is name


def _unknown(layout: ChainLayout, at: StepPlace, target: object) -> NoReturn:
    names: list[str | None] = [repr(dimension) for dimension in layout.dimensions]
    names += [tile.name for tile in layout.tiles]
    names += [blocking.name for blocking in layout.blocks]
    names += [group.name for group in layout.groups]
    at.refuse(
        "names an unknown dimension",
        expected=f"one of {', '.join(name for name in names if name is not None)}",
        given=target.name if isinstance(target, Var) else repr(target),
    )


def _singular(dimension: MatrixDimension) -> str:
    return dimension.value.lower().removesuffix("s")


def _fibers(layout: ChainLayout) -> str:
    assert layout.major is not None
    return layout.major.value.lower()
