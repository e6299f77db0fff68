"""Programs for arrays of the public core, of every operator and form, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WORDS = 64
_NAMES = (
    "nop mov add sub sl asr lsr eq ne sgt ugt slt ult sge uge sle ule band bor bxor land lor lxor "
    "gb sb cb mb clz ctz lmul shmul uhmul mac lsw ssw mov add mac eq ult"
)
OPERATORS = _NAMES.split()
SOURCES = {"nop": 0, "halt": 0, "mov": 1, "lsw": 1, "mac": 3, "sb": 3}
NUMBERS = (0, 1, 2, 31, 32, 33, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


class Draws:
    """Numbers that depend on a seed alone."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2862933555777941757 + 3037000493

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % limit

    def one(self, choices: Sequence[str]) -> str:
        return choices[self.below(len(choices))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def word(self) -> int:
        return NUMBERS[self.below(len(NUMBERS))] if self.chance(30) else self.below(WORDS)


@dataclass(frozen=True, kw_only=True)
class RecordedProgram:
    """A text for an array (``None``: one PE alone), its memory, and how deep its FIFOs are."""

    text: str
    shape: tuple[int, int] | None
    memory: tuple[int, ...]
    depth: int


def recorded_program(seed: int) -> RecordedProgram:
    """The program of a number."""
    draws = Draws(seed)
    shape = None if draws.chance(30) else (1 + draws.below(4), 1 + draws.below(4))
    rows, columns = shape or (1, 1)
    lines: list[str] = []
    for number in range(rows * columns):
        row, column = divmod(number, columns)
        sides = {0: True, 1: column + 1 < columns, 2: row + 1 < rows, 3: column > 0}
        inputs = [side for side, there in sides.items() if there]
        outputs = [*inputs, 2] if row + 1 == rows else inputs
        if shape is None:
            inputs, outputs = [0, 1], [0, 1, 2, 3]
        lines += [f"<{number}>", *_instructions(draws, inputs, sorted(set(outputs)))]
    memory = tuple(draws.word() for _ in range(WORDS))
    return RecordedProgram(
        text="\n".join(lines) + "\n", shape=shape, memory=memory, depth=2 + draws.below(3)
    )


def _instructions(draws: Draws, inputs: list[int], outputs: list[int]) -> list[str]:
    lines = [f"init %r{n}, ${draws.word()};" for n in range(8) if draws.chance(50)]
    bits = 1 + draws.below(4)
    for _ in range(1 + draws.below(16)):
        pattern = "".join(draws.one("01XX") for _ in range(bits)).rjust(8, "X")
        channels = [inputs[draws.below(len(inputs))] for _ in range(draws.below(3))]
        checks = ", ".join(
            f"{'!' if draws.chance(25) else ''}%i{channel}.{draws.one('0001123')}"
            for channel in channels
        )
        header = f"when %p == {pattern}{f' with {checks}' if checks else ''}:"
        parts = [_operation(draws, channels, outputs, bits)]
        if channels and draws.chance(80):
            parts.append("deq " + ", ".join(f"%i{channel}" for channel in dict.fromkeys(channels)))
        if draws.chance(60):
            update = "".join(draws.one("01ZX") for _ in range(bits))
            parts.append(f"set %p = {update.rjust(8, 'Z')}")
        lines.append(f"{header}\n  {'; '.join(parts)};")
    return lines


def _operation(draws: Draws, channels: list[int], outputs: list[int], bits: int) -> str:
    name = "halt" if draws.chance(8) else draws.one(OPERATORS)
    count = SOURCES.get(name, 2)
    sources = [
        f"%i{channels[draws.below(len(channels))]}"
        if channels and draws.chance(45)
        else f"%r{draws.below(8)}"
        for _ in range(count)
    ]
    if count and draws.chance(40):
        sources[draws.below(count)] = f"${draws.word()}"
    if name == "ssw":
        return f"ssw {', '.join(sources)}"
    if not count and draws.chance(60):
        return name
    kind = draws.below(10)
    if kind < 4:
        chosen = [side for side in outputs if draws.chance(40)] or outputs[:1]
        tag = draws.one("00123")
        several = "{" + ", ".join(map(str, chosen)) + "}" if len(chosen) > 1 else str(chosen[0])
        target = f"%o{several}.{tag}"
    else:
        target = f"%r{draws.below(8)}" if kind < 8 else f"%p{draws.below(bits)}"
    return f"{name} {', '.join([target, *sources])}"
