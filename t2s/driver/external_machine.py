"""``external.calibrate``: the rates of this machine, measured in some seconds.

Every rate is the time of a step of a plan, as ``plan.run`` measures it, the shortest of a few runs.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from t2s.capability.declare import make_function
from t2s.capability.description import ExternalFunction
from t2s.capability.ir import ALWAYS, Capability
from t2s.core.types import Float
from t2s.core.walk import Term, rewrite
from t2s.driver.external_plan import ExternalPlan
from t2s.driver.plan_loops import run_loops
from t2s.plan.machine import GENERIC, FunctionRates, HostMachine, LoopRates
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.ir import Access, Assignment, TensorDeclaration, accesses
from t2s.sparse_repr.notation.parse import parse_assignment as parse
from t2s.sparse_repr.notation.symbols import Notation
from t2s.sparse_repr.tensors.tensor import from_dense

TermT = TypeVar("TermT", bound=Term)

RUNS = 3
CALLS = 64
"""Calls of a step where the functions are small, so that what is around them vanishes."""

SMALL = 64
BATCH = "batch"
LONG = 0.1
"""Seconds of a call beyond which no larger one is measured."""

SIZES = {
    1: (64, 4096, 1 << 18, 1 << 21),
    2: (8, 64, 512, 2048),
    3: (8, 32, 128, 512, 1024),
}
"""Extents of all variables of a function, by how many there are."""

DENSITY = 0.1


def calibrate(functions: Sequence[ExternalFunction] | None = None) -> HostMachine:
    """Measure this machine: calls of functions of several sizes, loops, copies, conversions.

    ``functions`` are those of libraries that are always there if nothing is said; those over lists
    of variables, or of vectors, are not measured.  Takes some seconds, keeps nothing:
    ``machine.save(path)`` and ``external.load_machine(path)`` do.
    """
    from t2s.libraries.probing import availability
    from t2s.libraries.shelf import CORE, LIBRARIES

    if functions is None:
        functions = [one for name in CORE for one in LIBRARIES[name].functions.values()]
    there = [one for one in functions if one.library is None or availability(one.library).there]
    start = _start()
    rates = tuple(
        found for one in there if one.hardware is None for found in _function_rates(one, start)
    )
    copy, transpose = _copies()
    convert, scan = _conversions()
    return HostMachine(
        name=platform.processor() or platform.machine(),
        start=start,
        call=GENERIC.call,
        step=GENERIC.step,
        copy=copy,
        transpose=transpose,
        convert=convert,
        scan=scan,
        loops=_loops(),
        functions=rates,
    )


def _function_rates(function: ExternalFunction, start: float) -> Iterator[FunctionRates]:
    """What calls of a function take; nothing of one over lists, or for no extents of ours."""
    capability = function.capability
    variables = _variables(capability)
    sizes = SIZES.get(len(variables), ())
    if capability.lists or not sizes or capability.condition != ALWAYS or _repeats(capability):
        return
    sliced = all(not one.formats for one in capability.needs)
    points: list[tuple[float, float]] = []
    for size in sizes:
        calls = CALLS if sliced and size <= SMALL else 1
        plan = _plan_of(function, batch=calls > 1)
        inputs, share = _inputs(plan.assignment, size, function, calls)
        taken = min(plan.run(inputs).steps[-1].seconds for _ in range(RUNS))
        seconds = max(1e-7, (taken - start) / calls if taken > 2 * start else taken / 2 / calls)
        work = size ** len(variables) * share
        if not points or work > points[-1][0]:
            points.append((float(work), seconds))
        if taken > LONG:
            break
    library = function.library.name if function.library is not None else ""
    yield FunctionRates(library=library, function=function.name, points=tuple(points))


def _variables(capability: Capability) -> tuple[str, ...]:
    reads = (capability.result, *accesses(capability.value))
    return tuple(dict.fromkeys(name for access in reads for name in access.variables))


def _repeats(capability: Capability) -> bool:
    """Whether a tensor is there with properties, which arrays of ours do not have."""
    return any(one.properties for one in capability.needs)


def _start() -> float:
    """Seconds of a step beside its calls: those of one call, less those of one more."""
    function = make_function(
        "nothing", "z(i) = x(i)", python=_nothing, trusted=True, types="float64", strides="any"
    )
    taken = []
    for calls in (1, CALLS):
        plan = _plan_of(function, batch=True)
        given = {"x": np.zeros((calls, 1))}
        taken.append(min(plan.run(given).steps[-1].seconds for _ in range(5 * RUNS)))
    return max(1e-6, taken[0] - (taken[1] - taken[0]) / (CALLS - 1))


def _nothing(x: Any, z: Any) -> None:
    z[...] = x


def _plan_of(function: ExternalFunction, *, batch: bool) -> ExternalPlan:
    """A plan whose whole statement is the function's; ``batch`` many of them, one by one."""
    capability = function.capability
    value = _batched(capability.value) if batch else capability.value
    result = replace(capability.result, tensor="the_result")
    result = _batched(result) if batch else result
    names: dict[str, int] = {one.tensor: len(one.variables) for one in accesses(value)}
    declared = [
        TensorDeclaration(
            name=name, format=(capability.needs_of(name).formats or (dense(order),))[0]
        )
        for name, order in names.items()
    ]
    formats = capability.needs_of(capability.result.tensor).formats
    format = formats[0] if formats else dense(len(result.variables))
    declared.append(TensorDeclaration(name=result.tensor, format=format))
    assignment = Assignment(result=result, value=value, tensors=tuple(declared))
    schedule = Schedule().fix(BATCH) if batch else Schedule()
    return ExternalPlan(assignment, schedule.bind(Notation(value, {}), function))


def _batched(value: TermT) -> TermT:
    """The statement with a variable more in all of its accesses, the first one."""

    def wider(term: Term) -> Term | None:
        if isinstance(term, Access):
            return replace(term, variables=(BATCH, *term.variables))
        return None

    return rewrite(value, wider)


def _format(capability: Capability, name: str, order: int) -> Format:
    return (*capability.needs_of(name).formats, dense(order))[0]


def _inputs(
    assignment: Assignment, size: int, function: ExternalFunction, calls: int
) -> tuple[dict[str, Any], float]:
    """Operands of this size, and the share of the steps that sparse ones leave."""
    kinds = function.capability.types
    kind = kinds[0].numpy if kinds else np.dtype(np.float64)
    found: dict[str, Any] = {}
    share = 1.0
    for access in dict.fromkeys(accesses(assignment.value)):
        shape = tuple(calls if name == BATCH else size for name in access.variables)
        format = assignment.tensor(access.tensor).format
        values = np.ones(shape, kind)
        if not all(level.full for level in format.levels):
            values = _sparse(size).astype(kind)
            share *= np.count_nonzero(values) / values.size
            found[access.tensor] = from_dense(values, format)
        else:
            found[access.tensor] = values
    return found, share


def _sparse(size: int, density: float = DENSITY) -> Any:
    """A matrix with entries here and there, the same ones each time."""
    generator = np.random.default_rng(size)
    values: Any = generator.random((size, size)) < max(density, 1 / size)
    values[0, 0] = True
    return values


def _best(work: Any) -> float:
    """The shortest of a few runs, in seconds."""
    found = []
    for _ in range(RUNS):
        begun = perf_counter()
        work()
        found.append(perf_counter() - begun)
    return max(min(found), 1e-9)


def _copies() -> tuple[float, float]:
    """Seconds of a byte that is copied, and of one that is transposed."""
    array = np.ones((2048, 2048), np.float32)
    copied = _best(array.copy)
    turned = _best(lambda: np.ascontiguousarray(array.T))
    return copied / array.nbytes, turned / array.nbytes


def _conversions() -> tuple[float, float]:
    """Seconds of an entry that is converted, and of a dense element that is looked at."""
    values = _sparse(1024).astype(np.float32)
    stored = from_dense(values, "ds")
    entries = np.count_nonzero(values)
    convert = _best(lambda: stored.convert("ss")) / entries
    whole = _best(lambda: from_dense(values, "ds"))
    return convert, max(1e-10, (whole - entries * convert) / values.size)


def _loops() -> LoopRates:
    """Of our loops: statements through the entries of a matrix, and over dense operands."""
    size, inner = 1024, 256
    matrix = from_dense(_sparse(size).astype(np.float32), "ds")
    entries = len(matrix.values)
    extents = {"i": size, "j": size, "k": inner}
    kind = np.dtype(np.float32)
    rows, columns = np.ones((size, inner), kind), np.ones((inner, size), kind)
    by_columns = np.asfortranarray(columns)
    sampled = parse("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"A": "ds", "B": "ds"})
    scaled = parse("A(i,j) = B(i,j)*T(i,j)", {"A": "ds", "B": "ds"})
    product = parse("T(i,j) = C(i,k)*D(k,j)")
    added = parse("T(i,j) = S(i,j) + T2(i,j)")

    def run(assignment: Assignment, **values: Any) -> float:
        return _best(lambda: run_loops(assignment, values, extents, Float(32)))

    one = from_dense(np.ones((1, 1), kind), "ds")
    tiny = {"i": 1, "j": 1, "k": 1}
    small: dict[str, Any] = {"B": one, "T": np.ones((1, 1), kind)}
    start = _best(lambda: run_loops(scaled, small, tiny, Float(32)))
    whole = np.ones((size, size), kind)
    alone = run(scaled, B=matrix, T=whole)
    near = run(sampled, B=matrix, C=rows, D=by_columns)
    far = run(sampled, B=matrix, C=rows, D=columns)
    entry = max(1e-10, (alone - start) / entries)
    steps = entries * inner
    summed = run(product, C=rows, D=columns)
    plain = run(added, S=whole, T2=whole)
    return LoopRates(
        start=start,
        entry=entry,
        element=max(1e-11, (near - alone) / steps),
        strided=max(1e-11, (far - alone) / steps),
        dense=summed / (size * size * inner),
        dense_element=plain / size**2,
    )
