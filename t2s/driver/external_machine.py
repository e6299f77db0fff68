"""``external.calibrate``: measuring the rates of this machine, in a few seconds.

Every rate comes from the time of a step of a plan, the shortest of a few runs of ``plan.run``.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from t2s.capability.description import ExternalFunction
from t2s.capability.ir import ALWAYS, Capability
from t2s.core.types import Float
from t2s.core.walk import Term, rewrite
from t2s.driver.external_plan import ExternalPlan
from t2s.driver.plan_inputs import run_loops
from t2s.plan.cost import GENERIC, FunctionRates, HostMachine, LoopRates
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.ir import Access, Assignment, TensorDeclaration, accesses
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.parse import parse_assignment as parse
from t2s.sparse_repr.notation.symbols import Notation
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_dense

TermT = TypeVar("TermT", bound=Term)

RUNS = 3
CALLS = 1024
"""Calls of a step where the functions are small."""

MOST_BATCHED = 1 << 20
"""Elements of an operand of all of these calls."""

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
    """Measure this machine: calls of functions at several sizes, loops, copies, conversions.

    ``functions`` are by default those of libraries that are always available; functions over lists
    of variables, and vector functions, are not measured.  It takes a few seconds;
    ``machine.save(path)`` and ``external.load_machine(path)`` store the result.
    """
    from t2s.libraries.calling import availability
    from t2s.libraries.registry import CORE, LIBRARIES

    if functions is None:
        functions = [function for name in CORE for function in LIBRARIES[name].functions.values()]
    present = [one for one in functions if one.library is None or availability(one.library).there]
    start = _start()
    rates = tuple(
        measured
        for one in present
        if one.hardware is None
        for measured in _function_rates(one, start)
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
    """The rates of a function; none for one over lists, or with a condition."""
    capability = function.capability
    variables = _variables(capability)
    sizes = SIZES.get(len(variables), ())
    if capability.lists or not sizes or capability.condition != ALWAYS or _repeats(capability):
        return
    sliced = all(not need.formats for need in capability.needs)
    points: list[tuple[float, float]] = []
    for size in sizes:
        calls = _batch(capability, size) if sliced else 1
        plan = _plan_of(function, batch=calls > 1)
        inputs, share = _inputs(plan.assignment, size, function, calls)
        plan.run(inputs)  # the first run may compile the loops around the calls
        taken = min(plan.run(inputs).steps[-1].seconds for _ in range(RUNS))
        seconds = max(1e-7, (taken - start) / calls if taken > 2 * start else taken / 2 / calls)
        work = size ** len(variables) * share
        if not points or work > points[-1][0]:
            points.append((float(work), seconds))
        if taken > LONG:
            break
    library = function.library.name if function.library is not None else ""
    yield FunctionRates(library=library, function=function.name, points=tuple(points))


def _batch(capability: Capability, size: int) -> int:
    """The number of calls that are measured together, enough to make the overhead negligible."""
    order = max(len(access.variables) for access in accesses(capability.value))
    elements: int = size ** max(1, order)
    return max(1, min(CALLS, MOST_BATCHED // elements))


def _variables(capability: Capability) -> tuple[str, ...]:
    reads = (capability.result, *accesses(capability.value))
    return tuple(dict.fromkeys(name for access in reads for name in access.variables))


def _repeats(capability: Capability) -> bool:
    """Whether the statement has a tensor with properties, which random arrays do not have."""
    return any(need.properties for need in capability.needs)


def _start() -> float:
    """Seconds of a step with one call of a library on very few elements."""
    from t2s.libraries.registry import LIBRARIES

    function = LIBRARIES["blas"].functions["dgemv"]
    plan = _plan_of(function, batch=False)
    inputs, _ = _inputs(plan.assignment, 1, function, 1)
    plan.run(inputs)
    return max(1e-6, min(plan.run(inputs).steps[-1].seconds for _ in range(5 * RUNS)))


def _plan_of(function: ExternalFunction, *, batch: bool) -> ExternalPlan:
    """A plan whose statement is the function's, ``batch`` times."""
    capability = function.capability
    value = _batched(capability.value) if batch else capability.value
    result = replace(capability.result, tensor="the_result")
    result = _batched(result) if batch else result
    names: dict[str, int] = {access.tensor: len(access.variables) for access in accesses(value)}
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
    """The statement with an additional first variable in all accesses."""

    def wider(term: Term) -> Term | None:
        if isinstance(term, Access):
            return replace(term, variables=(BATCH, *term.variables))
        return None

    return rewrite(value, wider)


def _inputs(
    assignment: Assignment, size: int, function: ExternalFunction, calls: int
) -> tuple[dict[str, Any], float]:
    """Operands of this size, and the fraction of iterations that sparse ones leave."""
    kinds = function.capability.types
    kind = kinds[0].numpy if kinds else np.dtype(np.float64)
    inputs: dict[str, Any] = {}
    share = 1.0
    for access in dict.fromkeys(accesses(assignment.value)):
        shape = tuple(calls if name == BATCH else size for name in access.variables)
        format = assignment.tensor(access.tensor).format
        values = np.ones(shape, kind)
        if not all(level.full for level in format.levels):
            values = _sparse(size).astype(kind)
            share *= np.count_nonzero(values) / values.size
            inputs[access.tensor] = from_dense(values, format)
        else:
            inputs[access.tensor] = values
    return inputs, share


def _sparse(size: int, density: float = DENSITY) -> Any:
    """A random matrix, the same each time."""
    generator = np.random.default_rng(size)
    values: Any = generator.random((size, size)) < max(density, 1 / size)
    values[0, 0] = True
    return values


def _best(work: Any) -> float:
    """The shortest of a few runs, in seconds."""
    times = []
    for _ in range(RUNS):
        begun = perf_counter()
        work()
        times.append(perf_counter() - begun)
    return max(min(times), 1e-9)


def _copies() -> tuple[float, float]:
    """Seconds per byte that is copied, and per byte that is transposed."""
    array = np.ones((2000, 2000), np.float32)
    copied = _best(array.copy)
    turned = _best(lambda: np.ascontiguousarray(array.T))
    return copied / array.nbytes, turned / array.nbytes


def _conversions() -> tuple[float, float]:
    """Seconds per entry that is converted, and per dense element that is scanned."""
    values = _sparse(1024).astype(np.float32)
    stored = from_dense(values, "ds")
    entries = np.count_nonzero(values)
    convert = _best(lambda: stored.convert("ss")) / entries
    whole = _best(lambda: from_dense(values, "ds"))
    return convert, max(1e-10, (whole - entries * convert) / values.size)


def _loops() -> LoopRates:
    """Rates of our loops, from micro-benchmarks that each add one feature.

    The first run of each does not count: it compiles the loops.
    """
    kind, size, few = np.dtype(np.float32), 1024, 2000
    matrix = from_dense(_sparse(size).astype(kind), "ds")
    other = from_dense(_sparse(size + 1)[:size, :size].astype(kind), "ds")
    entries, theirs = len(matrix.values), len(other.values)
    table = np.ones((size, size), kind)
    vector = np.ones(size, kind)
    sampled = from_dense(_sparse(few, 1 / few).astype(kind), "ds")
    large = np.ones((few, few), kind)

    def run(text: str, formats: dict[str, str], **values: Any) -> float:
        assignment = parse(text, formats)
        shapes = {name: value.shape for name, value in values.items()}
        extents = extents_of(assignment, shapes)
        run_loops(assignment, values, extents, Float(32))
        return _best(lambda: run_loops(assignment, values, extents, Float(32)))

    start = run("a(i) = b(i)", {}, b=np.ones(1, kind))
    rows = run("a(i) = C(i,k)*d(k)", {}, C=np.ones((1 << 18, 1), kind), d=np.ones(1, kind))
    loop = _rate(rows - start, 1 << 18)
    summed = run("a(i) = C(i,k)*D(i,k)", {}, C=table, D=table)
    multiplied = run("a(i) = B(i,j)*c(j)", {"B": "ds"}, B=matrix, c=vector)
    entry = _rate(multiplied - start - size * loop, entries)
    both = run("a(i) = B(i,j)*E(i,j)", {"B": "ds", "E": "ds"}, B=matrix, E=other)
    shared = entries * theirs / size**2
    doubled = run("A(i,j) = 2*B(i,j)", {"A": "ds", "B": "ds"}, B=matrix)
    append = _rate(doubled - start - size * loop - entries * entry, entries)
    thin = {"A": "ds", "B": "ds", "E": "ds"}
    product = run("A(i,j) = B(i,k)*E(k,j)", thin, B=sampled, E=_matrix_of(few, kind))
    steps = len(sampled.values) * len(_matrix_of(few, kind).values) / few
    waited = product - start - (len(sampled.values) + few) * loop - steps * (entry + append)
    dotted = {"A": "ds", "B": "ds"}
    far = run("A(i,j) = B(i,j)*C(i,k)*D(k,j)", dotted, B=sampled, C=large, D=large)
    zero = _best(lambda: np.full((few, few), 0, kind)) / large.size
    plain = run("T(i,j) = S(i,j) + U(i,j)", {}, S=large, U=large)
    return LoopRates(
        start=start,
        loop=loop,
        entry=entry,
        merged=_rate(both - start - size * loop, entries + theirs - shared),
        element=_rate(summed - start - size * loop, size * size),
        vector=_rate(plain - start - zero * large.size, large.size),
        strided=_rate(far - start, len(sampled.values) * few),
        append=append,
        workspace=_rate(waited, 2 * steps),
        zero=zero,
    )


def _matrix_of(size: int, kind: np.dtype[Any]) -> SparseTensor:
    """A matrix with one entry in a hundred."""
    return from_dense(_sparse(size, 0.01).astype(kind), "ds")


def _rate(seconds: float, count: float) -> float:
    """Seconds per item, positive however short the measurement was."""
    return max(1e-11, seconds / max(count, 1.0))
