"""Looking at a part only when something may have changed changes nothing that is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2s.backends.cgra_tia.fabric import PUBLIC_CORE
from t2s.backends.cgra_tia.machine import profile_b
from t2s.backends.cgra_tia.machine.parts import Agenda, PlacedPart
from t2s.backends.cgra_tia.machine.profile_a import PublicElement, run_public
from t2s.backends.cgra_tia.machine.profile_b import PlacedRun, WiredDesign, run_placed
from t2s.backends.cgra_tia.machine.words import SCRATCHPAD, word_meanings
from t2s.backends.cgra_tia.netlist import Branch, PlacedDesign
from t2s.backends.cgra_tia.program import CellProgram
from t2s.core.errors import UserError
from tests.backends.cgra.closed_forms import COPY, chains, ring, through, virtual_buffer
from tests.backends.cgra.random_programs import programs


@pytest.fixture
def looking_at_all(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on every part is looked at in every cycle."""
    parts: list[PlacedPart] = []
    wire, advance = profile_b.wire, Agenda.advance

    def wired(*arguments: object, **options: object) -> WiredDesign:
        design: WiredDesign = wire(*arguments, **options)  # type: ignore[arg-type]
        parts[:] = design.parts
        return design

    def everything(agenda: Agenda) -> list[PlacedPart]:
        now = agenda.now
        advance(agenda)
        agenda.now = now + 1
        return parts

    def switch() -> None:
        monkeypatch.setattr(profile_b, "wire", wired)
        monkeypatch.setattr(Agenda, "advance", everything)

    return switch


def disturbed(design: PlacedDesign, generator: Random) -> PlacedDesign:
    """The design with other latencies, and hardly more room than it needs."""
    branches = {}
    for name, found in design.branches.items():
        latency = generator.randint(1, 4)
        branches[name] = tuple(
            Branch(path=(), latency=latency, capacity=max(latency, b.capacity // 4, 3))
            for b in found
        )
    return replace(design, branches=branches)


DESIGNS: dict[str, Callable[[], PlacedDesign]] = {
    "chains": lambda: chains(2, 20, 1, 3),
    "handed on": lambda: chains(2, 20, 1, 3, handed_on=True),
    "ring": lambda: ring(3, 6, 2),
    "buffer": lambda: virtual_buffer(5, 3, 24),
    "sum": lambda: through(
        "when %p == X0 with %i0.0: fadd %r0, %r0, %i0; deq %i0; set %p = Z1;\n"
        "when %p == X1: fmul %o0.0, %r0, %r0; set %p = Z0;\n",
        range(12),
    ),
    "copy": lambda: through(COPY, range(12)),
}


def run(design: PlacedDesign, words: int | None, latency: int) -> PlacedRun:
    generator = np.random.default_rng(3)
    inputs = {
        tensor.name: generator.random(tensor.shape)
        for tensor in design.netlist.tensors
        if tensor.role.value == "input"
    }
    return run_placed(
        design, inputs, words_per_cycle=words, memory_latency=latency, max_cycles=20_000
    )


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("seed", range(4))
def test_skipping_changes_nothing(name: str, seed: int, looking_at_all: Callable[[], None]) -> None:
    generator = Random(seed)
    design = disturbed(DESIGNS[name](), generator)
    words, latency = generator.choice([(None, 0), (3, 0), (None, 5), (2, 3)])
    quick = run(design, words, latency)
    looking_at_all()
    slow = run(design, words, latency)
    assert quick.cycles == slow.cycles > 0
    assert quick.cells == slow.cells
    assert quick.units == slow.units
    for tensor, array in quick.outputs.items():
        assert np.array_equal(array, slow.outputs[tensor])


def test_a_part_that_waits_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that waits for a hundred cycles is looked at a few times."""
    looked: list[int] = []
    step = PlacedPart.rest

    def counted(part: PlacedPart, now: int, *rest: object) -> None:
        looked.append(now)
        step(part, now, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PlacedPart, "rest", counted)
    array = np.ones(3)
    result = run_placed(through(COPY, array), {"x": array}, memory_latency=100)
    assert result.cycles == 105
    assert len(looked) <= 12


class AlwaysChanged:
    """In place of the flag by which an element of profile A is looked at."""

    def __get__(self, element: object, kind: object = None) -> bool:
        return True

    def __set__(self, element: object, value: bool) -> None:
        pass


def outcome(found: Sequence[CellProgram]) -> tuple[object, ...]:
    """All that a run of a few hundred cycles shows, or why it does not end."""
    memory = np.arange(64, dtype=np.uint32)
    try:
        run = run_public(found, memory, PUBLIC_CORE, shape=(2, 2), max_cycles=300, keep_trace=True)
    except UserError as error:
        return (str(error),)
    assert run.trace is not None
    for column, retired, untriggered in zip(
        run.trace.T.tolist(), run.retired, run.untriggered, strict=True
    ):
        assert retired == sum(number >= 0 for number in column)
        assert untriggered <= sum(number < 0 for number in column)
    return run.cycles, run.memory.tolist(), run.retired, run.untriggered, run.trace.tolist()


ABLE = frozenset(word_meanings(32)) | SCRATCHPAD


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(programs(PUBLIC_CORE, opcodes=ABLE), min_size=4, max_size=4))
def test_skipping_changes_nothing_in_random_programs(found: list[CellProgram]) -> None:
    quick = outcome(found)
    PublicElement.changed = AlwaysChanged()  # type: ignore[assignment]
    try:
        assert outcome(found) == quick
    finally:
        del PublicElement.changed
