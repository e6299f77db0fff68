"""Time multiplexing: operations that share a cell take turns, if the user allows it (``interval``).

A cell that two operations share fires for each of them in every second cycle, and half as many
cells are needed.  Its ``seq`` unit sends a tag for every firing: rounds with a turn for each
operation.  If one operation needs the result of another, which arrives some cycles later, its turn
works on the operands of a few rounds earlier (its *stage*), and results wait in a channel from the
cell to itself.  In the first and last rounds some turns are ``nop``.  So the order of firings is
known in advance, and no cell waits for its own pipeline::

    turn 0:  fmul %o1.0, %i0, %i1          of operands 0 1 2 3 ...
    turn 1:  fmac %o0.0, %i2, %i4, %i3     of operands - - 0 1 ...

The result are the cells that stay alone, and ``SharedCell`` objects.  An operation that chooses
takes two firings itself and stays alone.  If what an earlier turn takes depends on what a later one
has sent, all stages are 0, because no turn may run ahead of what it waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from t2s.backends.cgra_tia.lower.cells import CellAction, CellDraft, CellResult, TakenAgain, Wire
from t2s.backends.cgra_tia.lower.copy_propagation import Aliases
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.lower.registers import Replay
from t2s.backends.cgra_tia.lower.unit_nests import SequenceNest, turn_nest
from t2s.backends.cgra_tia.netlist import CellTurn
from t2s.backends.cgra_tia.program import ON_FMA

_WAY = 4
"""The cycles that a path from cell to cell is thought to take before there are places."""


@dataclass(frozen=True, kw_only=True)
class SharedCell:
    """Cells of one operation each, in the order of their turns, with their stages."""

    parts: tuple[CellDraft, ...]
    stages: tuple[int, ...]

    def merged(self) -> SharedProgram:
        """A single cell that does the work of all."""
        first = self.parts[0]
        process = first.process
        words = [part.operator for part in self.parts]
        draft = CellDraft(
            name="_".join([first.name, *words[1:]]),
            process=process,
            operator=" and ".join(dict.fromkeys(words)),
        )
        actions: list[CellAction] = []
        turns: list[list[int]] = []
        for turn, part in enumerate(self.parts):
            mine = _renamed(part, [*draft.inputs], turn)
            draft.inputs += mine.inputs
            draft.residents += mine.residents
            own = list(dict.fromkeys(mine.actions))  # one of the actions is to do nothing
            turns.append([len(actions) + own.index(action) for action in mine.actions])
            actions += [NOTHING if action.idle else action for action in own]
        rest = len(actions)
        if max(self.stages):
            actions.append(NOTHING)
        return SharedProgram(
            draft=draft,
            actions=tuple(actions),
            nest=turn_nest(process.nest, process.classes, turns, self.stages, rest),
            turns=tuple(
                CellTurn(tags=tuple(sorted(set(turn))), stage=stage)
                for turn, stage in zip(turns, self.stages, strict=True)
            ),
        )

    def ahead(self, wire: Wire, taker: int) -> int:
        """How many more tokens wait before a turn than if all turns had the same stage."""
        made = [
            stage
            for part, stage in zip(self.parts, self.stages, strict=True)
            if any(wire in action.outputs for action in part.actions)
        ]
        return self.stages[taker] - min(made, default=0)


NOTHING = CellAction(recipe=None)
"""What a turn does for operands of which its operation needs none, and before and after all."""


@dataclass(frozen=True, kw_only=True)
class SharedProgram:
    """A cell whose action ``n`` has tag ``n``, the tags of all its firings, and its turns."""

    draft: CellDraft
    actions: tuple[CellAction, ...]
    nest: SequenceNest
    turns: tuple[CellTurn, ...]


def _renamed(part: CellDraft, taken: Sequence[Wire], turn: int) -> CellDraft:
    """The part with new names for wires that an earlier turn takes too: they get own inputs.

    A stationary operand is in its register for all turns.
    """
    names: dict[object, Wire] = {
        wire: TakenAgain(wire=wire, turn=turn)
        for wire in part.inputs
        if wire in taken and wire not in part.residents and not isinstance(wire, TakenAgain)
    }
    return replace(
        part,
        inputs=[
            names.get(wire, wire) for wire in part.inputs if wire in names or wire not in taken
        ],
        residents=[wire for wire in part.residents if wire not in taken],
        actions=[
            replace(
                action,
                operands=tuple(names.get(operand, operand) for operand in action.operands),
                takes=tuple(names.get(wire, wire) for wire in action.takes),
            )
            for action in part.actions
        ],
    )


@dataclass(kw_only=True)
class CellSharing:
    """Decides which operations share cells: at most ``interval`` of one PE and of one kind."""

    interval: int
    fma_latency: int
    aliases: Aliases
    replays: Sequence[Replay]
    _after: dict[str, list[str]] = field(init=False, default_factory=dict)

    def shared(self, groups: Sequence[Sequence[CellDraft]]) -> list[list[CellDraft | SharedCell]]:
        """The cells of each process; a shared cell stands in place of its first operation."""
        if self.interval == 1:
            return [list(group) for group in groups]
        self._after = _followers([d for group in groups for d in group], self.replays, self.aliases)
        return [self._of_process(group) for group in groups]

    def _of_process(self, group: Sequence[CellDraft]) -> list[CellDraft | SharedCell]:
        alike: dict[bool | None, list[CellDraft]] = {}
        for draft in group:
            alike.setdefault(_kind(draft), []).append(draft)
        cells: list[CellDraft | SharedCell] = list(alike.pop(None, []))
        for drafts in alike.values():
            for start in range(0, len(drafts), self.interval):
                parts = tuple(drafts[start : start + self.interval])
                if len(parts) == 1:
                    cells.append(parts[0])
                else:
                    cells.append(SharedCell(parts=parts, stages=self._stages(parts, group)))
        return cells

    def _stages(self, parts: Sequence[CellDraft], group: Sequence[CellDraft]) -> tuple[int, ...]:
        """The least stages with which every result should have arrived at its turn."""
        for turn, part in enumerate(parts):
            if self._reached(part.name) & {before.name for before in parts[:turn]}:
                return (0,) * len(parts)
        stages = [0]
        for turn in range(1, len(parts)):
            stage = stages[-1]
            for before in range(turn):
                way = self._way(parts[before], parts[turn], parts, group)
                if way is not None:
                    rounds = -(-(way - (turn - before)) // len(parts))
                    stage = max(stage, stages[before] + rounds)
            stages.append(stage)
        return tuple(stages)

    def _reached(self, start: str) -> set[str]:
        """The cells that depend on a cell, directly or indirectly."""
        reached: set[str] = set()
        waiting = [start]
        while waiting:
            for name in self._after.get(waiting.pop(), ()):
                if name not in reached:
                    reached.add(name)
                    waiting.append(name)
        return reached

    def _way(
        self,
        start: CellDraft,
        end: CellDraft,
        together: Sequence[CellDraft],
        group: Sequence[CellDraft],
    ) -> int | None:
        """The cycles from a firing of one operation to the firing that needs its result."""
        longest: dict[str, int] = {start.name: 0}
        for draft in group:  # operands precede their users in this order
            if draft.name not in longest:
                continue
            cycles = longest[draft.name] + 1 + (self.fma_latency if _kind(draft) else 0)
            sent = {w for action in draft.actions for w in action.outputs}
            for taker in group:
                if any(isinstance(wire, CellResult) and wire in sent for wire in taker.inputs):
                    inside = draft in together and taker in together
                    way = cycles if inside else cycles + _WAY
                    longest[taker.name] = max(longest.get(taker.name, 0), way)
        return longest.get(end.name) if end is not start else None


def _kind(draft: CellDraft) -> bool | None:
    """Whether a cell needs an FMA; ``None`` if it has to stay alone."""
    recipes = [action.recipe for action in draft.actions if action.recipe is not None]
    if draft.operator == "mov" or any(recipe.chooses for recipe in recipes):
        return None
    return any(recipe.opcode in ON_FMA for recipe in recipes)


def _followers(
    drafts: Sequence[CellDraft], replays: Sequence[Replay], aliases: Aliases
) -> dict[str, list[str]]:
    """For each cell, the cells and buffers that take from it."""
    takers: dict[Wire, list[str]] = {}
    inputs: dict[tuple[str, Wire], None] = {}
    for draft in drafts:
        for wire in draft.inputs:
            takers.setdefault(_root(wire, aliases), []).append(draft.name)
        inputs |= {(draft.name, wire): None for action in draft.actions for wire in action.outputs}
    for replay in replays:
        takers.setdefault(aliases.root(replay.source), []).append(replay.name)
        inputs[replay.name, replay.sink] = None
    followers: dict[str, list[str]] = {}
    for name, wire in inputs:
        followers.setdefault(name, []).extend(takers.get(wire, ()))
    return followers


def _root(wire: Wire, aliases: Aliases) -> Wire:
    return aliases.root(wire) if isinstance(wire, TokenStream) else wire
