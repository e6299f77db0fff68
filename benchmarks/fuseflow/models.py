"""The models of the figure as programs, with inputs that have the counts of the data sets.

Features and biases are dense, weights of graph networks compressed with four of ten elements, and
adjacency matrices compressed in both levels with values of 1, as FuseFlow describes them.
Autoencoders take a batch of 32 images, through weights of which a tenth is stored.  A decoder of
GPT-3 stores all of its weights; only its mask is compressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.fuseflow.published import DECODERS, GRAPHS, IMAGES, Graph, Images
from t2s import sparse


@dataclass(frozen=True, kw_only=True)
class Decoder:
    """Elements, their width, heads of attention, and the width between the two layers."""

    sequence: int
    width: int
    heads: int
    inner: int


HIDDEN = 16
DENSITY = 0.3984
"""Of weights: four of ten are drawn, and one in 255 of those is zero."""

BATCH = 32
DENSITY_OF_IMAGES = 0.1

GPT = Decoder(sequence=1024, width=768, heads=12, inner=3072)

KEPT = {16: 549, 32: 268, 64: 118}
"""Blocks that the masks of the figure keep, by the size of their blocks."""

_FORMATS = {"A": "ss", "W1": "ss", "W2": "ss", "V1": "ss", "V2": "ss"}
_FORMATS_OF_IMAGES = {"X": "ss", "We": "ss", "Wd": "ss"}
FORMATS_OF_DECODERS = {
    **{f"W{name}": "ddd:1,0,2" for name in "QKV"},
    "K": "ddd:1,2,0",
    "M": "ss",
    "PM": "sds",
}

GCN = """
    T1(i,j) = A(i,k) * X(k,j)
    L1(i,h) = T1(i,j) * W1(j,h)
    B1(i,h) = L1(i,h) + b1(h)
    H(i,h) = relu(B1(i,h))
    T2(i,h) = A(i,k) * H(k,h)
    L2(i,c) = T2(i,h) * W2(h,c)
    B2(i,c) = L2(i,c) + b2(c)
    Z(i,c) = softmax(c; B2(i,c))
"""

GRAPHSAGE = """
    T1(i,j) = A(i,k) * X(k,j)
    N1(i,h) = T1(i,j) * W1(j,h)
    S1(i,h) = X(i,j) * V1(j,h)
    B1(i,h) = (S1(i,h) + c1(h)) + (N1(i,h) + b1(h))
    H(i,h) = relu(B1(i,h))
    T2(i,h) = A(i,k) * H(k,h)
    N2(i,c) = T2(i,h) * W2(h,c)
    S2(i,c) = H(i,h) * V2(h,c)
    B2(i,c) = (S2(i,c) + c2(c)) + (N2(i,c) + b2(c))
    Z(i,c) = relu(B2(i,c))
"""

AUTOENCODER = """
    E(b,h) = X(b,i) * We(i,h)
    B(b,h) = E(b,h) + be(h)
    H(b,h) = relu(B(b,h))
    D(b,i) = H(b,h) * Wd(h,i)
    Y(b,i) = D(b,i) + bd(i)
"""

ATTENTION = """
    P(s,h,t) = Q(s,h,d) * K(t,h,d)
    PM(s,h,t) = M(s,t) * P(s,h,t)
    PS(s,h,t) = PM(s,h,t) * 0.125
    A(s,h,t) = stored(softmax(t; PS(s,h,t)))
    O(s,h,d) = A(s,h,t) * V(t,h,d)
"""

DECODER = f"""
    N1(s,e) = layernorm(e; X(s,e))
    Q1(s,h,d) = N1(s,e) * WQ(e,h,d)
    Q(s,h,d) = Q1(s,h,d) + bQ(h,d)
    K1(s,h,d) = N1(s,e) * WK(e,h,d)
    K(s,h,d) = K1(s,h,d) + bK(h,d)
    V1(s,h,d) = N1(s,e) * WV(e,h,d)
    V(s,h,d) = V1(s,h,d) + bV(h,d)
    {ATTENTION.strip()}
    U(s,e) = O(s,h,d) * WO(h,d,e)
    R(s,e) = (U(s,e) + bO(e)) + X(s,e)
    N2(s,e) = layernorm(e; R(s,e))
    F1(s,f) = N2(s,e) * W1(e,f)
    F(s,f) = relu(F1(s,f) + b1(f))
    F2(s,e) = F(s,f) * W2(f,e)
    Y(s,e) = (F2(s,e) + b2(e)) + R(s,e)
"""

ORDERS_OF_ATTENTION = {"P": "s,h,d,t", "PM": "s,h,t"}
"""Loops that make scores row by row.

A row of scores is the sum of rows of keys, one for each element of a query, at all coordinates; the
mask takes its part of them behind that.
"""

ORDERS_OF_DECODERS = {
    **{f"{name}1": "s,h,e,d" for name in "QKV"},
    "K": "s,h,d",
    **ORDERS_OF_ATTENTION,
}
"""Loops that make everything row by row."""

STORED_OF_DECODERS = {
    "none": (),
    "layer": ("Q", "K", "V", "O"),
    "all": ("K", "V"),
}
"""What the graphs of a decoder store, by how much is fused.

Partially fused are the projections, the attention, and the rest [FuseFlow, Section 8].  A row of
attention needs all keys and values, so these are stored even where everything is fused.
"""

TEXTS = {"GCN": GCN, "GraphSAGE": GRAPHSAGE, "autoencoder": AUTOENCODER, "GPT-3": DECODER}
_MODEL_FORMATS = {"autoencoder": _FORMATS_OF_IMAGES, "GPT-3": FORMATS_OF_DECODERS}


def program(model: str) -> sparse.Program:
    """The program of a model; of GPT-3 it is one decoder."""
    text = TEXTS[model]
    usual = _MODEL_FORMATS.get(model, _FORMATS)
    formats = {name: one for name, one in usual.items() if f"{name}(" in text}
    made = sparse.program(text, formats=formats)
    if model == "GPT-3":
        for name, order in ORDERS_OF_DECODERS.items():
            made = made.schedule(name, f"reorder({order})")
    return made


def fused(model: str, fusion: str) -> sparse.Program:
    """The program of a model with results passed on, as the figure has it."""
    made = program(model)
    stored = STORED_OF_DECODERS[fusion] if model == "GPT-3" else ()
    return (made.store(*stored) if stored else made).fuse(fusion)


def attention(rows: int, heads: int) -> sparse.Program:
    """The attention of a decoder in one graph, with lanes for its rows and for its heads."""
    formats = {name: FORMATS_OF_DECODERS[name] for name in ("K", "M", "PM")}
    made = sparse.program(ATTENTION, formats=formats)
    for name, order in ORDERS_OF_ATTENTION.items():
        made = made.schedule(name, f"reorder({order})")
    lanes = ((loop, count) for loop, count in (("s", rows), ("h", heads)) if count > 1)
    dealt = " ".join(f"parallelize({loop},{count})" for loop, count in lanes)
    return (made.schedule("O", dealt) if dealt else made).fuse("all")


def copies(model: str) -> int:
    """How often a model has its program, one after the other."""
    return DECODERS if model == "GPT-3" else 1


def inputs(model: str, data: str) -> dict[str, Any]:
    """Random inputs of a model with the counts of a data set."""
    match model:
        case "autoencoder":
            return inputs_of_images(IMAGES[data])
        case "GPT-3":
            block = int(data.split()[-1])
            return inputs_of_decoder(GPT, mask(GPT.sequence, block, KEPT[block]))
    return inputs_of_graph(model, GRAPHS[data])


def inputs_of_graph(model: str, graph: Graph) -> dict[str, Any]:
    """A graph without directions, features, and weights of two layers."""
    generator = np.random.default_rng(0)
    layers = ((graph.features, HIDDEN), (HIDDEN, graph.classes))
    adjacency = sparse.random_graph(graph.nodes, graph.entries, graph.walks)
    arrays: dict[str, Any] = {
        "A": sparse.to_scipy(adjacency).astype(np.float32),
        "X": generator.standard_normal((graph.nodes, graph.features), np.float32),
    }
    names = [("W", "b")] if model == "GCN" else [("W", "b"), ("V", "c")]
    for weights, bias in names:
        for number, shape in enumerate(layers, start=1):
            arrays[f"{weights}{number}"] = _weights(generator, shape, DENSITY)
            arrays[f"{bias}{number}"] = generator.standard_normal(shape[1], np.float32)
    return arrays


def _weights(generator: np.random.Generator, shape: tuple[int, int], density: float) -> Any:
    """Weights without an array of all elements, which are 2**29 for the largest images."""
    rows, columns = shape
    step = max(1, (1 << 24) // columns)
    blocks = []
    for first in range(0, rows, step):
        drawn = (min(step, rows - first), columns)
        block = scipy.sparse.csr_matrix(generator.random(drawn, np.float32) < density, dtype="f4")
        block.data = generator.standard_normal(block.nnz, np.float32)
        blocks.append(block)
    return scipy.sparse.vstack(blocks, format="csr")


def inputs_of_images(images: Images, batch: int = BATCH) -> dict[str, Any]:
    """Images of pixels from 1 to 2, and the weights of an autoencoder."""
    generator = np.random.default_rng(0)
    pixels, hidden = images.pixels, images.hidden
    return {
        "X": generator.random((batch, pixels), np.float32) + np.float32(1),
        "We": _weights(generator, (pixels, hidden), DENSITY_OF_IMAGES),
        "be": generator.standard_normal(hidden, np.float32),
        "Wd": _weights(generator, (hidden, pixels), DENSITY_OF_IMAGES),
        "bd": generator.standard_normal(pixels, np.float32),
    }


def inputs_of_decoder(size: Decoder, pattern: Any) -> dict[str, Any]:
    """A sequence, dense weights, and a mask."""
    generator = np.random.default_rng(0)
    width, heads, inner, per_head = size.width, size.heads, size.inner, size.width // size.heads
    shapes: dict[str, tuple[int, ...]] = {"X": (size.sequence, width)}
    for name in "QKV":
        shapes |= {f"W{name}": (width, heads, per_head), f"b{name}": (heads, per_head)}
    shapes |= {"WO": (heads, per_head, width), "bO": (width,)}
    shapes |= {"W1": (width, inner), "b1": (inner,), "W2": (inner, width), "b2": (width,)}
    arrays: dict[str, Any] = {
        name: generator.standard_normal(shape, np.float32) / np.float32(32)
        for name, shape in shapes.items()
    }
    return {"M": pattern, **arrays}


def inputs_of_attention(size: Decoder, pattern: Any) -> dict[str, Any]:
    """Queries, keys and values of all heads, and a mask."""
    generator = np.random.default_rng(0)
    shape = (size.sequence, size.heads, size.width // size.heads)
    return {"M": pattern, **{name: generator.standard_normal(shape, np.float32) for name in "QKV"}}


def mask(length: int, block: int, kept: int) -> Any:
    """A mask of BigBird of so many blocks: the first one of random masks that keeps them.

    It has the first two rows and columns of blocks, the diagonal and its neighbors, and two random
    blocks in each row [BigBird, Section 2].
    """
    count = length // block
    at = np.arange(count)
    fixed = (at[:, None] < 2) | (at < 2) | (abs(at[:, None] - at) <= 1)
    for seed in range(1000):
        generator = np.random.default_rng(seed)
        blocks = fixed.copy()
        for row in range(count):
            blocks[row, generator.choice(count, 2, replace=False)] = True
        if blocks.sum() == kept:
            return np.kron(blocks, np.ones((block, block), np.float32))
    raise ValueError(f"no mask of {length} keeps {kept} blocks of {block}")
