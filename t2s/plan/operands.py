"""Steps that bring operands to where a step reads them: formats, order of modes, memories."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from t2s.capability.hardware import HOST, HostLink, MemoryOf
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.slices import (
    fits,
    fixed_modes,
    format_in_order,
    format_with_slices,
    is_dense,
    sliced_format,
)
from t2s.core.names import NameSupply
from t2s.plan.ir import ConvertStep, MoveStep, Step, sources_of, target_of
from t2s.plan.verify import memory_of
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.notation.ir import Access


@dataclass
class OperandSteps:
    """The steps of a plan so far, the formats of its tensors, and the memories that they are in."""

    formats: dict[str, Format]
    names: NameSupply
    steps: list[Step] = field(default_factory=list)
    memories: dict[str, set[MemoryOf]] = field(default_factory=dict)
    links: dict[MemoryOf, HostLink] = field(default_factory=dict)

    def copy(self, formats: dict[str, Format], names: NameSupply) -> OperandSteps:
        """The same steps, over formats and names that are copies, too."""
        memories = {name: set(there) for name, there in self.memories.items()}
        return OperandSteps(formats, names, list(self.steps), memories, dict(self.links))

    def add(self, step: Step) -> None:
        """A step, behind those that move what it reads to where it reads it."""
        memory = memory_of(step)
        for name in sources_of(step):
            self.bring(name, memory)
        self.steps.append(step)
        target = target_of(step)
        if target is not None:
            self.memories[target] = {memory}

    def bring(self, name: str, memory: MemoryOf) -> None:
        """A tensor into a memory: over the links of both devices if it is on another one."""
        there = self.memories.setdefault(name, {HOST})
        if memory in there:
            return
        if HOST not in there:
            source = min(there, key=lambda one: one.name)
            link = self.links[source]
            self.steps.append(MoveStep(tensor=name, source=source, target=HOST, link=link))
            there.add(HOST)
        if memory != HOST:
            link = self.links[memory]
            self.steps.append(MoveStep(tensor=name, source=HOST, target=memory, link=link))
            there.add(memory)

    def operand(self, view: OperandView, mapping: PartMapping) -> str:
        """The tensor that an operand reads: the input, or what it is converted to before."""
        access = view.access
        needs = mapping.function.capability.needs_of(view.name)
        stored = self.formats[access.tensor]
        if fits(stored, needs.formats or (dense(len(access.variables)),)):
            return access.tensor
        order = len(access.variables)
        format = needs.formats[0] if needs.formats else dense(order)
        fixed = fixed_modes(access, mapping.fixed)
        if fixed and needs.formats:
            if sliced_format(stored, fixed) in needs.formats:
                return access.tensor
            format = format_with_slices(format, fixed, order)
        why = f"{mapping.function.name} takes {view.name} as {format}"
        letters = f"{access.tensor}_{format.letters}"
        return self.converted(access.tensor, format, tuple(range(order)), letters, why)

    def converted(
        self, source: str, format: Format, modes: tuple[int, ...], name: str, why: str
    ) -> str:
        """A tensor in another format, or with its modes in another order; made once."""
        for step in self.steps:
            match step:
                case ConvertStep(target=target, source=of, modes=order) if (
                    of == source and step.format == format and order == modes
                ):
                    return target
        target = self.names.fresh(name)
        self.formats[target] = format
        self.add(ConvertStep(target=target, source=source, format=format, modes=modes, why=why))
        return target

    def in_order(self, mapping: PartMapping) -> PartMapping:
        """The mapping with operands stored in the order of the function, each by a step.

        Those are all of hardware, and sparse ones: the steps of others are handed over.
        """
        views = tuple(self._in_order(view, mapping) for view in mapping.operands)
        seen = {view.name: view for view in views}
        reads = tuple(
            (name, seen[name].access if view.access == access else access)
            for name, access in mapping.reads
            for view in mapping.operands
            if view.name == name
        )
        lines = tuple(map(str, views)) + mapping.proof[len(views) :]
        return replace(mapping, operands=views, reads=reads, proof=lines)

    def _in_order(self, view: OperandView, mapping: PartMapping) -> OperandView:
        names = tuple(name for mode in view.modes for name in mode)
        single = all(len(mode) <= 1 for mode in view.modes)
        access = view.access
        whole = sorted(names) == sorted(access.variables) and len(set(names)) == len(names)
        stored = self.formats[access.tensor]
        formats = mapping.function.capability.needs_of(view.name).formats
        by_steps = mapping.function.hardware is None and (not formats or is_dense(stored))
        if not view.transposed or by_steps or not single or not whole:
            return view
        modes = tuple(access.variables.index(name) for name in names)
        wanted = mapping.function.name
        target = self.converted(
            access.tensor,
            format_in_order(stored, modes, formats) if formats else dense(len(modes)),
            modes,
            f"{access.tensor}_{''.join(names)}",
            f"{wanted} takes {view.name} at ({','.join(names)})",
        )
        moved = Access(tensor=target, variables=names)
        return replace(view, access=moved, transposed=False)
