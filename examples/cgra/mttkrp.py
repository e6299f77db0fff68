"""Matricized tensor times Khatri-Rao product: 4 x 4 x 4 x 2 points, two FMAs each."""

import t2s
from t2s import Float, Func, ImageParam, RDom

A, B = ImageParam(Float(64), 3, name="A"), ImageParam(Float(64), 2, name="B")
C, D = ImageParam(Float(64), 2, name="C"), Func("D")
(i, j), (k, l) = t2s.variables("i j"), RDom(0, 16, 0, 2, name="k l")  # noqa: E741
D[i, j] = 0.0
D[i, j] += (A[i, k, l] * B[k, j]) * C[l, j]
D.bound(i, 0, 32).bound(j, 0, 64)

ii, jj, kk = t2s.variables("ii jj kk")
A_loader, A_feeder, B_loader, B_feeder, C_loader, C_feeder = t2s.funcs(
    "A_loader A_feeder B_loader B_feeder C_loader C_feeder"
)
D.reassociate().tile(j, i, jj, ii, 4, 4).split(k, k, kk, 4)
D.reorder(l, kk, jj, ii, j, i, k).unroll(ii, jj, kk, l)
D.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
D.isolate_producer_chain(C, C_loader, C_feeder)
D.forward(A_feeder, jj).forward(B_feeder, ii).forward(C_feeder, ii)
D.forward(B_feeder, l).forward(C_feeder, kk)
for loader, feeder, reused, buffered in (
    (A_loader, A_feeder, j, i), (B_loader, B_feeder, i, k), (C_loader, C_feeder, i, k)
):  # fmt: skip
    loader.remove(reused)
    feeder.buffer(loader, buffered)
