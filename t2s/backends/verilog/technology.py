"""What a chip is made of: which operators its primitives build, and with how many registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from t2s.core.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """Data of a family of chips.

    Attributes
    ----------
    multiplier_bits: the widest signed operands of one multiplier; wider products are written as
        ``*``, for synthesis to split.  ``None`` writes all of them so.
    multiplier_registers: the fewest and the most registers of a product in one multiplier.
    clears_in_carry: whether the cells of a carry chain add to a sum or to zero, as a signal says.
    library: for each file of the library that the chip needs, where its text is.
    primitives: files of the library with primitives: black boxes for synthesis, and models for
        simulation.
    models: files of the library with models of cells that synthesis chooses, and Yosys has none of.
    """

    name: str
    multiplier_bits: int | None = None
    multiplier_registers: tuple[int, int] = (0, 64)
    clears_in_carry: bool = False
    library: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType(
            {"multiply.sv": "multiply.sv", "accumulate.sv": "accumulate.sv"}
        )
    )
    primitives: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


GENERIC = Technology(name="generic")

ECP5 = Technology(
    name="ecp5",
    multiplier_bits=18,
    multiplier_registers=(1, 4),
    clears_in_carry=True,
    library=MappingProxyType(
        {"multiply.sv": "multiply_ecp5.sv", "accumulate.sv": "accumulate_ecp5.sv"}
    ),
    primitives=("ecp5_primitives.sv",),
)

GOWIN = Technology(name="gowin", models=("gowin_models.sv",))

GATEMATE = Technology(name="gatemate")

XC7 = Technology(name="xc7")

TECHNOLOGIES: Mapping[str, Technology] = MappingProxyType(
    {technology.name: technology for technology in (ECP5, GOWIN, GATEMATE, XC7, GENERIC)}
)


def find_technology(name: str) -> Technology:
    """The technology of that name; raises ``UserError`` with all names if there is none."""
    if name not in TECHNOLOGIES:
        raise UserError(
            f"unknown technology {name!r}", expected=", ".join(TECHNOLOGIES), given=repr(name)
        )
    return TECHNOLOGIES[name]
