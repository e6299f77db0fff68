"""The host program of a design whose arrays the host orders."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, Place, Var
from t2s.backends.opencl_fpga import BACKEND

i, j = Var("i"), Var("j")


def transposed() -> Func:
    A, f = ImageParam(Int(32), 2, name="A"), Func("f")
    f[i, j] = A[j, i] * 2
    f.bound(i, 0, 4).bound(j, 0, 6)
    f.isolate_producer_chain(A, Func("S", place=Place.HOST), Func("L"))
    f.isolate_consumer_chain(Func("U"), Func("E", place=Place.HOST))
    return f


def test_layouts_in_the_host_program() -> None:
    host = BACKEND.emit(t2s.lower(transposed()))["f_host.py"]
    assert '    "S": ("int32", (4, 6), "input"),\n    "E": ("int32", (4, 6), "output"),\n' in host
    assert '"A",\n        (6, 4),\n        (6, 4),\n        lambda i, j: (j, i),\n' in host
    assert '"f",\n        (4, 6),\n        (4, 6),\n        lambda i, j: (i, j),\n' in host
    assert "python f_host.py A=A.npy f=f.npy" in host
    compile(host, "f_host.py", "exec")


def test_the_kernels_know_the_tensors_only() -> None:
    kernels = BACKEND.emit(t2s.lower(transposed()))["f.cl"]
    assert "S  int32 [4, 6], A in the order in which it is used, input" in kernels
    assert "E  int32 [4, 6], f in the order in which it is used, output" in kernels
