"""Banked memories: shares of the peak, words through the network, orders of answers, refusals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.banked import alone, network, words_per_cycle
from t2s.simulator.memory.banks import NOTHING
from t2s.simulator.memory.spec import Banked
from tests.errors.refusal import refused
from tests.sampling import sampled
from tests.simulator.memory.plain_banks import BankedModel


def done_at(model: BankedModel) -> list[int]:
    """When the vectors are done of which a cycle says it."""
    return [asked.completed for asked in model.step()]


@pytest.mark.parametrize(
    ("depth", "rounds", "least", "most"),
    [(1, 1, 0.31, 0.34), (8, 2, 0.76, 0.80), (16, 2, 0.80, 0.84), (16, 1, 0.58, 0.62)],
)
def test_random_addresses_get_the_published_share(
    depth: int, rounds: int, least: float, most: float
) -> None:
    assert least <= alone(depth, rounds, cycles=2000) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("moves", "least", "most"), [(0, 3.5, 3.9), (1, 6.0, 6.5), (2, 7.3, 7.7)])
def test_words_through_the_network(moves: int, least: float, most: float) -> None:
    assert least <= network(moves) <= most


def test_addresses_in_a_row_are_served_at_full_speed() -> None:
    banked = Banked(ports=1, link_depth=32)
    assert words_per_cycle(banked, lambda _: range(16), 1, 200) == pytest.approx(16, rel=0.02)


@sampled("other", [0, 5, 15], quick=2)
def test_ports_that_do_not_meet_have_no_conflicts(other: int) -> None:
    """Port p asks unit p xor c: no two vectors want one link."""
    banked = Banked()

    def of_its_unit(port: int) -> Sequence[int]:
        return range((port ^ other) * 16, (port ^ other) * 16 + 16)

    assert words_per_cycle(banked, of_its_unit, 16, 200) / 16 == pytest.approx(16, rel=0.05)
    assert words_per_cycle(banked, of_its_unit, 1, 200) == pytest.approx(16, rel=0.05)


def test_a_vector_by_hand() -> None:
    # One unit, all words in bank 3: one in each cycle, and the answer 2 cycles after the last.
    model = BankedModel(Banked(ports=1, lanes=4, banks=4, reply_cycles=2))
    model.ask(0, [3, 7, NOTHING, 11])
    assert [done_at(model) for _ in range(4)] == [[], [], [4], []]
    assert model.served == 3
    assert model.is_empty


def test_answers_come_in_the_order_of_their_port() -> None:
    model = BankedModel(Banked(ports=1, lanes=4, banks=4))
    model.ask(0, [0, 0, 0, 0])
    model.ask(0, [1, 2, 3, NOTHING])
    model.ask(0, [NOTHING] * 4)
    assert [done_at(model) for _ in range(6)] == [[], [], [], [3, 3, 3], [], []]


@settings(max_examples=40, deadline=None)
@given(
    ports=st.sampled_from((1, 2, 4)),
    lanes=st.integers(1, 5),
    banks=st.integers(1, 4),
    depth=st.integers(1, 3),
    moves=st.integers(0, 2),
    data=st.data(),
)
def test_every_vector_is_answered_once(
    ports: int, lanes: int, banks: int, depth: int, moves: int, data: st.DataObject
) -> None:
    banked = Banked(
        ports=ports,
        lanes=lanes,
        banks=banks,
        queue_depth=depth,
        link_depth=depth,
        lane_moves=moves,
    )
    address = st.one_of(st.just(NOTHING), st.integers(0, 63))
    vector = st.lists(address, min_size=lanes, max_size=lanes)
    left = {port: data.draw(st.lists(vector, max_size=6)) for port in range(ports)}
    words = sum(address != NOTHING for all in left.values() for one in all for address in one)
    wanted = {port: len(vectors) for port, vectors in left.items()}
    model, answers = BankedModel(banked), dict.fromkeys(range(ports), 0)
    while any(left.values()) or not model.is_empty:
        assert model.now < 2000
        for port, vectors in left.items():
            if vectors and model.has_room(port):
                model.ask(port, vectors.pop(0))
        for asked in model.step():
            answers[asked.port] += 1
    assert answers == wanted
    assert model.served == words


@pytest.mark.parametrize(
    ("field", "value"),
    [("lanes", 0), ("queue_depth", 2.0), ("rounds", True), ("lane_moves", -1), ("lanes", 33)],
)
def test_fields_that_cannot_be(field: str, value: object) -> None:
    with pytest.raises(Exception, match=f"cannot have these {field.replace('_', ' ')}"):
        Banked(**{field: value})  # type: ignore[arg-type]


def test_ports_of_a_butterfly() -> None:
    with refused(
        """
        a banked memory cannot have these ports
          --> Banked(ports=12)
          expected: a power of two
          given:    12
        """
    ):
        Banked(ports=12)
