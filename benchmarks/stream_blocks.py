"""Blocks of the Sparse Abstract Machine, as machines made by hand: the designs of ``streams.py``.

Streams are as in papers/001: a fiber ends with a stop, a stream with ``DONE``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from t2s.core.expr import Expr, Local, Select, apply, conjunction, const
from t2s.core.ops import Op
from t2s.core.types import INT32, Float, Type
from t2s.graph.body import Let, Load, RegisterWrite, Statement, Store
from t2s.graph.graph import Channel, Graph, Place, StreamType, Tensor, TensorRole
from t2s.graph.machine import (
    DONE,
    EMPTY,
    VALUE,
    Choice,
    Head,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    Put,
    Rule,
    SortedMemory,
    stop,
)
from t2s.graph.nodes import Register, Role

FLOAT = Float(32)


def tag(channel: str) -> Local:
    return Local(name=f"{channel}_tag", type=INT32)


def integer(name: str) -> Local:
    return Local(name=name, type=INT32)


def compare(operator: Op, left: Expr, right: Expr | int) -> Expr:
    return apply(operator, left, const(right) if isinstance(right, int) else right)


def is_value(channel: str) -> Expr:
    return compare(Op.EQUAL, tag(channel), VALUE)


def is_done(channel: str) -> Expr:
    return compare(Op.EQUAL, tag(channel), DONE)


def is_stop(channel: str) -> Expr:
    return compare(Op.GREATER, tag(channel), VALUE)


def plus(left: Expr, right: int) -> Expr:
    return apply(Op.ADD, left, const(right))


def write(register: str, value: Expr) -> RegisterWrite:
    return RegisterWrite(register=register, indices=(), value=value)


def load(target: str, tensor: str, index: Expr, type: Type = INT32) -> Load:
    return Load(target=target, tensor=tensor, indices=(index,), type=type)


def chosen(condition: Expr, if_true: Expr, if_false: Expr) -> Expr:
    return Select(condition=condition, if_true=if_true, if_false=if_false, type=if_true.type)


@dataclass
class Design:
    """Collects the parts of a graph; a channel is made where it is first named."""

    name: str
    capacity: int
    nodes: list[Machine] = field(default_factory=list)
    channels: dict[str, dict[str, str]] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def tensor(self, name: str, type: Type, role: TensorRole) -> str:
        self.tensors[name] = Tensor(
            name=name, type=type, shape=(0,), role=role, open=True, place=Place.CHIP
        )
        return name

    def machine(
        self,
        name: str,
        inputs: dict[str, Type],
        outputs: dict[str, Type],
        modes: tuple[Mode, ...],
        registers: tuple[str, ...] = (),
        memories: tuple[SortedMemory, ...] = (),
        role: Role = Role.COMPUTE,
    ) -> None:
        for channel, type in inputs.items():
            self.channels.setdefault(channel, {})["sink"] = name
            self.types[channel] = type
        for channel, type in outputs.items():
            self.channels.setdefault(channel, {})["source"] = name
            self.types[channel] = type
        self.nodes.append(
            Machine(
                name=name,
                role=role,
                heads=tuple(Head(channel=c, value=f"{c}_value", tag=f"{c}_tag") for c in inputs),
                registers=tuple(
                    Register(name=r, type=INT32, shape=(), distance=1) for r in registers
                ),
                memories=memories,
                modes=modes,
            )
        )

    def value(self, channel: str) -> Local:
        return Local(name=f"{channel}_value", type=self.types[channel])

    def graph(self) -> Graph:
        return Graph(
            name=self.name,
            nodes=tuple(self.nodes),
            channels=tuple(
                Channel(
                    name=name,
                    stream=StreamType(element=self.types[name], nesting=4),
                    source=ends["source"],
                    sink=ends["sink"],
                    capacity=self.capacity,
                )
                for name, ends in self.channels.items()
            ),
            tensors=tuple(self.tensors.values()),
        )

    # -- blocks -------------------------------------------------------------------------------

    def root(self, name: str, ref: str) -> None:
        """The reference to the root of a tensor."""
        self.machine(
            name,
            {},
            {ref: INT32},
            (
                Mode(
                    name="start",
                    needs=(),
                    choices=(
                        Choice(
                            inside=Rule(
                                name="root", puts=(Put(channel=ref, value=const(0)),), next="last"
                            )
                        ),
                    ),
                ),
                Mode(
                    name="last",
                    needs=(),
                    choices=(
                        Choice(inside=Rule(name="done", puts=(Put(channel=ref, tag=const(DONE)),))),
                    ),
                ),
            ),
        )

    def scan(self, name: str, tensor: str, refs: str, crd: str, ref: str) -> None:
        """The compressed level ``tensor``: for each reference its fiber."""
        begins = self.tensor(f"{tensor}_pos", INT32, TensorRole.INPUT)
        crds = self.tensor(f"{tensor}_crd", INT32, TensorRole.INPUT)
        self.types[refs] = INT32
        at, end, begin, last = (integer(n) for n in ("at", "end", "begin", "last"))

        def emit(rule: str, place: Expr, body: tuple[Statement, ...], takes: bool) -> Rule:
            return Rule(
                name=rule,
                body=(load("coordinate", crds, place), write("at", plus(place, 1)), *body),
                takes=(refs,) if takes else (),
                puts=(
                    Put(channel=crd, value=integer("coordinate")),
                    Put(channel=ref, value=place),
                ),
                next="more",
            )

        def pass_on(rule: str, mark: Expr, takes: bool, next: str | None) -> Rule:
            return Rule(
                name=rule,
                takes=(refs,) if takes else (),
                puts=(Put(channel=crd, tag=mark), Put(channel=ref, tag=mark)),
                next=next,
            )

        raised = plus(tag(refs), 1)
        following = (
            Choice(when=is_stop(refs), inside=pass_on("close outer", raised, True, "next")),
            Choice(inside=pass_on("close", const(stop(0)), False, "next")),
        )
        first = Choice(
            when=is_value(refs),
            body=(
                load("begin", begins, self.value(refs)),
                load("last", begins, plus(self.value(refs), 1)),
            ),
            inside=(
                Choice(
                    when=compare(Op.LESS, begin, last),
                    inside=emit("first", begin, (write("end", last),), True),
                ),
                Choice(
                    inside=Rule(
                        name="empty",
                        takes=(refs,),
                        body=(write("at", last), write("end", last)),
                        next="more",
                    )
                ),
            ),
        )
        self.machine(
            name,
            {refs: INT32},
            {crd: INT32, ref: INT32},
            (
                Mode(
                    name="next",
                    needs=(refs,),
                    choices=(
                        first,
                        Choice(
                            when=compare(Op.EQUAL, tag(refs), EMPTY),
                            inside=Rule(
                                name="missing",
                                takes=(refs,),
                                body=(write("at", const(0)), write("end", const(0))),
                                next="more",
                            ),
                        ),
                        Choice(when=is_stop(refs), inside=pass_on("stop", raised, True, "next")),
                        Choice(inside=pass_on("done", const(DONE), True, None)),
                    ),
                ),
                Mode(
                    name="more",
                    needs=(),
                    choices=(
                        Choice(when=compare(Op.LESS, at, end), inside=emit("crd", at, (), False)),
                        Choice(needs=(refs,), inside=following),
                    ),
                ),
            ),
            registers=("at", "end"),
            role=Role.LOAD,
        )

    def join(
        self,
        name: str,
        first: tuple[str, str],
        second: tuple[str, str],
        crd: str,
        refs: tuple[str, str],
        *,
        union: bool,
    ) -> None:
        """The coordinates that both streams have, or that either has."""
        inputs = dict.fromkeys((*first, *second), INT32)
        for channel in inputs:
            self.types[channel] = INT32
        a, b = self.value(first[0]), self.value(second[0])

        def one(rule: str, ours: tuple[str, str], number: int) -> Rule:
            puts: tuple[Put, ...] = ()
            if union:
                puts = (
                    Put(channel=crd, value=self.value(ours[0])),
                    Put(channel=refs[number], value=self.value(ours[1])),
                    Put(channel=refs[1 - number], tag=const(EMPTY)),
                )
            return Rule(name=rule, takes=ours, puts=puts, next="join")

        both = Rule(
            name="both",
            takes=(*first, *second),
            puts=(
                Put(channel=crd, value=a),
                Put(channel=refs[0], value=self.value(first[1])),
                Put(channel=refs[1], value=self.value(second[1])),
            ),
            next="join",
        )

        def ends(rule: str, mark: Expr, next: str | None) -> Rule:
            puts = tuple(Put(channel=channel, tag=mark) for channel in (crd, *refs))
            return Rule(name=rule, takes=(*first, *second), puts=puts, next=next)

        values = (
            Choice(when=compare(Op.EQUAL, a, b), inside=both),
            Choice(when=compare(Op.LESS, a, b), inside=one("first", first, 0)),
            Choice(inside=one("second", second, 1)),
        )
        self.machine(
            name,
            inputs,
            dict.fromkeys((crd, *refs), INT32),
            (
                Mode(
                    name="join",
                    needs=(*first, *second),
                    choices=(
                        Choice(
                            when=conjunction(is_value(first[0]), is_value(second[0])),
                            inside=values,
                        ),
                        Choice(when=is_value(first[0]), inside=one("first alone", first, 0)),
                        Choice(when=is_value(second[0]), inside=one("second alone", second, 1)),
                        Choice(when=is_done(first[0]), inside=ends("done", const(DONE), None)),
                        Choice(inside=ends("stop", tag(first[0]), "join")),
                    ),
                ),
            ),
        )

    def values(self, name: str, tensor: str, refs: str, out: str) -> None:
        """The values of references; a missing one is zero."""
        vals = self.tensor(f"{tensor}_vals", FLOAT, TensorRole.INPUT)
        self.types[refs] = INT32
        found = Local(name="found", type=FLOAT)
        self.machine(
            name,
            {refs: INT32},
            {out: FLOAT},
            (
                Mode(
                    name="value",
                    needs=(refs,),
                    choices=(
                        Choice(
                            when=is_value(refs),
                            body=(load("found", vals, self.value(refs), FLOAT),),
                            inside=Rule(
                                name="load",
                                takes=(refs,),
                                puts=(Put(channel=out, value=found),),
                                next="value",
                            ),
                        ),
                        Choice(
                            when=is_done(refs),
                            inside=Rule(
                                name="done",
                                takes=(refs,),
                                puts=(Put(channel=out, tag=const(DONE)),),
                            ),
                        ),
                        Choice(
                            inside=Rule(
                                name="pass",
                                takes=(refs,),
                                puts=(
                                    Put(
                                        channel=out,
                                        value=const(0.0, FLOAT),
                                        tag=chosen(is_stop(refs), tag(refs), const(VALUE)),
                                    ),
                                ),
                                next="value",
                            )
                        ),
                    ),
                ),
            ),
            role=Role.LOAD,
        )

    def combine(self, name: str, operator: Op, first: str, second: str, out: str) -> None:
        """An operator on two streams of values of one shape."""
        self.types[first] = self.types[second] = FLOAT
        takes = (first, second)
        both = apply(operator, self.value(first), self.value(second))
        self.machine(
            name,
            dict.fromkeys(takes, FLOAT),
            {out: FLOAT},
            (
                Mode(
                    name="run",
                    needs=takes,
                    choices=(
                        Choice(
                            when=is_value(first),
                            inside=Rule(
                                name="value",
                                takes=takes,
                                puts=(Put(channel=out, value=both),),
                                next="run",
                            ),
                        ),
                        Choice(
                            when=is_done(first),
                            inside=Rule(
                                name="done",
                                takes=takes,
                                puts=(Put(channel=out, tag=const(DONE)),),
                            ),
                        ),
                        Choice(
                            inside=Rule(
                                name="stop",
                                takes=takes,
                                puts=(Put(channel=out, tag=tag(first)),),
                                next="run",
                            )
                        ),
                    ),
                ),
            ),
        )

    def store(self, name: str, tensor: str, stream: str, type: Type = INT32) -> None:
        """A level of the result: its elements, and where its fibers end."""
        elements = self.tensor(f"{tensor}_elements", type, TensorRole.OUTPUT)
        ends = self.tensor(f"{tensor}_ends", INT32, TensorRole.OUTPUT)
        self.types[stream] = type
        at, fiber = integer("at"), integer("fiber")
        keep = Store(tensor=elements, indices=(at,), value=self.value(stream))
        close = Store(tensor=ends, indices=(fiber,), value=at)
        self.machine(
            name,
            {stream: type},
            {},
            (
                Mode(
                    name="take",
                    needs=(stream,),
                    choices=(
                        Choice(
                            when=is_value(stream),
                            inside=Rule(
                                name="element",
                                body=(keep, write("at", plus(at, 1))),
                                takes=(stream,),
                                next="take",
                            ),
                        ),
                        Choice(
                            when=is_stop(stream),
                            inside=Rule(
                                name="end of fiber",
                                body=(close, write("fiber", plus(fiber, 1))),
                                takes=(stream,),
                                next="take",
                            ),
                        ),
                        Choice(inside=Rule(name="done", takes=(stream,))),
                    ),
                ),
            ),
            registers=("at", "fiber"),
            role=Role.STORE,
        )


def elementwise(operator: Op, capacity: int) -> Graph:
    """X(i, j) = B(i, j) op C(i, j), both compressed in both dimensions: 14 nodes, 19 channels."""
    design = Design("elementwise", capacity)
    union = operator is Op.ADD
    for name in "BC":
        design.root(f"root {name}", f"{name}_root")
        design.scan(f"scan {name}_i", f"{name}_i", f"{name}_root", f"{name}_i_crd", f"{name}_i_ref")
    design.join(
        "join i", ("B_i_crd", "B_i_ref"), ("C_i_crd", "C_i_ref"), "i", ("B_i", "C_i"), union=union
    )
    for name in "BC":
        design.scan(f"scan {name}_j", f"{name}_j", f"{name}_i", f"{name}_j_crd", f"{name}_j_ref")
    design.join(
        "join j", ("B_j_crd", "B_j_ref"), ("C_j_crd", "C_j_ref"), "j", ("B_j", "C_j"), union=union
    )
    for name in "BC":
        design.values(f"values {name}", name, f"{name}_j", f"{name}_value")
    design.combine("combine", operator, "B_value", "C_value", "X")
    design.store("store X_i", "X_i", "i")
    design.store("store X_j", "X_j", "j")
    design.store("store X", "X", "X", FLOAT)
    return design.graph()


def compressed(name: str, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a matrix that is compressed in both dimensions."""
    rows, columns = np.nonzero(matrix)
    present, counts = np.unique(rows, return_counts=True)
    return {
        f"{name}_i_pos": np.array([0, len(present)], np.int32),
        f"{name}_i_crd": present.astype(np.int32),
        f"{name}_j_pos": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        f"{name}_j_crd": columns.astype(np.int32),
        f"{name}_vals": matrix[rows, columns].astype(np.float32),
    }


UNUSED = (Let, MemoryAdd, MemoryDrop, MemoryFirst, MemorySize)
