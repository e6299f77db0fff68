"""The names of a file: kernels, channels, struct types, and what each channel has become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.opencl_fpga.c_types import file_identifiers, identifier, storage_name
from t2s.backends.opencl_fpga.links import Bundle, ChannelLinks, Link, Separate
from t2s.backends.opencl_fpga.lockstep import LockstepNode
from t2s.core.types import Type
from t2s.graph.graph import Channel, Graph

_LONGEST_STEM = 100


@dataclass(frozen=True, kw_only=True)
class KernelDesign:
    """A graph that the backend supports, with everything that was decided about it.

    ``nodes`` are the PE arrays; ``source`` is the graph that was unfolded because it has machines.
    """

    graph: Graph
    nodes: Mapping[str, LockstepNode]
    links: ChannelLinks
    source: Graph | None = None

    def link(self, channel: str) -> Link:
        return self.links.by_channel[channel]

    def link_at(self, channel: str, node: LockstepNode) -> Link:
        """The link as one of its ends sees it: a single PE needs no bundle of one element."""
        match self.link(channel):
            case Bundle(channel=shared, depth=depth) if not (dimensions_of(shared) or node.space):
                return Separate(channel=shared, depth=depth)
            case link:
                return link


@dataclass(frozen=True, kw_only=True)
class FileScope:
    """Identifiers at file level, by the names of the graph.

    ``channels`` names a channel, or the array that a wire or FIFO inside a kernel becomes;
    ``structs`` names the type of a bundle: one struct for all bundles of the same elements, or the
    type of a single element.
    """

    kernels: Mapping[str, str]
    channels: Mapping[str, str]
    structs: Mapping[str, str]

    @property
    def visible(self) -> tuple[str, ...]:
        """What a kernel must not use as the name of a variable."""
        return (*self.channels.values(), *self.structs.values())


def file_scope(design: KernelDesign) -> FileScope:
    """Choose the names of a file: kernels first, because hosts and reports show them."""
    identifiers = file_identifiers()
    kernels = {node.name: identifiers.fresh(node.name) for node in design.graph.nodes}
    channels = {name: identifiers.fresh(name) for name in design.links.by_channel}
    types: dict[tuple[Type, tuple[int, ...]], str] = {}
    structs: dict[str, str] = {}
    for name, link in design.links.by_channel.items():
        if isinstance(link, Bundle):
            type, shape = link.channel.stream.element, dimensions_of(link.channel)
            if not shape:
                types[type, shape] = storage_name(type)
            elif (type, shape) not in types:
                sizes = "x".join(str(size) for size in shape)
                types[type, shape] = identifiers.fresh(f"{storage_name(type)}_{sizes}_t")
            structs[name] = types[type, shape]
    return FileScope(kernels=kernels, channels=channels, structs=structs)


def file_stem(graph: Graph) -> str:
    """The name of the files of a design, of a length that every file system takes."""
    return identifier(graph.name)[:_LONGEST_STEM]


def dimensions_of(channel: Channel) -> tuple[int, ...]:
    """The shape of a channel array, without dimensions of one element."""
    return tuple(size for size in channel.shape if size > 1)
