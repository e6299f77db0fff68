"""The pictures of the gallery: what t2s shows of each example, made when the site is built.

An example is run as a module, and its picture made of what is in it then, in its smallest size:
the graph as it lies, what its PEs did, or the units that it takes of a chip.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import t2s

Values = Mapping[str, Any]
Picture = Callable[[Values], tuple[Any, ...]]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def pictures_of(name: str) -> str:
    """HTML of the pictures of an example, by its path in the folder of examples."""
    if str(EXAMPLES.parent) not in sys.path:  # examples import one another, whoever starts mkdocs
        sys.path.append(str(EXAMPLES.parent))
    with contextlib.redirect_stdout(io.StringIO()):
        values = runpy.run_path(str(EXAMPLES / name), run_name="t2s_gallery")
        made = PICTURES[name](values)
    return "".join(one.html() for one in made if one is not None)


def _run(design: Any, inputs: Any = None, device: str = "arria10") -> tuple[Any, ...]:
    """The graph of a design, and what its PEs did; without inputs for times alone."""
    (outcome,) = t2s.simulate_many([t2s.Run(design, inputs, device=device)], progress=False)
    if outcome.error is not None:
        raise outcome.error
    stages = getattr(outcome.result, "stages", (outcome.result,))
    return tuple(one for run in stages for one in (run.program.graph.picture(), run.picture()))


def _named(name: str, device: str = "arria10") -> Picture:
    """Of a design that a module has under a name."""
    return lambda values: _run(values[name], device=device)


def _made(size: str | None = "TINY", device: str = "arria10") -> Picture:
    """Of a design that a module's function makes, in one of its sizes."""
    return lambda values: _run(
        values["design"](*(() if size is None else (values[size],))), device=device
    )


def _seeded(values: Values) -> tuple[Any, ...]:
    """Of a graph of streams, with the inputs that the module makes."""
    return _run(values["design"](), values["inputs"](0), device="ideal")


def _product(operand: str, shape: tuple[int, ...], result: str) -> Picture:
    """Of a product with a small sparse matrix."""
    numbers = np.random.default_rng(0)
    stored = (numbers.random((40, shape[0])) < 0.1) * numbers.random((40, shape[0]))
    given = {operand: numbers.random(shape, np.float32), "A": stored.astype(np.float32)}
    return lambda values: _run(values[result], given)


def _layer(values: Values) -> tuple[Any, ...]:
    """Of one layer of a network, on a small graph."""
    inputs = values["network"](nodes=9, features=6, hidden=3)
    return _run(values["design"](), {name: inputs[name] for name in "AXW"}, device="ideal")


def _units(values: Values) -> tuple[Any, ...]:
    """Of a kernel for Capstan: the units of the chip that it takes."""
    return (values["kernel"].resources().picture(),)


def _ladder(values: Values) -> tuple[Any, ...]:
    """The cycles of all steps, and the last design."""
    design = values["design"]
    runs = [
        t2s.Run(design(number), name=title, device="arria10")
        for number, title in enumerate(values["STEPS"])
    ]
    return t2s.simulate_many(runs, progress=False).picture(), design().lower().picture()


def _searched(values: Values) -> tuple[Any, ...]:
    """The designs of a short search, and the array of the best one."""
    budget = {"dsp": 16, "ram": 30}
    found = t2s.search(values["C"], budget=budget, seconds=2, progress=False)
    return found.picture(), found.design.lower().picture()


def _mappings(values: Values) -> tuple[Any, ...]:
    """The cycles of a convolution on all arrays."""
    runs = [t2s.Run(values["design"](name), name=name) for name in values["MAPPINGS"]]
    return (t2s.simulate_many(runs, progress=False).picture(),)


def _placed(values: Values) -> tuple[Any, ...]:
    """Cells and wires of a small placement."""
    inputs = {"A": values["matrix"](), "x": np.arange(64.0)}
    fabric = t2s.cgra.CgraFabric(name="small", rows=8, columns=8)
    return (t2s.cgra.place(values["y"], inputs, fabric=fabric).picture(),)


def _public(values: Values) -> tuple[Any, ...]:
    """The instructions of the elements of a hand-written program."""
    numbers = np.arange(24 * 4, dtype=np.int32).reshape(24, 4)
    memory = values["memory"](numbers, numbers[:4])
    run = t2s.triggered.run(values["program"](24), memory, rows=4, columns=4)
    return (run.picture(),)


def _fused_layer(values: Values) -> tuple[Any, ...]:
    """The blocks of the first graph of a model that is fused layer by layer."""
    programs = (value for value in values.values() if isinstance(value, t2s.sparse.Program))
    graphs = next(programs).fuse("layer").graphs(values["inputs"]())
    return (next(iter(graphs.values()))[0].picture(),)


def _plans(values: Values) -> tuple[Any, ...]:
    """The steps of each plan; they are not run, for their times would be those of this machine."""
    assignment = t2s.sparse.parse(values["STATEMENT"], values["FORMATS"])
    texts = values["SCHEDULES"].values()
    return tuple(t2s.sparse.compile(assignment, text).picture() for text in texts)


def _scheduled(values: Values) -> tuple[Any, ...]:
    """The steps of each plan of schedules that are objects."""
    schedules = values["schedules"]().values()
    return tuple(t2s.sparse.compile(values["A"], one).picture() for one in schedules)


def _own_function(values: Values) -> tuple[Any, ...]:
    """The steps of a plan with a function that needs no compiler."""
    return (values["plan_with"](values["from_llvm"]()).picture(),)


PICTURES: Mapping[str, Picture] = {
    "attention/attention.py": _made(),
    "block_matching/block_matching.py": _made(None),
    "capsule/capsule.py": _made(),
    "cgra/conv.py": _named("O", "ideal"),
    "cgra/gemm.py": _named("C", "ideal"),
    "cgra/ladder.py": _made(None, "ideal"),
    "cgra/mttkrp.py": _named("D", "ideal"),
    "cgra/public_gemm.py": _public,
    "cgra/public_matvec.py": _named("y", "ideal"),
    "cgra/spmv.py": _placed,
    "cgra/ttm.py": _named("C", "ideal"),
    "cgra/ttmc.py": _named("D", "ideal"),
    "convolution/convolution.py": _made(),
    "convolution_1d/mappings.py": _mappings,
    "external/block_sparse.py": _plans,
    "external/own_vectors.py": _own_function,
    "external/sddmm.py": _scheduled,
    "external/tttp.py": _plans,
    "fft/fft.py": _made(),
    "gbmv/gbmv.py": _made(),
    "gemm/chains.py": _named("C"),
    "gemm/dot_product.py": _named("C"),
    "gemm/gemm.py": _named("C"),
    "gemm/gemm_int16.py": _named("C"),
    "gemm/int8.py": _made(),
    "gemm/ladder.py": _ladder,
    "gemm/systolic.py": _named("C"),
    "ger/ger.py": _made(),
    "graphs/gcn.py": _layer,
    "lu/lu.py": _made(None),
    "models/autoencoder.py": _fused_layer,
    "models/decoder.py": _fused_layer,
    "models/graph_convolution.py": _fused_layer,
    "models/graphsage.py": _fused_layer,
    "models/masked_attention.py": _fused_layer,
    "mttkrp/mttkrp.py": _made(),
    "pairhmm/pairhmm.py": lambda values: (values["design"](values["TINY"]).lower().picture(),),
    "processes/service.py": lambda values: _run(values["graph"], values["inputs"]),
    "qr/qr.py": _made(),
    "sam/capstan.py": _seeded,
    "sam/extensor.py": _seeded,
    "sam/gamma.py": lambda values: (values["design"]().graphs(values["operands"]())[0].picture(),),
    "sam/mixed.py": _seeded,
    "sam/outerspace.py": _seeded,
    "search/gemm.py": _searched,
    "spmv/cisr.py": _product("x", (30,), "y"),
    "spmv/conjugate_gradient.py": _product("d", (40,), "p"),
    "spmv/row_blocks.py": _product("x", (30,), "y"),
    "spmv/spmm.py": _product("X", (30, 4), "Y"),
    "stardust/innerprod.py": _units,
    "stardust/mattransmul.py": _units,
    "stardust/mttkrp.py": _units,
    "stardust/plus2.py": _units,
    "stardust/plus3.py": _units,
    "stardust/residual.py": _units,
    "stardust/sddmm.py": _units,
    "stardust/spmv.py": _units,
    "stardust/ttm.py": _units,
    "stardust/ttv.py": _units,
    "syrk/syrk.py": _made(),
    "trsm/trsm.py": _made(None),
    "ttm/ttm.py": _made(),
    "ttmc/ttmc.py": _made(),
}
"""How the picture of each example is made."""
