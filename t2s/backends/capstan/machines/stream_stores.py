"""Queues that leave the chip: what is pushed goes to the DRAM word after word."""

from __future__ import annotations

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import write
from t2s.backends.capstan.machines.vectors import (
    addresses,
    at_least,
    counted_from,
    number,
    plus,
    where,
)
from t2s.core.expr import Expr, ReduceLanes, apply
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Role, Store
from t2s.graph.graph import Tensor
from t2s.patterns.ir import Push, StoreStream


def stream_store(body: PatternBody, push: Push, statement: StoreStream, target: Tensor) -> None:
    """Store what a body pushes, as much as the statement takes from the queue each time.

    The unit counts what it has stored of a segment; with its last word the next one begins.
    """
    unit = BodyUnit(body, f"store_{push.queue}", Role.STORE, statement.location)
    begin, length = unit.scalar(statement.begin), unit.scalar(statement.length)
    value = unit.vector(push.value)
    count = unit.register("count")
    index = addresses(unit.valid, counted_from(plus(begin, count), body.lanes))
    words: Expr = number(1)
    if body.lanes > 1:
        ones = where(unit.valid, number(1, body.lanes), number(0, body.lanes))
        words = ReduceLanes(operator=Op.ADD, value=ones, type=INT32)
    after = plus(count, words)
    store = Store(tensor=target.name, indices=(index,), value=value)
    cases = [
        FiringCase(name="end", when=at_least(after, length), body=(store, write(count, number(0)))),
        FiringCase(name="store", body=(store, write(count, after))),
    ]
    if body.lanes == 1:
        cases.insert(0, FiringCase(name="nothing", when=apply(Op.NOT, unit.valid)))
    unit.at_each(cases)
    unit.finish()
