"""What a FIFO of ``library/fifo.sv`` takes of an ECP5, by its form.

The numbers are those of ``synth_ecp5`` of Yosys 0.70 for the module alone.
"""

from __future__ import annotations

from t2s.core.logic import Logic

SMALL_RAM = 4, 16
"""Bits and rows of a small memory of look-up tables (``TRELLIS_DPR16X4``)."""

_LEAST_RAM_BITS = 16
"""Fewer bits are registers; so are two rows of up to nine bits."""

_MOST_SMALL_BITS = 1200
"""More bits, of those that one block RAM may have in a row, are in block RAM."""

_WIDEST_ROW = 36

_CONTROL = {(2, 1): 8, (2, 2): 10, (3, 2): 16, (3, 3): 18, (4, 3): 30, (4, 4): 34}
"""Tables of counters, pointers and flags, by the bits of a counter and of a pointer; beyond these,
counters are carry cells."""

_LONG_CONTROL = {4: 36, 5: 28, 6: 28, 7: 28}
"""The same for longer counters, by the bits of a pointer."""

_ROOM = {2: 3, 3: 6, 4: 12}
_ROOM_OF_LONG = 13
"""Tables of those for the counter of what is held, by its bits."""


def fifo_cells(width: int, capacity: int, latency: int, late: int, fills: bool = True) -> Logic:
    """The cells of a FIFO whose values come ``late`` cycles after their push.

    One that never ``fills`` counts what can be taken, but not what is held.
    """
    travels = latency - 1 + width * (latency - 1 - late)
    if capacity == 1:
        # flags `held`, `valid`, and the enable of the register
        return Logic(luts=3 if fills else 1, flip_flops=width + (2 if fills else 1) + travels)
    if capacity == 2 and latency == 1:
        # a choice for each bit of the first register
        return Logic(luts=width + (4 if fills else 3), flip_flops=2 * width + 2)
    pointer, counter = (capacity - 1).bit_length(), capacity.bit_length()
    rows = 1 << pointer
    control = 2 * counter + 2 * pointer + 2 + travels
    adders = ((4 if fills else 2, counter), (2, pointer))
    cells = sum(number * ((bits + 1) // 2) for number, bits in adders if bits > 4)
    tables = _CONTROL.get((counter, pointer)) or _LONG_CONTROL.get(pointer, 36)
    if not fills:
        tables -= _ROOM.get(counter, _ROOM_OF_LONG)
        control -= counter + 1
    if rows * width < _LEAST_RAM_BITS or (rows == 2 and width < 10):
        chosen = width * (1 if rows == 2 else rows)
        return Logic(
            luts=tables + rows + chosen, flip_flops=control + capacity * width, carry_cells=cells
        )
    bits, deep = SMALL_RAM
    banks = -(-rows // deep)
    rams = -(-width // bits) * banks
    if rows * min(width, _WIDEST_ROW) > _MOST_SMALL_BITS:
        return Logic(luts=tables + 42, flip_flops=control + width + 1, carry_cells=cells)
    # a choice between banks, for each bit: two in one table, four in four
    chosen = 0 if banks == 1 else width * (1 if banks == 2 else banks)
    return Logic(luts=tables + chosen, flip_flops=control, carry_cells=cells, small_rams=rams)
