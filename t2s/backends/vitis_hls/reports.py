"""What machines report at their end, for the host: how it went, and the lengths of their tensors.

Each machine has a stream of words: its status, and then the length of each open tensor that it has
stored.  The function ``report`` writes them to memory as they come.  On the chip it polls the
streams, because a machine that stops with an error leaves others waiting, which never report; so a
host that looks at the words while it waits sees the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.kernels import kernel_ast as ast
from t2s.backends.kernels.machine_kernels import machine_arguments
from t2s.backends.kernels.scope import KernelDesign
from t2s.backends.text.expressions import (
    If,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    binary,
    call,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.graph.body import Store
from t2s.graph.nodes import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The words of a machine: its status is word ``at``, the lengths of ``tensors`` follow."""

    machine: str
    stream: str
    at: int
    tensors: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.at + 1 + len(self.tensors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """An argument of the top for an open tensor: its length, or the room for an output.

    ``capacity`` is the constant that limits it, if functions copy the tensor.
    """

    tensor: str
    name: str
    variable: str
    output: bool
    capacity: str | None


def reports_of(design: KernelDesign, streams: Mapping[str, str]) -> tuple[Report, ...]:
    """The reports of all machines, whose streams are named by ``streams``."""
    reports: list[Report] = []
    for machine in design.graph.machines:
        reports.append(
            Report(
                machine=machine.name,
                stream=streams[machine.name],
                at=reports[-1].end if reports else 0,
                tensors=tuple(grown_tensors(design, machine)),
            )
        )
    return tuple(reports)


def grown_tensors(design: KernelDesign, machine: Machine) -> list[str]:
    """The open tensors that a machine stores, in the order of its arguments."""
    stored = {s.tensor for s in machine.statements() if isinstance(s, Store)}
    tensors, _ = machine_arguments(design, machine)
    return [name for name in tensors if name in stored and design.graph.tensor(name).open]


def report_function(name: str, reports: tuple[Report, ...]) -> ast.KernelDefinition:
    """The function that writes all words to memory."""
    identifiers = Identifiers(lambda text: text, [report.stream for report in reports])
    status, word = identifiers.fresh("status"), identifiers.fresh("word")
    places = [identifiers.fresh(f"{report.stream}_at") for report in reports]

    def waits(report: Report, place: str) -> TargetExpression:
        return binary("<", Name(name=place), number(report.end))

    def poll(report: Report, place: str) -> TargetStatement:
        arrived = call("T2S_POLL", Name(name=report.stream), Name(name=word))
        return If(
            condition=binary("&&", waits(report, place), arrived),
            then=(
                Set(target=ast.element(status, Name(name=place)), value=Name(name=word)),
                ast.Increment(target=Name(name=place)),
            ),
        )

    pairs = list(zip(reports, places, strict=True))
    waiting = waits(*pairs[0])
    for pair in pairs[1:]:
        waiting = binary("||", waiting, waits(*pair))
    body = (
        ast.Declare(type="int32_t", name=word, initial=number(0)),
        *(
            ast.Declare(type="int", name=place, initial=number(report.at))
            for report, place in pairs
        ),
        ast.While(
            condition=waiting,
            body=tuple(poll(*pair) for pair in pairs),
            pipeline=ast.Pipeline(interval=len(reports), memory=True),
        ),
    )
    return ast.KernelDefinition(
        name=name,
        parameters=(
            ast.TypedName(type="int32_t *", name=status),
            *(
                ast.TypedName(type="hls::stream<int32_t> &", name=report.stream)
                for report in reports
            ),
        ),
        body=body,
        comment=(
            f"{name} writes what machines report: 0, 1 after tokens that the protocol does not "
            "allow,",
            "2 where the chip has no room; and the lengths of what they have stored.",
        ),
        once=True,
    )
