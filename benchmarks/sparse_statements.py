"""Sparse statements beside the same computation as hand-made kernels, one after the other:
``python benchmarks/sparse_statements.py [--matrix FILE.mtx]``.

Each row is a statement as one writes it, its cycles, and the least cycles of some sequences of
kernels for it, whose temporaries are stored in the formats that they give.  The programs are those
of graph networks, of attention, of PageRank, of counting triangles, and contractions of tensors.
The largest ratio is 1.00.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from t2s import sparse

Inputs = Mapping[str, Any]
Kernels = Sequence[tuple[str, str]]
"""Texts and formats, as in ``("T(j,k)=X(j,f)*W(f,k)", "X:ds")``."""

ALLOWED = 1.05


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A statement, its formats, and sequences of kernels that compute the same."""

    name: str
    text: str
    formats: str
    inputs: Inputs
    sequences: Sequence[Kernels]

    def cycles(self, engine: str = "native") -> tuple[int, int]:
        """Of the statement, and of the best sequence; raises ``ValueError`` for other values."""
        whole = _run(self.text, self.formats, self.inputs, engine)
        counts = []
        for kernels in self.sequences:
            made, total = dict(self.inputs), 0
            for text, formats in kernels:
                result = _run(text, formats, made, engine)
                made[text.split("=")[0].split("(")[0]] = result.tensor
                total += result.cycles
            if not np.allclose(result.output, whole.output):
                raise ValueError(f"{self.name} has other values as kernels")
            counts.append(total)
        return whole.cycles, min(counts)


def _run(text: str, formats: str, inputs: Inputs, engine: str) -> Any:
    assignment = sparse.parse(text, formats.split())
    kernel = sparse.compile(assignment, "transpose()")
    result = assignment.result.tensor
    names = {tensor.name for tensor in assignment.tensors} - {result}
    return kernel.simulate({name: inputs[name] for name in names}, engine=engine)


def banded(n: int) -> Any:
    """The graph of a narrow mesh of n points."""
    offsets = (-9, -8, -1, 0, 1, 8, 9)
    bands = [np.ones(n - abs(at)) for at in offsets]
    return scipy_sparse.diags_array(bands, offsets=offsets).tocsr()


def statements(graph: Any) -> Iterator[Statement]:
    """All statements, on a graph with self-loops."""
    generator = np.random.default_rng(0)
    n = graph.shape[0]
    degree = np.asarray(graph.sum(axis=1)).reshape(-1)
    features = scipy_sparse.random_array((n, 16), density=0.3, rng=generator).tocsr()
    layer = {
        "A": graph,
        "X": features,
        "W": generator.standard_normal((16, 8)),
        "V": generator.standard_normal((8, 4)),
    }
    product, relu = ("T(j,k)=X(j,f)*W(f,k)", "X:ds"), ("H(i,k)=max(S(i,k),0)", "")
    spread = ("S(i,k)=A(i,j)*T(j,k)", "A:ds")
    one_layer = [[product, spread, relu]]
    yield Statement(
        name="GCN layer",
        text="H(i,k)=max(sum(j,A(i,j)*sum(f,X(j,f)*W(f,k))),0)",
        formats="A:ds X:ds",
        inputs=layer,
        sequences=one_layer,
    )
    yield Statement(
        name="GCN layer, one sum",
        text="H(i,k)=max(sum(j,sum(f,A(i,j)*X(j,f)*W(f,k))),0)",
        formats="A:ds X:ds",
        inputs=layer,
        sequences=one_layer,
    )
    yield Statement(
        name="A*X*W",
        text="S(i,k)=A(i,j)*X(j,f)*W(f,k)",
        formats="A:ds X:ds",
        inputs=layer,
        sequences=[[product, spread]],
    )
    second = ("U(j,c)=H(j,k)*V(k,c)", ""), ("O(i,c)=A(i,j)*U(j,c)", "A:ds")
    yield Statement(
        name="two GCN layers",
        text="O(i,c)=sum(j,A(i,j)*sum(k,max(sum(l,A(j,l)*sum(f,X(l,f)*W(f,k))),0)*V(k,c)))",
        formats="A:ds X:ds",
        inputs=layer,
        sequences=[[product, spread, relu, *second]],
    )
    sage = {
        "A": graph,
        "X": generator.random((n, 16)),
        "S": generator.standard_normal((16, 8)),
        "N": generator.standard_normal((16, 8)),
        "d": degree,
    }
    total = ("T(i,f)=A(i,j)*X(j,f)", "A:ds")
    mean = [total, ("D(i)=A(i,j)", "A:ds"), ("M(i,f)=T(i,f)/D(i)", "")]
    yield Statement(
        name="mean of neighbors",
        text="M(i,f)=sum(j,A(i,j)*X(j,f))/sum(j,A(i,j))",
        formats="A:ds",
        inputs=sage,
        sequences=[mean],
    )
    yield Statement(
        name="mean, given degree",
        text="M(i,f)=sum(j,A(i,j)*X(j,f))/d(i)",
        formats="A:ds",
        inputs=sage,
        sequences=[[total, ("M(i,f)=T(i,f)/d(i)", "")]],
    )
    yield Statement(
        name="GraphSAGE layer",
        text="H(i,k)=max(sum(f,X(i,f)*S(f,k))+sum(f,sum(j,A(i,j)*X(j,f))/sum(j,A(i,j))*N(f,k)),0)",
        formats="A:ds",
        inputs=sage,
        sequences=[
            [*mean, ("P(i,k)=X(i,f)*S(f,k)+M(i,f)*N(f,k)", ""), ("H(i,k)=max(P(i,k),0)", "")]
        ],
    )
    rank = {"A": graph, "x": np.full(n, 1 / n), "d": degree}
    yield Statement(
        name="PageRank step",
        text="y(i)=0.85*sum(j,A(i,j)*x(j)/d(j))+0.15",
        formats="A:ds",
        inputs=rank,
        sequences=[[("z(j)=x(j)/d(j)", ""), ("y(i)=0.85*A(i,j)*z(j)+0.15", "A:ds")]],
    )
    yield Statement(
        name="ReLU of a sparse matrix",
        text="H(i,j)=max(A(i,j),0)",
        formats="A:ds H:ds",
        inputs={"A": graph},
        sequences=[[("H(i,j)=A(i,j)*1", "A:ds H:ds")]],
    )
    normal = [("t(k)=A(k,j)*x(j)", "A:ds"), ("y(i)=A(k,i)*t(k)", "A:ds")]
    yield Statement(
        name="A^T*A*x",
        text="y(i)=A(k,i)*A(k,j)*x(j)",
        formats="A:ds",
        inputs=rank,
        sequences=[normal],
    )
    queries = {
        "M": scipy_sparse.kron(scipy_sparse.eye_array(4), np.ones((8, 8))).tocsr(),
        **{name: generator.standard_normal((32, 8)) for name in "QKPRV"},
    }
    yield Statement(
        name="sampled product",
        text="S(i,j)=M(i,j)*(Q(i,k)*K(j,k))",
        formats="M:ds S:ds",
        inputs=queries,
        sequences=[[("T(i,j)=Q(i,k)*K(j,k)", ""), ("S(i,j)=M(i,j)*T(i,j)", "M:ds S:ds")]],
    )
    yield Statement(
        name="sampled sum of products",
        text="S(i,j)=M(i,j)*(sum(k,Q(i,k)*K(j,k))+sum(l,P(i,l)*R(j,l)))",
        formats="M:ds S:ds",
        inputs=queries,
        sequences=[
            [("S(i,j)=M(i,j)*Q(i,k)*K(j,k)+M(i,j)*P(i,l)*R(j,l)", "M:ds S:ds")],
            [
                ("T(i,j)=Q(i,k)*K(j,k)", ""),
                ("U(i,j)=P(i,l)*R(j,l)", ""),
                ("S(i,j)=M(i,j)*(T(i,j)+U(i,j))", "M:ds S:ds"),
            ],
        ],
    )
    yield Statement(
        name="attention, normalized",
        text="O(i,d)=sum(j,M(i,j)*V(j,d))/sum(j,M(i,j))",
        formats="M:ds",
        inputs=queries,
        sequences=[
            [
                ("T(i,d)=M(i,j)*V(j,d)", "M:ds"),
                ("D(i)=M(i,j)", "M:ds"),
                ("O(i,d)=T(i,d)/D(i)", ""),
            ]
        ],
    )
    shape = (5, 6, 7)
    block = np.where(generator.random(shape) < 0.2, generator.random(shape), 0)
    factors = {"B": block, "U": generator.random((5, 2)), "V": generator.random((6, 3))}
    yield Statement(
        name="Tucker core",
        text="G(p,q,r)=B(i,j,k)*U(i,p)*V(j,q)*W(k,r)",
        formats="B:sss",
        inputs={**factors, "W": generator.random((7, 2))},
        sequences=[
            [
                ("T(i,j,r)=B(i,j,k)*W(k,r)", f"B:sss T:{first}"),
                ("R(i,q,r)=T(i,j,r)*V(j,q)", f"T:{first}"),
                ("G(p,q,r)=R(i,q,r)*U(i,p)", ""),
            ]
            for first in ("sss", "ddd")
        ],
    )
    squares = [
        [
            ("T(i,j)=A(i,k)*A(k,j)", f"A:ds T:{stored}"),
            ("X(i,j)=A(i,j)*T(i,j)", f"A:ds X:ds T:{stored}"),
        ]
        for stored in ("ds", "dd")
    ]
    for name, text in (
        ("masked square", "X(i,j)=A(i,j)*sum(k,A(i,k)*A(k,j))"),
        ("support of edges", "X(i,j)=A(i,j)*A(i,k)*A(k,j)"),
    ):
        yield Statement(
            name=name,
            text=text,
            formats="A:ds X:ds",
            inputs={"A": graph},
            sequences=squares,
        )
    below = scipy_sparse.tril(graph, -1).tocsr()
    yield Statement(
        name="triangles",
        text="t=L(i,j)*L(j,k)*L(i,k)",
        formats="L:ds",
        inputs={"L": below},
        sequences=[
            [
                ("T(i,k)=L(i,j)*L(j,k)", f"L:ds T:{stored}"),
                ("t=T(i,k)*L(i,k)", f"L:ds T:{stored}"),
            ]
            for stored in ("ds", "dd")
        ],
    )
    few = {
        "A": graph,
        "x": np.where(np.arange(n) % 3 == 0, 1.0, 0.0),
        "y": np.where(np.arange(n) % 2 == 0, 1.0, 0.0),
    }
    yield Statement(
        name="x^T*A*y, sparse vectors",
        text="t=x(i)*A(i,j)*y(j)",
        formats="A:ds x:s y:s",
        inputs=few,
        sequences=[
            [("z(j)=x(i)*A(i,j)", "A:ds x:s"), ("t=z(j)*y(j)", "y:s")],
            [("z(i)=A(i,j)*y(j)", "A:ds y:s"), ("t=x(i)*z(i)", "x:s")],
            [("z(j)=y(j)*1", "y:s"), ("t=x(i)*A(i,j)*z(j)", "A:ds x:s")],
        ],
    )
    yield Statement(
        name="A*y, sparse vector",
        text="z(i)=A(i,j)*y(j)",
        formats="A:ds y:s",
        inputs=few,
        sequences=[[("v(j)=y(j)*1", "y:s"), ("z(i)=A(i,j)*v(j)", "A:ds")]],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrix", help="a .mtx file in place of a narrow mesh of 200 points")
    options = parser.parse_args()
    graph = banded(200)
    if options.matrix:
        graph = sparse.to_scipy(sparse.read(options.matrix)).tocsr()
        graph = (graph + scipy_sparse.eye_array(graph.shape[0])).tocsr()
    for one in statements(graph):
        cycles, best = one.cycles()
        print(f"{one.name:26} {cycles:11,} {best:11,} {cycles / best:6.3f}", flush=True)


if __name__ == "__main__":
    main()
