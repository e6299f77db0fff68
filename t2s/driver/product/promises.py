"""Promises about reductions, checked against the matrix."""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.driver.product.directives import Schedule
from t2s.reduction.carry import interrupted_target, shared_target
from t2s.sparse_repr.representation.definition import unsupported
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.layout import FibreJob
from t2s.sparse_repr.representation.storage import Storage
from t2s.sparse_repr.representation.units import units_of
from t2s.sparse_repr.representation.vocabulary import Dimension
from t2s.spatial.sparse_directives import ContinuousReduction, DistinctReduction


def keep_promises(schedule: Schedule, storage: Storage) -> tuple[bool, bool]:
    """Check promises against the matrix; whether reductions are distinct, and continuous.

    Distinct: no row is on two machines, with its padding.  Continuous: on every machine the values
    of a row follow one another; so it is where rows are the fibres and units have one row.  Where
    the chain does not say so it has to be promised: a design is for all matrices of some sizes.
    """
    definition = schedule.definition
    rows = storage.decode()[0] if schedule.promises else storage.values
    for promise in schedule.promises:
        if promise.loop != definition.machine:
            unsupported(
                promise.location,
                f"{promise.text} promises something about {promise.loop}",
                f"a promise about the machines, {definition.machine}",
                promise.loop,
            )
        if isinstance(promise, ContinuousReduction):
            broken = interrupted_target(rows)
            if broken is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="the values of every row one after the other on a machine",
                    given=f"row {broken[1]} goes on after another row on machine {broken[0]}",
                )
        else:
            shared = shared_target(rows)
            if shared is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="every row on one machine",
                    given=f"row {shared[2]} on machines {shared[0]} and {shared[1]}",
                    hint="schedule rows, or leave the promise out: sums of machines are then added",
                )
    mapping = definition.matrix.decoder
    units = units_of(storage.layout, storage.shape)
    by_rows = mapping.major is Dimension.ROWS and units.factor(Dimension.ROWS) == 1
    whole = by_rows and isinstance(mapping.job, FibreJob) and mapping.order is not Order.FREE
    promised = {type(promise) for promise in schedule.promises}
    apart = DistinctReduction in promised and not storage.layout.blocks
    return whole or apart, by_rows or ContinuousReduction in promised
