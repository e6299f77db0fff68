"""Random instructions and programs that keep the rules, over the whole width of the language."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import strategies as st

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Opcode,
    Source,
    TagCheck,
    ToOutputs,
    ToPredicate,
    ToRegister,
    Trigger,
)


@st.composite
def instructions(
    draw: st.DrawFn, core: CoreParameters, opcodes: Collection[Opcode] = Opcode
) -> Instruction:
    """Any instruction that has a code, with one of some operators."""
    bits = st.integers(0, (1 << core.predicates) - 1)
    ones = draw(bits)
    zeros = draw(bits) & ~ones
    tags = st.integers(0, core.tags - 1)
    channels = st.integers(0, core.inputs - 1)
    check = st.builds(TagCheck, channel=channels, tag=tags, equal=st.booleans())
    checks = tuple(draw(st.lists(check, max_size=core.checks)))
    plain: st.SearchStrategy[Source] = st.builds(FromRegister, st.integers(0, core.registers - 1))
    plain = plain | st.builds(FromChannel, channels)  # checked or not
    opcode = draw(st.sampled_from(sorted(opcodes, key=lambda opcode: opcode.code)))
    destination = draw(
        st.none()
        | st.builds(ToRegister, st.integers(0, core.registers - 1))
        | st.builds(ToPredicate, st.integers(0, core.predicates - 1))
        | st.builds(
            ToOutputs,
            st.lists(st.integers(0, core.outputs - 1), min_size=1, unique=True).map(
                lambda found: tuple(sorted(found))
            ),
            tags,
        )
    )
    stores = opcode is Opcode.SSW
    destination = None if stores else destination
    most = 2 if stores else 0 if destination is None else 3
    sources = draw(st.lists(plain, min_size=most if stores else 0, max_size=most))
    if sources and draw(st.booleans()):
        pattern = draw(st.integers(0, (1 << core.immediate_width) - 1))
        for place in draw(st.sets(st.integers(0, len(sources) - 1), min_size=1)):
            sources[place] = Immediate(pattern)
    sets = draw(bits) & ~ones
    takes = draw(st.lists(channels, unique=True))
    return Instruction(
        trigger=Trigger(ones=ones, zeros=zeros, checks=checks),
        opcode=opcode,
        destination=destination,
        sources=tuple(sources),
        takes=tuple(sorted(takes)),
        sets=sets,
        clears=draw(bits) & ~zeros & ~sets,
    )


@st.composite
def programs(
    draw: st.DrawFn, core: CoreParameters, opcodes: Collection[Opcode] = Opcode
) -> CellProgram:
    """Any program that has a code; registers that start at 0 are not named."""
    words = st.integers(1, (1 << core.word_width) - 1)
    initial = draw(st.dictionaries(st.integers(0, core.registers - 1), words))
    found = draw(st.lists(instructions(core, opcodes), max_size=core.instructions))
    return CellProgram(
        label="cell", initial=tuple(sorted(initial.items())), instructions=tuple(found)
    )
