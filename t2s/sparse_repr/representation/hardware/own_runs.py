"""Sources of runs (a fiber and its steps) for the decoders.

* Per-machine structure: lengths, and numbers (``runs_of_machines``).
* Lengths of all fibers, with blocks of slots assigned round-robin: each machine counts its own
  (``runs_of_blocks``).
* Lengths only, from which the schedule is replayed: ``decoders.py``.
"""

from __future__ import annotations

from t2s.core.expr import Expr, const, equals, select, simplify
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.build import GraphParts, Out, index, loop, space
from t2s.graph.graph import StreamKind
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.chain_layout import BlockJob, FiberJob
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft, RegisterFile, link, wire

END = -1
"""The length that marks the end of the runs."""

AHEAD = 256
"""Tokens that a channel holds beside a load: more than the latency of memory in cycles."""

FIBER = "fiber"
"""The loop over fibers, plus one iteration for the end."""


def loader_name(product: Product, structure: str) -> str:
    """The name of the unit that loads a part of the structure."""
    known = product.structure_loaders.get(structure)
    return known.name if known is not None else f"{product.nodes.matrix_loader.name}_{structure}"


def run_wires(product: Product) -> tuple[Out, Out]:
    """The wires that bring a decoder its runs: rows, and their lengths."""
    decoder = product.nodes.decoder.name
    row = wire(f"{decoder}_run_row", INT32, StreamKind.COORDINATE)
    return row, wire(f"{decoder}_run_length", INT32, StreamKind.CONTROL)


def link_runs(
    parts: GraphParts, product: Product, rows_from: str, lengths_from: str, *, counted: bool = False
) -> None:
    """Link the wires of runs to the decoder.

    ``counted`` fibers arrive earlier than loaded lengths, by the latency of memory.
    """
    decoder, (row, length) = product.nodes.decoder.name, run_wires(product)
    early = AHEAD if counted else 32
    link(parts, row, rows_from, decoder, product.lanes, capacity=early)
    link(parts, length, lengths_from, decoder, product.lanes, capacity=32)


def steps_of(product: Product, entry: Expr) -> Expr:
    """The steps of a run, from an entry of the stream of lengths."""
    return _slots_over(product, entry, product.slots_decoded_at_once)


def blocks_of(product: Product, entry: Expr, slots: int) -> Expr:
    """The blocks of ``slots`` that a fiber has, from an entry of the stream of lengths."""
    return _slots_over(product, entry, slots)


def _slots_over(product: Product, entry: Expr, slots: int) -> Expr:
    lengths = product.mapping.lengths
    assert lengths is not None
    if lengths.round > 1:
        entry = simplify((entry + (lengths.round - 1)) // lengths.round)
    return simplify(entry * (lengths.round * lengths.scale // slots))


def fiber_code(product: Product, number: Expr, *, beyond: bool) -> Expr:
    """The code of a fiber in runs: its number from 1; 0 for one beyond the matrix.

    ``beyond`` says whether padding fibers may complete the last block of fibers.
    """
    code = number + 1
    if not beyond:
        return code
    return select(number < product.units.count(product.mapping.major), code, 0)


def fills_up(product: Product) -> bool:
    """Whether padding fibers may complete the last block of fibers."""
    return product.storage.layout.group_size > 1


def structure_tensor(
    parts: GraphParts, product: Product, structure: str, *, flat: bool = False
) -> str:
    """Declare the array of a part of the structure, which has one element at least."""
    tensor, data = product.stream_name(structure), product.storage.streams[structure].data
    shape = (data.size,) if flat else data.shape
    input_tensor(parts, product, tensor, INT32, tuple(max(1, extent) for extent in shape))
    return tensor


def lengths_loader(parts: GraphParts, product: Product) -> tuple[ArrayDraft, Expr]:
    """The draft of a single load unit for the lengths of all fibers, and the loaded length.

    The caller adds the sends.
    """
    lengths = product.mapping.lengths
    assert lengths is not None
    at = const(0) if lengths.fibers is None else simplify(index(FIBER) // lengths.fibers)
    return _loader_of_all(parts, product, lengths.name, "entry", at)


def numbers_loader(parts: GraphParts, product: Product) -> tuple[ArrayDraft, Expr]:
    """The draft of a single load unit for the numbers of all fibers, and the loaded number."""
    assert product.mapping.fiber is not None
    return _loader_of_all(parts, product, product.mapping.fiber, "number", index(FIBER))


def _loader_of_all(
    parts: GraphParts, product: Product, structure: str, target: str, at: Expr
) -> tuple[ArrayDraft, Expr]:
    """A load unit that reads an entry for each fiber, and fires once more after the last one."""
    tensor = structure_tensor(parts, product, structure, flat=True)
    count, location = fiber_count(product), product.nodes.matrix_loader.location
    name = loader_name(product, structure)
    unit = ArrayDraft(name, Role.LOAD, (), (loop(FIBER, count + 1),), location)
    return unit, unit.load(target, tensor, (at,), INT32, index(FIBER) < count)


def fiber_count(product: Product) -> int:
    """The number of fibers in the structure, including padding fibers of a block of fibers."""
    mapping = product.mapping
    if mapping.fiber is not None:
        return int(product.storage.streams[mapping.fiber].data.size)
    count = product.units.count(mapping.major)
    return count + -count % product.storage.layout.group_size


def runs_of_machines(parts: GraphParts, product: Product) -> None:
    """Load the lengths of fibers for each machine, and their numbers if they are recorded."""
    mapping = product.mapping
    lengths, job, (row, length) = mapping.lengths, mapping.job, run_wires(product)
    assert lengths is not None
    assert isinstance(job, FiberJob)
    numbers = mapping.fiber or mapping.job_index
    count, node = _fibers_of_a_machine(product), loader_name(product, lengths.name)
    source = node if numbers is None else _load_numbers(parts, product, numbers, count)
    tensor = structure_tensor(parts, product, lengths.name)
    unit = _loader(product, node, count)
    covered = min(lengths.fibers or 1, job.fibers)
    at = (const(0),) if lengths.fibers is None else (index(LANE), _entry(covered))
    exists = index(FIBER) < count
    entry = unit.load("entry", tensor, at, INT32, exists)
    unit.send(length, select(exists, steps_of(product, entry), END))
    if numbers is None:
        first = simplify((_entry(job.fibers) * product.machines + index(LANE)) * job.fibers)
        number = simplify(first + index(FIBER) % job.fibers)
        beyond = fills_up(product) or lengths.fibers is None
        unit.send(row, fiber_code(product, number, beyond=beyond))
    parts.nodes.append(unit.node())
    link_runs(parts, product, source, node, counted=numbers is None)


def _entry(fibers: int) -> Expr:
    """The index of the entry for a fiber, if each entry is for several."""
    return simplify(index(FIBER) // fibers)


def _fibers_of_a_machine(product: Product) -> int:
    """The largest number of fibers of any machine."""
    mapping, streams = product.mapping, product.storage.streams
    assert isinstance(mapping.job, FiberJob)
    assert mapping.lengths is not None
    fibers = mapping.job.fibers
    if mapping.fiber is not None:
        return int(streams[mapping.fiber].data.shape[1])
    if mapping.job_index is not None:
        return int(streams[mapping.job_index].data.shape[1]) * fibers
    if mapping.lengths.fibers is None:
        return -(-fiber_count(product) // (fibers * product.machines)) * fibers
    return int(streams[mapping.lengths.name].data.shape[1]) * min(mapping.lengths.fibers, fibers)


def _loader(product: Product, node: str, count: int) -> ArrayDraft:
    """A load unit for each machine, which fires for each of its fibers, and once more at the
    end.
    """
    location = product.nodes.matrix_loader.location
    return ArrayDraft(node, Role.LOAD, product.lanes, (loop(FIBER, count + 1),), location)


def _load_numbers(parts: GraphParts, product: Product, name: str, count: int) -> str:
    """A load unit for each machine: the numbers of its fibers, or of its jobs."""
    node, job = loader_name(product, name), product.mapping.job
    assert isinstance(job, FiberJob)
    tensor = structure_tensor(parts, product, name)
    fibers = 1 if name == product.mapping.fiber else job.fibers
    unit, at = _loader(product, node, count), (index(LANE), _entry(fibers))
    loaded = unit.load("loaded", tensor, at, INT32, index(FIBER) < count)
    code = fiber_code(product, loaded, beyond=False)
    if fibers > 1:
        number = simplify(loaded * fibers + index(FIBER) % fibers)
        code = select(loaded < 0, 0, fiber_code(product, number, beyond=fills_up(product)))
    unit.send(run_wires(product)[0], code)
    parts.nodes.append(unit.node())
    return node


def runs_of_blocks(parts: GraphParts, product: Product) -> None:
    """Blocks are assigned round-robin: each machine takes every m-th block of a row.

    A row of ``q * m + r`` blocks whose first block is for machine ``phase`` has ``q`` or ``q + 1``
    of them on each machine.  Quotient and remainder are passed from machine to machine.
    """
    job, machines, fibers = product.mapping.job, product.machines, fiber_count(product)
    assert isinstance(job, BlockJob)
    relay = f"{product.nodes.decoder.name}_relay"
    come = {
        what: wire(f"{relay}_{what}", kind=StreamKind.CONTROL)
        for what in ("quotient", "rest", "number")
    }
    loader, entry = lengths_loader(parts, product)
    blocks = loader.let("blocks", blocks_of(product, entry, job.slots))
    each = select(index(FIBER) < fibers, simplify(blocks // machines), END)
    loader.send(come["quotient"], each)
    if machines > 1:
        loader.send(come["rest"], simplify(blocks % machines))
    parts.nodes.append(loader.node())
    lengths_from, numbers_from = loader.name, ""
    if product.mapping.fiber is not None:
        loader, number = numbers_loader(parts, product)
        loader.send(come["number"], number + 1)
        parts.nodes.append(loader.node())
        numbers_from = loader.name
    unit = ArrayDraft(
        relay, Role.RELAY, product.lanes, (loop(FIBER, fibers + 1),),
        product.nodes.decoder.location,
    )  # fmt: skip
    phase = unit.register("phase_register") if machines > 1 else None
    whole = _down_the_line(parts, product, unit, come["quotient"], lengths_from, "quotient")
    mine, rest = whole, None
    if phase is not None:
        rest = _down_the_line(parts, product, unit, come["rest"], lengths_from, "rest")
    code = fiber_code(product, index(FIBER), beyond=fills_up(product))
    if numbers_from:
        code = _down_the_line(parts, product, unit, come["number"], numbers_from, "number")
    if phase is not None and rest is not None:
        mine = whole + _share(product, unit, phase, rest)
    row, length = run_wires(product)
    unit.send(row, code)
    steps = simplify(mine * (job.slots // product.slots_decoded_at_once))
    unit.send(length, select(whole < 0, END, steps))
    parts.nodes.append(unit.node())
    link_runs(parts, product, relay, relay)


def _share(product: Product, unit: ArrayDraft, phase_register: RegisterFile, rest: Expr) -> Expr:
    """1 if one of the remaining blocks of a fiber is this machine's; advances to the next fiber."""
    machines, lane = product.machines, index(LANE)
    phase = unit.read(phase_register, "phase")
    after = phase + rest
    around = phase + (rest - machines)
    unit.write(phase_register, select(after < machines, after, around))
    first: Expr = lane - phase
    first = select(lane < phase, first + machines, first)
    return select(first < rest, 1, 0)


def _down_the_line(
    parts: GraphParts, product: Product, unit: ArrayDraft, taken: Out, source: str, what: str
) -> Expr:
    """Take a number from ``source`` on the first machine, else from the machine before."""
    machines, lane = product.machines, index(LANE)
    link(parts, taken, source, unit.name)
    start = equals(lane, 0)
    first = unit.receive(taken, f"{what}_first", start if machines > 1 else None)
    if machines == 1:
        return unit.let(what, first)
    on = wire(f"{taken.port}_next", kind=StreamKind.CONTROL)
    before_this = (lane - 1,)
    link(parts, on, unit.name, unit.name, (space(LANE, machines - 1),), sink_at=before_this)
    before = unit.receive(on, f"{what}_before", const(0) < lane)
    value = unit.let(what, select(start, first, before))
    unit.send(on, value, lane < machines - 1)
    return value
