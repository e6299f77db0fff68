"""From three lines to a systolic array: one directive at a time, and what each one buys.

Run it with ``python examples/gemm/ladder.py``.  Every step computes the same product of two 64 x 64
matrices on the model of an Arria 10 board, and is checked against numpy.
"""

import numpy as np

import t2s
from t2s import Float, Func, Graph, ImageParam, RDom, Var

SIZE = 64
STEPS = (
    "the definition: one PE",
    "tile: the sum goes outside of a 4 x 8 tile",
    "unroll: 8 x 8 PEs, each with its own loads",
    "isolate the loading: loaders and feeders",
    "forward A: from PE to PE along a row",
    "forward B: from PE to PE along a column",
    "isolate the saving: drainers and unloaders",
    "vload, vstore: 8-wide vectors of B and C",
    "remove, buffer: B is loaded once for 4 rows",
)


def design(step: int = len(STEPS) - 1) -> Func:
    """The design after ``step`` directives have been added to the definition."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, SIZE, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, SIZE).bound(j, 0, SIZE)

    ii, jj, it, jt = t2s.variables("ii jj it jt")
    A_loader, A_feeder, B_loader, B_feeder, C_drainer, C_unloader = t2s.funcs(
        "A_loader A_feeder B_loader B_feeder C_drainer C_unloader"
    )
    if step >= 1:  # each tile element is summed up only every 32nd cycle: no waiting for the adder
        C.tile(j, i, jt, it, 8, 4).reorder(jt, it, k, j, i)
    if step >= 2:  # i counts tiles: 8 of them in space, 2 in time
        C.split(i, i, ii, 8).split(j, j, jj, 8).unroll(ii, jj)
    if step >= 3:
        C.isolate_producer_chain(A, A_loader, A_feeder)
        C.isolate_producer_chain(B, B_loader, B_feeder)
    if step >= 4:
        C.forward(A_feeder, jj)
    if step >= 5:
        C.forward(B_feeder, ii)
    if step >= 6:
        C.isolate_consumer_chain(C_drainer, C_unloader)
    if step >= 7:  # the innermost loop jt becomes the lanes
        C.vload(B).vstore(C)
    if step >= 8:  # B does not depend on it: the feeder keeps the row of B and sends it 4 times
        B_loader.remove(it)
        B_feeder.buffer(B_loader, k)
    return C


def matrices(graph: Graph) -> dict[str, np.ndarray]:
    """Two random matrices for a design."""
    generator = np.random.default_rng(0)
    return {
        name: generator.random(graph.tensor(name).shape, dtype=np.float32) for name in ("A", "B")
    }


def main() -> None:
    print(f"C = A B, {SIZE} x {SIZE} x {SIZE}, float32, arria10\n")
    print(f"{'step':<47}{'PEs':>4}{'cycles':>11}{'faster':>9}{'utilization':>13}")
    before = None
    for step, title in enumerate(STEPS):
        graph = design(step).lower()
        inputs = matrices(graph)
        result = t2s.simulate(graph, inputs, device="arria10")
        np.testing.assert_allclose(result.outputs["C"], inputs["A"] @ inputs["B"], rtol=1e-5)
        faster = "" if before is None else f"{before / result.cycles:.2f}x"
        pes = graph.node("C").pe_count
        print(
            f"{step} {title:<45}{pes:>4}{result.cycles:>11,}{faster:>9}{result.utilization:>13.1%}"
        )
        before = result.cycles
    print("\nutilization = firings / (PEs x cycles) of the multiplying PEs")


if __name__ == "__main__":
    main()
