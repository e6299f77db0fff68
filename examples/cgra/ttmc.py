"""A chain of tensor times matrix on a 5-D array of 2 x 2 x 2 x 4 x 4 points, two FMAs each."""

import t2s
from t2s import Float, Func, ImageParam, RDom

A, B = ImageParam(Float(64), 3, name="A"), ImageParam(Float(64), 2, name="B")
C, D = ImageParam(Float(64), 2, name="C"), Func("D")
(i, j, k), (l, m) = t2s.variables("i j k"), RDom(0, 16, 0, 4, name="l m")  # noqa: E741
D[i, j, k] = 0.0
D[i, j, k] += (A[i, l, m] * B[l, j]) * C[m, k]
D.bound(i, 0, 16).bound(j, 0, 8).bound(k, 0, 16)

ii, jj, kk, ll = t2s.variables("ii jj kk ll")
A_loader, A_feeder, B_loader, B_feeder, C_loader, C_feeder = t2s.funcs(
    "A_loader A_feeder B_loader B_feeder C_loader C_feeder"
)
D.reassociate().tile(k, j, i, kk, jj, ii, 2, 2, 2).split(l, l, ll, 4)
D.reorder(m, ll, kk, jj, ii, k, j, i, l).unroll(ii, jj, kk, ll, m)
D.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
D.isolate_producer_chain(C, C_loader, C_feeder)
D.forward(A_feeder, jj).forward(A_feeder, kk)
D.forward(B_feeder, ii).forward(B_feeder, kk).forward(B_feeder, m)
D.forward(C_feeder, ii).forward(C_feeder, jj).forward(C_feeder, ll)
for loader, feeder, reused, buffered in (
    (A_loader, A_feeder, (j, k), i),
    (B_loader, B_feeder, (i, k), l),
    (C_loader, C_feeder, (i, j), l),
):
    loader.remove(*reused)
    feeder.buffer(loader, buffered)
