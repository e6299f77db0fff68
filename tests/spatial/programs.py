"""Random small programs: each with what a random schedule has to know about it.

``tests.spatial.schedules`` draws directives for them.  Programs are tiny (a few hundred firings),
and every one of them fills its inputs with small integers, so that nothing overflows by accident
and floats are exact unless a test asks for more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, Param, RDom, Var
from t2s.core.types import Type
from t2s.func.func import RVar
from t2s.graph.graph import Graph, TensorRole

LoopVar = Var | RVar
Extents = tuple[int, int, int]
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """One loop of the definition: ``extent`` is ``None`` where it depends on ``inside``."""

    variable: LoopVar
    extent: int | None
    inside: tuple[str, ...] = ()

    @property
    def reduction(self) -> bool:
        return isinstance(self.variable, RVar)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An operand that occurs once: the variables of its subscripts, the last one contiguous."""

    operand: ImageParam | Func
    varies: tuple[str, ...]
    contiguous: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A Func to schedule, its loops innermost first, and the operands that can be isolated.

    ``reads`` lists everything that varies, also what cannot be isolated; ``associative`` says that
    the reduction may be reordered over the reals; ``plain`` that no index is used as a value, so
    that vectors are possible.
    """

    func: Func
    loops: tuple[Nest, ...]
    reads: tuple[Access, ...]
    isolated: tuple[Access, ...]
    associative: bool = True
    plain: bool = True
    extra: tuple[Func, ...] = field(default=())


def gemm(extents: Extents, type: Type, flag: bool) -> Program:
    """``C += A * B``; with the flag B is transposed, so that both are contiguous along k."""
    rows, columns, depth = extents
    a, b = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, depth, name="k")
    c = Func("C")
    c[i, j] = 0
    c[i, j] += a[i, k] * (b[j, k] if flag else b[k, j])
    c.bound(i, 0, rows).bound(j, 0, columns)
    reads = (
        Access(operand=a, varies=("i", "k"), contiguous="k"),
        Access(operand=b, varies=("j", "k"), contiguous="k" if flag else "j"),
    )
    loops = (_loop(k, depth), _loop(j, columns), _loop(i, rows))
    return Program(func=c, loops=loops, reads=reads, isolated=reads)


def convolution(extents: Extents, type: Type, flag: bool) -> Program:
    """A two-dimensional window; with the flag its first row is guarded by a condition."""
    size, height, width = extents
    image, weights = ImageParam(type, 2, name="I"), ImageParam(type, 2, name="W")
    y, x = Var("y"), Var("x")
    ky, kx = RDom(0, height, 0, width, name="ky kx")
    out = Func("O")
    out[y, x] = 1
    value = image[y + ky, x + kx] * weights[ky, kx]
    out[y, x] += t2s.select(y + ky > 0, value, 3) if flag else value
    out.bound(y, 0, size).bound(x, 0, 3)
    reads = (
        Access(operand=image, varies=("y", "ky", "x", "kx"), contiguous=None if flag else "kx"),
        Access(operand=weights, varies=("ky", "kx"), contiguous="kx"),
    )
    loops = (_loop(kx, width), _loop(ky, height), _loop(x, 3), _loop(y, size))
    return Program(func=out, loops=loops, reads=reads, isolated=reads)


def folded(extents: Extents, type: Type, flag: bool) -> Program:
    """Two triangles of products as one rectangle; with the flag the loops choose between reads."""
    rows, columns, depth = extents
    a, x = ImageParam(type, 2, name="A"), ImageParam(type, 1, name="X")
    i, j, k = Var("i"), Var("j"), RDom(0, depth, name="k")
    out = Func("F")
    other = rows - 1 - i
    joint = a[t2s.select(i < j, i, other), k]
    out[i, j] = 0
    term = t2s.select(i < j, a[i, k], a[other, k]) if flag else joint
    out[i, j] += term * x[t2s.select(i < j, j - 1, columns - 1 - j)]
    out.bound(i, 0, rows).bound(j, 0, columns)
    reads = (
        Access(operand=a, varies=("i", "j", "k"), contiguous="k"),
        Access(operand=x, varies=("i", "j"), contiguous=None),
    )
    loops = (_loop(k, depth), _loop(j, columns), _loop(i, rows))
    return Program(func=out, loops=loops, reads=reads, isolated=reads)


def triangular(extents: Extents, type: Type, flag: bool) -> Program:
    """A reduction whose length depends on ``i``; with the flag it starts from an input."""
    rows, columns, _ = extents
    a, start = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="S")
    i, j = Var("i"), Var("j")
    k = RDom(0, i + 1, name="k")
    t = Func("T")
    if flag:
        t[i, j] = start[i, j]
    else:
        t[i, j] = 5
    t[i, j] = t2s.max(t[i, j], a[k, j] + t2s.cast(type, i))
    t.bound(i, 0, rows).bound(j, 0, columns)
    reads = [Access(operand=a, varies=("j", "k"), contiguous="j")]
    if flag:
        reads.append(Access(operand=start, varies=("i", "j"), contiguous="j"))
    loops = (
        Nest(variable=k, extent=None, inside=("i",)),
        _loop(j, columns),
        _loop(i, rows),
    )
    return Program(func=t, loops=loops, reads=tuple(reads), isolated=tuple(reads))


def trapezoid(extents: Extents, type: Type, flag: bool) -> Program:
    """A product with a triangular matrix: PEs along j share B, and the trips depend on i."""
    rows, columns, depth = extents
    a, b = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    i, j = Var("i"), Var("j")
    k = RDom(i, depth, name="k") if flag else RDom(0, i + depth, name="k")
    out = Func("R")
    out[i, j] = 0
    out[i, j] += a[k, j] * b[i, k]
    out.bound(i, 0, rows).bound(j, 0, columns)
    reads = (
        Access(operand=a, varies=("j", "k"), contiguous="j"),
        Access(operand=b, varies=("i", "k"), contiguous="k"),
    )
    loops = (
        Nest(variable=k, extent=None, inside=("i",)),
        _loop(j, columns),
        _loop(i, rows),
    )
    return Program(func=out, loops=loops, reads=reads, isolated=reads)


def pointwise(extents: Extents, type: Type, flag: bool) -> Program:
    """No reduction: an inlined Func, guarded with the flag; ``scaled`` can be isolated."""
    rows, columns, _ = extents
    a = ImageParam(type, 2, name="A")
    i, j = Var("i"), Var("j")
    scaled, out = Func("scaled"), Func("P")
    scaled[i, j] = a[i, j] * 3 - t2s.cast(type, j)
    if flag:
        out[i, j] = t2s.select(i > 0, scaled[i - 1, j], 7) + t2s.cast(type, i)
    else:
        out[i, j] = scaled[i, j] * t2s.cast(type, j + 1)
    out.bound(i, 0, rows).bound(j, 0, columns)
    reads = (Access(operand=scaled, varies=("i", "j"), contiguous=None),)
    loops = (_loop(j, columns), _loop(i, rows))
    return Program(func=out, loops=loops, reads=reads, isolated=reads, plain=False)


def stencil(extents: Extents, type: Type, flag: bool) -> Program:
    """Several reads of one input, bounds that do not start at 0, and a scalar parameter."""
    rows, columns, _ = extents
    a, b = ImageParam(type, 2, name="A"), ImageParam(type, 1, name="B")
    i, j, scale = Var("i"), Var("j"), Param(type, name="scale")
    out = Func("Z")
    sides = a[i - 2, j] + a[i - 1, j + 1]
    center = t2s.select(a[i, j] > 4, b[j], scale) if flag else b[j] * scale
    out[i, j] = sides * 2 + center
    out.bound(i, 2, rows).bound(j, 1, columns)
    second = Access(operand=b, varies=("j",), contiguous="j")
    first = Access(operand=a, varies=("i", "j"), contiguous="j")
    loops = (_loop(j, columns), _loop(i, rows))
    return Program(func=out, loops=loops, reads=(first, second), isolated=(second,))


def biased(extents: Extents, type: Type, flag: bool) -> Program:
    """Two reduction loops and a start from a vector that does not depend on ``j``."""
    rows, columns, depth = extents
    a, bias = ImageParam(type, 2, name="A"), ImageParam(type, 1, name="V")
    i, j = Var("i"), Var("j")
    p, q = RDom(1, depth, -1, 2, name="p q")
    out = Func("Y")
    out[i, j] = bias[i]
    term = a[i + p, q + 1]
    out[i, j] = t2s.min(out[i, j], term) if flag else out[i, j] + term * t2s.cast(type, j)
    out.bound(i, 0, rows).bound(j, 0, columns)
    reads = (
        Access(operand=bias, varies=("i",), contiguous="i"),
        Access(operand=a, varies=("i", "p", "q"), contiguous="q"),
    )
    loops = (_loop(q, 2), _loop(p, depth), _loop(j, columns), _loop(i, rows))
    return Program(func=out, loops=loops, reads=reads, isolated=reads, plain=flag)


def recurrence(extents: Extents, type: Type, flag: bool) -> Program:
    """A reduction in an order that must be kept: Horner's rule, or a conditional update."""
    rows, columns, depth = extents
    a, x = ImageParam(type, 2, name="A"), ImageParam(type, 1, name="X")
    i, j, k = Var("i"), Var("j"), RDom(0, depth, name="k")
    out = Func("H")
    out[i, j] = 1
    stepped = out[i, j] * x[j] + a[i, k]
    out[i, j] = t2s.select(x[j] > 3, stepped, out[i, j]) if flag else stepped
    out.bound(i, 0, rows).bound(j, 0, columns)
    reads = (
        Access(operand=a, varies=("i", "k"), contiguous=None),
        Access(operand=x, varies=("j",), contiguous="j"),
    )
    loops = (_loop(k, depth), _loop(j, columns), _loop(i, rows))
    isolated = reads[:1] if flag else reads
    return Program(func=out, loops=loops, reads=reads, isolated=isolated, associative=False)


def mirrored(extents: Extents, type: Type, flag: bool) -> Program:
    """Reads from the end to the front: a product, or a sum over what lies before the end."""
    rows, columns, depth = extents
    a, b = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, depth, name="k")
    out = Func("M")
    out[i, j] = 1
    if flag:
        out[i, j] *= a[rows - 1 - i, k] + 1
    else:
        before = t2s.select(j + k < columns, a[rows - 1 - i, j + k], 2)
        out[i, j] += before * b[depth - 1 - k, j]
    out.bound(i, 0, rows).bound(j, 0, columns)
    first = Access(operand=a, varies=("i", "k") if flag else ("i", "j", "k"), contiguous="k")
    second = Access(operand=b, varies=("j", "k"), contiguous="j")
    reads = (first,) if flag else (replace(first, contiguous=None), second)
    loops = (_loop(k, depth), _loop(j, columns), _loop(i, rows))
    return Program(func=out, loops=loops, reads=reads, isolated=reads)


def two_stages(extents: Extents, type: Type, flag: bool) -> Program:
    """A product of a product: the first one goes through memory, behind a barrier."""
    first = gemm(extents, type, flag)
    rows, columns, _ = extents
    i, j, k = Var("i"), Var("j"), RDom(0, columns, name="m")
    d = Func("D")
    d[i, j] = 0
    d[i, j] += first.func[i, k] * first.func[j, k]
    d.bound(i, 0, rows).bound(j, 0, rows)
    first.func.bounds.clear()
    reads = (Access(operand=first.func, varies=("i", "j", "m"), contiguous=None),)
    loops = (_loop(k, columns), _loop(j, rows), _loop(i, rows))
    return Program(func=d, loops=loops, reads=reads, isolated=(), extra=(first.func,))


def _loop(variable: LoopVar, extent: int) -> Nest:
    return Nest(variable=variable, extent=extent)


KINDS = (
    gemm,
    convolution,
    folded,
    triangular,
    trapezoid,
    pointwise,
    stencil,
    biased,
    recurrence,
    mirrored,
    two_stages,
)
INTEGERS = (Int(32), Int(32), Int(16), t2s.UInt(8), Int(64))


@st.composite
def programs(draw: Draw, types: tuple[Type, ...] = INTEGERS) -> Program:
    """A random program, mostly with extents that have divisors."""
    kind = draw(st.sampled_from(KINDS))
    rows, columns, depth = (draw(st.sampled_from((2, 3, 4, 4, 5))) for _ in range(3))
    return kind((rows, columns, depth), draw(st.sampled_from(types)), draw(st.booleans()))


def random_inputs(graph: Graph, seed: int, *, real: bool = False) -> dict[str, Any]:
    """Values for every input array and parameter: small integers, or ``real`` numbers."""
    generator = np.random.default_rng(seed)

    def numbers(shape: tuple[int, ...], type: Type) -> Any:
        drawn = generator.normal(size=shape) if real else generator.integers(0, 9, shape)
        return np.asarray(drawn).astype(type.numpy)

    inputs: dict[str, Any] = {
        tensor.array: numbers(tensor.shape, tensor.type)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }
    scalars = {p.name: p.type.numpy.type(numbers((), p.type)) for p in graph.parameters}
    return inputs | scalars
