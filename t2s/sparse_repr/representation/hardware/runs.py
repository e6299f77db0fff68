"""What all decoders share: loads of lengths, and wires of runs (a row and its steps)."""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.construct import Parts, add, index, less, loop, quotient, select, times
from t2s.graph.graph import StreamKind
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft, Wire, link, wire

END = -1
"""The length of a run behind the last one."""

AHEAD = 256
"""Tokens that may wait for a loaded one: more than the cycles that a memory takes."""

FIBRE = "fibre"
"""The loop over fibres, one more than there are."""


def loader_name(product: Product, structure: str) -> str:
    """The unit that loads a part of the structure."""
    known = product.structure_loaders.get(structure)
    return known.name if known is not None else f"{product.nodes.matrix_loader.name}_{structure}"


def run_wires(product: Product) -> tuple[Wire, Wire]:
    """What brings a decoder its runs: rows, and their lengths."""
    decoder = product.nodes.decoder.name
    row = wire(f"{decoder}_run_row", INT32, StreamKind.COORDINATE)
    return row, wire(f"{decoder}_run_length", INT32, StreamKind.CONTROL)


def link_runs(
    parts: Parts, product: Product, rows_from: str, lengths_from: str, *, counted: bool = False
) -> None:
    """Lead the wires of runs to the decoder.

    Fibres that are ``counted`` where lengths are loaded are there a memory's latency earlier.
    """
    decoder, (row, length) = product.nodes.decoder.name, run_wires(product)
    early = AHEAD if counted else 32
    link(parts, row, rows_from, decoder, product.lanes, capacity=early)
    link(parts, length, lengths_from, decoder, product.lanes, capacity=32)


def steps_of(product: Product, entry: Expr) -> Expr:
    """The steps of a run, from an entry of the stream of lengths."""
    return _slots_over(product, entry, product.slots_decoded_at_once)


def blocks_of(product: Product, entry: Expr, slots: int) -> Expr:
    """The blocks of ``slots`` that a fibre has, from an entry of the stream of lengths."""
    return _slots_over(product, entry, slots)


def _slots_over(product: Product, entry: Expr, slots: int) -> Expr:
    lengths = product.mapping.lengths
    assert lengths is not None
    if lengths.round > 1:
        entry = quotient(add(entry, lengths.round - 1), lengths.round)
    return times(entry, lengths.round * lengths.scale // slots)


def fibre_code(product: Product, number: Expr, *, beyond: bool) -> Expr:
    """What runs say of a fibre: its number from 1; 0 for one that is not in the matrix.

    ``beyond`` says whether there may be fibres that fill up the last block of fibres.
    """
    code = add(number, 1)
    if not beyond:
        return code
    return select(less(number, product.units.count(product.mapping.major)), code, 0)


def fills_up(product: Product) -> bool:
    """Whether some fibres may fill up the last block of fibres."""
    return product.storage.layout.group_size > 1


def structure_tensor(parts: Parts, product: Product, structure: str, *, flat: bool = False) -> str:
    """Declare the array of a part of the structure, which has one element at least."""
    tensor, data = product.stream_name(structure), product.storage.streams[structure].data
    shape = (data.size,) if flat else data.shape
    input_tensor(parts, product, tensor, INT32, tuple(max(1, extent) for extent in shape))
    return tensor


def lengths_loader(parts: Parts, product: Product) -> tuple[ArrayDraft, Expr]:
    """A draft of one load unit for the lengths of all fibres in order, and what it loads.

    What it sends is for the caller to say.
    """
    lengths = product.mapping.lengths
    assert lengths is not None
    at = const(0) if lengths.fibres is None else quotient(index(FIBRE), lengths.fibres)
    return _loader_of_all(parts, product, lengths.name, "entry", at)


def numbers_loader(parts: Parts, product: Product) -> tuple[ArrayDraft, Expr]:
    """A draft of one load unit for the numbers of all fibres, and what it loads."""
    assert product.mapping.fibre is not None
    return _loader_of_all(parts, product, product.mapping.fibre, "number", index(FIBRE))


def _loader_of_all(
    parts: Parts, product: Product, structure: str, target: str, at: Expr
) -> tuple[ArrayDraft, Expr]:
    """A load unit that reads an entry for each fibre, and fires once more behind the last one."""
    tensor = structure_tensor(parts, product, structure, flat=True)
    count, location = fibre_count(product), product.nodes.matrix_loader.location
    name = loader_name(product, structure)
    unit = ArrayDraft(name, Role.LOAD, (), (loop(FIBRE, count + 1),), location)
    return unit, unit.load(target, tensor, (at,), INT32, less(index(FIBRE), count))


def fibre_count(product: Product) -> int:
    """Fibres in the structure, those included that fill up a block of fibres."""
    mapping = product.mapping
    if mapping.fibre is not None:
        return int(product.storage.streams[mapping.fibre].data.size)
    count = product.units.count(mapping.major)
    return count + -count % product.storage.layout.group_size
