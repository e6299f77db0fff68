"""Designs and kernels as external functions: a systolic Func, a kernel of streams or patterns.

Their capabilities are derived, and a call is a run of the simulator, with exact values and cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.capability.declare import make_capability, type_of
from t2s.capability.description import ExternalFunction, Hardware, HardwareKind, HostLink
from t2s.capability.ir import (
    AllOf,
    Capability,
    Compared,
    Condition,
    Strides,
    VariableExtent,
    WholeNumber,
)
from t2s.capability.verify import verify_capability
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Apply, Const, Expr, Index, Read, reads
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.validate import checked_kind
from t2s.driver.assignment_design import assignment_of
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.func_design import FuncDesign, constants_of, is_sparse
from t2s.driver.placement import Placement
from t2s.driver.simulate import cycles, device_for, simulate
from t2s.func.collect import output_funcs, structural_parameters
from t2s.func.freeze import freeze
from t2s.func.func import TemporalFunc
from t2s.func.ir import Definition, Dimension, Function, TemporalProgram
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
    accesses,
)
from t2s.sparse_repr.notation.symbols import Tensor

if TYPE_CHECKING:
    from t2s.driver.capstan_kernel import CapstanKernel
    from t2s.simulator.devices import Device


Run = Callable[[Mapping[str, Any]], tuple[Any, int]]


def from_design(
    design: object,
    *,
    device: str | Device = "arria10",
    link: HostLink | None = None,
    **constants: int,
) -> ExternalFunction:
    """A Func with its schedule, or placed on a CGRA, as an external function on a device.

    Its capability is derived from its definitions: ``C[i, j] += A[i, k] * B[j, k]`` from 0 over 64
    values each is ``C(i,j) = A(i,k)*B(j,k) when i == 64 and j == 64 and k == 64``.  ``constants``
    are values of the ``Param`` objects in its bounds; one without a value is set from the operands
    of each call.  A placement has the latencies of its fabric, so its device is
    ``"ideal"``.  Operands and results are moved over ``link``; without one, the device shares the
    memory of the host. Raises ``UnsupportedError`` at the line that is not index notation: several
    Funcs, recurrences, offsets in subscripts.
    """
    where = user_location()
    _check_link(link)
    placed = design if isinstance(design, Placement) else None
    if placed is not None and isinstance(placed.source, FuncDesign):
        design = placed.source.design
    if not isinstance(design, TemporalFunc) or is_sparse(design):
        raise UserError(
            "this is not a systolic design",
            location=where,
            expected="a Func with its schedule, or a placement of one",
            given=repr(design),
            hint="external.from_kernel takes what sparse.compile returns",
        )
    known = constants_of(design, constants)
    capability, open_sizes = _sized(design, known)
    timed = FuncDesign(design) if placed is None else placed
    on = device_for(timed, device)
    name = design.name

    def run(arrays: Mapping[str, Any]) -> tuple[Any, int]:
        sizes = _sizes_of(design, capability, known, open_sizes, arrays)
        result = simulate(timed, {**arrays, **sizes}, device=on, progress=False)
        return result.outputs[name], result.cycles

    @lru_cache(maxsize=1)
    def exact() -> int:
        return cycles(timed, known, device=on, progress=False)

    hardware = Hardware(
        kind=HardwareKind.ARRAY,
        device=on.name,
        clock_hz=on.clock_hz,
        run=run,
        cycles=None if open_sizes else exact,
        link=link,
    )
    return _function(name, capability, hardware, where)


_SAMPLES = (1009, 2003)
"""Two sizes at which a design with open Params is frozen, a little more for each further Param: an
extent that is as large as a Param in both is that Param."""


def _sized(
    design: TemporalFunc[Any], known: Mapping[str, int]
) -> tuple[Capability, Mapping[str, tuple[str, int]]]:
    """The capability of a design, and the mode of an operand that sets each Param without a value.

    The condition only requires extents of the same Param to be equal.
    """
    names = sorted(structural_parameters(output_funcs(design)) - set(known))
    if not names:
        return capability_of(freeze(output_funcs(design), known)), {}
    samples = [{name: size + 2 * at for at, name in enumerate(names)} for size in _SAMPLES]
    capabilities = [
        capability_of(freeze(output_funcs(design), {**known, **sample})) for sample in samples
    ]
    extents = [extents_of(one.condition) for one in capabilities]
    first = capabilities[0]
    variables: dict[str, list[str]] = {name: [] for name in names}
    conditions: list[Condition] = []
    for variable, extent in extents[0].items():
        pair = (extent, extents[1][variable])
        param = next((n for n in names if pair == (samples[0][n], samples[1][n])), None)
        if param is not None:
            variables[param].append(variable)
        elif pair[0] == pair[1]:
            conditions.append(_equal(variable, WholeNumber(value=extent)))
        else:
            raise _no_open_size(design, f"the extent of {variable} is neither Param nor number")
    places = {}
    for name, some in variables.items():
        conditions += [_equal(one, VariableExtent(variable=some[0])) for one in some[1:]]
        found = (
            (access.tensor, access.variables.index(some[0]))
            for access in accesses(first.value)
            if some and some[0] in access.variables
        )
        place = next(found, None)
        if place is None:
            raise _no_open_size(design, f"no operand is as large as {name}")
        places[name] = place
    return replace(first, condition=AllOf(parts=tuple(conditions))), places


def _sizes_of(
    design: TemporalFunc[Any],
    capability: Capability,
    known: Mapping[str, int],
    places: Mapping[str, tuple[str, int]],
    arrays: Mapping[str, Any],
) -> dict[str, int]:
    """The values of all Params in a call.

    Raises ``UserError`` if no values fit the shapes of the operands.
    """
    given = {name: np.shape(arrays[tensor])[mode] for name, (tensor, mode) in places.items()}
    sizes = {**known, **given}
    if places:
        extents = extents_of(capability_of(freeze(output_funcs(design), sizes)).condition)
        for access in accesses(capability.value):
            shape = np.shape(arrays[access.tensor])
            asked = tuple(extents[name] for name in access.variables)
            if asked != shape:
                wanted, got = (" x ".join(map(str, lengths)) for lengths in (asked, shape))
                why = f"it asks for {access.tensor} of {wanted}, and is given {got}"
                raise _no_open_size(design, why)
    return sizes


def _equal(variable: str, size: WholeNumber | VariableExtent) -> Compared:
    return Compared(operator=Op.EQUAL, left=VariableExtent(variable=variable), right=size)


def _no_open_size(design: TemporalFunc[Any], why: str) -> UserError:
    names = sorted(structural_parameters(output_funcs(design)))
    return UserError(
        f"{design.name} has no size that follows from its operands: {why}",
        location=design.written[-1].location,
        expected="bounds from 0 to a number or to a Param, or values of the Params",
        given=", ".join(names),
        hint=f"external.from_design({design.name}, {names[0]}=64)",
    )


def from_kernel(
    kernel: Kernel | CapstanKernel | Tensor | Assignment,
    *,
    device: str | Device | None = None,
    link: HostLink | None = None,
) -> ExternalFunction:
    """A compiled kernel as an external function: streams on a device, or patterns on Capstan.

    It computes the kernel's assignment, on tensors in the kernel's formats; cycles depend on
    values. ``device`` is that of the streams, by default the ideal one; patterns run on Capstan
    only, and another device raises ``UserError``.  Operands and results are moved over ``link``.
    """
    where = user_location()
    _check_link(link)
    if isinstance(kernel, Tensor | Assignment):
        kernel = Kernel(assignment_of(kernel))
    if isinstance(kernel, Kernel):
        return streams_function(kernel, _device(device or "ideal"), link, where)
    from t2s.driver.capstan_kernel import CapstanKernel

    checked_kind("the kernel", kernel, CapstanKernel, "what t2s.sparse.compile returns")
    patterns = kernel

    def run(tensors: Mapping[str, Any]) -> tuple[Any, int]:
        result = patterns.simulate(tensors, type=_type(tensors), progress=False)
        return result.tensor, result.cycles

    chip = _device("capstan")
    if device is not None and _device(device).name != chip.name:
        raise UserError(
            "patterns run on the chip that they were compiled for",
            location=where,
            expected="device='capstan', or none",
            given=_device(device).name,
            hint="sparse.compile without target= makes streams, which run on any device",
        )
    hardware = Hardware(
        kind=HardwareKind.PATTERNS,
        device=chip.name,
        clock_hz=chip.clock_hz,
        run=run,
        link=link,
    )
    return _of_assignment(patterns.assignment, hardware, where)


def streams_function(
    kernel: Kernel, device: Device, link: HostLink | None, where: SourceLocation
) -> ExternalFunction:
    """The streams of a kernel on a device as a function."""

    def run(tensors: Mapping[str, Any]) -> tuple[Any, int]:
        result = kernel.simulate(tensors, type=_type(tensors), device=device, progress=False)
        return result.tensor, result.cycles

    hardware = Hardware(
        kind=HardwareKind.STREAMS,
        device=device.name,
        clock_hz=device.clock_hz,
        run=run,
        link=link,
    )
    return _of_assignment(kernel.assignment, hardware, where)


def _of_assignment(
    assignment: Assignment, hardware: Hardware, where: SourceLocation
) -> ExternalFunction:
    """The capability of an assignment, in the formats of its tensors."""
    capability = make_capability(
        assignment, semirings=(assignment.semiring,), strides=Strides.ANY, location=where
    )
    result = assignment.result.tensor
    dense = not capability.needs_of(result).formats

    def run(tensors: Mapping[str, Any]) -> tuple[Any, int]:
        result, count = hardware.run(tensors)
        return result.to_dense() if dense else result, count

    function = Hardware(
        kind=hardware.kind,
        device=hardware.device,
        clock_hz=hardware.clock_hz,
        run=run,
        link=hardware.link,
    )
    return _function(result, capability, function, where)


def _function(
    name: str, capability: Capability, hardware: Hardware, where: SourceLocation
) -> ExternalFunction:
    return ExternalFunction(
        name=name, capability=capability, hardware=hardware, trusted=True, location=where
    )


def _type(tensors: Mapping[str, Any]) -> Any:
    """The type of the operands of a call."""
    values = next(iter(tensors.values()))
    return type_of(np.dtype(values.dtype))


def _device(device: str | Device) -> Device:
    from t2s.simulator.devices import find_device

    return find_device(device)


def _check_link(link: object) -> None:
    if link is not None:
        checked_kind("the link", link, HostLink, "such as external.PCIE3_X8, or None")


# The capability of a Func, derived from its definitions.
#
# A Func is a statement of index notation if it is a single function over a box from 0, with at most
# one update, which adds products of reads at plain indices to the old value.

_BETWEEN = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.MINIMUM, Op.MAXIMUM)


def capability_of(program: TemporalProgram) -> Capability:
    """The statement that a design computes, with its extents as the condition.

    Raises ``UnsupportedError`` at the line that is not index notation: several Funcs, recurrences,
    offsets in subscripts, conditions, and domains that are not boxes.
    """
    function = _only_function(program)
    notation = _Notation(program, function)
    value = notation.value()
    result = Access(tensor=function.name, variables=notation.target(function.initial))
    extents = notation.extents()
    notation.check_inputs(extents, value)
    condition = AllOf(
        parts=tuple(
            Compared(
                operator=Op.EQUAL,
                left=VariableExtent(variable=name),
                right=WholeNumber(value=extents[name]),
            )
            for name in dict.fromkeys((*result.variables, *_variables(value)))
        )
    )
    capability = Capability(
        result=result,
        value=value,
        condition=condition,
        types=(function.type,),
        location=function.location,
    )
    verify_capability(capability)
    return capability


def extents_of(condition: Condition) -> dict[str, int]:
    """The extents in the condition of ``capability_of``."""
    extents = {}
    for part in condition.parts if isinstance(condition, AllOf) else ():
        match part:
            case Compared(left=VariableExtent(variable=name), right=WholeNumber(value=extent)):
                extents[name] = extent
    return extents


def _variables(value: Expression) -> tuple[str, ...]:
    return tuple(name for access in accesses(value) for name in access.variables)


def _only_function(program: TemporalProgram) -> Function:
    if program.systems:
        first = program.function(program.systems[0].members[0])
        raise _refused(
            f"{first.name} is a recurrence",
            (first.updates or (first.initial,))[-1].location,
            "sums of products of inputs",
            f"a function that reads {', '.join(program.systems[0].members)} at other elements",
        )
    if len(program.functions) > 1:
        names = [function.name for function in program.functions]
        other = next(function for function in program.functions if function.name != program.output)
        raise _refused(
            f"the design of {program.output} is several functions",
            other.initial.location,
            "one function of inputs",
            ", ".join(names),
            hint="what one of them computes is an external function; the others are statements",
        )
    if program.parameters:
        raise _refused(
            f"{program.output} reads a number that is given when it runs",
            program.parameters[0].location,
            "inputs that are arrays",
            program.parameters[0].name,
        )
    return program.functions[0]


def _refused(
    what: str, location: SourceLocation | None, expected: str, given: str, hint: str | None = None
) -> UnsupportedError:
    return UnsupportedError(
        f"{what}, which is not index notation",
        location=location,
        expected=expected,
        given=given,
        hint=hint,
    )


@dataclass(frozen=True)
class _Notation:
    program: TemporalProgram
    function: Function

    def value(self) -> Expression:
        """The initial value plus what the update adds, with its sums."""
        function = self.function
        initial = self._expression(function.initial.value, function.initial)
        if not function.updates:
            return initial
        if len(function.updates) > 1:
            raise _refused(
                f"{function.name} has several updates",
                function.updates[1].location,
                "one update, which adds to the initial value",
                f"{len(function.updates)} updates",
            )
        update = function.updates[0]
        if self.target(update) != self.target(function.initial):
            raise self._no_sum(update)
        added = self._expression(self._added(update), update)
        summed = tuple(dimension.name for dimension in update.reductions)
        if summed:
            added = Sum(variables=summed, value=added)
        if initial == Number(value=0):
            return added
        return Combine(operator=Op.ADD, left=initial, right=added)

    def _added(self, update: Definition) -> Expr:
        """What an update adds to its element."""
        match update.value:
            case Apply(operator=Op.ADD, operands=(left, right)):
                for one, other in ((left, right), (right, left)):
                    if self._is_own(one, update) and not self._reads_own(other):
                        return other
        raise self._no_sum(update)

    def _is_own(self, value: Expr, update: Definition) -> bool:
        """Whether an expression reads the element that the update writes."""
        own = isinstance(value, Read) and value.source == self.function.name
        return own and isinstance(value, Read) and value.indices == update.target

    def _reads_own(self, value: Expr) -> bool:
        return any(read.source == self.function.name for read in reads(value))

    def _no_sum(self, update: Definition) -> UnsupportedError:
        return _refused(
            f"the update of {self.function.name} is not a sum",
            update.location,
            f"{self.function.name}[...] += a product of inputs",
            show(update.value),
        )

    def target(self, definition: Definition) -> tuple[str, ...]:
        """The variables of the result."""
        return self._plain(definition.target, definition.location, self.function.name)

    def _plain(
        self, indices: tuple[Expr, ...], location: SourceLocation | None, name: str
    ) -> tuple[str, ...]:
        names = []
        for index in indices:
            if not isinstance(index, Index):
                raise _refused(
                    f"{name} is read at {show(index)}",
                    location,
                    "a variable in each subscript",
                    show(index),
                )
            names.append(index.name)
        return tuple(names)

    def _expression(self, value: Expr, definition: Definition) -> Expression:
        match value:
            case Const(value=number) if value.type.is_float or value.type.is_integer:
                whole = int(number)
                return Number(value=whole if whole == number else number)
            case Read(source=source, indices=indices, location=location):
                names = self._plain(indices, location or definition.location, source)
                if value.type != self.function.type:
                    raise _refused(
                        f"{source} is of {value.type} and {self.function.name} of another type",
                        location or definition.location,
                        f"inputs of {self.function.type}",
                        str(value.type),
                    )
                return Access(tensor=source, variables=names, location=location)
            case Apply(operator=Op.NEGATE, operands=(one,)):
                return Negative(value=self._expression(one, definition))
            case Apply(operator=operator, operands=(left, right)) if self._joins(operator):
                return Combine(
                    operator=operator,
                    left=self._expression(left, definition),
                    right=self._expression(right, definition),
                )
        raise _refused(
            f"{self.function.name} is computed by other than + - * / min max",
            definition.location,
            "reads and numbers, joined by these operators",
            show(value),
        )

    def _joins(self, operator: Op) -> bool:
        """Whether index notation has the operator; its integer quotients are not rounded down."""
        return operator in _BETWEEN and (operator is not Op.DIVIDE or self.function.type.is_float)

    def extents(self) -> dict[str, int]:
        """The extent of each variable."""
        extents: dict[str, int] = {}
        for definition in self.function.definitions:
            for dimension in definition.domain:
                extent = self._extent(dimension, definition)
                if extents.setdefault(dimension.name, extent) != extent:
                    raise _refused(
                        f"{dimension.name} goes to {extent} and to {extents[dimension.name]}",
                        definition.location,
                        "one extent of each variable",
                        dimension.name,
                    )
        return extents

    @staticmethod
    def _extent(dimension: Dimension, definition: Definition) -> int:
        match dimension.minimum, dimension.extent:
            case Const(value=0), Const(value=extent):
                return int(extent)
        raise _refused(
            f"{dimension.name} does not go from 0 to a number",
            definition.location,
            "bounds that are numbers, from 0",
            f"from {show(dimension.minimum)}, {show(dimension.extent)} values",
        )

    def check_inputs(self, extents: dict[str, int], value: Expression) -> None:
        """Check that inputs are read as a whole."""
        shapes = {source.name: source for source in self.program.inputs}
        for access in accesses(value):
            shape = tuple(extents[name] for name in access.variables)
            declared = shapes[access.tensor].shape
            if shape != declared:
                raise _refused(
                    f"a part of {access.tensor} is read",
                    access.location or self.function.location,
                    f"the whole of {access.tensor}, {' x '.join(map(str, declared))}",
                    " x ".join(map(str, shape)),
                )
