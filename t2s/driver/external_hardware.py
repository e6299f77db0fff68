"""Designs of ours as external functions: a systolic Func, a compiled kernel of streams or patterns.

What they compute is derived, and a call is a run of the simulator: right values, exact cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.capability.declare import make_capability, type_of
from t2s.capability.description import ExternalFunction
from t2s.capability.hardware import Hardware, HardwareKind, HostLink
from t2s.capability.ir import (
    AllOf,
    Capability,
    Compared,
    Condition,
    Strides,
    VariableExtent,
    WholeNumber,
)
from t2s.core.checks import checked_kind
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.driver.assignment_design import assignment_of
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.external_notation import capability_of, extents_of
from t2s.driver.func_design import FuncDesign, constants_of, is_sparse
from t2s.driver.placement import Placement
from t2s.driver.simulate import cycles, device_for, simulate
from t2s.func.collect import output_funcs, structural_parameters
from t2s.func.freeze import freeze
from t2s.func.func import TemporalFunc
from t2s.sparse_repr.notation.ir import Assignment, accesses
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
    are values of the ``Param`` objects that its bounds use; one without a value is as large as the
    operands of each call, which is looked at then.  A placement has the latencies of its
    fabric, so its device is ``"ideal"``.  Operands and results go over ``link``;
    without one the device shares the memory of the host.  Raises ``UnsupportedError`` at the line
    that is no index notation: several Funcs, recurrences, offsets in subscripts.
    """
    where = user_location()
    _check_link(link)
    placed = design if isinstance(design, Placement) else None
    if placed is not None and isinstance(placed.source, FuncDesign):
        design = placed.source.design
    if not isinstance(design, TemporalFunc) or is_sparse(design):
        raise UserError(
            "this is no systolic design",
            location=where,
            expected="a Func with its schedule, or a placement of one",
            given=repr(design),
            hint="external.from_kernel takes what sparse.compile returns",
        )
    known = constants_of(design, constants)
    capability, open_sizes = _sized(design, known)
    made = FuncDesign(design) if placed is None else placed
    on = device_for(made, device)
    name = design.name

    def run(arrays: Mapping[str, Any]) -> tuple[Any, int]:
        sizes = _sizes_of(design, capability, known, open_sizes, arrays)
        result = simulate(made, {**arrays, **sizes}, device=on, progress=False)
        return result.outputs[name], result.cycles

    @lru_cache(maxsize=1)
    def exact() -> int:
        return cycles(made, known, device=on, progress=False)

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
    """What a design computes, and which mode of which operand each Param without a value is.

    The condition of the capability asks extents that are the same Param to be equal, no more.
    """
    names = sorted(structural_parameters(output_funcs(design)) - set(known))
    if not names:
        return capability_of(freeze(output_funcs(design), known)), {}
    samples = [{name: size + 2 * at for at, name in enumerate(names)} for size in _SAMPLES]
    made = [capability_of(freeze(output_funcs(design), {**known, **one})) for one in samples]
    extents = [extents_of(one.condition) for one in made]
    first = made[0]
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
            raise _no_open_size(design, f"the extent of {variable} is no Param and no number")
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

    Raises ``UserError`` if the design has no size at which it takes operands of these shapes.
    """
    given = {name: np.shape(arrays[tensor])[mode] for name, (tensor, mode) in places.items()}
    sizes = {**known, **given}
    if places:
        extents = extents_of(capability_of(freeze(output_funcs(design), sizes)).condition)
        for access in accesses(capability.value):
            shape = np.shape(arrays[access.tensor])
            asked = tuple(extents[name] for name in access.variables)
            if asked != shape:
                wanted, found = (" x ".join(map(str, one)) for one in (asked, shape))
                why = f"it asks for {access.tensor} of {wanted}, and is given {found}"
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

    It computes the kernel's assignment, of tensors in the kernel's formats; cycles depend on
    values.  ``device`` is that of the streams, ideal if nothing is said; patterns are on their own
    chip.  Operands and results go over ``link``.  Raises ``UserError`` for patterns on another one.
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
    """What computes an assignment, in the formats of its tensors."""
    capability = make_capability(
        assignment, semirings=(assignment.semiring,), strides=Strides.ANY, location=where
    )
    result = assignment.result.tensor
    dense = not capability.needs_of(result).formats

    def run(tensors: Mapping[str, Any]) -> tuple[Any, int]:
        made, count = hardware.run(tensors)
        return made.to_dense() if dense else made, count

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
    """The type that the operands of a call are of."""
    values = next(iter(tensors.values()))
    return type_of(np.dtype(values.dtype))


def _device(device: str | Device) -> Device:
    from t2s.simulator.devices import find_device

    return find_device(device)


def _check_link(link: object) -> None:
    if link is not None:
        checked_kind("the link", link, HostLink, "such as external.PCIE3_X8, or None")
