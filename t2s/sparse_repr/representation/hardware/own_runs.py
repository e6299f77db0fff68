"""Runs of fibres that each machine finds in structure of its own: lengths, and numbers."""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.construct import (
    Parts,
    add,
    index,
    less,
    loop,
    quotient,
    remainder,
    select,
    times,
)
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import (
    END,
    FIBRE,
    fibre_code,
    fibre_count,
    fills_up,
    link_runs,
    loader_name,
    run_wires,
    steps_of,
    structure_tensor,
)
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft
from t2s.sparse_repr.representation.layout import FibreJob


def runs_of_machines(parts: Parts, product: Product) -> None:
    """Each machine loads the lengths of its own fibres, and their numbers if they are recorded."""
    mapping = product.mapping
    lengths, job, (row, length) = mapping.lengths, mapping.job, run_wires(product)
    assert lengths is not None
    assert isinstance(job, FibreJob)
    numbers = mapping.fibre or mapping.job_index
    count, node = _fibres_of_a_machine(product), loader_name(product, lengths.name)
    source = node if numbers is None else _load_numbers(parts, product, numbers, count)
    tensor = structure_tensor(parts, product, lengths.name)
    unit = _loader(product, node, count)
    covered = min(lengths.fibres or 1, job.fibres)
    at = (const(0),) if lengths.fibres is None else (index(LANE), _entry(covered))
    exists = less(index(FIBRE), count)
    entry = unit.load("entry", tensor, at, INT32, exists)
    unit.send(length, select(exists, steps_of(product, entry), END))
    if numbers is None:
        first = times(add(times(_entry(job.fibres), product.machines), index(LANE)), job.fibres)
        number = add(first, remainder(index(FIBRE), job.fibres))
        beyond = fills_up(product) or lengths.fibres is None
        unit.send(row, fibre_code(product, number, beyond=beyond))
    parts.nodes.append(unit.node())
    link_runs(parts, product, source, node, counted=numbers is None)


def _entry(fibres: int) -> Expr:
    """The place of the entry for a fibre, where each is for several."""
    return quotient(index(FIBRE), fibres)


def _fibres_of_a_machine(product: Product) -> int:
    """The most fibres that any machine gets."""
    mapping, streams = product.mapping, product.storage.streams
    assert isinstance(mapping.job, FibreJob)
    assert mapping.lengths is not None
    fibres = mapping.job.fibres
    if mapping.fibre is not None:
        return int(streams[mapping.fibre].data.shape[1])
    if mapping.job_index is not None:
        return int(streams[mapping.job_index].data.shape[1]) * fibres
    if mapping.lengths.fibres is None:
        return -(-fibre_count(product) // (fibres * product.machines)) * fibres
    return int(streams[mapping.lengths.name].data.shape[1]) * min(mapping.lengths.fibres, fibres)


def _loader(product: Product, node: str, count: int) -> ArrayDraft:
    """A load unit for each machine: it fires for each of its fibres, and once more behind them."""
    location = product.nodes.matrix_loader.location
    return ArrayDraft(node, Role.LOAD, product.lanes, (loop(FIBRE, count + 1),), location)


def _load_numbers(parts: Parts, product: Product, name: str, count: int) -> str:
    """A load unit for each machine: the numbers of its fibres, or of its jobs."""
    node, job = loader_name(product, name), product.mapping.job
    assert isinstance(job, FibreJob)
    tensor = structure_tensor(parts, product, name)
    fibres = 1 if name == product.mapping.fibre else job.fibres
    unit, at = _loader(product, node, count), (index(LANE), _entry(fibres))
    loaded = unit.load("loaded", tensor, at, INT32, less(index(FIBRE), count))
    code = fibre_code(product, loaded, beyond=False)
    if fibres > 1:
        number = add(times(loaded, fibres), remainder(index(FIBRE), fibres))
        code = select(less(loaded, 0), 0, fibre_code(product, number, beyond=fills_up(product)))
    unit.send(run_wires(product)[0], code)
    parts.nodes.append(unit.node())
    return node
