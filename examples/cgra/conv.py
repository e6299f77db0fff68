"""Convolution of 4 channels with 3 x 3 taps to 7 channels on a CGRA: 252 PEs, a weight in each.

A pixel goes to all PEs that need it at once, a weight once to its PE, where it stays in a register.
The sum of an output goes through 36 PEs.  Place it with ``t2s cgra examples/cgra/conv.py``.
"""

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

I, W = ImageParam(Float(64), 3, name="I"), ImageParam(Float(64), 4, name="W")  # noqa: E741
O, y, x, co = Func("O"), *t2s.variables("y x co")  # noqa: E741
ky, kx, ci = RDom(0, 3, 0, 3, 0, 4, name="ky kx ci")
O[y, x, co] = 0.0
O[y, x, co] += I[y + ky, x + kx, ci] * W[co, ky, kx, ci]
O.bound(y, 0, 28).bound(x, 0, 32).bound(co, 0, 7)

image = Var("image")
W_loader, W_feeder, I_loader = t2s.funcs("W_loader W_feeder I_loader")
O.reorder(ci, kx, ky, co, x, y).unroll(co, ky, kx, ci).split(y, image, y, 28)
O.isolate_producer_chain(W, W_loader, W_feeder).isolate_producer(I, I_loader)
O.forward(I_loader, co)
W_loader.remove(x, y)
W_feeder.scatter(W_loader, ci).buffer(W_loader, image)
