"""What the result starts from: loaded beside the sums, and added to them where they are stored."""

from __future__ import annotations

from t2s.core.expr import Expr, Index, Local, Read
from t2s.core.walk import T, Term, rewrite
from t2s.graph.body import Role
from t2s.graph.construct import Parts, less, loop, quotient, remainder, space
from t2s.graph.graph import Tensor, TensorRole
from t2s.sparse_repr.representation.hardware.product import WORD, Product
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft, Wire, link, wire

WAITING = 16
"""Lines of a start value that wait for the sums that they belong to."""


def load_start(
    parts: Parts, product: Product, unit: ArrayDraft, sink: str, at: Expr, lines: int
) -> Expr | None:
    """Loaders of what the start value reads, with wires to the store unit that ``unit`` drafts.

    ``at`` is the flat place of an element of the result in both.  Returns the value over locals of
    the store unit; ``None`` if results start from 0.
    """
    start = product.start
    if start is None:
        return None
    for operand in start.operands:
        if operand.name == product.vector.name:
            continue  # declared by its loader
        shape, padded = start.shapes[operand.name], start.padded[operand.name]
        parts.tensors.append(
            Tensor(
                name=operand.name, type=operand.type, shape=shape,
                padded=None if padded == shape else padded, role=TensorRole.INPUT,
                location=operand.location,
            )
        )  # fmt: skip
    placed = {start.row: quotient(at, product.width)}
    if start.side is not None:
        placed[start.side] = remainder(at, product.width)
    locals: dict[Term, Local] = {}
    inside = less(at, product.rows * product.width)
    for number, (read, loader) in enumerate(start.loaders.items()):
        out = wire(f"{loader}_word", read.type)
        _load(parts, product, _at(read, placed), loader, out, sink, inside, lines)
        locals[read] = unit.receive(out, f"start_{number}")
    localized = rewrite(start.value, lambda node: locals.get(node))
    return _at(localized, placed)


def _at(expression: T, placed: dict[str, Expr]) -> T:
    """An expression of an element, over the loops of a unit that handles lines of them."""

    def rule(node: Term) -> Term | None:
        return placed.get(node.name) if isinstance(node, Index) else None

    return rewrite(expression, rule)


def _load(
    parts: Parts,
    product: Product,
    read: Read,
    loader: str,
    out: Wire,
    sink: str,
    inside: Expr,
    lines: int,
) -> None:
    """A load unit, and a wire of its words, one for each element of a line."""
    assert product.start is not None
    location, words = product.start.location, (space(WORD, product.words),)
    unit = ArrayDraft(loader, Role.LOAD, words, (loop("line", lines),), location)
    unit.send(out, unit.load("loaded", read.source, read.indices, read.type, inside))
    parts.nodes.append(unit.node())
    link(parts, out, loader, sink, words, capacity=WAITING, location=location)
