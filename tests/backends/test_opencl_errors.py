"""What the OpenCL backend and its emulator refuse, and what they say."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from t2s.backends.kernels import design as lower
from t2s.backends.opencl_fpga import BACKEND, EmulationError, backend, emulate, emulator_available
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Expr, Parameter, Read, const, equals
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, BFloat, Float
from t2s.graph.body import Let, Receive, Send, Statement
from t2s.graph.graph import Graph, ScalarParameter, StreamType
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Loop, Role
from tests.backends import designs
from tests.backends.builders import (
    channel,
    graph,
    load,
    local,
    node,
    store,
    tensor,
)
from tests.hand_graphs import index, loop, space, systolic_gemm

needs_emulator = pytest.mark.skipif(not emulator_available(), reason="no emulator installed")


def problems(graph: Graph) -> list[str]:
    return [str(problem) for problem in BACKEND.supports(graph)]


def array_of(
    name: str, body: list[Statement], own: list[object], *, pes: int = 3, length: int = 4
) -> Graph:
    """x goes to a row of PEs and from PE 0 to y; ``own`` are the array's channels to itself."""
    t, p = index("t"), index("p")
    loops = (loop("t", length),)
    row = (space("p", pes),)
    return graph(
        name,
        (
            load("x_load", "x", "x_in", loops, (p, t), pes=row),
            node(
                "array",
                Role.COMPUTE,
                loops,
                [Receive(target="new", channel="x_in", type=INT32), *body],
                pes=row,
            ),
            store("y_store", "y", "out", loops, (p, t), pes=row),
        ),
        (
            channel("x_in", "x_load", "array", (pes,), (p,)),
            *own,  # type: ignore[arg-type]
            channel("out", "array", "y_store", (pes,), (p,)),
        ),
        (tensor("x", pes, length), tensor("y", pes, length, role="output")),
    )


def exchange(
    sent_when: Expr | None, received_when: Expr | None, shift: int = 1, pes: int = 3
) -> Graph:
    """Every PE sends to the one ``shift`` further on, under the given conditions."""
    p = index("p")
    target = (p + shift) % pes if shift else p
    body = [
        Receive(target="old", channel="own", type=INT32, condition=received_when),
        Send(channel="own", value=local("new"), condition=sent_when),
        Send(channel="out", value=local("new") + local("old")),
    ]
    return array_of("exchange", body, [channel("own", "array", "array", (pes,), (target,), (p,))])


def test_types() -> None:
    assert problems(systolic_gemm(1, 1, 2, element=BFloat(16)))[0] == (
        "tensor 'A': OpenCL for Intel FPGAs has no bfloat16; use float32"
    )
    found = problems(systolic_gemm(1, 1, 2, element=Float(16)))
    assert found[0] == (
        "tensor 'A': float16 needs cl_khr_fp16, which Intel's FPGA emulator does not have, "
        "so the design could not be tested; use float32"
    )
    assert any(text.startswith("node 'C': float16") for text in found)
    assert any(text.startswith("channel 'A_in': float16") for text in found)


def test_streams_with_stop_tokens() -> None:
    relay = designs.relay_chain()
    nested = replace(relay.channels[0], stream=StreamType(element=INT32, nesting=1))
    assert problems(replace(relay, channels=(nested, *relay.channels[1:]))) == [
        "channel 'x_in': streams with stop tokens are not supported in OpenCL"
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanner:
    """A node of a kind that the backend has never heard of."""

    name: str
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pray(Statement):
    """A statement of a kind that the backend has never heard of."""


def test_unknown_kinds() -> None:
    relay = designs.relay_chain()
    strange = replace(relay, nodes=(*relay.nodes, Scanner(name="scan")))  # type: ignore[arg-type]
    assert problems(strange) == ["node 'scan': nodes of kind Scanner are not supported in OpenCL"]
    first = relay.nodes[1]
    reading = Let(target="z", value=Read(source="x", indices=(), type=INT32))
    odd = replace(first, body=(Pray(), reading, *first.body))
    assert problems(replace(relay, nodes=(relay.nodes[0], odd, *relay.nodes[2:]))) == [
        "node 'relay_0': statements of kind Pray are not supported in OpenCL",
        "node 'relay_0': Read has no place in the body of a PE",
    ]


def test_repeated_ports() -> None:
    relay = designs.relay_chain()
    first = relay.nodes[1]
    twice = replace(first, body=(*first.body, first.body[-1]))
    assert problems(replace(relay, nodes=(relay.nodes[0], twice, *relay.nodes[2:]))) == [
        "node 'relay_0': it sends to channel 'pass_0' in 2 statements; use one, with a select"
    ]


def test_bounds_that_are_not_affine_in_space() -> None:
    """Such loops run as far as any PE needs; there has to be a number for that."""
    p, t = index("p"), index("t")
    n = Parameter(name="n", type=INT32)
    loops = (Loop(name="t", minimum=const(0), extent=p * p * n),)
    row = (space("p", 3),)
    square = graph(
        "square",
        (
            load("x_load", "x", "x_in", loops, (p, t), pes=row),
            store("y_store", "y", "x_in", loops, (p, t), pes=row),
        ),
        (channel("x_in", "x_load", "y_store", (3,), (p,)),),
        (tensor("x", 3, 4), tensor("y", 3, 4, role="output")),
    )
    square = replace(square, parameters=(ScalarParameter(name="n", type=INT32),))
    why = "the bounds of loop 't' depend on the PE without any limit"
    assert problems(square) == [f"node 'x_load': {why}", f"node 'y_store': {why}"]
    known = (replace(loops[0], extent=p * p),)
    nodes = tuple(replace(node, loops=known) for node in square.pe_arrays)
    assert problems(replace(square, nodes=nodes)) == []


def test_one_sided_channels() -> None:
    never = index("t") < 0
    assert problems(exchange(None, never)) == [
        "channel 'own': it is sent to but never received from"
    ]
    assert problems(exchange(never, None)) == [
        "channel 'own': it is received from but never sent to"
    ]
    relay = designs.relay_chain(relays=1)
    i = index("i")
    silent = replace(
        relay.nodes[1],
        body=(relay.nodes[1].body[0], replace(relay.nodes[1].body[1], condition=i < 0)),
    )
    assert problems(replace(relay, nodes=(relay.nodes[0], silent, relay.nodes[2]))) == [
        "channel 'pass_0': 'y_store' uses it, and 'relay_0' never does"
    ]


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """No PE is given a kernel of its own."""
    monkeypatch.setattr(lower, "MOST_KERNELS", 0)


def test_pes_that_cannot_keep_step_are_kernels() -> None:
    t = index("t")
    late, early = t >= 1, t < 3
    for design in exchange(late, early), exchange(None, None), cyclic_wait():
        assert problems(design) == []


@pytest.mark.usefixtures("no_kernels")
def test_receiving_before_the_neighbor_sends() -> None:
    """PE p receives from the start what its neighbor sends later: lockstep cannot wait."""
    t = index("t")
    late, early = t >= 1, t < 3
    assert problems(exchange(late, early)) == [
        "channel 'own': a PE would receive before its neighbor has sent, in an earlier "
        "iteration; all PEs of one kernel share their iterations, so delay the receiving PE's "
        "condition"
    ]


@pytest.mark.usefixtures("no_kernels")
def test_no_order_of_the_pes() -> None:
    assert problems(exchange(None, None, shift=0)) == [
        "channel 'own': a PE would receive a token in the firing that sends it"
    ]
    assert problems(exchange(None, None)) == [
        "channel 'own': PEs of one kernel run in a fixed order, and no order of rows and columns "
        "has every sender run before its receiver within an iteration; pass data one way only"
    ]


def test_tokens_of_a_feedback_that_do_not_match() -> None:
    t = index("t")
    assert problems(exchange(t < 2, t >= 3)) == [
        "channel 'own': 6 tokens are sent and 3 are received"
    ]


def test_shared_elements() -> None:
    zero = const(0)
    p = index("p")
    body: list[Statement] = [
        Receive(target="old", channel="own", type=INT32),
        Send(channel="own", value=local("new")),
        Send(channel="out", value=local("old")),
    ]
    shared = array_of("shared", body, [channel("own", "array", "array", (3,), (zero,), (p,))])
    assert problems(shared) == ["channel 'own': two PEs share an element of it"]
    row = (space("p", 3),)
    loops = (loop("t", 2),)
    between = graph(
        "between",
        (
            load("x_load", "x", "x_in", loops, (p, index("t")), pes=row),
            store("y_store", "y", "x_in", loops, (p, index("t")), pes=row),
        ),
        (channel("x_in", "x_load", "y_store", (3,), (zero,), (p,)),),
        (tensor("x", 3, 2), tensor("y", 3, 2, role="output")),
    )
    assert problems(between) == ["channel 'x_in': two PEs of 'x_load' share an element of it"]


def test_parameters_that_decide_about_channels() -> None:
    t = index("t")
    count = Parameter(name="count", type=INT32)
    scalars = (ScalarParameter(name="count", type=INT32),)
    one_sided = replace(exchange(t < count, None), parameters=scalars)
    assert problems(one_sided) == [
        "channel 'own': it is sent and received under different conditions that depend on a "
        "parameter"
    ]
    delayed = exchange(t < 3, t >= 1)
    assert problems(delayed) == []
    feeder = designs.serial_feeder()
    loader = feeder.nodes[0]
    conditional = replace(loader.body[1], condition=index("b") < count)
    loader = replace(loader, body=(loader.body[0], conditional))
    unknown = replace(feeder, nodes=(loader, *feeder.nodes[1:]), parameters=scalars)
    assert problems(unknown) == [
        "channel 'feed': its depth cannot be derived, because a condition depends on a parameter"
    ]


def test_iterations_that_are_too_many() -> None:
    t = index("t")
    long = exchange(t < 3, t >= 1)
    nodes = tuple(
        replace(n, loops=(Loop(name="t", minimum=const(0), extent=const(1 << 24)),))
        for n in long.nodes
    )
    assert problems(replace(long, nodes=nodes)) == [
        "channel 'own': its conditions take too many values to be compared"
    ]
    feeder = designs.serial_feeder(pes=4, block=1 << 22)
    assert problems(feeder) == [
        "channel 'feed': its depth cannot be derived, because too many iterations would have to "
        "be rehearsed"
    ]


def test_senders_and_receivers_that_disagree() -> None:
    feeder = designs.serial_feeder()
    loader = replace(feeder.nodes[0], loops=(loop("r", 2), loop("p", 4), loop("b", 2)))
    assert problems(replace(feeder, nodes=(loader, *feeder.nodes[1:]))) == [
        "channel 'feed': senders and receivers disagree on the number of tokens (channels 'feed')"
    ]


def cyclic_wait() -> Graph:
    """A row of PEs and a helper that serves PE 1 only after PE 0's answer, firing by firing."""
    p, q = index("p"), index("q")
    base = array_of(
        "cyclic_wait",
        [
            Receive(target="served", channel="serve", type=INT32),
            Send(channel="answer", value=local("served"), condition=equals(p, 0)),
            Send(channel="out", value=local("new") + local("served")),
        ],
        [],
        pes=2,
        length=3,
    )
    helper = node(
        "helper",
        Role.COMPUTE,
        (loop("t", 3), loop("q", 2)),
        (
            Receive(target="told", channel="answer", type=INT32, condition=equals(q, 1)),
            Send(channel="serve", value=local("told") + q),
        ),
    )
    return replace(
        base,
        nodes=(*base.nodes, helper),
        channels=(
            *base.channels,
            channel("serve", "helper", "array", (2,), (q,), (p,)),
            channel("answer", "array", "helper"),
        ),
    )


@pytest.mark.slow
@needs_emulator
@pytest.mark.emulator
def test_a_node_that_serves_pes_in_turn_and_waits_for_one_of_them() -> None:
    inputs = {"x": np.arange(6, dtype=np.int32).reshape(2, 3)}
    assert emulate(cyclic_wait(), inputs)["y"].tolist() == [[0, 1, 2], [4, 5, 6]]


@pytest.mark.usefixtures("no_kernels")
def test_lockstep_that_would_wait_for_ever() -> None:
    design = cyclic_wait()
    inputs = {"x": np.arange(6, dtype=np.int32).reshape(2, 3)}
    assert interpret_graph(design, inputs)["y"].tolist() == [[0, 1, 2], [4, 5, 6]]
    assert problems(design) == [
        "channel 'answer': PEs of one kernel share their iterations, and in that order tokens wait "
        "for one another forever; independent PEs may not"
    ]


def test_emit_refuses_with_all_reasons() -> None:
    here = SourceLocation(__file__, 1)
    gemm = systolic_gemm(1, 1, 2, element=Float(16))
    tensors = (replace(gemm.tensors[0], location=here), *gemm.tensors[1:])
    with pytest.raises(UnsupportedError) as caught:
        BACKEND.emit(replace(gemm, tensors=tensors))
    text = str(caught.value)
    assert text.startswith("the opencl_fpga backend cannot emit 'gemm': tensor 'A': float16 needs")
    assert f"--> {__file__}:1" in text
    assert "  note:     tensor 'B': float16 needs cl_khr_fp16" in text


# ----------------------------------------------------------------------------------- emulate

RELAY = designs.relay_chain(length=4)
X = np.arange(4, dtype=np.int32)


def test_inputs_that_do_not_fit() -> None:
    with pytest.raises(UserError) as caught:
        emulate(RELAY, {"z": X})
    assert str(caught.value).startswith("the program has no input z\n  --> ")
    assert str(caught.value).endswith("\n  expected: x\n  given:    z")
    with pytest.raises(UserError) as caught:
        emulate(RELAY, {"x": X[:3].astype(np.float32)})
    assert str(caught.value).startswith("the input x has the wrong element type\n  --> ")
    assert str(caught.value).endswith(
        "\n  expected: an int32 array of shape (4,)\n"
        "  given:    float32 of shape (3,)\n"
        "  hint:     convert it: array.astype(np.int32)"
    )
    with pytest.raises(UserError) as caught:
        emulate(RELAY, {"x": X[:3]})
    assert str(caught.value).startswith("the input x has the wrong shape\n  --> ")
    assert "expected: an int32 array of shape (4,)\n  given:    shape (3,)" in str(caught.value)
    with pytest.raises(UserError, match=r"(?s)the program has no input alpha.*given: +x, alpha"):
        emulate(RELAY, {"x": X}, {"alpha": 3})


def test_emulator_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert not emulator_available()
    with pytest.raises(EmulationError) as caught:
        emulate(RELAY, {"x": X})
    assert str(caught.value) == (
        "Intel's FPGA emulator is not installed\n"
        "  hint:     pip install 't2s-spatial[emulator]' (x86-64 Linux only)"
    )


def children() -> set[int]:
    """Processes that run a host program."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"too_short_host.py" in line:
            found.add(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.emulator
@needs_emulator
def test_deadlock_ends_at_the_time_limit_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    waiting = replace(RELAY.nodes[-1], loops=(loop("i", 5),))
    design = replace(RELAY, name="too_short", nodes=(*RELAY.nodes[:-1], waiting))
    start = time.monotonic()
    with pytest.raises(EmulationError) as caught:
        emulate(design, {"x": X}, time_limit=4.0)
    assert time.monotonic() - start < 100
    assert "'too_short' was not done on Intel's FPGA emulator after 4 s; " in str(caught.value)
    assert "hint:     give more time with time_limit=, or look for a deadlock" in str(caught.value)
    assert children() == set()
    assert os.listdir(tmp_path) == []


@dataclass(frozen=True, slots=True)
class Broken:
    """A backend whose text is not OpenCL."""

    def emit(self, graph: Graph) -> Mapping[str, str]:
        files = dict(BACKEND.emit(graph))
        text = files["relay_chain.cl"].replace("write_channel_intel(", "write_channel_of(")
        return files | {"relay_chain.cl": text}


@pytest.mark.emulator
@needs_emulator
def test_build_errors_come_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "BACKEND", Broken())
    with pytest.raises(EmulationError) as caught:
        emulate(RELAY, {"x": X}, time_limit=30.0)
    text = str(caught.value)
    assert text.startswith("'relay_chain' failed on Intel's FPGA emulator (exit code 1); ")
    assert "OpenCL build failed:" in text
    assert "write_channel_of" in text
