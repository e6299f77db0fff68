"""Whatever stands in a file: it is a program, or there is an error that says where it is none."""

from __future__ import annotations

import random
import time
import warnings

import pytest

from t2s import triggered
from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, PUBLIC_CORE, CoreParameters
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.backends.cgra_tia.text.places import TriggeredTextError
from t2s.core.errors import UserError

LOADER = """# Loads a list, and sends it on.
<loader>
    init %r0, $0;   # where it starts
    init %r1, $-7;
    init %r2, $0x10;

    # what comes back goes on
    when %p == XXXXXXXX with %i0.0:
        mov %o2.0, %i0; deq %i0;
    when %p == 00000000:
        uge %p7, %r0, $8; set %p = Z0000001;
    when %p == 00000001:
        add %o0.0, %r0, $0x0; set %p = 00000101;
    when %p == 00000101:
        add %r0, %r0, $1; set %p = 00000000;
    when %p == 10000001:
        mov %o0.1, $0; set %p = 10000010;
    when %p == 10000010 with %i0.1: halt %o2.1; deq %i0;
<idle>
    when %p == XXXXXXXX: halt;
<writer>
    when %p == 0 with %i0.0, !%i0.1: mov %o1.0, %i0; set %p = 0000001; deq %i0;
    when %p == 1: mov %o2.0, $20; set %p = Z0;
    when %p == X0 with %i0.1: halt %o1.1; deq %i0;
<data>
    when %p == X with %i3.0: mov %o2.0, %i3; deq %i3;
    when %p == X with !%i3.0: halt; deq %i3;
"""

CELLS = """# two cells
<r05_c07 C[1,2,1]>
init %r0, $f1.5;
init %r1, $f-2e-3;
init %r2, $-12345678901;
# gemm.py:12
when %p == XXXXXXXX with %i0.0, %i1.0, %i2.15, !%i7.3:
  fmac %o{0, 7}.0, %i2, %i0, %i1; deq %i0, %i1, %i2;
when %p == 0000XXX0 with %i6.12:
  fti %p2, %i6; set %p = ZZZZZZ10; deq %i6;
<r05_c08>
when %p == XXXXXXXX:
  halt;
"""

LETTERS = b"%$#<>{}:;,.=!\n\t 01XxZzwhendqsetinitopr9fF-_\x00\xff\xc3\xa9"


def edited(content: bytes, generator: random.Random) -> bytes:
    """A few bytes replaced, put in, taken out or moved."""
    found = bytearray(content)
    for _ in range(generator.choice((1, 1, 1, 2, 5))):
        at = generator.randrange(len(found))
        end = min(len(found), at + generator.choice((1, 1, 2, 8, 40)))
        match generator.randrange(5):
            case 0:
                found[at] = generator.choice(LETTERS)
            case 1:
                found.insert(at, generator.choice(LETTERS))
            case 2:
                del found[at:end]
            case 3:
                found[at:at] = found[at:end]
            case _:
                other = generator.randrange(len(found))
                found[at], found[other] = found[other], found[at]
        if not found:
            return bytes(found)
    return bytes(found)


def examine(content: bytes, core: CoreParameters) -> bool:
    """Whether it is a program; anything but an error with a place in the text is a failure."""
    text = content.decode("utf-8", "replace")
    refused: TriggeredTextError | None = None
    start = time.perf_counter()
    try:
        program = triggered.assemble(text, core)
    except TriggeredTextError as error:
        refused = error
    assert time.perf_counter() - start < 30
    if refused is not None:
        lines = text.split("\n")
        assert 1 <= refused.line <= len(lines)
        assert 1 <= refused.column <= len(lines[refused.line - 1]) + 1
        assert refused.expected
        assert refused.given
        return False
    again = parse_programs(program.text, core)
    assert again == program.programs
    assert triggered.disassemble(program.words, core).words == program.words
    return True


def run(program: triggered.TriggeredProgram) -> bool:
    """Whether it ends; anything but an error of ours is a failure."""
    start = time.perf_counter()
    try:
        triggered.run(program, words=64, max_cycles=300)
    except UserError:
        return False
    finally:
        assert time.perf_counter() - start < 30
    return True


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("text", "core"), [(LOADER, PUBLIC_CORE), (CELLS, EXTENDED_CORE)])
def test_edited_texts_are_programs_or_errors(text: str, core: CoreParameters, count: int) -> None:
    generator = random.Random(count)
    assert examine(text.encode(), core)
    taken = ended = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(count):
            content = edited(text.encode(), generator)
            if examine(content, core):
                taken += 1
                if core is PUBLIC_CORE:
                    program = triggered.assemble(content.decode("utf-8", "replace"))
                    ended += run(program)
    assert count / 20 < taken < count
    assert ended > 0 or core is not PUBLIC_CORE


@pytest.mark.parametrize("count", [300, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ["hex", "binary"])
def test_edited_words_are_programs_or_errors(form: str, count: int) -> None:
    generator = random.Random(count)
    program = triggered.assemble(LOADER)
    content = program.hex.encode() if form == "hex" else program.binary
    taken = 0
    for _ in range(count):
        start = time.perf_counter()
        try:
            found = triggered.disassemble(edited(content, generator))
        except UserError:
            continue
        finally:
            assert time.perf_counter() - start < 30
        assert triggered.disassemble(found.words).words == found.words
        assert parse_programs(found.text, PUBLIC_CORE) == found.programs
        taken += 1
    assert taken < count
