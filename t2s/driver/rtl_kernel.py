"""The verb ``rtl_kernel``: a design as an RTL kernel for the Vitis tools of AMD."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UserError
from t2s.core.files import write_texts
from t2s.core.location import user_location
from t2s.core.validate import as_int, checked_folder
from t2s.driver.chip_run import chip_run, chip_stage, with_own_memory

if TYPE_CHECKING:
    from t2s.simulator.devices import Device


@dataclass(frozen=True, kw_only=True)
class RtlKernel:
    """An RTL kernel.

    Attributes
    ----------
    name: of the kernel, which is that of its module.
    directory, files: the folder, and the files in it.
    data_bits: how wide the data of its masters are.
    registers: the offsets of its registers in bytes, by their names in the header.
    cycles: of a run from the first to the last cycle of the design, as the register says them;
        copies of tensors are before and after.
    """

    name: str
    directory: Path
    files: tuple[Path, ...]
    data_bits: int
    registers: Mapping[str, int]
    cycles: int


def rtl_kernel(
    design: object,
    directory: str | os.PathLike[str],
    *,
    inputs: Mapping[str, Any] | None = None,
    data_bits: int | None = None,
    device: str | Device = "rtl-kernel",
) -> RtlKernel:
    """Write a design as an RTL kernel for Vitis: SystemVerilog, ``kernel.xml``, and its script.

    A host gives it the addresses of all tensors, in registers on an AXI4-Lite bus, and starts it
    by ``ap_ctrl_hs``.  It reads all inputs by bursts, each on an AXI4 bus of its own, into memories
    on the chip, runs, and writes its results.

    Parameters
    ----------
    inputs: of the run whose cycles are counted, with the values of scalars, which are constants of
        the kernel; without, integers that are made up.
    data_bits: how wide the data of the buses are: 32, 64, 128, 256 or 512; without, as wide as the
        widest word of a load or a store, and 32 at least.
    device: the latencies that the design is built with.  Its bandwidth is no limit: each load and
        store unit has memory of its own.

    No tool is needed to write it.  Raises ``UserError`` for another width, and ``UnsupportedError``
    for what is no chip, and for tensors that are no words of a bus.
    """
    from t2s.backends.verilog.flow.axi import BUS_BITS
    from t2s.backends.verilog.flow.flow import with_masters, without_ports
    from t2s.backends.verilog.flow.rtl_kernel import kernel_files, offsets
    from t2s.simulator.devices import find_device

    folder = checked_folder("the directory of rtl_kernel", directory)
    if data_bits is not None and as_int(data_bits) not in BUS_BITS:
        raise UserError(
            "data_bits= must be a width of AXI4",
            location=user_location(),
            expected=", ".join(map(str, BUS_BITS)),
            given=repr(data_bits),
        )
    stage = chip_stage(design, inputs, "rtl_kernel", without_ports)
    graph = stage.graph
    run = chip_run(stage, inputs, with_own_memory(find_device(device)))
    made = with_masters(graph, run.times, run.parameters, "generic", as_int(data_bits))
    files = kernel_files(graph.name, made)
    return RtlKernel(
        name=made.module,
        directory=folder,
        files=write_texts(folder, files, user_location()),
        data_bits=made.bus_bits,
        registers=offsets(made),
        cycles=run.cycles,
    )
