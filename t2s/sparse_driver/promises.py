"""Promises about reductions, checked against the matrix."""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.reduction.targets import interrupted_target, shared_target
from t2s.sparse_driver.directives import Schedule
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.layout import FibreJob
from t2s.sparse_repr.representation.storage import Storage
from t2s.spatial.sparse_directives import ContinuousReduction


def keep_promises(schedule: Schedule, storage: Storage) -> bool:
    """Check promises against the matrix; whether no row is on two machines, with its padding."""
    definition = schedule.definition
    rows, _ = storage.decode()
    for promise in schedule.promises:
        if isinstance(promise, ContinuousReduction):
            broken = interrupted_target(rows)
            if broken is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="the values of every row one after the other on a machine",
                    given=f"row {broken[1]} goes on after another row on machine {broken[0]}",
                )
        elif promise.loop == definition.machine:
            shared = shared_target(rows)
            if shared is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="every row on one machine",
                    given=f"row {shared[2]} on machines {shared[0]} and {shared[1]}",
                    hint="schedule rows, or leave the promise out: sums of machines are then added",
                )
    order = definition.matrix.decoder.order
    whole = isinstance(definition.matrix.decoder.job, FibreJob)
    apart = not storage.layout.blocks and shared_target(rows) is None
    return (whole and order is not Order.FREE) or apart
