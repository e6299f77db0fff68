"""Families of FPGAs: what the tools of each are called, told and asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from t2s.backends.verilog.flow.constraints import Pins, ccf, cst, lpf

Counted = Mapping[str, Fraction]


_LOGIC_PS = 2500
"""What the logic of a path may take on an ECP5, in ps.

Half of the shortest clock is for wires.  Without such a target, logic that no clock needs to be
fast is built of several tables side by side, each of which computes all of it but one input.
"""


def _cells(**each: int | Fraction) -> Counted:
    return MappingProxyType({name: Fraction(count) for name, count in each.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools behind synthesis.

    Attributes
    ----------
    placer: the tool that places and routes.
    constraints: the name of the file of pins and clocks, and how it is written.
    constrained, unconstrained: options of the placer with that file, and without one; ``None`` if
        it needs one.
    routed: the options that name what it writes, and the name.
    packer, packs: the tool that makes a bitstream of that, and its arguments, in which
        ``BITSTREAM`` stands for the name of the result.
    suffix: of the name of a bitstream.
    caution: what has to be known of the clock that the placer promises.
    """

    placer: str
    constraints: tuple[str, Callable[[Pins, float], str]]
    constrained: tuple[str, ...]
    unconstrained: tuple[str, ...] | None
    routed: tuple[str, ...]
    packer: str
    packs: tuple[str, ...]
    suffix: str
    caution: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of FPGAs, for the tools of the flow.

    Attributes
    ----------
    technology: the name of its technology, which the design is written for.
    synthesis: the command of Yosys.
    beforehand: settings of Yosys for it.
    defines: macros for the files that Yosys reads.
    afterwards: passes of Yosys behind synthesis.
    models: the file of Yosys with models of the cells.
    tools: what places, routes and packs; ``None`` where there are no such tools in wheels.
    luts, flip_flops, dsps, rams: the cells in the report of the placer, and how many each counts;
        without one those of the netlist.
    """

    technology: str
    synthesis: str
    beforehand: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    afterwards: tuple[str, ...] = ()
    models: str
    tools: Tools | None
    luts: Counted
    flip_flops: Counted
    dsps: Counted
    rams: Counted

    def synthesis_of(self, top: str) -> tuple[str, ...]:
        """The commands of Yosys that make cells of a module and those in it."""
        return (*self.beforehand, f"{self.synthesis} -top {top}")


BITSTREAM = "BITSTREAM"

ECP5 = Family(
    technology="ecp5",
    synthesis="synth_ecp5",
    beforehand=(f"scratchpad -set abc9.D {_LOGIC_PS}",),
    defines=("T2S_OUTPUT_REGISTER",),
    afterwards=(
        'setparam -set REGMODE_A "OUTREG" -set REGMODE_B "OUTREG" '
        "t:DP16KD c:*.registered.words* %i",
    ),
    models="ecp5/cells_sim.v",
    tools=Tools(
        placer="nextpnr-ecp5",
        constraints=("board.lpf", lpf),
        constrained=("--lpf", "board.lpf"),
        unconstrained=("--lpf-allow-unconstrained",),
        routed=("--textcfg", "routed.config"),
        packer="ecppack",
        packs=("routed.config", BITSTREAM),
        suffix=".bit",
    ),
    luts=_cells(TRELLIS_COMB=1),
    flip_flops=_cells(TRELLIS_FF=1),
    dsps=_cells(MULT18X18D=1),
    rams=_cells(DP16KD=1),
)

GW2A = Family(
    technology="gowin",
    synthesis="synth_gowin -family gw2a",
    models="gowin/cells_sim.v",
    tools=Tools(
        placer="nextpnr-himbaechel-gowin",
        constraints=("board.cst", cst),
        constrained=("--vopt", "cst=board.cst"),
        unconstrained=None,
        routed=("--write", "routed.json"),
        packer="gowin_pack",
        packs=("-o", BITSTREAM, "routed.json"),
        suffix=".fs",
        caution="optimistic by about 20 %, and without the delays of multipliers",
    ),
    luts=_cells(LUT4=1, ALU=1, RAM16SDP4=8),
    flip_flops=_cells(DFF=1),
    dsps=_cells(MULT9X9=Fraction(1, 2), MULT18X18=1, MULT36X36=4),
    rams=_cells(BSRAM=1),
)

GATEMATE = Family(
    technology="gatemate",
    # nextpnr takes trees of tables, and no multiplexers of eight inputs
    synthesis="synth_gatemate -nomx8 -luttree",
    models="gatemate/cells_sim.v",
    tools=Tools(
        placer="nextpnr-himbaechel-gatemate",
        constraints=("board.ccf", ccf),
        constrained=("--vopt", "ccf=board.ccf"),
        unconstrained=None,
        routed=("--vopt", "out=routed.txt"),
        packer="gmpack",
        packs=("routed.txt", BITSTREAM),
        suffix=".bit",
    ),
    luts=_cells(CPE_LT=1),
    flip_flops=_cells(CPE_FF=1),
    dsps=_cells(),
    rams=_cells(RAM_HALF=1),
)

XC7 = Family(
    technology="xc7",
    synthesis="synth_xilinx -family xc7 -flatten -noiopad -noclkbuf",
    models="xilinx/cells_sim.v",
    tools=None,
    luts=_cells(
        **{f"LUT{inputs}": 1 for inputs in range(1, 7)}, SRL16E=1, SRLC32E=1, RAM32M=4, RAM64M=4
    ),
    flip_flops=_cells(FDRE=1, FDSE=1, FDCE=1, FDPE=1),
    dsps=_cells(DSP48E1=1),
    rams=_cells(RAMB18E1=Fraction(1, 2), RAMB36E1=1),
)
