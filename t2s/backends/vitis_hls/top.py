"""The top function of a design: dataflow regions of streams and calls, and its arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from t2s.backends.kernels.comments import file_comment
from t2s.backends.kernels.design import (
    capacities_of,
    channels_of,
    lower_kernels,
    structs_of,
    types_of,
)
from t2s.backends.kernels.kernel_ast import (
    Capacity,
    ChannelArray,
    HelperFunction,
    KernelDefinition,
    Struct,
    TypedName,
)
from t2s.backends.kernels.kernels import arguments_of
from t2s.backends.kernels.links import Bundle, Separate
from t2s.backends.kernels.machine_kernels import machine_arguments
from t2s.backends.kernels.machine_memory import POINTS
from t2s.backends.kernels.memory_ports import accesses_per_firing, wide_tensors
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.scope import (
    FileScope,
    KernelDesign,
    file_scope,
    file_stem,
    is_copied,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.backends.vitis_hls.dialect import VITIS_HLS
from t2s.backends.vitis_hls.reports import (
    Length,
    Report,
    grown_tensors,
    report_function,
    reports_of,
)
from t2s.backends.vitis_hls.stages import shared_tensors, stages_of
from t2s.core.types import INT32, Type
from t2s.graph.body import Statement, Store
from t2s.graph.graph import ScalarParameter, Tensor, TensorRole
from t2s.graph.nodes import Machine, Node
from t2s.graph.ports import accesses_of_machine

ELEMENTS = 1 << 14
"""Elements of an open tensor that functions have room for on the chip, where nothing is said."""

ROOM = 1 << 16
"""Elements of an open tensor that simulations of hardware have room for."""

STATUS = "(status)"
"""In place of a tensor's name: the words that machines report."""

_WIDTH = 92


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A pointer argument of the top: a tensor as one function uses it, with a bundle of its own.

    ``elements`` counts those of the tensor, ``depth`` words of the port, which are vectors of
    ``lanes`` elements.
    """

    name: str
    tensor: str
    stored: bool
    elements: int
    lanes: int

    @property
    def depth(self) -> int:
        return max(1, self.elements // self.lanes)

    @property
    def bundle(self) -> str:
        return f"gmem_{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a function in the top."""

    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A dataflow region: functions that run side by side, and the streams between them.

    The top is a region itself if there is one stage; else a ``function`` is, with ``parameters`` of
    the top.
    """

    function: str
    parameters: tuple[TypedName, ...]
    streams: tuple[ChannelArray, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A tensor in memory as a test bench has it: a variable ``name``, and ``file`` without .bin.

    ``open``: the number of elements is known only when the design runs.
    """

    tensor: str
    name: str
    file: str
    type: str
    elements: int
    role: str
    open: bool = False

    @property
    def host_type(self) -> str:
        """The type of its elements where nothing is computed."""
        return host_type(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A scalar argument of the top; ``parameter`` is its name in the graph.

    A test bench has a ``variable`` for it, and a ``file`` without .bin.
    """

    parameter: str
    name: str
    type: str
    variable: str
    file: str

    @property
    def host_type(self) -> str:
        """The type where nothing is computed."""
        return host_type(self.type)


def host_type(type: str) -> str:
    """A type of as many bits that needs no header of ours."""
    return "std::uint16_t" if type.endswith("float16") else type


@dataclass(frozen=True, kw_only=True)
class TopDesign:
    """All that the files of a design say: files of names that start with ``stem``.

    ``function`` is the top, which no function of a node is called like; ``narrow`` designs have
    16-bit floats.
    """

    stem: str
    function: str
    name: str
    comment: tuple[str, ...]
    structs: tuple[Struct, ...]
    helpers: tuple[HelperFunction, ...]
    functions: tuple[KernelDefinition, ...]
    stages: tuple[Stage, ...]
    parameters: tuple[TypedName, ...]
    ports: tuple[Port, ...]
    buffers: tuple[Buffer, ...]
    scalars: tuple[Scalar, ...]
    lengths: tuple[Length, ...]
    capacities: tuple[Capacity, ...]
    reports: tuple[Report, ...]
    narrow: bool

    @property
    def streams(self) -> tuple[ChannelArray, ...]:
        """The streams of all stages."""
        return tuple(stream for stage in self.stages for stream in stage.streams)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of all stages."""
        return tuple(call for stage in self.stages for call in stage.calls)

    def buffer_of(self, tensor: str) -> Buffer:
        """The buffer of a tensor."""
        return next(buffer for buffer in self.buffers if buffer.tensor == tensor)

    def words_of(self, tensor: str) -> list[int]:
        """The words of the status that are lengths of a tensor."""
        return [
            report.at + 1 + report.tensors.index(tensor)
            for report in self.reports
            if tensor in report.tensors
        ]

    def group_of(self, tensor: str) -> int:
        """The number of the first argument that is a pointer to the tensor.

        Of a tensor that no function uses it is that of the first argument.
        """
        return next((at for at, port in enumerate(self.ports) if port.tensor == tensor), 0)


def top_design(
    design: KernelDesign,
    elements: Mapping[str, int] | None = None,
    points: int = POINTS,
) -> TopDesign:
    """The functions of a design, and the top that calls them.

    ``elements`` says how many elements of open tensors, by name, there is room for on the chip, and
    ``points`` how many points in each sorted memory.
    """
    elements = elements or {tensor.name: ELEMENTS for tensor in design.graph.tensors}
    scope, helpers = file_scope(design), Helpers(VITIS_HLS)
    kernels = lower_kernels(design, scope, helpers)
    streams = channels_of(design, scope)
    stem = file_stem(VITIS_HLS, design.graph)
    taken = (*scope.kernels.values(), *scope.visible)
    top = _unused(stem, "_top", taken)
    taken = (*taken, top)
    identifiers = VITIS_HLS.variables(taken)
    bench, files = VITIS_HLS.variables((top, "folder")), VITIS_HLS.variables()
    buffers = _buffers(design, bench, files)
    scalars = tuple(
        Scalar(
            parameter=parameter.name,
            name=identifiers.fresh(parameter.name),
            type=VITIS_HLS.scalar_name(parameter.type),
            variable=bench.fresh(f"{parameter.name}_data"),
            file=files.fresh(parameter.name),
        )
        for parameter in design.graph.parameters
    )
    lengths = {
        tensor.name: Length(
            tensor=tensor.name,
            name=identifiers.fresh(
                f"{tensor.name}_{'length' if tensor.role is TensorRole.INPUT else 'room'}"
            ),
            variable=bench.fresh(f"{tensor.name}_length"),
            output=tensor.role is not TensorRole.INPUT,
            capacity=scope.capacities.get(tensor.name),
        )
        for tensor in design.graph.tensors
        if tensor.open
    }
    stage_of = stages_of(design.graph)
    names = _port_names(design, stage_of)
    ports: dict[str, Port] = {}
    calls: dict[str, Call] = {}
    functions: list[KernelDefinition] = []
    named = {scalar.parameter: scalar.name for scalar in scalars}
    for kernel, node in zip(kernels, design.graph.nodes, strict=True):
        tensors, used = _arguments(design, node)
        own: list[Port] = []
        for tensor in tensors:
            wanted = names[node.name, tensor]
            port = ports.get(wanted)
            if port is None:
                safe = f"{wanted}_memory" if VITIS_HLS.variable_name(wanted) in taken else wanted
                port = _port(design, node, tensor, identifiers.fresh(safe))
            here = _port(design, node, tensor, port.name)
            ports[wanted] = replace(port, stored=port.stored or here.stored)
            own.append(here)
        taken_streams = _streams_of(design, node)
        functions.append(_with_streams(kernel, own, node, design, scope, streams, taken_streams))
        calls[node.name] = Call(
            function=kernel.name,
            arguments=(
                *(port.name for port in own),
                *(lengths[tensor].name for tensor in tensors if tensor in lengths),
                *(named[scalar.name] for scalar in used),
                *(scope.channels[name] for name in taken_streams),
                *(scope.reports[node.name] for _ in range(isinstance(node, Machine))),
            ),
        )
    order, has_circle = _order(design)
    reports = reports_of(design, scope.reports)
    if reports:
        streams += tuple(_report_stream(design, report) for report in reports)
        function = _unused(VITIS_HLS.identifier("report"), "_all", taken)
        port = Port(
            name=identifiers.fresh("status"),
            tensor=STATUS,
            stored=True,
            elements=reports[-1].end,
            lanes=1,
        )
        ports[STATUS] = port
        calls[STATUS] = Call(
            function=function, arguments=(port.name, *(report.stream for report in reports))
        )
        order.append(STATUS)
        stage_of[STATUS] = max(stage_of.values())
    by_name = dict(zip((node.name for node in design.graph.nodes), functions, strict=True))
    if reports:
        by_name[STATUS] = report_function(calls[STATUS].function, reports)
    parameters = (
        *(_parameter(design, port) for port in ports.values()),
        *(TypedName(type=scalar.type, name=scalar.name) for scalar in scalars),
        *(TypedName(type="int", name=length.name) for length in lengths.values()),
    )
    stages: list[Stage] = []
    for number in sorted(set(stage_of.values())):
        own_calls = tuple(calls[name] for name in order if stage_of[name] == number)
        arguments = {argument for call in own_calls for argument in call.arguments}
        stages.append(
            Stage(
                function=identifiers.fresh(f"stage_{number + 1}"),
                parameters=tuple(p for p in parameters if p.name in arguments),
                streams=tuple(stream for stream in streams if stream.name in arguments),
                calls=own_calls,
            )
        )
    return TopDesign(
        stem=stem,
        function=top,
        name=design.graph.name,
        comment=file_comment(
            design,
            scope,
            language="C++ for Vitis HLS",
            units="Functions (one for each node, whose PEs are the unrolled loops inside):",
            usage=(
                f"Values, with g++ alone: make csim{' DATA=folder' * bool(lengths)}",
                "On a machine with Vitis: make synth, make cosim, make xo, make hw",
                *(_CIRCLE if has_circle else ()),
            ),
        ),
        structs=structs_of(design, scope),
        helpers=helpers.functions,
        functions=tuple(by_name[name] for name in order),
        stages=tuple(stages),
        parameters=parameters,
        ports=tuple(ports.values()),
        buffers=buffers,
        scalars=scalars,
        lengths=tuple(lengths.values()),
        capacities=capacities_of(design, scope, elements, points),
        reports=reports,
        narrow=any(type.is_float and type.bits == 16 for type in types_of(design)),
    )


def _unused(name: str, suffix: str, taken: Collection[str]) -> str:
    while name in taken:
        name = f"{name}{suffix}"
    return name


def _port_names(design: KernelDesign, stage_of: Mapping[str, int]) -> dict[tuple[str, str], str]:
    """What the pointer to a tensor is called in a function, by node and tensor.

    Functions of one stage have pointers of their own.  Of a tensor that one stage stores for the
    next ones a function of each has the same pointer: then the compiler cannot call a stage before
    the one that it needs has ended.
    """
    users: dict[str, list[str]] = {}
    for node in design.graph.nodes:
        for tensor in _arguments(design, node)[0]:
            users.setdefault(tensor, []).append(node.name)
    shared = shared_tensors(design.graph)
    names: dict[tuple[str, str], str] = {}
    for tensor, nodes in users.items():
        first = {stage_of[name]: name for name in reversed(nodes)} if tensor in shared else {}
        for name in nodes:
            common = len(nodes) == 1 or name in first.values()
            names[name, tensor] = tensor if common else f"{tensor}_{name}"
    return names


_CIRCLE = (
    "Functions send data in a circle, which the C simulation of Vitis cannot run; make csim can.",
)


def _arguments(design: KernelDesign, node: Node) -> tuple[list[str], list[ScalarParameter]]:
    """The tensors and scalars that are arguments of a function."""
    if isinstance(node, Machine):
        return machine_arguments(design, node)
    return arguments_of(design, design.nodes[node.name])


def _port(design: KernelDesign, node: Node, tensor: str, name: str) -> Port:
    if isinstance(node, Machine):
        statements: tuple[Statement, ...] = tuple(node.statements())
        lanes = 1
    else:
        pes = design.nodes[node.name]
        wide = wide_tensors(design, pes).get(tensor)
        statements, lanes = pes.body, 1 if wide is None else wide.lanes
    return Port(
        name=name,
        tensor=tensor,
        stored=any(isinstance(s, Store) and s.tensor == tensor for s in statements),
        elements=_elements(design.graph.tensor(tensor)),
        lanes=lanes,
    )


def _report_stream(design: KernelDesign, report: Report) -> ChannelArray:
    return ChannelArray(
        name=report.stream,
        type="int32_t",
        dimensions=(),
        depth=max(2, 1 + len(report.tensors)),
        comment=f"what {report.machine} reports",
    )


def _elements(tensor: Tensor) -> int:
    return ROOM if tensor.open else prod(tensor.allocated)


def _type_of(design: KernelDesign, port: Port) -> Type:
    if port.tensor == STATUS:
        return INT32
    return design.graph.tensor(port.tensor).type.with_lanes(port.lanes)


def _parameter(design: KernelDesign, port: Port) -> TypedName:
    return VITIS_HLS.tensor_parameter(
        port.name, _type_of(design, port), stored=port.stored, shared=False
    )


def _streams_of(design: KernelDesign, node: Node) -> list[str]:
    """The streams that a function reads, then those that it writes."""
    between = {
        name: link.channel
        for name, link in design.links.by_channel.items()
        if isinstance(link, Bundle | Separate)
    }
    read = [name for name, channel in between.items() if channel.sink == node.name]
    return read + [name for name, channel in between.items() if channel.source == node.name]


def _with_streams(
    kernel: KernelDefinition,
    ports: Iterable[Port],
    node: Node,
    design: KernelDesign,
    scope: FileScope,
    streams: Iterable[ChannelArray],
    names: Iterable[str],
) -> KernelDefinition:
    """The function with its streams as parameters, and a comment on its use of memory."""
    by_name: Mapping[str, ChannelArray] = {stream.name: stream for stream in streams}
    parameters = [_stream_parameter(by_name[scope.channels[name]]) for name in names]
    if isinstance(node, Machine):
        reported = TypedName(type="hls::stream<int32_t> &", name=scope.reports[node.name])
        parameters.append(reported)
        counts = {
            name: count
            for name, count in accesses_of_machine(node).items()
            if not is_copied(design.graph.tensor(name), node)
        }
    else:
        pes = design.nodes[node.name]
        counts = accesses_per_firing(pes, wide_tensors(design, pes))
    title, *facts = kernel.comment
    uses = [_use(port, counts[port.tensor]) for port in ports if port.tensor in counts]
    comment = (title, *_joined(facts), *uses)
    return replace(kernel, parameters=(*kernel.parameters, *parameters), comment=comment, once=True)


def _joined(facts: Iterable[str]) -> list[str]:
    """The space and the time of a function on one line, if that is not too long."""
    lines: list[str] = []
    for fact in facts:
        if lines and len(lines[-1]) + len(fact) <= _WIDTH:
            lines[-1] += f"; {' '.join(fact.split())}"
        else:
            lines.append(fact)
    return lines


def _stream_parameter(stream: ChannelArray) -> TypedName:
    if not stream.dimensions:
        return TypedName(type=f"hls::stream<{stream.type}> &", name=stream.name)
    name = f"(&{stream.name})"
    type = f"hls::stream<{stream.type}, {stream.depth}>"
    return TypedName(type=type, name=name, dimensions=stream.dimensions)


def _use(port: Port, count: int) -> str:
    verb = "stores" if port.stored else "loads"
    if count == 1:
        count_text = "1 element" if port.lanes == 1 else f"1 vector of {port.lanes} elements"
    else:
        count_text = f"{count} {'elements' if port.lanes == 1 else 'vectors'}"
    each = "" if count == 1 else ", one in a cycle"
    use = f"{verb} {count_text} of {port.tensor} per firing on {port.bundle}{each}"
    return f"  memory: {use}: II {count}"


def _order(design: KernelDesign) -> tuple[list[str], bool]:
    """Nodes so that senders come before receivers where that is possible; whether it is not."""
    names = [node.name for node in design.graph.nodes]
    before: dict[str, set[str]] = {name: set() for name in names}
    for link in design.links.by_channel.values():
        if isinstance(link, Bundle | Separate):
            before[link.channel.sink].add(link.channel.source)
    order: list[str] = []
    waiting = list(names)
    while waiting:
        ready = next((name for name in waiting if before[name] <= set(order)), None)
        if ready is None:
            return order + waiting, True
        order.append(ready)
        waiting.remove(ready)
    return order, False


def _buffers(design: KernelDesign, bench: Identifiers, files: Identifiers) -> tuple[Buffer, ...]:
    words = sum(1 + len(grown_tensors(design, machine)) for machine in design.graph.machines)
    status = Buffer(
        tensor=STATUS,
        name=bench.fresh("status"),
        file="",
        type="int32_t",
        elements=words,
        role="status",
    )
    tensors = tuple(
        Buffer(
            tensor=tensor.name,
            name=bench.fresh(f"{tensor.name}_data"),
            file=files.fresh(tensor.name),
            type=VITIS_HLS.scalar_name(tensor.type),
            elements=prod(tensor.allocated),
            role=tensor.role.value,
            open=tensor.open,
        )
        for tensor in design.graph.tensors
    )
    return (*tensors, status) if words else tensors
