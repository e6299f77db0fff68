"""Tensor times matrix on a 4-D array of 4 x 4 x 4 x 4 PEs: 256 FMAs, one instruction each."""

import t2s
from t2s import Float, Func, ImageParam, RDom

A, B = ImageParam(Float(64), 3, name="A"), ImageParam(Float(64), 2, name="B")
C, i, j, k, l = Func("C"), *t2s.variables("i j k"), RDom(0, 16, name="l")  # noqa: E741
C[i, j, k] = 0.0
C[i, j, k] += A[i, j, l] * B[l, k]
C.bound(i, 0, 16).bound(j, 0, 16).bound(k, 0, 32)

ii, jj, kk, ll = t2s.variables("ii jj kk ll")
A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
C.tile(k, j, i, kk, jj, ii, 4, 4, 4).split(l, l, ll, 4)
C.reorder(ll, kk, jj, ii, k, j, i, l).unroll(ii, jj, kk, ll)
C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
C.forward(A_feeder, kk).forward(B_feeder, ii).forward(B_feeder, jj)
A_loader.remove(k)
A_feeder.buffer(A_loader, j)
B_loader.remove(i, j)
B_feeder.buffer(B_loader, l)
