"""The matrix multiply of ``examples/gemm/gemm.py``, without its directives: a search writes them.

``t2s search examples/search/gemm.py --dsp 64`` searches.  ``python examples/search/gemm.py`` does
it with the blocks that the design by hand takes, saves the winner as a program, and says what the
two differ in.
"""

import runpy
from pathlib import Path

import t2s
from t2s import Float, Func, ImageParam, RDom, Var

BY_HAND = Path(__file__).parent.parent / "gemm" / "gemm.py"

A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, 128, name="k")
C = Func("C")
C[i, j] = 0.0
C[i, j] += A[i, k] * B[k, j]
C.bound(i, 0, 64).bound(j, 0, 64)


def by_hand() -> Func:
    """The design of ``examples/gemm/gemm.py``."""
    design: Func = runpy.run_path(str(BY_HAND))["C"]
    return design


if __name__ == "__main__":
    hand = by_hand()
    blocks = t2s.resources(hand, device="arria10")
    budget = {"dsp": blocks.dsp_blocks, "ram": blocks.ram_blocks}
    found = t2s.search(C, device="arria10", budget=budget, seconds=4)
    print(found)
    print(f"wrote {found.save('best_gemm.py')}")
    (run,) = t2s.simulate_many([t2s.Run(hand, device="arria10")], progress=False)
    print(f"by hand: {run.result.cycles:,} cycles with {budget['dsp']} DSP, {budget['ram']} RAM")
    print(t2s.compare(run.result, found.best, names=("by hand", "found")).sentence)
