"""The stages of a chain, as the user writes them; ``chains.py`` says what they mean."""

from __future__ import annotations

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.func.symbols import RVar, Var
from t2s.spatial.arguments import LoopVariable
from t2s.spatial.chains import ChainStage, StageKind


def host(name: str, **others: object) -> ChainStage:
    """A stage on the host: it orders the array in the device's memory.

    For an input it puts every element there once, in the order in which they are loaded.
    """
    _refuse(StageKind.HOST, others)
    return ChainStage(kind=StageKind.HOST, name=_checked_name(StageKind.HOST, name))


def dram(
    name: str, *, lanes: LoopVariable | None = None, depth: int | None = None, **others: object
) -> ChainStage:
    """A stage that loads from the device's memory, or stores there.

    ``lanes`` is the innermost loop, along which results are stored as vectors.  ``depth`` is the
    capacity of the channel to the next stage.
    """
    _refuse(StageKind.DRAM, others)
    return ChainStage(
        kind=StageKind.DRAM,
        name=_checked_name(StageKind.DRAM, name),
        lanes=_checked_loop(StageKind.DRAM, "lanes", lanes),
        depth=_checked_depth(StageKind.DRAM, depth),
    )


def sram(
    name: str,
    *,
    scope: LoopVariable | None = None,
    double: bool = True,
    scatter: bool = True,
    depth: int | None = None,
    **others: object,
) -> ChainStage:
    """A stage that keeps what arrives during one iteration of the loop ``scope`` on chip.

    With ``double`` it fills one half of its buffer while it sends from the other.  With ``scatter``
    its PEs take their values from one stream, along the unrolled loop on which they depend.
    """
    _refuse(StageKind.SRAM, others)
    checked = _checked_loop(StageKind.SRAM, "scope", scope)
    if checked is None:
        raise UserError(
            "sram needs a scope",
            location=user_location(),
            expected='the loop in which values are used again: t2s.sram("A_feeder", scope=k)',
            hint="a stage that keeps nothing is t2s.registers",
        )
    return ChainStage(
        kind=StageKind.SRAM,
        name=_checked_name(StageKind.SRAM, name),
        scope=checked,
        double=_checked_switch("double", double),
        scatter=_checked_switch("scatter", scatter),
        depth=_checked_depth(StageKind.SRAM, depth),
    )


def registers(
    name: str, *, gather: LoopVariable | None = None, depth: int | None = None, **others: object
) -> ChainStage:
    """A stage that passes values on.

    On the way out its PEs send their results as one stream along the unrolled loop ``gather``.
    """
    _refuse(StageKind.REGISTERS, others)
    return ChainStage(
        kind=StageKind.REGISTERS,
        name=_checked_name(StageKind.REGISTERS, name),
        gather=_checked_loop(StageKind.REGISTERS, "gather", gather),
        depth=_checked_depth(StageKind.REGISTERS, depth),
    )


_OPTIONS = {
    StageKind.HOST: (),
    StageKind.DRAM: ("lanes", "depth"),
    StageKind.SRAM: ("scope", "double", "scatter", "depth"),
    StageKind.REGISTERS: ("gather", "depth"),
}


def _refuse(kind: StageKind, others: dict[str, object]) -> None:
    """An option that a stage of this kind does not have."""
    for option in others:
        owners = [f"t2s.{other.value}" for other in StageKind if option in _OPTIONS[other]]
        raise UserError(
            f"{kind.value} takes no {option}",
            location=user_location(),
            expected=f"of the options {', '.join(_OPTIONS[kind])}" if _OPTIONS[kind] else "a name",
            given=option,
            hint=f"{option} belongs to {', '.join(owners)}" if owners else None,
        )


def _checked_name(kind: StageKind, name: object) -> str:
    if isinstance(name, str) and name.isidentifier():
        return name
    raise UserError(
        f"{kind.value} needs the name of a new Func",
        location=user_location(),
        expected=f'for example t2s.{kind.value}("A_feeder")',
        given=repr(name),
    )


def _checked_loop(kind: StageKind, option: str, loop: object) -> LoopVariable | None:
    if loop is None or isinstance(loop, Var | RVar):
        return loop
    raise UserError(
        f"the {option} of {kind.value} has to be a loop",
        location=user_location(),
        expected="a Var or RDom object",
        given=repr(loop),
        hint='loops are named by objects: ii = Var("ii")',
    )


def _checked_depth(kind: StageKind, depth: object) -> int | None:
    number = whole(depth)
    if depth is None or (number is not None and number > 0):
        return number
    raise UserError(
        f"the depth of {kind.value} has to be a positive integer",
        location=user_location(),
        expected="1 or more",
        given=repr(depth),
    )


def _checked_switch(option: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise UserError(
        f"{option} of sram has to be True or False",
        location=user_location(),
        expected="True or False",
        given=repr(value),
    )
