"""What floating-point operators take of an ECP5, by their forms.

The numbers are those of ``synth_ecp5`` of Yosys 0.70 for a module or a function of the library
alone, with 3.5 ns for logic, or 7 with few registers: what is slower elsewhere in a design leaves
them that time.  Clocks are those of nextpnr.  An operand is *narrow* if it was converted from
bfloat16: its lower half is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from t2s.backends.verilog.gates import ONE, ZERO, Gates, Literals
from t2s.core.logic import Logic

_HALF, _WORD = 16, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatModuleCells:
    """The logic of a module, and the ns between its registers with the wires."""

    logic: Logic
    slowest: float


@dataclass(frozen=True, slots=True)
class _Form:
    """A module with some number of registers.

    Attributes
    ----------
    luts: with no, one and two narrow operands.
    inside: the same without the last register.
    flip_flops: with fewer than two narrow operands, and with two.
    carry_cells: as of flip-flops; of a sum, with a wide and with a narrow second operand.
    slowest: ns between registers, with fewer than two narrow operands, and with two.
    """

    luts: tuple[int, int, int]
    inside: tuple[int, int, int]
    flip_flops: tuple[int, int]
    carry_cells: tuple[int, int]
    slowest: tuple[float, float]


_FORMS: Mapping[tuple[str, int], _Form] = MappingProxyType(
    {
        ("float_add", 2): _Form(
            (680, 662, 752), (657, 617, 730), (100, 68), (70, 62), (23.1, 23.1)
        ),
        ("float_add", 3): _Form(
            (555, 586, 465), (641, 582, 548), (168, 136), (70, 62), (13.2, 13.2)
        ),
        ("float_add", 4): _Form(
            (603, 531, 543), (694, 544, 586), (231, 183), (70, 62), (12.9, 12.9)
        ),
        ("float_add", 5): _Form((478, 439, 408), (507, 472, 442), (276, 228), (75, 67), (7.2, 7.2)),
        ("float_add", 6): _Form((486, 448, 413), (517, 478, 448), (316, 268), (75, 67), (6.4, 6.4)),
        ("float_multiply", 2): _Form(
            (545, 486, 237), (594, 550, 254), (51, 51), (55, 37), (16.8, 13.4)
        ),
        ("float_multiply", 3): _Form(
            (559, 532, 241), (560, 552, 258), (64, 64), (50, 26), (14.0, 8.4)
        ),
        ("float_multiply", 4): _Form(
            (548, 486, 242), (590, 518, 273), (103, 103), (51, 35), (11.3, 7.1)
        ),
        ("float_multiply", 5): _Form(
            (545, 512, 241), (581, 542, 273), (122, 122), (51, 35), (12.2, 8.2)
        ),
        ("float_multiply", 6): _Form(
            (495, 488, 241), (509, 512, 271), (189, 157), (51, 35), (11.0, 7.2)
        ),
        ("float_multiply", 7): _Form(
            (525, 482, 241), (571, 518, 273), (255, 189), (56, 40), (6.8, 5.1)
        ),
    }
)

_SQUARES: Mapping[int, tuple[tuple[int, int], tuple[int, int]]] = MappingProxyType(
    {
        2: ((391, 49), (195, 49)),
        3: ((402, 61), (204, 61)),
        4: ((488, 99), (205, 99)),
        5: ((390, 117), (204, 117)),
        6: ((384, 183), (204, 151)),
        7: ((409, 224), (203, 174)),
    }
)
"""LUTs and flip-flops of a product of a number with itself, wide and narrow, by registers."""

_OF_CONSTANT = {("float_add", 0): 0.84, ("float_add", 1): 0.85}
_OF_CONSTANT |= {("float_multiply", 0): 0.8, ("float_multiply", 1): 0.66}
"""LUTs where an operand is a constant, beside those where it is not, by the narrow operands."""

_CARRY_CELLS_OF_CONSTANT = 11
"""Carry cells that a sum with a constant has no need of: 1 to 23, by its digits."""

NS_OF_FUNCTION = 5.8
"""Of a function that is more than wires, with the wires."""

_NS_OF_TOKENS = 1.0
"""Operands come out of the small memories of FIFOs, and not of registers as where clocks were
measured."""

_REGISTERED_OPERANDS = 7
"""With so many registers a product has some of its operands, and none of the digits of a constant
that is beside a narrow one."""


def float_module_cells(
    name: str, stages: int, output: bool, left: Literals, right: Literals
) -> FloatModuleCells:
    """The cells of a sum or a product, but for multipliers; ``output``: with its last register."""
    form = _FORMS[name, stages]
    narrow = _narrow(left) + _narrow(right)
    both = int(narrow == 2)
    luts, flip_flops = form.luts[narrow], form.flip_flops[both]
    if name == "float_multiply" and left == right:
        luts, flip_flops = _SQUARES[stages][both]
    luts += 0 if output else form.inside[narrow] - form.luts[narrow]
    second = _narrow(right) if name == "float_add" else both
    carry_cells = form.carry_cells[second]
    if _constant(left) or _constant(right):
        luts = round(_OF_CONSTANT[name, narrow] * luts)
        if name == "float_add":
            carry_cells -= _CARRY_CELLS_OF_CONSTANT
        elif narrow and stages == _REGISTERED_OPERANDS:
            flip_flops -= _WORD
    return FloatModuleCells(
        logic=Logic(
            luts=luts,
            flip_flops=flip_flops - (0 if output else _WORD),
            carry_cells=carry_cells,
        ),
        slowest=form.slowest[both] + _NS_OF_TOKENS,
    )


Applied = tuple[Literals, int]
"""What a function of words is, and the LUTs that it takes besides those of the gates."""


@dataclass(frozen=True, slots=True)
class FloatFunction:
    """A function of the library: the bits of its result, and the cells of what it is applied to."""

    bits: int
    apply: Callable[[Gates, Sequence[Literals]], Applied]


def _widened(gates: Gates, words: Sequence[Literals]) -> Applied:
    (word,) = words
    return [ZERO] * _HALF + word, 0


def _rounded(gates: Gates, words: Sequence[Literals]) -> Applied:
    (word,) = words
    if _narrow(word):
        return word[_HALF:], 0
    return _by_chain(gates, words, _ROUNDED.carry_cells, _HALF), _ROUNDED.luts


def _negated(gates: Gates, words: Sequence[Literals]) -> Applied:
    (word,) = words
    return [*word[:-1], word[-1] ^ 1], 0


def _absolute(gates: Gates, words: Sequence[Literals]) -> Applied:
    (word,) = words
    return [*word[:-1], ZERO], 0


def _least(gates: Gates, words: Sequence[Literals]) -> Applied:
    left, right = words
    return _chosen(gates, words, _order_cells(right, left, equal=False))


def _greatest(gates: Gates, words: Sequence[Literals]) -> Applied:
    return _chosen(gates, words, _order_cells(*words, equal=False))


def _chosen(gates: Gates, words: Sequence[Literals], order: Logic) -> Applied:
    """One of two words, by their order."""
    left, right = words
    (chosen,), luts = _ordered(gates, words, order)
    if not (_constant(left) or _constant(right) or (_narrow(left) and _narrow(right))):
        luts += _CHOICE_BY_ORDER
    return [gates.choose(chosen, a, b) for a, b in zip(right, left, strict=True)], luts


def _equal(gates: Gates, words: Sequence[Literals], differs: int = 0) -> Applied:
    left, right = words
    if _constant(left) or _constant(right):
        return [_equal_to_constant(gates, left, right) ^ differs], 0
    narrow = _narrow(left) and _narrow(right)
    return _ordered(gates, words, Logic(luts=24 if narrow else 52, carry_cells=4))


def _less(gates: Gates, words: Sequence[Literals], *, equal: bool) -> Applied:
    return _ordered(gates, words, _order_cells(*words, equal=equal))


def _greater(gates: Gates, words: Sequence[Literals], *, equal: bool) -> Applied:
    return _ordered(gates, words, _order_cells(*reversed(words), equal=equal))


FLOAT_FUNCTIONS: Mapping[str, FloatFunction] = MappingProxyType(
    {
        "widen": FloatFunction(_WORD, _widened),
        "round": FloatFunction(_HALF, _rounded),
        "negate": FloatFunction(_WORD, _negated),
        "absolute": FloatFunction(_WORD, _absolute),
        "minimum": FloatFunction(_WORD, _least),
        "maximum": FloatFunction(_WORD, _greatest),
        "equal": FloatFunction(1, _equal),
        "not_equal": FloatFunction(1, partial(_equal, differs=1)),
        "less": FloatFunction(1, partial(_less, equal=False)),
        "less_equal": FloatFunction(1, partial(_less, equal=True)),
        "greater": FloatFunction(1, partial(_greater, equal=False)),
        "greater_equal": FloatFunction(1, partial(_greater, equal=True)),
    }
)
"""The functions whose cells are known, by name."""


def _ordered(gates: Gates, words: Sequence[Literals], cells: Logic) -> Applied:
    """The result of a comparison, and the LUTs that are not gates.

    Where a word is computed in the same cycle, synthesis computes some of it twice.
    """
    found = _by_chain(gates, words, cells.carry_cells, 1)
    if not any(bit >> 1 in gates.inputs for word in words for bit in word):
        return found, cells.luts
    gates.late.add(found[0] >> 1)
    return found, 2 * cells.luts


_ROUNDED = Logic(luts=33, carry_cells=12)
"""A conversion to bfloat16."""

_CHOICE_BY_ORDER = 30
"""LUTs of a choice between words by their order, besides those of the order and one for each
bit."""


def _order_cells(left: Literals, right: Literals, *, equal: bool) -> Logic:
    """Of ``left < right``, or with ``equal`` of ``left <= right``; both have to be numbers."""
    if _constant(left) or _constant(right):
        narrow = _narrow(left) or _narrow(right)
        if set(left if equal else right) == {ZERO}:
            # the sign of a number that is not zero
            return Logic(luts=8 if narrow else 13, carry_cells=4)
        if narrow and set(right if equal else left) != {ZERO}:
            return Logic(luts=4, carry_cells=7)
        return Logic(luts=4 if narrow else 10, carry_cells=19)
    if _narrow(left) and _narrow(right):
        return Logic(luts=31 if equal else 29, carry_cells=15)
    return Logic(luts=62 if equal else 54, carry_cells=23)


def _equal_to_constant(gates: Gates, left: Literals, right: Literals) -> int:
    word, constant = (right, left) if _constant(left) else (left, right)
    if set(constant[:-1]) == {ZERO}:
        return gates.all_of([bit ^ 1 for bit in word[:-1]])  # both zeros
    return gates.equal(word, constant)


def _by_chain(gates: Gates, words: Sequence[Literals], cells: int, bits: int) -> Literals:
    """New signals that come out of a number of carry cells, into which all of the words go."""
    outputs = gates.incoming(bits)
    columns = [*zip(*words, strict=True)]
    length = max(2 * cells, bits)
    above = [bit for column in columns[length:] for bit in column]
    columns = [(*columns[0], *above), *columns[1:length]]
    gates.end_chain(outputs, columns + [(ZERO,)] * (length - len(columns)))
    return outputs


def _narrow(word: Literals) -> bool:
    return all(bit == ZERO for bit in word[:_HALF]) and not _constant(word)


def _constant(word: Literals) -> bool:
    return all(bit in (ZERO, ONE) for bit in word)
