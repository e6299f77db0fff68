"""What each directive buys on a CGRA of 8 x 8 cells: a product of 16 x 16 matrices in six steps.

The memory is a stack of HBM2E.  Run it with ``python examples/cgra/ladder.py``.
"""

import warnings

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

SIZE = 16
PLAIN = {"ii": 1, "jj": 1, "kk": 1, "order": "ijk", "forward": False, "buffer": False}
STEPS = (
    ("one PE, k innermost", {}),
    ("k outermost: all sums of a tile are under way", {"order": "kij"}),
    ("k unrolled: four PEs add up one sum", {"kk": 4}),
    ("i and j unrolled: 2 x 2 x 4 PEs", {"ii": 2, "jj": 2}),
    ("operands by multicast", {"forward": True}),
    ("virtual buffers", {"buffer": True}),
)


def design(ii=2, jj=2, kk=4, order="kij", forward=True, buffer=True) -> Func:
    A, B = ImageParam(Float(64), 2, name="A"), ImageParam(Float(64), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, SIZE, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, SIZE).bound(j, 0, SIZE)
    loops = {"i": i, "j": j, "k": k}
    inner = t2s.variables("ii jj kk")
    C.tile(j, i, inner[1], inner[0], jj, ii).split(k, k, inner[2], kk)
    C.reorder(*reversed(inner), *(loops[name] for name in reversed(order))).unroll(*inner)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C.isolate_producer_chain(A, A_loader, A_feeder)
    C.isolate_producer_chain(B, B_loader, B_feeder)
    if forward:
        C.forward(A_feeder, inner[1]).forward(B_feeder, inner[0])
    if buffer:
        A_loader.remove(j)
        A_feeder.buffer(A_loader, i)
        B_loader.remove(i)
        B_feeder.buffer(B_loader, k)
    return C


def main() -> list[int]:
    a, b = np.random.rand(SIZE, SIZE), np.random.rand(SIZE, SIZE)
    cycles, options = [], dict(PLAIN)
    for name, step in STEPS:
        options |= step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the rings that are not full yet
            placed = t2s.cgra.place(design(**options), fabric="cgra8")
        result = t2s.simulate(placed, {"A": a, "B": b}, memory="hbm2e")
        assert np.allclose(result.outputs["C"], a @ b)
        gain = f"{cycles[-1] / result.cycles:5.2f} x" if cycles else ""
        cycles.append(result.cycles)
        used = len([cell for cell in placed.placed.netlist.cells if cell.kind.value == "fma"])
        print(f"{result.cycles:7,} cycles  {gain:8} {used:2} FMAs  {name}")
    return cycles


if __name__ == "__main__":
    main()
