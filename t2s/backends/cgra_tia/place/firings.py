"""How many instructions a cell fires for each token that it takes, at best.

A cell that chooses by data fires twice for a value: a comparison sets a predicate, and then one of
two moves takes the value.  So it, and all that waits for it, works in every second cycle, whatever
the channels hold.

In goes the program of a cell; out comes its fastest cycle through the states of its predicates.
Which instruction fires in a state is up to the tokens, so each of those that may fire counts.
"""

from __future__ import annotations

from fractions import Fraction

from t2s.backends.cgra_tia.place.circles import Dependence, slowest_circle
from t2s.backends.cgra_tia.program import CellProgram, Instruction, ToPredicate


def firings_per_token(program: CellProgram) -> Fraction | None:
    """Firings for each firing that takes a token, in the fastest cycle; ``None`` without one."""
    steps = _steps(program)
    numbers = {state: number for number, state in enumerate(dict.fromkeys(s for s, _, _ in steps))}
    # The fastest cycle has most takes per firing, so takes stand for latencies, firings for tokens.
    fastest = slowest_circle(
        len(numbers),
        [
            Dependence(source=numbers[state], sink=numbers[after], latency=takes, tokens=1)
            for state, takes, after in steps
            if after in numbers
        ],
        Fraction(0),
    )
    return None if fastest is None else Fraction(fastest.tokens, fastest.latency)


def _steps(program: CellProgram) -> list[tuple[int, int, int]]:
    """Reachable predicates, whether a firing in them takes a token, and the predicates after it."""
    found: list[tuple[int, int, int]] = []
    pending, known = [0], {0}
    while pending:
        state = pending.pop()
        for instruction in _may_fire(program, state):
            for after in _after(instruction, state):
                found.append((state, int(bool(instruction.takes)), after))
                if after not in known:
                    known.add(after)
                    pending.append(after)
    return found


def _may_fire(program: CellProgram, state: int) -> list[Instruction]:
    """The instructions whose predicates match, down to one that waits for no token."""
    found = []
    for instruction in program.instructions:
        if instruction.trigger.matches(state):
            found.append(instruction)
            if not instruction.trigger.checks and not instruction.outputs:
                break
    return found


def _after(instruction: Instruction, state: int) -> list[int]:
    after = (state | instruction.sets) & ~instruction.clears
    match instruction.destination:
        case ToPredicate(number=number):
            return [after & ~(1 << number), after | 1 << number]
    return [after]
