"""What the result starts from: loaded beside the sums, and added to them where they are stored."""

from __future__ import annotations

from t2s.core.expr import Expr, Index, Local, Read
from t2s.core.walk import T, Term, rewrite
from t2s.graph.body import Load, Receive, Send, Statement
from t2s.graph.construct import Parts, index, less, local, loop, quotient, remainder, space
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.sparse_repr.representation.hardware.loaders import WORD
from t2s.sparse_repr.representation.hardware.product import Product

WAITING = 16
"""Lines of a start value that wait for the sums that they belong to."""


def load_start(
    parts: Parts, product: Product, sink: str, at: Expr, lines: int
) -> tuple[Expr | None, list[Statement]]:
    """Loaders of what the start value reads, with channels to the store unit.

    ``at`` is the flat place of an element of the result in both.  Returns the value over locals of
    the store unit, and the statements that receive them; ``None`` if results start from 0.
    """
    start = product.start
    if start is None:
        return None, []
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
    body: list[Statement] = []
    locals: dict[Term, Local] = {}
    inside = less(at, product.rows * product.width)
    for number, (read, loader) in enumerate(start.loaders.items()):
        _load(parts, product, _at(read, placed), loader, sink, inside, lines)
        value = local(f"start_{number}", read.type)
        locals[read] = value
        body.append(Receive(target=value.name, channel=f"{loader}_word", type=read.type))
    localized = rewrite(start.value, lambda node: locals.get(node))
    return _at(localized, placed), body


def _at(expression: T, placed: dict[str, Expr]) -> T:
    """An expression of an element, over the loops of a unit that handles lines of them."""

    def rule(node: Term) -> Term | None:
        return placed.get(node.name) if isinstance(node, Index) else None

    return rewrite(expression, rule)


def _load(
    parts: Parts, product: Product, read: Read, loader: str, sink: str, inside: Expr, lines: int
) -> None:
    """A load unit, and a channel of its words, one for each element of a line."""
    assert product.start is not None
    words = product.words
    parts.nodes.append(
        PEArray(
            name=loader,
            role=Role.LOAD,
            space=(space(WORD, words),),
            loops=(loop("line", lines),),
            body=(
                Load(
                    target="loaded", tensor=read.source, indices=read.indices, type=read.type,
                    condition=inside,
                ),
                Send(channel=f"{loader}_word", value=local("loaded", read.type)),
            ),
            location=product.start.location,
        )
    )  # fmt: skip
    parts.link(
        f"{loader}_word", read.type, loader, sink, shape=(words,), source_index=(index(WORD),),
        sink_index=(index(WORD),), capacity=WAITING, location=product.start.location,
    )  # fmt: skip
