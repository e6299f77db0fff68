"""Runs of fibres that each machine finds in structure of its own: lengths, and numbers."""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Load, Send, Statement
from t2s.graph.construct import (
    Parts,
    add,
    index,
    less,
    local,
    loop,
    quotient,
    remainder,
    select,
    space,
    times,
)
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import (
    END,
    fibre_code,
    fibre_count,
    fills_up,
    loader_name,
    run_links,
    steps_of,
    stored_shape,
)
from t2s.sparse_repr.representation.layout import FibreJob


def runs_of_machines(parts: Parts, product: Product) -> None:
    """Each machine loads the lengths of its own fibres, and their numbers if they are recorded."""
    mapping, machines = product.mapping, product.machines
    lengths, job = mapping.lengths, mapping.job
    assert lengths is not None
    assert isinstance(job, FibreJob)
    decoder, node = product.nodes.decoder.name, loader_name(product, lengths.name)
    numbers = mapping.fibre or mapping.job_index
    count = _fibres_of_a_machine(product)
    at, member = quotient(index("fibre"), job.fibres), remainder(index("fibre"), job.fibres)
    value = select(less(index("fibre"), count), steps_of(product, local("entry")), END)
    sends: tuple[Statement, ...] = (Send(channel=f"{decoder}_run_length", value=value),)
    sources = (node, node)
    if numbers is None:
        number = add(times(add(times(at, machines), index(LANE)), job.fibres), member)
        beyond = fills_up(product) or lengths.fibres is None
        code = fibre_code(product, number, beyond=beyond)
        sends = (*sends, Send(channel=f"{decoder}_run_row", value=code))
    else:
        sources = (_load_numbers(parts, product, numbers, count), node)
    stream, tensor = product.storage.streams[lengths.name], product.stream_name(lengths.name)
    input_tensor(parts, product, tensor, INT32, stored_shape(stream.data.shape))
    covered = min(lengths.fibres or 1, job.fibres)
    entry = (const(0),) if lengths.fibres is None else (index(LANE), _entry(covered))
    parts.nodes.append(_machine_loader(product, node, "entry", tensor, entry, count, sends))
    run_links(parts, product, sources, counted=numbers is None)


def _entry(fibres: int) -> Expr:
    """The place of the entry for a fibre, where each is for several."""
    return quotient(index("fibre"), fibres)


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


def _machine_loader(
    product: Product,
    node: str,
    target: str,
    tensor: str,
    at: tuple[Expr, ...],
    count: int,
    sends: tuple[Statement, ...],
) -> PEArray:
    """A load unit for each machine: an entry for each of its fibres, and once more behind them."""
    return PEArray(
        name=node,
        role=Role.LOAD,
        space=(space(LANE, product.machines),),
        loops=(loop("fibre", count + 1),),
        body=(
            Load(
                target=target,
                tensor=tensor,
                indices=at,
                type=INT32,
                condition=less(index("fibre"), count),
            ),
            *sends,
        ),
        location=product.nodes.matrix_loader.location,
    )


def _load_numbers(parts: Parts, product: Product, name: str, count: int) -> str:
    """A load unit for each machine: the numbers of its fibres, or of its jobs."""
    node, tensor, job = loader_name(product, name), product.stream_name(name), product.mapping.job
    assert isinstance(job, FibreJob)
    shape = stored_shape(product.storage.streams[name].data.shape)
    input_tensor(parts, product, tensor, INT32, shape)
    loaded = local("loaded")
    fibres = 1 if name == product.mapping.fibre else job.fibres
    code = fibre_code(product, loaded, beyond=False)
    if fibres > 1:
        number = add(times(loaded, fibres), remainder(index("fibre"), fibres))
        code = select(less(loaded, 0), 0, fibre_code(product, number, beyond=fills_up(product)))
    send = Send(channel=f"{product.nodes.decoder.name}_run_row", value=code)
    at = (index(LANE), _entry(fibres))
    parts.nodes.append(_machine_loader(product, node, "loaded", tensor, at, count, (send,)))
    return node
