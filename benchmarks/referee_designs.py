"""The designs that the referee runs: every example at a small size, and sparse tensor algebra."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import t2s
from benchmarks.gallery import GALLERY, product
from benchmarks.stream_designs import (
    compressed,
    elementwise,
    inner_product,
    matrix_vector,
    mttkrp,
    outer_product,
    row_product,
    sddmm,
)
from t2s import Graph
from t2s.core.ops import Op
from t2s.graph.graph import MemorySpace
from t2s.representation import Chain, MatrixParam
from t2s.sparse_repr.streams import UNBOUNDED

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Case:
    """A design; without ``inputs`` its control is static, and any numbers will do."""

    graph: Graph
    inputs: Mapping[str, Any] | None = None


Make = Callable[[], Case]

SMALL_TILES = {"TILE = 8": "TILE = 2", "STEPS = 16": "STEPS = 2"}


def module_of(path: str, sizes: Mapping[str, str] | None = None) -> ModuleType:
    """A file of the examples, with other texts for some of the ``sizes`` written in it."""
    file = ROOT / "examples" / f"{path}.py"
    text = file.read_text(encoding="utf-8")
    for old, new in (sizes or {}).items():
        assert old in text, f"{file} has another size than {old!r}"
        text = text.replace(old, new)
    module = ModuleType(f"referee_{file.stem}")
    module.__file__ = str(file)
    exec(compile(text, str(file), "exec", dont_inherit=True), module.__dict__)
    return module


def dense(make: Callable[[], Any]) -> Make:
    """A design whose control is static."""
    return lambda: Case(graph=t2s.lower(make()))


def tiny(path: str, size: str = "TINY") -> Make:
    """The design of an example of its smallest size."""

    def make() -> Any:
        module = module_of(path)
        return module.design(getattr(module, size))

    return dense(make)


def smallest_gemm(path: str) -> Any:
    """The GEMM of the T2S-Tensor paper, with every extent 2."""
    module = module_of(path)
    return module.gemm(module.TINY._replace(**dict.fromkeys(module.TINY._fields, 2)))


def ladder(step: int) -> Any:
    """A step of the ladder for matrices of 16 x 16 on 2 x 2 PEs."""
    module = module_of(
        "gemm/ladder", {"SIZE = 64": "SIZE = 16", "ii, 8)": "ii, 2)", "jj, 8)": "jj, 2)"}
    )
    return module.design(step)


def dense_examples() -> dict[str, Make]:
    """The examples whose control is static."""
    mappings = module_of("convolution_1d/mappings").MAPPINGS
    steps = range(len(module_of("gemm/ladder").STEPS))
    return {
        "gemm": dense(lambda: module_of("gemm/gemm", {"0, 128": "0, 8", "0, 64": "0, 32"}).C),
        "dot_product": dense(lambda: module_of("gemm/dot_product", SMALL_TILES).C),
        "systolic": dense(lambda: smallest_gemm("gemm/systolic")),
        "chains": dense(lambda: smallest_gemm("gemm/chains")),
        **{f"ladder {n}": dense(lambda n=n: ladder(n)) for n in steps},
        "mttkrp": tiny("mttkrp/mttkrp"),
        "ttm": tiny("ttm/ttm"),
        "ttmc": tiny("ttmc/ttmc"),
        "convolution": tiny("convolution/convolution"),
        "capsule": tiny("capsule/capsule"),
        "gbmv": tiny("gbmv/gbmv"),
        "gbmv, 2 banks": tiny("gbmv/gbmv", "TINY_BANKS"),
        "ger": tiny("ger/ger"),
        "syrk": tiny("syrk/syrk"),
        **{
            f"convolution_1d {name}": dense(
                lambda name=name: module_of("convolution_1d/mappings").design(name)
            )
            for name in mappings
        },
        "block_matching": dense(lambda: module_of("block_matching/block_matching").design(2, 2, 1)),
        "pairhmm": tiny("pairhmm/pairhmm"),
        "qr": tiny("qr/qr"),
        "lu": dense(lambda: module_of("lu/lu").design()),
        "trsm": dense(lambda: module_of("trsm/trsm").design()),
    }


def _sparse(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Small whole numbers as floats, about half of them zero, with an empty row."""
    values = generator.integers(1, 9, shape) * (generator.random(shape) < 0.5)
    values[min(1, shape[0] - 1)] = 0
    return values.astype(np.float32)


def spmv_example(path: str, shape: tuple[int, int] = (7, 6)) -> Case:
    """An example of sparse representations."""
    module, generator = module_of(f"spmv/{path.split(',')[0]}"), np.random.default_rng(3)
    a, right = _sparse(generator, *shape), generator.integers(1, 9, shape[1])
    inputs = {"A": a, "x": right.astype(np.float32)}
    design = getattr(module, "y", None)
    if path == "spmm":
        design, inputs = module.Y, {"A": a, "X": _sparse(generator, shape[1], 4)}
    if path == "cisr, x in banks":
        design = module.spmv(4, banks=2)
    if path == "conjugate_gradient":
        design, inputs = module.product(2), {"A": a, "d": inputs["x"]}
    structure = t2s.representation.structure(design, {"A": a})
    rest = {name: array for name, array in inputs.items() if name != "A"}
    return Case(graph=t2s.lower(design, {"A": a}), inputs={**structure, **rest})


def representation(chain: Chain) -> Case:
    """The product of a matrix in a representation of the gallery, without directives."""
    generator = np.random.default_rng(4)
    matrix, x = _sparse(generator, 6, 5), generator.integers(1, 9, 5).astype(np.float32)
    A = MatrixParam(t2s.Float(32), 2, chain, name="A")
    y, storage = product(A), A.store(matrix)
    inputs = {**t2s.representation.structure(y, {"A": storage}), "x": x}
    return Case(graph=t2s.lower(y, {"A": storage}), inputs=inputs)


def streams(name: str) -> Case:
    """A design of the Sparse Abstract Machine over tensors of a few elements."""
    generator = np.random.default_rng(5)
    b, c = _sparse(generator, 4, 5), _sparse(generator, 4, 5)
    d, e = _sparse(generator, 5, 3), _sparse(generator, 3, 3)
    match name:
        case "SpMV":
            inputs = compressed("B", "ij", b)
            inputs = {name: inputs[name] for name in ("B_j_crd", "B_vals")}
            rows = np.concatenate([[0], np.cumsum((b != 0).sum(1))]).astype(np.int32)
            vector = generator.integers(1, 9, 5).astype(np.float32)
            return Case(
                graph=matrix_vector(4, 5, UNBOUNDED),
                inputs=inputs | {"B_i_pos": rows, "C_vals": vector},
            )
        case "elementwise *" | "elementwise +":
            op = Op.MULTIPLY if name[-1] == "*" else Op.ADD
            inputs = compressed("B", "ij", b) | compressed("C", "ij", c)
            return Case(graph=elementwise(op, UNBOUNDED), inputs=inputs)
        case "SpMM ijk":
            inputs = compressed("B", "ik", b) | compressed("C", "jk", c)
            return Case(graph=inner_product(UNBOUNDED), inputs=inputs)
        case "SpMM ikj":
            inputs = compressed("B", "ik", b) | compressed("C", "kj", d)
            return Case(graph=row_product(UNBOUNDED), inputs=inputs)
        case "SpMM kij":
            inputs = compressed("B", "ki", b) | compressed("C", "kj", c[:, :3])
            return Case(graph=outer_product(UNBOUNDED), inputs=inputs)
        case "SDDMM":
            left, right = generator.integers(1, 9, (4, 2)), generator.integers(1, 9, (5, 2))
            inputs = compressed("B", "ij", b)
            inputs |= {"C_vals": left.reshape(-1).astype(np.float32)}
            inputs |= {"D_vals": right.reshape(-1).astype(np.float32)}
            return Case(graph=sddmm(4, 5, 2, UNBOUNDED), inputs=inputs)
    tensor = _sparse(generator, 3, 2, 3)
    inputs = compressed("B", "ikl", tensor)
    inputs |= {"C_vals": e[:2].reshape(-1) + 1, "D_vals": e.reshape(-1) + 1}
    return Case(graph=mttkrp(2, 3, 3, UNBOUNDED), inputs=inputs)


def outerspace(phase: str) -> Case:
    """A phase of OuterSPACE; the second one reads what the first one writes."""
    module, generator = module_of("sam/outerspace"), np.random.default_rng(6)
    left, right = _sparse(generator, 4, 3).astype(np.float64), _sparse(generator, 3, 4)
    given = module.arrays("B", t2s.sparse.tensor(left, t2s.sparse.dcsc))
    given |= module.arrays("C", t2s.sparse.tensor(right.astype(np.float64), t2s.sparse.dcsr))
    multiply = Case(graph=module.multiply_phase(), inputs=given)
    if phase == "multiply":
        return multiply
    merge = module.merge_phase(len(left))
    written = t2s.simulate(multiply.graph, given).outputs
    heads = np.zeros(len(left), np.int32)
    heads[: len(written["Yk_head"])] = written["Yk_head"]
    names = ("Yj_pos", "Yj_crd", "Y_vals", "Yk_node", "Yk_next")
    return Case(graph=merge, inputs={**{n: written[n] for n in names}, "Yk_head": heads})


def case_study(name: str) -> Case:
    """A scanner of bitvectors, a coordinator that skips, streams into an array of PEs."""
    module, generator = module_of(f"sam/{name}"), np.random.default_rng(8)
    b, c = (_sparse(generator, 3, 5).astype(np.float64) for _ in range(2))
    match name:
        case "capstan":
            vectors = module.arrays("b", b[0]) | module.arrays("c", c[2])
            return Case(graph=module.scanner(5, Op.ADD, lanes=2), inputs=vectors)
        case "extensor":
            matrices = module.arrays("B", b) | module.arrays("C", c)
            return Case(graph=module.coordinator(3, 3, lag=2), inputs=matrices)
    right = generator.integers(1, 9, (5, 2)).astype(np.float64)
    return Case(graph=module.mixed(3, 5, 2), inputs=module.arrays(b) | {"B": right})


def in_memory(case: Case) -> Case:
    """The design with all tensors in the device's memory."""
    tensors = tuple(replace(tensor, place=MemorySpace.MEMORY) for tensor in case.graph.tensors)
    return replace(case, graph=replace(case.graph, tensors=tensors))


def sparse_examples() -> dict[str, Make]:
    """Designs with machines."""
    made: dict[str, Make] = {
        f"spmv {path}": (lambda path=path: spmv_example(path))
        for path in ("cisr", "cisr, x in banks", "row_blocks", "conjugate_gradient", "spmm")
    }
    for name, chain in GALLERY.items():
        made[f"gallery {name}"] = lambda chain=chain: representation(chain())
    for phase in ("multiply", "merge"):
        made[f"outerspace {phase}"] = lambda phase=phase: outerspace(phase)
    for name in ("capstan", "extensor", "mixed"):
        made[name] = lambda name=name: case_study(name)
    names = ["SpMV", "elementwise *", "elementwise +", "SpMM ijk", "SpMM ikj", "SpMM kij"]
    for name in (*names, "SDDMM", "MTTKRP"):
        made[f"SAM {name}"] = lambda name=name: streams(name)
        made[f"SAM {name}, memory"] = lambda name=name: in_memory(streams(name))
    return made


def examples() -> dict[str, Make]:
    """All designs by name."""
    return {**dense_examples(), **sparse_examples()}
