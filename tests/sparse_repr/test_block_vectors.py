"""The recorded vectors of the published blocks give the same token streams here.

Names that differ: CrdHold and the pair RepeatSigGen, Repeat are ``repeat``; BV and ChunkBV are
``bitvector_converter``; StknDrop is ``values_only``; the accumulators are ``point_reducer``.

Deliberate differences, each undone in the adapter of its block before the comparison:

* A scanner makes an empty fiber of N; the published one puts N and then a stop.
* ``coordinate_dropper`` removes the empty lists from the inner stream too; the published one leaves
  that to what comes after it.
* The words of an empty fiber are zeros here, since words are found by their place; there are none
  in the published converter.
* A dense stream has no D, so ``values_only`` puts none.
* Accumulators of points end a reduction where their outer coordinate changes or at D; ours at
  stops, which the adapters put in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from t2s.core.types import UInt
from t2s.sparse_repr.blocks.expressions import one
from t2s.sparse_repr.blocks.reducers import PointReducer
from t2s.sparse_repr.streams import EmptyFiber
from tests.sampling import sampled
from tests.sparse_repr.harness import FLOAT, Bench, streams_of
from tests.sparse_repr.tokens import Tokens, depth_of, tag_of

FILE = Path(__file__).with_name("block_vectors.json")
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text())["vectors"]

NOT_HERE = {
    "BVDrop": "drops bits of words; coordinate droppers work on coordinates",
    "EmptyFiberStknDrop": "no lowering and no method of streams makes this block",
    "CrdPtConverter": "a helper of the published accumulators, which lose their stops",
}
SKIPS = "set_crd_skip"
"""A port whose effect depends on when its tokens arrive; no block here depends on time."""

Found = dict[str, Any]
Adapter = Callable[[dict[str, Any]], tuple[Found, Found]]


def zipped(pairs: Tokens) -> tuple[Tokens, Tokens]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def array(vector: dict[str, Any]) -> tuple[Found, Found]:
    initial = vector["params"]["init_arr"]
    if "set_load" in vector["inputs"]:

        def load(b: Bench) -> Any:
            values = b.array("values", initial, FLOAT)
            ref = b.play(vector["inputs"]["set_load"])
            missing = one(FLOAT) - one(FLOAT)
            return {"out_val": b.streams.load(ref, values, missing=missing)}

        return streams_of(load), {"out_val": vector["outputs"]["out_val"]}
    refs, values = zipped(vector["inputs"]["set_store"])
    bench = Bench()
    stored = bench.streams.output("stored", FLOAT)
    bench.streams.store(bench.play(refs), bench.play(values, FLOAT), stored)
    expected = vector["final_arr"]
    found = bench.run()["stored"].tolist()
    return {"stored": found}, {"stored": expected[: len(found)]}


def scan_compressed(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        positions = b.array("positions", vector["params"]["seg_arr"])
        coordinates = b.array("coordinates", vector["params"]["crd_arr"])
        ref = b.play(vector["inputs"]["set_in_ref"])
        crd, out = b.streams.scan_compressed(ref, positions, coordinates)
        return {"out_crd": crd, "out_ref": out}

    expected = {
        port: [token for token in tokens if token != "N"]
        for port, tokens in vector["outputs"].items()
    }
    return streams_of(build), expected


def scan_dense(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        ref = b.play(vector["inputs"]["set_in_ref"])
        crd, out = b.streams.scan_dense(ref, vector["params"]["dim"])
        return {"out_crd": crd, "out_ref": out}

    return streams_of(build), vector["outputs"]


def scan_bits(vector: dict[str, Any]) -> tuple[Found, Found]:
    words = vector["params"]["bv_arr"]
    ranks = [sum(word.bit_count() for word in words[:at]) for at in range(len(words))]

    def build(b: Bench) -> Any:
        ref = b.play(vector["inputs"]["set_in_ref"])
        bits, out = b.streams.scan_bitvector(
            ref, b.array("words", words, UInt(32)), b.array("ranks", ranks), 1
        )
        return {"out_bv": bits, "out_ref": out}

    return streams_of(build), vector["outputs"]


def arithmetic(vector: dict[str, Any]) -> tuple[Found, Found]:
    params = vector["params"]

    def function(left: Any, right: Any) -> Any:
        if vector["block"] == "Multiply2":
            return left * right
        left = -left if params["neg1"] else left
        right = -right if params["neg2"] else right
        return left + right

    def build(b: Bench) -> Any:
        operands = [b.play(vector["inputs"][port], FLOAT) for port in ("set_in1", "set_in2")]
        return {"out_val": b.streams.compute(function, *operands)}

    return streams_of(build), vector["outputs"]


def join(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        sides = []
        for port in ("set_in1", "set_in2"):
            refs, coordinates = zipped(vector["inputs"][port])
            crd = b.play(coordinates)
            sides.append((crd, b.play(refs, nesting=crd.nesting)))
        make = b.streams.union if vector["block"] == "Union2" else b.streams.intersect
        crd, ((one_,), (two,)) = make(*sides)
        return {"out_crd": crd, "out_ref1": one_, "out_ref2": two}

    expected = {port: tokens for port, tokens in vector["outputs"].items() if "skip" not in port}
    return streams_of(build), expected


def join_bits(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        sides = []
        for port in ("set_in1", "set_in2"):
            refs, words = zipped(vector["inputs"][port])
            sides.append((b.play(words, UInt(32)), b.play(refs)))
        bits, _, (one_, two) = b.streams.intersect_bits(*sides)
        return {"out_bv": bits, "out_ref1": one_, "out_ref2": two}

    expected = dict(vector["outputs"])
    expected["out_bv"] = [token for token in expected["out_bv"] if token != 0]
    return streams_of(build), expected


def with_levels(signal: Tokens, refs: Tokens) -> Tokens:
    """A repeat signal as a stream of coordinates: its stops get the levels that the refs imply."""
    found: Tokens = []
    left = list(refs)
    for token in signal:
        if token == "R":
            found.append(0)
        elif token == "D":
            found.append("D")
        else:
            level = 0
            if tag_of(left[0]) <= 0:
                left.pop(0)
            if tag_of(left[0]) > 0:
                level = tag_of(left.pop(0))
            found.append(f"S{level}")
    return found


def repeat(vector: dict[str, Any]) -> tuple[Found, Found]:
    refs = vector["inputs"]["set_in_ref"]
    coordinates = with_levels(vector["inputs"]["set_in_repeat"], refs)

    def build(b: Bench) -> Any:
        ref = b.play(refs)
        crd = b.play(coordinates, nesting=ref.nesting + 1)
        return {"out_ref": b.streams.repeat(crd, ref)}

    return streams_of(build), vector["outputs"]


def repeat_signal(vector: dict[str, Any]) -> tuple[Found, Found]:
    """The signal that ``repeat`` follows is what it makes of a stream of equal references."""
    coordinates = vector["inputs"]["set_istream"]
    refs: Tokens = []
    for token in coordinates:
        if tag_of(token) > 0:
            refs.append(1)
            refs += [f"S{tag_of(token) - 2}"] if tag_of(token) > 1 else []
    refs.append("D")

    def build(b: Bench) -> Any:
        crd = b.play(coordinates)
        return {"out": b.streams.repeat(crd, b.play(refs, nesting=crd.nesting - 1))}

    found = streams_of(build)["out"]
    signal = ["D" if t == "D" else "S" if isinstance(t, str) else "R" for t in found]
    return {"out_repsig": signal}, {"out_repsig": vector["outputs"]["out_repsig"]}


def hold(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        outer = b.play(vector["inputs"]["set_outer_crd"])
        inner = b.play(vector["inputs"]["set_inner_crd"])
        return {"out_crd_outer": b.streams.repeat(inner, outer)}

    return streams_of(build), {"out_crd_outer": vector["outputs"]["out_crd_outer"]}


def without_empty_lists(tokens: Tokens) -> Tokens:
    """Of stops in a row the highest; stops S0 at the start of a list are none."""
    found: Tokens = []
    for token in tokens:
        level = tag_of(token)
        before = tag_of(found[-1]) if found else 2
        if level == 1 and before >= 1:
            continue
        if level > 1 and before == 1:
            found.pop()
        found.append(token)
    return found


def drop(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        inner = b.play(vector["inputs"]["set_inner_crd"])
        outer = b.play(vector["inputs"]["set_outer_crd"], nesting=inner.nesting - 1)
        out, kept = b.streams.drop(outer, inner)
        return {"out_crd_outer": out, "out_crd_inner": kept}

    expected = dict(vector["outputs"])
    expected["out_crd_inner"] = without_empty_lists(expected["out_crd_inner"])
    return streams_of(build), expected


def strip(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        stream = b.play(vector["inputs"]["set_in_stream"])
        values = b.streams.values_only(stream)
        kept = [t for t in vector["outputs"]["out_val"] if not isinstance(t, str)]
        return {"out_val": b.streams.with_stops(values, b.play([*kept, "D"]))}

    return streams_of(build), vector["outputs"]


def split(vector: dict[str, Any]) -> tuple[Found, Found]:
    params = vector["params"]

    def build(b: Bench) -> Any:
        crd = b.play(vector["inputs"]["set_in_crd"])
        outer, inner = b.streams.split(crd, params["split_factor"], keep=params["orig_crd"])
        return {"out_outer_crd": outer, "out_inner_crd": inner}

    return streams_of(build), vector["outputs"]


def flatten(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        outer = b.play(vector["inputs"]["set_in_outer_crd"])
        inner = b.play(vector["inputs"]["set_in_inner_crd"], nesting=outer.nesting + 1)
        (crd,) = b.streams.flatten(outer, inner, vector["params"]["split_factor"])
        return {"out_crd": crd}

    return streams_of(build), vector["outputs"]


def to_bits(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        bits, _ = b.streams.bits_of(b.play(vector["inputs"]["set_in_crd"]), UInt(64), 64)
        return {"out_bv_int": bits}

    found = streams_of(build)["out_bv_int"]
    expected = vector["outputs"]["out_bv_int"]
    return {"bits": [word for word in found if word != 0]}, {"bits": expected}


def chunks(vector: dict[str, Any]) -> tuple[Found, Found]:
    params = vector["params"]
    coordinates: Tokens = []
    for token in vector["inputs"]["set_in_bv"]:
        if isinstance(token, str):
            coordinates.append(token)
        else:
            coordinates += [bit for bit in range(64) if token >> bit & 1]

    def build(b: Bench) -> Any:
        crd = b.play(coordinates)
        bits, ref = b.streams.bits_of(crd, UInt(64), params["size"], width=params["width"])
        return {"out_bv_int": bits, "out_ref": ref}

    found = streams_of(build)
    if not any(found["out_bv_int"][:-2]):
        found = {port: tokens[-2:] for port, tokens in found.items()}
    return found, vector["outputs"]


def reduce_lists(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        val = b.play(vector["inputs"]["set_in_val"], FLOAT)
        return {"out_val": b.streams.reduce(val, empty=EmptyFiber.ZERO)}

    return streams_of(build), vector["outputs"]


def reduce_rows(vector: dict[str, Any]) -> tuple[Found, Found]:
    def build(b: Bench) -> Any:
        crd = b.play(vector["inputs"]["set_in_crd0"])
        val = b.play(vector["inputs"]["set_val"], FLOAT)
        (out,), total = b.streams.reduce_points([crd], val)
        return {"out_crd0": out, "out_val": total}

    return streams_of(build), vector["outputs"]


def points(vector: dict[str, Any]) -> tuple[Found, Found]:
    """Accumulators of points: one that keeps the inner coordinate, the others both."""
    inputs, name = vector["inputs"], vector["block"]
    inner = next(v for p, v in inputs.items() if "inner" in p or "crd0" in p)
    outer = next(v for p, v in inputs.items() if "outer" in p or "crd1" in p)
    values, one_kept = inputs["set_val"], name.endswith("Accumulator1")
    streams: list[Tokens] = [[], [], []]
    triples = zip(outer, inner, values, strict=True)
    for row in [list(row) for _, row in groupby(triples, key=lambda triple: triple[0])]:
        for kept, tokens in zip(streams, zip(*row, strict=True), strict=True):
            kept += [t for t in tokens if t != "D"] + (["S1"] if one_kept else [])
    for kept in streams:
        del kept[-(2 if one_kept else 0) or len(kept) :]
        kept += ["S2", "D"]

    def build(b: Bench) -> Any:
        crds = [b.play(tokens, nesting=4) for tokens in streams[:2]]
        val = b.play(streams[2], FLOAT, nesting=4)
        crds = crds[1:] if one_kept else crds
        *out, total = b.streams.put(PointReducer(), "reduce", *crds, val)
        names = ("inner",) if one_kept else ("outer", "inner")
        return dict(zip(names, out, strict=True)) | {"out_val": total}

    found = streams_of(build)
    expected = {"out_val": vector["outputs"]["out_val"]}
    for port, tokens in vector["outputs"].items():
        expected |= {"inner": tokens} if "inner" in port or "crd0" in port else {}
        outermost = ("outer" in port or "crd1" in port) and not one_kept
        expected |= {"outer": tokens} if outermost else {}
    if "CrdPt" in name:
        found = {k: [t for t in v if t == "D" or not isinstance(t, str)] for k, v in found.items()}
        if not one_kept:
            found.pop("outer")
            expected.pop("outer")
    return found, expected


def write_compressed(vector: dict[str, Any]) -> tuple[Found, Found]:
    bench = Bench()
    positions, coordinates = (bench.streams.output(n, FLOAT) for n in ("seg", "crd"))
    bench.streams.write_compressed(
        bench.play(vector["inputs"]["set_input"]), positions, coordinates
    )
    found = {name: array.tolist() for name, array in bench.run().items()}
    return found, {"seg": vector["final_seg"], "crd": vector["final_crd"]}


def write_values(vector: dict[str, Any]) -> tuple[Found, Found]:
    bench = Bench()
    values = bench.streams.output("values", FLOAT)
    bench.streams.write_values(bench.play(vector["inputs"]["set_input"], FLOAT), values)
    return {"values": bench.run()["values"].tolist()}, {"values": vector["final_vals"]}


ADAPTERS: dict[str, Adapter] = {
    "Add2": arithmetic,
    "Array": array,
    "BV": to_bits,
    "BVRdScan": scan_bits,
    "ChunkBV": chunks,
    "CompressWrScan": write_compressed,
    "CompressedCrdRdScan": scan_compressed,
    "CrdDrop": drop,
    "CrdHold": hold,
    "Flatten": flatten,
    "Intersect2": join,
    "IntersectBV2": join_bits,
    "Multiply2": arithmetic,
    "Reduce": reduce_lists,
    "Repeat": repeat,
    "RepeatSigGen": repeat_signal,
    "SpAcc1New": reduce_rows,
    "SpAcc2NoCrdHold": points,
    "SparseAccumulator1": points,
    "SparseAccumulator2": points,
    "SparseCrdPtAccumulator1": points,
    "SparseCrdPtAccumulator2": points,
    "Split": split,
    "StknDrop": strip,
    "Union2": join,
    "UncompressCrdRdScan": scan_dense,
    "ValsWrScan": write_values,
}

HERE = [
    vector
    for vector in VECTORS
    if vector["block"] not in NOT_HERE and SKIPS not in vector["inputs"]
]


@sampled("vector", HERE, quick=54, ids=lambda v: f"{v['block']}-{v['test']}")
def test_vector(vector: dict[str, Any]) -> None:
    found, expected = ADAPTERS[vector["block"]](vector)
    assert found == expected


def test_every_vector_is_accounted_for() -> None:
    assert len(VECTORS) == 256
    assert {v["block"] for v in VECTORS} == set(ADAPTERS) | set(NOT_HERE)
    assert len(HERE) == 256 - 10 - 10 - 7


def test_the_depth_of_a_stream() -> None:
    assert depth_of([0, "D"]) == 1
    assert depth_of([0, "S0", 1, "S1", "D"]) == 3
