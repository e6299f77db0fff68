"""Chains: the path of a tensor through the memories, in one line (after T2SP's stensors).

::

    A >> t2s.dram("A_loader") >> t2s.sram("A_feeder", scope=k) >> C
    C >> t2s.registers("C_drainer", gather=ii) >> t2s.dram("C_unloader")

A chain is a frozen value.  Its last stage adds ordinary directives to the plans of the Funcs, at
the line of the chain; an unfinished chain does nothing.

**Inputs**: ``operand >> [host] >> dram >> (sram | registers)* >> C``.  The operand is an input or
an expression of the definition of C.  At C the chain ends, and stands for, in this order:

* ``C.isolate_producer_chain(operand, stages)``.  Each stage is a new Func; that of ``host`` is on
  the host.
* Along every loop that is unrolled in C at that time: ``C.forward(last stage, loop)`` if the
  operand does not depend on the loop; else ``stage.scatter(previous stage, loop)`` in the sram
  stage, unless that has ``scatter=False`` or there is none.  isl decides which of the two when the
  design is lowered.  Two loops for one stage, and two stages for one loop, are refused.
* For every sram stage: ``stage.buffer(previous stage, scope)``, and ``remove`` in the stages before
  it, of the loops inside of ``scope`` along which the operand does not change.  The scope has to be
  that of an earlier sram stage or inside of it.
* For a host stage: ``remove`` of all loops along which the operand does not change.
* ``stage.depth(n)`` where a depth is given.

A chain that ends at a tuple, ``>> (F, G)``, is that for F.  G takes what the last stage sends too:
``G.isolate_producer(operand, last stage)``, and forwards it.

**Outputs**: ``C >> registers* >> dram [>> host]``.  At dram the chain ends, and stands for
``C.isolate_consumer_chain(stages)``, ``stage.gather(previous stage, loop)`` where ``gather`` is
given, and ``stage.vstore(C)`` for ``dram(lanes=loop)``.

Along a loop of one iteration nothing varies; then the subscripts decide by whether they name it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Self, TypeVar, overload

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.validate import as_int
from t2s.func.expressions import Expression, Receiver
from t2s.func.func import ImageParam, RVar, Var
from t2s.spatial.arguments import LoopVariable
from t2s.spatial.directives.distribute import Distribute, RemoveReuse
from t2s.spatial.directives.vectors import VectorStore
from t2s.spatial.schedule import IsolatingFunc, Place

FuncT = TypeVar("FuncT", bound=IsolatingFunc)

_ORDER_IN = "input >> [host] >> dram >> sram or registers, any number >> Func"
_ORDER_OUT = "Func >> registers, any number >> dram [>> host]"


class StageKind(Enum):
    """The memory in which a stage keeps its values."""

    HOST = "host"
    DRAM = "dram"
    SRAM = "sram"
    REGISTERS = "registers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStage(Receiver):
    """One step of a chain; made by ``host``, ``dram``, ``sram`` and ``registers``."""

    __array_ufunc__ = None  # numpy would otherwise shift element by element

    kind: StageKind
    name: str
    depth: int | None = None
    scope: LoopVariable | None = None
    double: bool = True
    scatter: bool = False
    gather: LoopVariable | None = None
    lanes: LoopVariable | None = None

    @overload
    def __rrshift__(self, start: IsolatingFunc) -> OutputChain: ...

    @overload
    def __rrshift__(self, start: ImageParam | Expression) -> InputChain: ...

    def __rrshift__(self, start: object) -> InputChain | OutputChain:
        if isinstance(start, IsolatingFunc):
            return OutputChain(function=start, stages=(), unloader=None) >> self
        if isinstance(start, ImageParam | Expression):
            return InputChain(operand=start, stages=()) >> self
        raise UserError(
            f"a chain cannot begin with {start!r}",
            location=user_location(),
            expected="an input, an expression of the definition, or the Func whose results are "
            "saved",
            given=f"an object of type {start.__class__.__name__}",
        )

    def __repr__(self) -> str:
        return f"{self.kind.value}({self.name})"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputChain:
    """The path of an operand to the Func that uses it, as far as it is written."""

    operand: ImageParam | Expression
    stages: tuple[ChainStage, ...]

    @overload
    def __rshift__(self, following: ChainStage) -> InputChain: ...

    @overload
    def __rshift__(self, following: FuncT) -> FuncT: ...

    @overload
    def __rshift__(self, following: tuple[FuncT, ...]) -> tuple[FuncT, ...]: ...

    def __rshift__(self, following: object) -> object:
        """Append a stage; a Func, or a tuple of Funcs, ends the chain and is returned."""
        if isinstance(following, ChainStage):
            self._check_order(following)
            return replace(self, stages=(*self.stages, following))
        functions = following if isinstance(following, tuple) and following else (following,)
        if not all(isinstance(function, IsolatingFunc) for function in functions):
            raise UserError(
                f"{self!r} goes on with something that is neither a stage nor a Func",
                location=user_location(),
                expected=_ORDER_IN,
                given=repr(following),
            )
        if all(stage.kind is StageKind.HOST for stage in self.stages):
            raise _wrong_order(
                repr(self), _ORDER_IN, repr(following), "a dram stage loads what the host puts"
            )
        for position, function in enumerate(functions):
            if any(function is other for other in functions[:position]):
                raise UserError(
                    f"{self!r} ends at {function.name} twice",
                    location=user_location(),
                    expected="each Func once",
                    given=", ".join(other.name for other in functions),
                )
        self._end(*functions)
        return following

    def __repr__(self) -> str:
        start = self.operand.name if isinstance(self.operand, ImageParam) else repr(self.operand)
        return " >> ".join([start, *map(repr, self.stages)])

    def _check_order(self, stage: ChainStage) -> None:
        last = self.stages[-1].kind if self.stages else None
        legal = {None: (StageKind.HOST, StageKind.DRAM), StageKind.HOST: (StageKind.DRAM,)}
        if stage.kind not in legal.get(last, (StageKind.SRAM, StageKind.REGISTERS)):
            hint = "operands come from memory: a dram stage loads them, once, and first"
            raise _wrong_order(repr(self), _ORDER_IN, repr(stage), hint)
        for option, value in (("gather", stage.gather), ("lanes", stage.lanes)):
            if value is not None:
                raise UserError(
                    f"{option} in {stage!r}: the chain of {self!r} brings an operand",
                    location=user_location(),
                    expected=f"{option} on the way out, in a chain that begins with a Func",
                    given=f"{option}={value.name}",
                    hint="PEs take operands from one stream by scatter, in a sram stage"
                    if option == "gather"
                    else "operands are loaded as vectors by vload, for all operands together",
                )

    def _end(self, function: IsolatingFunc, *others: IsolatingFunc) -> None:
        make = type(function)
        funcs = [
            make(s.name, place=Place.HOST if s.kind is StageKind.HOST else Place.DEVICE)
            for s in self.stages
        ]
        function.isolate_producer_chain(self.operand, *funcs)
        scattering = tuple(s.name for s in self.stages if s.scatter)
        text = f"{self!r} >> {function.name}"
        location = user_location()
        function._add(_distribute(funcs[-1], scattering, location, text))
        for stage, previous, func in zip(self.stages[1:], funcs, funcs[1:], strict=False):
            if stage.scope is not None:
                func.buffer(previous, stage.scope, double=stage.double)
                inside = stage.scope.name
                previous._add(RemoveReuse(scope=inside, location=location, text=text))
        if self.stages[0].kind is StageKind.HOST:
            funcs[0]._add(RemoveReuse(scope=None, location=location, text=text))
        _set_depths(self.stages, funcs)
        for other in others:
            other.isolate_producer(self.operand, funcs[-1])
            other._add(_distribute(funcs[-1], (), location, f"{self!r} >> {other.name}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChain:
    """The path of a Func's results to memory; ``unloader`` is the final dram stage."""

    function: IsolatingFunc
    stages: tuple[ChainStage, ...]
    unloader: IsolatingFunc | None

    def __rshift__(self, following: object) -> Self:
        """Append a stage; a dram stage ends the chain."""
        if not isinstance(following, ChainStage):
            raise UserError(
                f"{self!r} goes on with something that is not a stage",
                location=user_location(),
                expected=_ORDER_OUT,
                given=repr(following),
                hint=f"a chain that begins with a Func saves its results; to load "
                f"{self.function.name} for another Func, begin with one of its elements",
            )
        self._check_order(following)
        longer = replace(self, stages=(*self.stages, following))
        if self.unloader is not None:
            make = type(self.function)
            self.unloader.isolate_consumer(make(following.name, place=Place.HOST))
        elif following.kind is StageKind.DRAM:
            return replace(longer, unloader=longer._end())
        return longer

    def __repr__(self) -> str:
        return " >> ".join([self.function.name, *map(repr, self.stages)])

    def _check_order(self, stage: ChainStage) -> None:
        last = self.stages[-1].kind if self.stages else StageKind.REGISTERS
        legal: dict[StageKind, tuple[StageKind, ...]] = {
            StageKind.DRAM: (StageKind.HOST,),
            StageKind.HOST: (),
        }
        if stage.kind not in legal.get(last, (StageKind.REGISTERS, StageKind.DRAM)):
            hint = "results go to memory in a dram stage, once, and last on the device"
            raise _wrong_order(repr(self), _ORDER_OUT, repr(stage), hint)
        if stage.kind is StageKind.DRAM and stage.depth is not None:
            raise UserError(
                f"depth in {stage!r}: the chain of {self!r} ends there",
                location=user_location(),
                expected="a stage with a channel behind it",
                given=f"depth={stage.depth}",
                hint="depth is the capacity of the channel to the next stage",
            )

    def _end(self) -> IsolatingFunc:
        make = type(self.function)
        funcs = [make(stage.name) for stage in self.stages]
        self.function.isolate_consumer_chain(*funcs)
        previous = self.function
        for stage, func in zip(self.stages, funcs, strict=True):
            if stage.gather is not None:
                func.gather(previous, stage.gather)
            if stage.lanes is not None:
                func._add(
                    VectorStore(
                        function=self.function.name,
                        lanes=stage.lanes.name,
                        location=user_location(),
                        text=f"vstore({self.function.name})",
                    )
                )
            previous = func
        _set_depths(self.stages, funcs)
        return funcs[-1]


def _distribute(
    last: IsolatingFunc, scattering: tuple[str, ...], location: SourceLocation, text: str
) -> Distribute:
    return Distribute(operand=last.name, scattering=scattering, location=location, text=text)


def _set_depths(stages: tuple[ChainStage, ...], funcs: list[IsolatingFunc]) -> None:
    for stage, func in zip(stages, funcs, strict=True):
        if stage.depth is not None:
            func.depth(stage.depth)


def _wrong_order(chain: str, expected: str, given: str, hint: str) -> UserError:
    return UserError(
        f"{chain} cannot go on with {given}",
        location=user_location(),
        expected=expected,
        given=f"{chain} >> {given}",
        hint=hint,
    )


# The stages of a chain, as the user writes them.


def host(name: str, **others: object) -> ChainStage:
    """A stage on the host: it orders the array in the device's memory.

    For an input it stores every element once, in the order of the loads.
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
    """A stage that keeps the tokens of one iteration of the loop ``scope`` on chip.

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

    In an output chain its PEs send their results as one stream along the unrolled loop ``gather``.
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
    """The error for an option that a stage of this kind does not have."""
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
    number = as_int(depth)
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
