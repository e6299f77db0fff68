"""From an engine's counters to a ``SimResult``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2s.core.ops import Array
from t2s.graph.nodes import Machine
from t2s.simulator.deadlock import explain
from t2s.simulator.program import NodeTiming, SimProgram
from t2s.simulator.result import NodeStatistics, SimResult, TokensLeft
from t2s.simulator.tally import Counts, Ending, Tally, idle_cycles


def assemble(
    program: SimProgram, tally: Tally, outputs: Mapping[str, Array], engine: str
) -> SimResult:
    """The result of a run; ``InternalError`` if the counters do not add up to the cycles."""
    idle = idle_cycles(program, tally)
    starved = _by_channel(program, tally.starved)
    blocked = _by_channel(program, tally.blocked)
    nodes = {
        timing.node.name: _statistics(program, tally, timing, idle, starved, blocked)
        for timing in program.nodes
    }
    return SimResult(
        graph=program.graph.name,
        device=program.device,
        engine=engine,
        outputs=outputs if tally.ending is Ending.FINISHED else {},
        cycles=tally.cycles,
        nodes=nodes,
        ending=tally.ending,
        deadlock=explain(program, tally) if tally.ending is Ending.DEADLOCK else None,
        tokens_left=_tokens_left(program, tally) if tally.ending is Ending.FINISHED else (),
        padded=tuple(tensor for tensor in program.graph.tensors if tensor.padded is not None),
    )


def _by_channel(program: SimProgram, per_element: Counts) -> dict[str, int]:
    return {
        timing.channel.name: int(per_element[timing.elements].sum()) for timing in program.channels
    }


def _statistics(
    program: SimProgram,
    tally: Tally,
    timing: NodeTiming,
    idle: Counts,
    starved: Mapping[str, int],
    blocked: Mapping[str, int],
) -> NodeStatistics:
    node, where, graph = timing.node, timing.instances, program.graph
    fired = tally.firings[where] > 0
    absent = timing.pe_count - node.pe_count
    return NodeStatistics(
        name=node.name,
        role=node.role,
        location=node.location,
        pe_count=node.pe_count,
        interval=timing.interval,
        firings=int(tally.firings[where].sum()),
        total_firings=int(
            (tally if isinstance(node, Machine) else program.control).firings[where].sum()
        ),
        first_firing=int(tally.first[where][fired].min()) if fired.any() else None,
        last_firing=int(tally.last[where][fired].max()) if fired.any() else None,
        waiting=int(tally.waiting[where].sum()),
        starved_by={channel.name: starved[channel.name] for channel in graph.inputs_of(node.name)},
        blocked_by={channel.name: blocked[channel.name] for channel in graph.outputs_of(node.name)},
        starved_by_memory=int(tally.memory_starved[where].sum()),
        blocked_by_memory=int(tally.memory_blocked[where].sum()),
        idle=int(idle[where].sum()) - absent * tally.cycles,
    )


def _tokens_left(program: SimProgram, tally: Tally) -> tuple[TokensLeft, ...]:
    firings = {
        timing.node.name: int(tally.firings[timing.instances].sum()) for timing in program.nodes
    }
    left = [
        TokensLeft(
            channel=timing.channel.name,
            location=timing.channel.location,
            tokens=int(tally.left[timing.elements].sum()),
            sent=int(np.sum(program.control.sent[timing.elements])),
            received=int(np.sum(program.control.received[timing.elements])),
            sender=timing.channel.source,
            sender_firings=firings[timing.channel.source],
            receiver=timing.channel.sink,
            receiver_firings=firings[timing.channel.sink],
        )
        for timing in program.channels
        if tally.left[timing.elements].any()
    ]
    return tuple(sorted(left, key=lambda entry: -entry.tokens))
