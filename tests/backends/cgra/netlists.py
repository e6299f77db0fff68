"""Netlists by hand, of the shapes that kernels have: for tests of what comes after the lowering.

Everything here works on float64 with one element of a tensor for each step of a unit.  A kernel
repeats itself ``steps`` times on inputs of that many blocks, so that rates can be measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    Provenance,
    StreamLoop,
    StreamUnit,
    TagCase,
    UnitCondition,
    UnitKind,
)
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Instruction,
    Opcode,
    TagCheck,
    ToOutputs,
    ToRegister,
    Trigger,
)
from t2s.core.types import Kind, Type
from t2s.graph.graph import Tensor, TensorRole

FLOAT64 = Type(Kind.FLOAT, 64)
Point = tuple[int, ...]


def name_of(node: str, point: Sequence[int]) -> str:
    """The name of a part: the node and the point."""
    return f"{node}[{','.join(map(str, point))}]"


def instruction(opcode: Opcode, *inputs: int, outputs: tuple[int, ...] = (0,)) -> Instruction:
    """One that takes a token of tag 0 from each input, and sends its result with tag 0."""
    return Instruction(
        trigger=Trigger(checks=tuple(TagCheck(channel=channel, tag=0) for channel in inputs)),
        opcode=opcode,
        destination=ToOutputs(outputs, 0),
        sources=tuple(FromChannel(channel) for channel in inputs),
        takes=tuple(sorted(inputs)),
    )


def program(*instructions: Instruction) -> CellProgram:
    """A program of these instructions."""
    return CellProgram(instructions=instructions)


FMAC = program(instruction(Opcode.FMAC, 2, 0, 1))
"""Input 2 plus the product of inputs 0 and 1."""
FMUL = program(instruction(Opcode.FMUL, 0, 1))
MOVE = program(instruction(Opcode.MOV, 0))


class Draft:
    """A netlist in the making."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cells: list[NetCell] = []
        self.units: list[StreamUnit] = []
        self.tensors: list[Tensor] = []
        self._nets: dict[Endpoint, tuple[str, list[NetSink]]] = {}

    def cell(self, node: str, point: Point, body: CellProgram, kind: CellKind) -> str:
        """Add a cell, and give its name."""
        name = name_of(node, point)
        origin = Provenance(node=node, point=point)
        self.cells.append(NetCell(name=name, kind=kind, program=body, origin=origin))
        return name

    def fma(self, node: str, point: Point, body: CellProgram = FMAC) -> str:
        """Add a cell with an FMA."""
        return self.cell(node, point, body, CellKind.FMA)

    def control(self, node: str, point: Point, body: CellProgram = MOVE) -> str:
        """Add a control cell."""
        return self.cell(node, point, body, CellKind.CONTROL)

    def unit(
        self,
        node: str,
        point: Point,
        kind: UnitKind,
        loops: Iterable[tuple[str, int]],
        *,
        tensor: str | None = None,
        strides: tuple[int, ...] = (),
        base: int = 0,
        tags: tuple[TagCase, ...] = (),
    ) -> str:
        """Add a stream unit with a nest of constant extents."""
        name = name_of(node, point)
        nest = (StreamLoop(name=loop, extent=AffineSum(constant=end)) for loop, end in loops)
        address = None if tensor is None else AffineSum(constant=base, coefficients=strides)
        self.units.append(
            StreamUnit(
                name=name,
                kind=kind,
                loops=tuple(nest),
                tensor=tensor,
                address=address,
                tags=tags,
                origin=Provenance(node=node, point=point),
            )
        )
        return name

    def tensor(self, name: str, shape: tuple[int, ...], role: TensorRole) -> None:
        """Add a tensor."""
        self.tensors.append(Tensor(name=name, type=FLOAT64, shape=shape, role=role))

    def wire(
        self,
        group: str,
        source: str,
        sink: str,
        port: int = 0,
        *,
        out: int = 0,
        tokens: int = 1,
    ) -> None:
        """Add a branch to the net of an output."""
        end = NetSink(end=Endpoint(part=sink, port=port), tokens=tokens)
        self._nets.setdefault(Endpoint(part=source, port=out), (group, []))[1].append(end)

    def done(self) -> Netlist:
        """The netlist."""
        nets = tuple(
            Net(name=f"{group}.{number}", group=group, source=source, sinks=tuple(sinks))
            for number, (source, (group, sinks)) in enumerate(self._nets.items())
        )
        return Netlist(
            name=self.name,
            cells=tuple(self.cells),
            units=tuple(self.units),
            nets=nets,
            tensors=tuple(self.tensors),
        )


def _streamed(draft: Draft, tensor: str, extents: Point, steps: int, *, fed: bool) -> None:
    """A tensor of ``steps`` blocks of that shape: a unit for each element of a block.

    The units are named ``load_X``; with ``fed`` they go through cells ``feed_X``.
    """
    draft.tensor(tensor, (steps, *extents), TensorRole.INPUT)
    points = list(product(*map(range, extents)))
    for base, point in enumerate(points):
        load = draft.unit(
            f"load_{tensor}",
            point,
            UnitKind.LOAD,
            [("t", steps)],
            tensor=tensor,
            strides=(len(points),),
            base=base,
        )
        if fed:
            draft.wire(f"{tensor}_in", load, draft.control(f"feed_{tensor}", point))


def _stored(draft: Draft, tensor: str, extents: Point, steps: int) -> None:
    """The units ``store_X`` of a tensor of ``steps`` blocks of that shape."""
    draft.tensor(tensor, (steps, *extents), TensorRole.OUTPUT)
    points = list(product(*map(range, extents)))
    for base, point in enumerate(points):
        draft.unit(
            f"store_{tensor}",
            point,
            UnitKind.STORE,
            [("t", steps)],
            tensor=tensor,
            strides=(len(points),),
            base=base,
        )


def chain(count: int, steps: int = 8) -> Netlist:
    """``count`` FMAs, each of which adds the square of its input to it: one load, one store.

    With ``count`` = 1 that is ``y = x + x * x``; only the neighbors in the chain are connected.
    """
    draft = Draft("chain")
    _streamed(draft, "x", (1,), steps, fed=False)
    _stored(draft, "y", (1,), steps)
    square = program(
        Instruction(
            trigger=Trigger(checks=(TagCheck(channel=0, tag=0),)),
            opcode=Opcode.FMAC,
            destination=ToOutputs((0,), 0),
            sources=(FromChannel(0), FromChannel(0), FromChannel(0)),
            takes=(0,),
        )
    )
    before = name_of("load_x", (0,))
    for number in range(count):
        here = draft.fma("square", (number,), square)
        draft.wire("links", before, here)
        before = here
    draft.wire("out", before, name_of("store_y", (0,)))
    return draft.done()


def gemm(rows: int, columns: int, depth: int, steps: int = 8, *, loaded: bool = True) -> Netlist:
    """``steps`` products of ``rows`` x ``depth`` and ``depth`` x ``columns``, all in space.

    ``E = C + A B`` with C from memory (``loaded``), else ``E = A B``.  A and B go through feeders.
    """
    draft = Draft(f"gemm{rows}x{columns}x{depth}")
    _streamed(draft, "A", (rows, depth), steps, fed=True)
    _streamed(draft, "B", (depth, columns), steps, fed=True)
    if loaded:
        _streamed(draft, "C", (rows, columns), steps, fed=False)
    _stored(draft, "E", (rows, columns), steps)
    for i, j, k in product(range(rows), range(columns), range(depth)):
        first = k == 0 and not loaded
        here = draft.fma("E", (i, j, k), FMUL if first else FMAC)
        draft.wire("A", name_of("feed_A", (i, k)), here, 0)
        draft.wire("B", name_of("feed_B", (k, j)), here, 1)
        if k > 0:
            draft.wire("sum", name_of("E", (i, j, k - 1)), here, 2)
        elif loaded:
            draft.wire("C", name_of("load_C", (i, j)), here, 2)
        if k == depth - 1:
            draft.wire("out", here, name_of("store_E", (i, j)))
    return draft.done()


def ttm(extent: int = 4, steps: int = 8) -> Netlist:
    """``E[i, j, k]``, the sum of ``A[i, j, l] B[l, k]`` over l, every loop of that extent."""
    draft = Draft(f"ttm{extent}")
    _streamed(draft, "A", (extent,) * 3, steps, fed=True)
    _streamed(draft, "B", (extent,) * 2, steps, fed=True)
    _stored(draft, "E", (extent,) * 3, steps)
    for i, j, k, m in product(range(extent), repeat=4):
        here = draft.fma("E", (i, j, k, m), FMAC if m else FMUL)
        draft.wire("A", name_of("feed_A", (i, j, m)), here, 0)
        draft.wire("B", name_of("feed_B", (m, k)), here, 1)
        if m:
            draft.wire("sum", name_of("E", (i, j, k, m - 1)), here, 2)
        if m == extent - 1:
            draft.wire("out", here, name_of("store_E", (i, j, k)))
    return draft.done()


def _third_order(draft: Draft, point: Point, a: str, b: str, c: str, before: str | None) -> str:
    """Two cells: the product of a and b, and that times c, added to what comes from before."""
    pair = draft.fma("pair", point, FMUL)
    draft.wire("A", a, pair, 0)
    draft.wire("B", b, pair, 1)
    here = draft.fma("E", point, FMUL if before is None else FMAC)
    draft.wire("pairs", pair, here, 0)
    draft.wire("C", c, here, 1)
    if before is not None:
        draft.wire("sum", before, here, 2)
    return here


def mttkrp(i: int = 4, j: int = 4, k: int = 4, m: int = 2, steps: int = 8) -> Netlist:
    """``E[i, j]``, the sum of ``A[i, k, l] B[k, j] C[l, j]`` over k and l; two FMAs a point."""
    draft = Draft(f"mttkrp{i}{j}{k}{m}")
    _streamed(draft, "A", (i, k, m), steps, fed=True)
    _streamed(draft, "B", (k, j), steps, fed=True)
    _streamed(draft, "C", (m, j), steps, fed=True)
    _stored(draft, "E", (i, j), steps)
    for row, column in product(range(i), range(j)):
        before: str | None = None
        for x, y in product(range(k), range(m)):
            before = _third_order(
                draft,
                (row, column, x, y),
                name_of("feed_A", (row, x, y)),
                name_of("feed_B", (x, column)),
                name_of("feed_C", (y, column)),
                before,
            )
        assert before is not None
        draft.wire("out", before, name_of("store_E", (row, column)))
    return draft.done()


def ttmc(extents: Point = (2, 2, 2, 4, 4), steps: int = 8, *, shared: bool = False) -> Netlist:
    """``E[i, j, k]``, the sum of ``A[i, l, m] B[l, j] C[m, k]`` over l and m.

    Two FMAs a point, or one (``shared``) that multiplies and adds in turn, at half the rate.
    """
    i, j, k, m, n = extents
    draft = Draft(f"ttmc{''.join(map(str, extents))}")
    _streamed(draft, "A", (i, m, n), steps, fed=True)
    _streamed(draft, "B", (m, j), steps, fed=True)
    _streamed(draft, "C", (n, k), steps, fed=True)
    _stored(draft, "E", (i, j, k), steps)
    for point in product(range(i), range(j), range(k)):
        before: str | None = None
        for x, y in product(range(m), range(n)):
            place = (*point, x, y)
            a = name_of("feed_A", (point[0], x, y))
            b = name_of("feed_B", (x, point[1]))
            c = name_of("feed_C", (y, point[2]))
            before = (
                _in_turn(draft, place, a, b, c, before)
                if shared
                else _third_order(draft, place, a, b, c, before)
            )
        assert before is not None
        draft.wire("out", before, name_of("store_E", point))
    return draft.done()


def _in_turn(draft: Draft, point: Point, a: str, b: str, c: str, before: str | None) -> str:
    """One cell that multiplies a and b, and then adds that times c to what comes from before."""
    here = draft.fma("E", point, _turns(first=before is None))
    draft.wire("A", a, here, 0)
    draft.wire("B", b, here, 1)
    draft.wire("C", c, here, 2)
    if before is not None:
        draft.wire("sum", before, here, 3)
    return here


def _turns(*, first: bool) -> CellProgram:
    """A product into a register, then its multiple (``first``) or the sum of that and input 3."""
    multiply = Instruction(
        trigger=Trigger(zeros=1, checks=(TagCheck(channel=0, tag=0), TagCheck(channel=1, tag=0))),
        opcode=Opcode.FMUL,
        destination=ToRegister(0),
        sources=(FromChannel(0), FromChannel(1)),
        takes=(0, 1),
        sets=1,
    )
    taken = (2,) if first else (2, 3)
    factors = (FromRegister(0), FromChannel(2))
    add = Instruction(
        trigger=Trigger(ones=1, checks=tuple(TagCheck(channel=n, tag=0) for n in taken)),
        opcode=Opcode.FMUL if first else Opcode.FMAC,
        destination=ToOutputs((0,), 0),
        sources=factors if first else (FromChannel(3), *factors),
        takes=taken,
        clears=1,
    )
    return program(multiply, add)


def ring(length: int, tile: int, rounds: int, *, tokens: int | None = None) -> Netlist:
    """A sum over time in a ring of FMAs: ``tile`` results go round ``rounds`` times.

    Cell 0 takes its sum from memory in the first round (tag 0) and from the last cell afterwards
    (tag 1); the last cell sends it on, or in the last round (tag 2) to memory.  ``tokens`` is what
    the way back has to hold, ``tile + 1`` unless said otherwise.
    """
    draft = Draft(f"ring{length}")
    nest = [("r", rounds), ("t", tile)]
    draft.tensor("A", (length, rounds, tile), TensorRole.INPUT)
    draft.tensor("C", (tile,), TensorRole.INPUT)
    draft.tensor("E", (tile,), TensorRole.OUTPUT)
    load = draft.unit("load_C", (), UnitKind.LOAD, [("t", tile)], tensor="C", strides=(1,))
    store = draft.unit("store_E", (), UnitKind.STORE, [("t", tile)], tensor="E", strides=(1,))
    first = UnitCondition(sum=AffineSum(coefficients=(1,)), equal=True)
    last = UnitCondition(sum=AffineSum(constant=1 - rounds, coefficients=(1,)), equal=True)
    both = TagCase(when=(first, last), tag=3)
    rule = (both, TagCase(when=(first,), tag=0), TagCase(when=(last,), tag=2))
    rule = (*rule, TagCase(when=(), tag=1))
    cells = []
    for number in range(length):
        ends = (number == 0, number == length - 1)
        cells.append(draft.fma("sum", (number,), program(*_ring_instructions(*ends))))
        unit = draft.unit(
            "load_A",
            (number,),
            UnitKind.LOAD,
            nest,
            tensor="A",
            strides=(tile, 1),
            base=number * rounds * tile,
            tags=rule,
        )
        draft.wire("A", unit, cells[-1], 0)
    for before, after in pairwise(cells):
        draft.wire("links", before, after, 2)
    draft.wire("C", load, cells[0], 1)
    back = tile + 1 if tokens is None else tokens
    draft.wire("back", cells[-1], cells[0], 2, out=1, tokens=back)
    draft.wire("out", cells[-1], store, out=2)
    return draft.done()


def _ring_instructions(is_first: bool, is_last: bool) -> list[Instruction]:
    """One for each tag of input 0: where the sum comes from, and where it goes."""
    made = []
    for tag in range(4):
        start, end = tag in (0, 3), tag in (2, 3)
        taken = 1 if is_first and start else 2
        sent = 0 if not is_last else 2 if end else 1
        made.append(
            Instruction(
                trigger=Trigger(
                    checks=(TagCheck(channel=0, tag=tag), TagCheck(channel=taken, tag=0))
                ),
                opcode=Opcode.FADD,
                destination=ToOutputs((sent,), 0),
                sources=(FromChannel(taken), FromChannel(0)),
                takes=(0, taken),
            )
        )
    return made


def replay(tile: int, passes: int, *, tokens: int | None = None) -> Netlist:
    """A virtual buffer: ``tile`` words are read once, and sent in each of some passes.

    The feeder sends what is new (tag 0 of its control), what came back (tag 1), or, in the last
    pass (tag 2), what came back for the last time.
    """
    draft = Draft(f"replay{tile}")
    draft.tensor("x", (tile,), TensorRole.INPUT)
    draft.tensor("y", (passes, tile), TensorRole.OUTPUT)
    nest = [("p", passes), ("t", tile)]
    load = draft.unit("load_x", (), UnitKind.LOAD, [("t", tile)], tensor="x", strides=(1,))
    store = draft.unit("store_y", (), UnitKind.STORE, nest, tensor="y", strides=(tile, 1))
    first = UnitCondition(sum=AffineSum(coefficients=(1,)), equal=True)
    last = UnitCondition(sum=AffineSum(constant=1 - passes, coefficients=(1,)), equal=True)
    rule = (TagCase(when=(first,), tag=0), TagCase(when=(last,), tag=2), TagCase(when=(), tag=1))
    control = draft.unit("control", (), UnitKind.SEQUENCE, nest, tags=rule)
    feeder = draft.control("feeder", (), program(*map(_replayed, range(3))))
    draft.wire("x", load, feeder, 1)
    draft.wire("control", control, feeder, 0)
    draft.wire("back", feeder, feeder, 2, out=1, tokens=tile + 1 if tokens is None else tokens)
    draft.wire("y", feeder, store)
    return draft.done()


def _replayed(tag: int) -> Instruction:
    """What the feeder of a virtual buffer does in the first pass, a middle one and the last."""
    taken = 1 if tag == 0 else 2
    return Instruction(
        trigger=Trigger(checks=(TagCheck(channel=0, tag=tag), TagCheck(channel=taken, tag=0))),
        opcode=Opcode.MOV,
        destination=ToOutputs((0,) if tag == 2 else (0, 1), 0),
        sources=(FromChannel(taken),),
        takes=(0, taken),
    )


def polynomial(degree: int, steps: int = 8) -> Netlist:
    """Horner's rule on a chain of FMAs: ``steps`` values of a polynomial, coefficients from memory.

    All cells take the same ``x`` from one net, each one FMA later than the cell before it.
    """
    draft = Draft(f"polynomial{degree}")
    _streamed(draft, "x", (1,), steps, fed=False)
    _streamed(draft, "c", (degree + 1,), steps, fed=False)
    _stored(draft, "y", (1,), steps)
    before = name_of("load_c", (0,))
    for number in range(degree):
        here = draft.fma("step", (number,))
        draft.wire("sum", before, here, 0)
        draft.wire("x", name_of("load_x", (0,)), here, 1)
        draft.wire("c", name_of("load_c", (number + 1,)), here, 2)
        before = here
    draft.wire("y", before, name_of("store_y", (0,)))
    return draft.done()
