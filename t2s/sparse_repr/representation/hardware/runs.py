"""What all decoders share: loads of lengths, and channels of runs (a row and its steps)."""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Load, Statement
from t2s.graph.construct import (
    Parts,
    add,
    index,
    less,
    loop,
    quotient,
    select,
    times,
)
from t2s.graph.graph import StreamKind
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.product import Product

END = -1
"""The length of a run behind the last one."""

AHEAD = 256
"""Tokens that may wait for a loaded one: more than the cycles that a memory takes."""


def loader_name(product: Product, structure: str) -> str:
    known = product.structure_loaders.get(structure)
    return known.name if known is not None else f"{product.nodes.matrix_loader.name}_{structure}"


def run_links(
    parts: Parts, product: Product, sources: tuple[str, str], *, counted: bool = False
) -> None:
    """Channels of the runs: ``<decoder>_run_row`` and ``<decoder>_run_length``.

    Fibres that are ``counted`` where lengths are loaded are there a memory's latency earlier.
    """
    decoder = product.nodes.decoder.name
    for what, source in zip(("row", "length"), sources, strict=True):
        parts.link(
            f"{decoder}_run_{what}",
            INT32,
            source,
            decoder,
            shape=(product.machines,),
            source_index=(index(LANE),),
            sink_index=(index(LANE),),
            capacity=AHEAD if counted and what == "row" else 32,
            kind=StreamKind.COORDINATE if what == "row" else StreamKind.CONTROL,
        )


def steps_of(product: Product, entry: Expr) -> Expr:
    """The steps of a run, from an entry of the stream of lengths."""
    lengths = product.mapping.lengths
    assert lengths is not None
    rounded = entry
    if lengths.round > 1:
        rounded = quotient(add(entry, lengths.round - 1), lengths.round)
    return times(rounded, lengths.round * lengths.scale // product.slots_decoded_at_once)


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


def stored_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Tensors have at least one element."""
    return tuple(max(1, extent) for extent in shape)


def load_all_lengths(parts: Parts, product: Product, sends: tuple[Statement, ...]) -> str:
    """One load unit: the lengths of all fibres in order; ``sends`` use the local ``entry``."""
    lengths = product.mapping.lengths
    assert lengths is not None
    at = const(0) if lengths.fibres is None else quotient(index("fibre"), lengths.fibres)
    return _load_all(parts, product, lengths.name, "entry", at, sends)


def load_all_numbers(parts: Parts, product: Product, sends: tuple[Statement, ...]) -> str:
    """One load unit: the numbers of all fibres; ``sends`` use the local ``number``."""
    assert product.mapping.fibre is not None
    return _load_all(parts, product, product.mapping.fibre, "number", index("fibre"), sends)


def _load_all(
    parts: Parts,
    product: Product,
    structure: str,
    target: str,
    at: Expr,
    sends: tuple[Statement, ...],
) -> str:
    """A load unit that reads an entry for each fibre, and sends once more behind the last one."""
    node, tensor = loader_name(product, structure), product.stream_name(structure)
    data = product.storage.streams[structure].data.reshape(-1)
    input_tensor(parts, product, tensor, INT32, stored_shape(data.shape))
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=(),
            loops=(loop("fibre", fibre_count(product) + 1),),
            body=(
                Load(
                    target=target,
                    tensor=tensor,
                    indices=(at,),
                    type=INT32,
                    condition=less(index("fibre"), fibre_count(product)),
                ),
                *sends,
            ),
            location=product.nodes.matrix_loader.location,
        )
    )
    return node


def fibre_count(product: Product) -> int:
    """Fibres in the structure, those included that fill up a block of fibres."""
    mapping = product.mapping
    if mapping.fibre is not None:
        return int(product.storage.streams[mapping.fibre].data.size)
    count = product.units.count(mapping.major)
    return count + -count % product.storage.layout.group_size
