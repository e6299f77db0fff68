"""Whether a list of DRAM commands keeps to the times of the memory: every pair that has a rule.

It knows nothing of how the commands were found; a violation is an ``AssertionError``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from t2s.simulator.memory.spec import Dram
from tests.simulator.memory.plain_dram import Command, CommandKind

Bank = tuple[int, int]


def check(dram: Dram, commands: Iterable[Command]) -> None:
    """Check the commands of all channels and ranks."""
    channels: dict[int, list[Command]] = defaultdict(list)
    ranks: dict[tuple[int, int], list[Command]] = defaultdict(list)
    for command in sorted(commands, key=lambda item: item.clock):
        channels[command.channel].append(command)
        ranks[command.channel, command.rank].append(command)
    for of_channel in channels.values():
        _check_bus(dram, [c for c in of_channel if c.kind in (CommandKind.READ, CommandKind.WRITE)])
    for of_rank in ranks.values():
        _check_rank(dram, of_rank)


def _apart(first: Command, second: Command, least: int) -> None:
    assert second.clock - first.clock >= least, f"{first} and {second} need {least} clocks"


def _check_bus(dram: Dram, moves: list[Command]) -> None:
    """Data of bursts do not overlap, and leave a gap where the driver of the bus changes."""

    def start(command: Command) -> int:
        read = command.kind is CommandKind.READ
        return command.clock + (dram.timing.CL if read else dram.timing.CWL)

    moves = sorted(moves, key=start)
    for before, after in pairwise(moves):
        same = (before.kind, before.rank) == (after.kind, after.rank)
        gap = 0 if same else dram.timing.turnaround
        assert start(after) - start(before) >= dram.burst_clocks + gap, (before, after)


def _check_rank(dram: Dram, commands: list[Command]) -> None:
    banks: dict[Bank, list[Command]] = defaultdict(list)
    everything = {(g, b) for g in range(dram.groups) for b in range(dram.banks)}
    for command in commands:
        all_banks = command.bank == -1
        for place in everything if all_banks else {(command.group, command.bank)}:
            banks[place].append(command)
    for of_bank in banks.values():
        _check_bank(dram, of_bank)
    _check_activations(dram, [c for c in commands if c.kind is CommandKind.ACTIVATE])
    _check_moves(dram, [c for c in commands if c.kind in (CommandKind.READ, CommandKind.WRITE)])
    _check_refreshes(dram, [c for c in commands if c.kind is CommandKind.REFRESH])


def _check_bank(dram: Dram, commands: list[Command]) -> None:
    """Open and closed rows, and the times between commands of one bank."""
    t = dram.timing
    written = t.CWL + dram.burst_clocks + t.tWR
    least = {
        (CommandKind.ACTIVATE, CommandKind.READ): t.tRCD,
        (CommandKind.ACTIVATE, CommandKind.WRITE): t.tRCD,
        (CommandKind.ACTIVATE, CommandKind.PRECHARGE): t.tRAS,
        (CommandKind.ACTIVATE, CommandKind.ACTIVATE): t.tRC,
        (CommandKind.READ, CommandKind.PRECHARGE): t.tRTP,
        (CommandKind.WRITE, CommandKind.PRECHARGE): written,
        (CommandKind.PRECHARGE, CommandKind.ACTIVATE): t.tRP,
        (CommandKind.PRECHARGE, CommandKind.REFRESH): t.tRP,
        (CommandKind.REFRESH, CommandKind.ACTIVATE): t.tRFC,
        (CommandKind.REFRESH, CommandKind.REFRESH): t.tRFC,
    }
    latest: dict[CommandKind, Command] = {}
    row = -1
    for command in commands:
        for kind, before in latest.items():
            _apart(before, command, least.get((kind, command.kind), 0))
        match command.kind:
            case CommandKind.ACTIVATE:
                assert row == -1, f"{command}: a row is open"
                row = command.row
            case CommandKind.PRECHARGE:
                row = -1
            case CommandKind.READ | CommandKind.WRITE:
                assert row == command.row, f"{command}: row {row} is open"
            case CommandKind.REFRESH:
                assert row == -1, f"{command}: a row is open"
        latest[command.kind] = command


def _check_activations(dram: Dram, activations: list[Command]) -> None:
    t = dram.timing
    for number, command in enumerate(activations):
        for before in activations[max(0, number - 8) : number]:
            _apart(before, command, t.tRRD_L if before.group == command.group else t.tRRD_S)
        if number >= 4:
            _apart(activations[number - 4], command, t.tFAW)


def _check_moves(dram: Dram, moves: list[Command]) -> None:
    t = dram.timing
    for number, command in enumerate(moves):
        for before in moves[max(0, number - 16) : number]:
            near = before.group == command.group
            if before.kind is command.kind:
                _apart(before, command, t.tCCD_L if near else t.tCCD_S)
            elif before.kind is CommandKind.WRITE:
                wait = t.tWTR_L if near else t.tWTR_S
                _apart(before, command, t.CWL + dram.burst_clocks + wait)


def _check_refreshes(dram: Dram, refreshes: list[Command]) -> None:
    """Number n comes when it is due, n times tREFI, or when the banks are free after that."""
    t = dram.timing
    late = t.tRC + t.tRCD + t.CWL + dram.burst_clocks + t.tWR + t.tRP
    for number, command in enumerate(refreshes, 1):
        assert number * t.tREFI <= command.clock <= number * t.tREFI + late, command
