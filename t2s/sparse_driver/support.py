"""Chains that there is no hardware for."""

from __future__ import annotations

from t2s.core.errors import UnsupportedError
from t2s.sparse_repr.representation.definition import Definition
from t2s.sparse_repr.representation.layout import BlockJob, FibreJob
from t2s.sparse_repr.representation.storage import Storage
from t2s.sparse_repr.representation.vocabulary import Dimension


def check_supported(definition: Definition, storage: Storage) -> None:
    layout, chain = storage.layout, definition.matrix.chain
    job = layout.schedule.job if layout.schedule is not None else None
    reason = None
    if 0 in storage.shape:
        reason = f"a matrix of {storage.shape[0]} x {storage.shape[1]} elements"
    elif layout.skewed or layout.tiles:
        reason = "units of more than one value"
    elif layout.minor is None:
        reason = "a matrix that is not packed"
    elif layout.minor.dimension is not Dimension.COLUMNS:
        reason = "packed columns, whose values reach the rows in no order"
    elif layout.groups:
        reason = "blocks of rows"
    elif layout.fibre is not None and isinstance(job, BlockJob) and not layout.indexed_slots:
        reason = "rows without their own numbers in blocks"
    elif isinstance(job, FibreJob) and layout.indexed_slots and layout.blocks:
        reason = "rows with an index for each value in blocks"
    if reason is None:
        return
    raise UnsupportedError(
        f"{definition.func.name} needs hardware for {reason}, which is not there yet",
        location=definition.location,
        expected="pack(Columns, ...), block(Columns, ...) and a schedule of rows or blocks",
        given=repr(chain),
        notes=((definition.matrix.location, f"{definition.matrix.name} is declared here"),),
        hint="the arrays of this representation can be built, and decoded again, without hardware",
    )
