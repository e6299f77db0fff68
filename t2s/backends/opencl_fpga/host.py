"""The data of a design's host program: tensors, scalars, kernels and their arguments."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.backends.kernels.host_data import HostLayout, HostTensor, host_layouts, host_tensors
from t2s.backends.kernels.kernels import arguments_of
from t2s.backends.kernels.links import Bundle, Separate
from t2s.backends.kernels.machine_kernels import machine_arguments
from t2s.backends.kernels.scope import FileScope, KernelDesign, file_stem
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.graph.graph import TensorRole
from t2s.graph.nodes import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKernel:
    """A kernel that the host starts, and the tensors and scalars it is given."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProgram:
    """The data of a host program; ``kernel_count`` counts the autorun kernels too.

    ``token_bytes`` has the token size of every channel between kernels.  Machines wait for tokens
    more than they compute, so with them ``emulator_options`` limit the effort of building.
    """

    name: str
    stem: str
    tensors: tuple[HostTensor, ...]
    layouts: tuple[HostLayout, ...]
    scalars: tuple[tuple[str, str], ...]
    kernels: tuple[HostKernel, ...]
    kernel_count: int
    token_bytes: tuple[tuple[str, int], ...]
    emulator_options: tuple[str, ...]

    @property
    def padded(self) -> tuple[HostTensor, ...]:
        """The tensors that are padded in memory."""
        return tuple(t for t in self.tensors if t.allocated != t.shape)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._arrays(TensorRole.INPUT)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._arrays(TensorRole.OUTPUT)

    def _arrays(self, role: TensorRole) -> tuple[str, ...]:
        """The user's names of the arrays of one role."""
        named = {layout.tensor: layout.array for layout in self.layouts}
        tensors = (t.name for t in self.tensors if t.role == role.value)
        return tuple(dict.fromkeys(named.get(name, name) for name in tensors))


def host_program(design: KernelDesign, file: FileScope) -> HostProgram:
    """The host program of a design."""
    graph = design.graph
    kernels: list[HostKernel] = []
    for node in graph.nodes:
        if isinstance(node, Machine):
            tensors, scalars = machine_arguments(design, node)
        else:
            tensors, scalars = arguments_of(design, design.nodes[node.name])
        arguments = (*tensors, *(scalar.name for scalar in scalars))
        if arguments or isinstance(node, Machine):
            kernels.append(HostKernel(name=file.kernels[node.name], arguments=arguments))
    return HostProgram(
        name=graph.name,
        stem=file_stem(OPENCL, graph),
        tensors=host_tensors(graph),
        layouts=host_layouts(OPENCL, graph),
        scalars=tuple((p.name, p.type.numpy.name) for p in graph.parameters),
        kernels=tuple(kernels),
        kernel_count=len(graph.nodes),
        token_bytes=tuple(
            (file.channels[name], _token_bytes(link))
            for name, link in design.links.by_channel.items()
            if isinstance(link, Bundle | Separate)
        ),
        emulator_options=("-cl-opt-disable",) if graph.machines else (),
    )


def _token_bytes(link: Bundle | Separate) -> int:
    element = link.channel.stream.element.bytes
    return element * link.channel.element_count if isinstance(link, Bundle) else element
