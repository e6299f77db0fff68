"""The tensors, searches and sorted memories of a machine's kernel, in dialects that have them.

A tensor on the chip that the machine reads is an array of the kernel, filled from memory at the
start, and written back at the end if the machine stores into it.  One that is only stored goes
straight to memory.  Of an open tensor, a parameter has the number of elements in memory; a machine
that stores into it counts them, and stores none behind the last that has room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from t2s.backends.kernels import kernel_ast as ast
from t2s.backends.kernels.dialect import Dialect, StateArray, lane_at
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.scope import FileScope, is_copied
from t2s.backends.text.expressions import (
    Do,
    If,
    Literal,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    binary,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.expr import Const, Expr, Local
from t2s.core.types import Kind, Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterWrite, Store
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.nodes import Machine, Search, SortedMemory
from t2s.graph.ports import accesses_of_machine

POINTS = 1024
"""Points of a sorted memory, where nothing else is said."""

_POSITION = Type(Kind.INT, 64)
_MOST = number(2**31 - 1)

Lower = Callable[[Expr], TargetExpression]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTensor:
    """A tensor as one machine uses it.

    Attributes
    ----------
    pointer: the parameter.
    array: what accesses index: the pointer, or a copy in the kernel.
    size: what the array has room for in each dimension.
    room: the number of elements in memory; ``length`` names the parameter that says it.
    count: the variable that counts the elements of an open tensor that the machine stores.
    """

    tensor: Tensor
    pointer: str
    array: str
    size: tuple[TargetExpression, ...]
    room: TargetExpression
    length: str | None
    count: str | None
    stored: bool

    @property
    def copied(self) -> bool:
        return self.array != self.pointer

    @property
    def grows(self) -> bool:
        """Whether elements behind the last one in memory may be stored, and are zero before."""
        return self.count is not None


def machine_tensor(
    tensor: Tensor, machine: Machine, file: FileScope, identifiers: Identifiers
) -> MachineTensor:
    """Name the variables of a tensor in the kernel of a machine."""
    pointer = array = identifiers.fresh(tensor.name)
    stored = any(isinstance(s, Store) and s.tensor == tensor.name for s in machine.statements())
    size: tuple[TargetExpression, ...] = tuple(number(extent) for extent in tensor.allocated)
    room: TargetExpression = number(prod(tensor.allocated))
    length = count = None
    if tensor.open:
        length = identifiers.fresh(f"{tensor.name}_{'room' if stored else 'length'}")
        room = Name(name=length)
        size = (room,)
        count = identifiers.fresh(f"{tensor.name}_length") if stored else None
    if is_copied(tensor, machine):
        array = identifiers.fresh(f"{tensor.name}_chip")
        size = (Name(name=file.capacities[tensor.name]),) if count else size
    return MachineTensor(
        tensor=tensor,
        pointer=pointer,
        array=array,
        size=size,
        room=room,
        length=length,
        count=count,
        stored=stored,
    )


@dataclass(frozen=True, kw_only=True)
class MachineMemory:
    """Statements on the tensors and sorted memories of one machine.

    ``fail`` gives the statements of an error with this message, after which the machine goes on;
    ``index`` is the variable of loops over all elements.
    """

    node: Machine
    file: FileScope
    helpers: Helpers
    tensors: dict[str, MachineTensor]
    points: dict[str, PointNames]
    fail: Callable[[str], list[TargetStatement]]
    index: str

    @property
    def dialect(self) -> Dialect:
        return self.helpers.dialect

    # ------------------------------------------------------------------- around the firings

    def at_start(self) -> list[TargetStatement]:
        """Declarations of counts and copies, and the filling of copies."""
        statements: list[TargetStatement] = []
        for use in self.tensors.values():
            if use.count is not None:
                statements.append(ast.Declare(type="int", name=use.count, initial=number(0)))
            if use.copied:
                statements += self._copy_in(use)
        for memory in self.node.memories:
            names = self.points[memory.name]
            capacity = self.file.capacities[self.node.name, memory.name]
            statements += [
                ast.Declare(type=names.type, name=names.array, dimensions=(capacity,)),
                ast.Declare(type="int", name=names.first, initial=number(0)),
                ast.Declare(type="int", name=names.count, initial=number(0)),
            ]
        return statements

    def at_end(self) -> list[TargetStatement]:
        """Copies that were stored into are written back."""
        statements: list[TargetStatement] = []
        for use in self.tensors.values():
            if not (use.copied and use.stored):
                continue
            if use.count is not None:
                full = binary(">", Name(name=use.count), use.size[0])
                what = f"{self.node.name}: {use.tensor.name} has no room on the chip"
                statements.append(If(condition=full, then=tuple(self.fail(what))))
                some = binary("<", Name(name=use.count), use.room)
                count: TargetExpression = Ternary(
                    condition=some, if_true=Name(name=use.count), if_false=use.room
                )
            else:
                count = use.room
            statements.append(
                self._each_element(
                    count, use.pointer, ast.element(use.array, Name(name=self.index))
                )
            )
        return statements

    def _copy_in(self, use: MachineTensor) -> list[TargetStatement]:
        open_size = self.file.capacities.get(use.tensor.name)
        size = prod(use.tensor.allocated) if open_size is None else open_size
        type = use.tensor.type
        lanes = [
            (s.type if isinstance(s, Load) else s.value.type).lanes
            for s in self.node.statements()
            if isinstance(s, Load | Store) and s.tensor == use.tensor.name
        ]
        array = StateArray(
            name=use.array,
            type=type,
            dimensions=(2,),
            split=(),
            in_memory=True,
            lanes=max(lanes, default=1),
        )
        declared = ast.Declare(
            type=self.dialect.storage_name(type),
            name=use.array,
            dimensions=(size,),
            attributes=self.dialect.array_attributes(array),
        )
        extent = Literal(text=str(size))
        if use.tensor.role is TensorRole.INPUT:
            loaded = ast.element(use.pointer, Name(name=self.index))
            return [declared, self._each_element(use.room, use.array, loaded, inside=extent)]
        zero = self.dialect.zero(type)
        return [declared, self._each_element(extent, use.array, zero, memory=False)]

    def _each_element(
        self,
        count: TargetExpression,
        target: str,
        value: TargetExpression,
        *,
        inside: TargetExpression | None = None,
        memory: bool = True,
    ) -> ast.For:
        at: TargetExpression = Name(name=self.index)
        at = at if inside is None else self.dialect.inside(at, inside)
        return ast.For(
            name=self.index,
            start=number(0),
            stop=count,
            body=(Set(target=ast.element(target, at), value=value),),
            pipeline=ast.Pipeline(memory=memory),
        )

    # --------------------------------------------------------------------------- statements

    def load(self, statement: Load, lower: Lower, taken: Identifiers) -> Loaded:
        """The statements of a load, and its value or (of several lanes) the variable of it."""
        use, type = self.tensors[statement.tensor], statement.type
        place = self._place(use, statement.indices, type.lanes, lower)
        if type.lanes == 1 and not use.grows:
            return Loaded(before=[], value=ast.element(use.array, place))
        at = taken.fresh(f"{use.tensor.name}_at")
        before: list[TargetStatement] = [ast.Declare(type="int", name=at, initial=place)]
        if type.lanes == 1:
            return Loaded(before=before, value=self._element(use, Name(name=at)))
        vector, lane = taken.fresh(statement.target), taken.fresh("lane")
        value = self._element(use, binary("+", Name(name=at), Name(name=lane)))
        each = Set(target=lane_at(Name(name=vector), lane), value=value)
        before.append(ast.Declare(type=self.dialect.storage_name(type), name=vector))
        before.append(_unrolled(lane, type.lanes, each))
        return Loaded(before=before, variable=vector)

    def store(self, statement: Store, lower: Lower, taken: Identifiers) -> list[TargetStatement]:
        """The statements of a store."""
        use, type = self.tensors[statement.tensor], statement.value.type
        value = lower(statement.value)
        place = self._place(use, statement.indices, type.lanes, lower)
        if type.lanes == 1 and not use.grows:
            return [Set(target=ast.element(use.array, place), value=value)]
        at = taken.fresh(f"{use.tensor.name}_at")
        statements: list[TargetStatement] = [ast.Declare(type="int", name=at, initial=place)]
        if type.lanes == 1:
            statements.append(self._stored(use, Name(name=at), value))
        else:
            vector, lane = taken.fresh(f"{use.tensor.name}_value"), taken.fresh("lane")
            target = binary("+", Name(name=at), Name(name=lane))
            each = self._stored(use, target, lane_at(Name(name=vector), lane))
            statements.append(
                ast.Declare(type=self.dialect.storage_name(type), name=vector, initial=value)
            )
            statements.append(_unrolled(lane, type.lanes, each))
        if use.count is not None:
            end = binary("+", Name(name=at), number(type.lanes))
            longer = binary(">", end, Name(name=use.count))
            longest = Set(target=Name(name=use.count), value=end)
            statements.append(If(condition=longer, then=(longest,)))
        return statements

    def _element(self, use: MachineTensor, at: TargetExpression) -> TargetExpression:
        """An element; zero where nothing is stored yet."""
        element = ast.element(use.array, at)
        if not use.grows:
            return element
        there, zero = binary("<", at, use.size[0]), self.dialect.zero(use.tensor.type)
        return Ternary(condition=there, if_true=element, if_false=zero)

    def _stored(
        self, use: MachineTensor, at: TargetExpression, value: TargetExpression
    ) -> TargetStatement:
        assign = Set(target=ast.element(use.array, at), value=value)
        if not use.grows:
            return assign
        return If(condition=binary("<", at, use.size[0]), then=(assign,))

    def _place(
        self, use: MachineTensor, indices: tuple[Expr, ...], lanes: int, lower: Lower
    ) -> TargetExpression:
        """The row-major position of an element, or of the first of several."""
        place: TargetExpression = number(0)
        for dimension, index in enumerate(indices):
            last = dimension + 1 == len(indices)
            size: TargetExpression = _MOST if use.grows else use.size[dimension]
            if not use.grows and use.copied and use.length is not None:
                size = use.room
            if last and lanes > 1:
                size = binary("-", size, number(lanes - 1))
            at = lower(index)
            if not (isinstance(index, Const) and _certainly(int(index.value), size)):
                at = self.dialect.inside(at, size)
            if place != number(0):
                at = binary("+", binary("*", place, use.size[dimension]), at)
            place = at
        return place

    # ----------------------------------------------------------------------------- searches

    def search(self, statement: Search, lower: Lower) -> TargetExpression:
        """The first position whose element is at least a value."""
        use, position = self.tensors[statement.tensor], statement.begin.type
        found = self._first_not_below(
            use.tensor.type,
            (
                Name(name=use.array),
                use.room,
                lower(statement.begin),
                lower(statement.end),
                lower(statement.value),
            ),
        )
        return self.helpers.converted(found, _POSITION, position)

    def _first_not_below(
        self, type: Type, operands: tuple[TargetExpression, ...]
    ) -> TargetExpression:
        dialect = self.dialect
        scalar, wide = dialect.scalar_name(type), dialect.scalar_name(_POSITION)
        begin, end, middle = Name(name="begin"), Name(name="end"), Name(name="middle")
        length = Name(name="length")
        half = binary("/", binary("-", end, begin), number(2))
        last = binary("-", end, number(1))
        checks = [
            checked for at in (begin, last) if (checked := dialect.inside(at, length)) is not at
        ]
        below = binary("<", ast.element("elements", middle), Name(name="value"))

        def body() -> tuple[TargetStatement, ...]:
            some = If(condition=binary("<", begin, end), then=tuple(Do(call=c) for c in checks))
            step = (
                ast.Declare(type=f"const {wide}", name="middle", initial=binary("+", begin, half)),
                If(
                    condition=below,
                    then=(Set(target=begin, value=binary("+", middle, number(1))),),
                    otherwise=(Set(target=end, value=middle),),
                ),
            )
            loop = ast.While(
                condition=binary("<", begin, end), body=step, pipeline=ast.Pipeline(memory=True)
            )
            return (*((some,) if checks else ()), loop, ast.Return(value=begin))

        return self.helpers.define(
            f"first_not_below_{scalar}",
            wide,
            (
                (f"const {scalar} *", "elements"),
                (wide, "length"),
                (wide, "begin"),
                (wide, "end"),
                (scalar, "value"),
            ),
            operands,
            body,
            "the first position from begin on whose element is at least the value",
        )

    # ---------------------------------------------------------------------- sorted memories

    def add(
        self,
        memory: str,
        keys: tuple[TargetExpression, ...],
        value: TargetExpression,
        taken: Identifiers,
    ) -> list[TargetStatement]:
        """Combine a value into a point."""
        declared = next(m for m in self.node.memories if m.name == memory)
        names = self.points[memory]
        point = taken.fresh("point")
        fields = zip((*_keys(declared), "value"), (*keys, value), strict=True)
        added = self._added(declared, names, Name(name=point))
        what = f"{self.node.name}: {memory} has no room for more points"
        return [
            ast.Declare(type=names.type, name=point),
            *(
                Set(target=ast.FieldOf(base=Name(name=point), field=name), value=part)
                for name, part in fields
            ),
            If(condition=binary("==", added, number(0)), then=tuple(self.fail(what))),
        ]

    def first(self, memory: str) -> tuple[TargetExpression, ...]:
        """The keys and the value of the first point; zero if there is none."""
        declared = next(m for m in self.node.memories if m.name == memory)
        names = self.points[memory]
        point = ast.element(names.array, Name(name=names.first))
        there = binary(">", Name(name=names.count), number(0))
        fields = zip((*_keys(declared), "value"), (*declared.keys, declared.type), strict=True)
        return tuple(
            Ternary(
                condition=there,
                if_true=ast.FieldOf(base=point, field=name),
                if_false=self.dialect.zero(type),
            )
            for name, type in fields
        )

    def drop(self, memory: str) -> list[TargetStatement]:
        """Remove the first point, if there is one."""
        names = self.points[memory]
        first, count = Name(name=names.first), Name(name=names.count)
        after = self._in_ring(memory, binary("+", first, number(1)))
        return [
            If(
                condition=binary(">", count, number(0)),
                then=(
                    Set(target=first, value=after),
                    Set(target=count, value=binary("-", count, number(1))),
                ),
            )
        ]

    def _in_ring(self, memory: str, place: TargetExpression) -> TargetExpression:
        """Points are in a ring of a power of two."""
        capacity = Name(name=self.file.capacities[self.node.name, memory])
        return binary("&", place, binary("-", capacity, number(1)))

    def _added(
        self, memory: SortedMemory, names: PointNames, point: TargetExpression
    ) -> TargetExpression:
        """Whether there was room for a point."""
        points, first, count, new = "points", Name(name="first"), Name(name="count"), "point"
        at, i = Name(name="at"), Name(name="i")

        def place(offset: TargetExpression) -> TargetExpression:
            where = self._in_ring(memory.name, binary("+", first, offset))
            return ast.element(points, where)

        before = place(binary("-", at, number(1)))
        some = binary(">", at, number(0))
        combined = self.helpers.operation(
            memory.operator,
            memory.type,
            tuple(ast.FieldOf(base=b, field="value") for b in (before, Name(name=new))),
        )
        capacity = Name(name=self.file.capacities[self.node.name, memory.name])
        keys = _keys(memory)

        def body() -> tuple[TargetStatement, ...]:
            return (
                ast.Declare(type="int", name="at", initial=count),
                ast.While(
                    condition=binary("&&", some, _less(Name(name=new), before, keys)),
                    body=(Set(target=at, value=binary("-", at, number(1))),),
                    pipeline=ast.Pipeline(),
                ),
                If(
                    condition=binary("&&", some, _same(Name(name=new), before, keys)),
                    then=(
                        Set(target=ast.FieldOf(base=before, field="value"), value=combined),
                        ast.Return(value=Literal(text="true")),
                    ),
                ),
                If(
                    condition=binary("==", count, capacity),
                    then=(ast.Return(value=Literal(text="false")),),
                ),
                ast.For(
                    name="i",
                    start=count,
                    stop=binary("+", at, number(1)),
                    down=True,
                    body=(Set(target=place(i), value=place(binary("-", i, number(1)))),),
                    pipeline=ast.Pipeline(),
                ),
                Set(target=place(at), value=Name(name=new)),
                ast.Increment(target=count),
                ast.Return(value=Literal(text="true")),
            )

        return self.helpers.define(
            f"add_{names.type}",
            "bool",
            ((f"{names.type} *", points), ("int", "first"), ("int &", "count"), (names.type, new)),
            (Name(name=names.array), Name(name=names.first), Name(name=names.count), point),
            body,
            "combines a point into sorted ones, in a ring; false if there is no room",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A load: statements, then its ``value``, or the ``variable`` that has it."""

    before: list[TargetStatement]
    value: TargetExpression | None = None
    variable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointNames:
    """The variables of a sorted memory: the points, the first of them in the ring, and how many."""

    type: str
    array: str
    first: str
    count: str


def point_struct(memory: SortedMemory, name: str, dialect: Dialect) -> ast.Struct:
    """The type of a point: its keys and its value."""
    types = (*memory.keys, memory.type)
    return ast.Struct(
        name=name,
        fields=tuple(
            ast.TypedName(type=dialect.storage_name(type), name=field)
            for type, field in zip(types, (*_keys(memory), "value"), strict=True)
        ),
    )


def deciding_tensors(node: Machine) -> list[str]:
    """Tensors of which a machine needs what it has loaded to know its next firing."""
    found: dict[str, None] = {}
    for path in node.paths():
        origins: dict[str, set[str]] = {}

        def of(term: Expr, origins: dict[str, set[str]] = origins) -> set[str]:
            used = (origins.get(t.name, set()) for t in walk(term) if isinstance(t, Local))
            return set().union(*used)

        for choice in path.choices:
            if choice.when is not None:
                found |= dict.fromkeys(sorted(of(choice.when)))
            for statement in choice.body:
                _follow(statement, origins, of)
        for statement in path.rule.body:
            _follow(statement, origins, of)
            if isinstance(statement, RegisterWrite):
                found |= dict.fromkeys(sorted(of(statement.value)))
    return list(found)


def _follow(
    statement: object, origins: dict[str, set[str]], of: Callable[[Expr], set[str]]
) -> None:
    match statement:
        case Load(target=target, tensor=tensor) | Search(target=target, tensor=tensor):
            origins[target] = {tensor}
        case Let(target=target, value=value):
            origins[target] = of(value)


def interval_of(node: Machine, tensors: dict[str, MachineTensor]) -> int:
    """Cycles from one firing to the next: accesses of a port in memory, or of two on the chip."""
    counts = accesses_of_machine(node)
    each = (
        (count + 1) // 2 if name in tensors and tensors[name].copied else count
        for name, count in counts.items()
    )
    decides = any(tensors[name].copied for name in deciding_tensors(node) if name in tensors)
    return max((*each, 2 if decides else 1))


def _keys(memory: SortedMemory) -> tuple[str, ...]:
    return tuple(f"key_{at}" for at in range(len(memory.keys)))


def _less(
    left: TargetExpression, right: TargetExpression, keys: tuple[str, ...]
) -> TargetExpression:
    first, *others = keys
    a, b = ast.FieldOf(base=left, field=first), ast.FieldOf(base=right, field=first)
    if not others:
        return binary("<", a, b)
    rest = binary("&&", binary("==", a, b), _less(left, right, tuple(others)))
    return binary("||", binary("<", a, b), rest)


def _same(
    left: TargetExpression, right: TargetExpression, keys: tuple[str, ...]
) -> TargetExpression:
    tests = [
        binary("==", ast.FieldOf(base=left, field=key), ast.FieldOf(base=right, field=key))
        for key in keys
    ]
    result = tests[0]
    for test in tests[1:]:
        result = binary("&&", result, test)
    return result


def _unrolled(name: str, extent: int, body: TargetStatement) -> ast.For:
    return ast.For(name=name, start=number(0), stop=number(extent), body=(body,), unroll=True)


def _certainly(index: int, size: TargetExpression) -> bool:
    return isinstance(size, Literal) and size.text.isdigit() and 0 <= index < int(size.text)
