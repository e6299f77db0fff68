"""A design as an RTL kernel for Vitis: its description, the script that packages it, a header.

The formats are those of AMD's guide UG1393, "Vitis Unified Software Platform Documentation:
Application Acceleration Development", section "Packaging RTL Kernels".
"""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from t2s.backends.verilog.data_types import identifier
from t2s.backends.verilog.flow.axi import CLOCK, CONTROL, AxiDesign
from t2s.core.types import Kind, Type

_POINTER_BYTES = 8


def kernel_files(name: str, made: AxiDesign) -> dict[str, str]:
    """The files of a kernel, by their paths in its folder; ``name`` is that of the design."""
    return {
        **{f"src/{file}": text for file, text in made.files.items()},
        "kernel.xml": _description(made),
        "package.tcl": _script(made),
        f"{identifier(name)}.h": _header(name, made),
    }


def offsets(made: AxiDesign) -> dict[str, int]:
    """The offsets of all registers in bytes, by what they are."""
    return {
        "CONTROL": 0,
        **{f"ADDRESS_{one.name}": one.offset for one in made.arguments},
        "CYCLES": made.cycles,
        "ELAPSED": made.elapsed,
        "WRONG": made.wrong,
    }


def _description(made: AxiDesign) -> str:
    """``kernel.xml``: ports, and arguments in the order of their registers."""
    name = made.module
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<root versionMajor="1" versionMinor="6">',
        f'  <kernel name={quoteattr(name)} language="ip_c" '
        f'vlnv={quoteattr(f"t2s:RTLKernel:{name}:1.0")} attributes="" '
        'preferredWorkGroupSizeMultiple="0" workGroupSize="1" interrupt="false" '
        'hwControlProtocol="ap_ctrl_hs">',
        "    <ports>",
        f'      <port name="{CONTROL}" mode="slave" range="0x1000" dataWidth="32" '
        'portType="addressable" base="0x0"/>',
    ]
    lines += [
        f'      <port name="{one.prefix}" mode="master" range="0xFFFFFFFFFFFFFFFF" '
        f'dataWidth="{made.bus_bits}" portType="addressable" base="0x0"/>'
        for one in made.arguments
    ]
    lines += ["    </ports>", "    <args>"]
    lines += [
        f'      <arg name={quoteattr(one.name)} addressQualifier="1" '
        f'id="{at}" port="{one.prefix}" size="{_POINTER_BYTES:#x}" offset="{one.offset:#x}" '
        f'type="{_pointer(one.tensor.type)}" hostOffset="0x0" hostSize="{_POINTER_BYTES:#x}"/>'
        for at, one in enumerate(made.arguments)
    ]
    return "\n".join((*lines, "    </args>", "  </kernel>", "</root>", ""))


def _pointer(type: Type) -> str:
    """The type of a tensor in C; floating-point types that C has not are their bits."""
    match type.kind:
        case Kind.FLOAT if type.bits in (32, 64):
            return {32: "float*", 64: "double*"}[type.bits]
        case Kind.INT:
            return f"int{type.bits}_t*"
    return f"uint{8 * type.bytes}_t*"


def _script(made: AxiDesign) -> str:
    """``package.tcl``, for Vivado."""
    name = made.module
    buses = (CONTROL, *(one.prefix for one in made.arguments))
    clocked = "\n".join(
        f"ipx::associate_bus_interfaces -busif {bus} -clock {CLOCK} $core" for bus in buses
    )
    return f"""# Packages the kernel {name} as {name}.xo:
#   vivado -mode batch -source package.tcl -tclargs PART
set folder [file normalize [file dirname [info script]]]
create_project -force {name} $folder/project -part [lindex $argv 0]
add_files -norecurse [glob $folder/src/*.sv]
set_property top {name} [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $folder/ip -vendor t2s -library RTLKernel -taxonomy /KernelIP \\
  -import_files -set_current true
set core [ipx::current_core]
set_property name {name} $core
set_property version 1.0 $core
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
{clocked}
set_property supported_families {{}} $core
set_property auto_family_support_level level_2 $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::save_core $core
close_project
package_xo -force -xo_path $folder/{name}.xo -kernel_name {name} -ip_directory $folder/ip \\
  -kernel_xml $folder/kernel.xml
"""


def _header(name: str, made: AxiDesign) -> str:
    """The registers of a kernel and the bytes of its tensors, as macros of C."""
    prefix = identifier(name).upper()
    lines = [f"#define {prefix}_{what} {at:#x}" for what, at in offsets(made).items()]
    lines += [f"#define {prefix}_BYTES_{one.name} {one.size}" for one in made.arguments]
    about = f"// Offsets of the registers of {name}, and bytes of its tensors."
    return "\n".join((about, *lines, ""))
