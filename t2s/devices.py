"""Devices: datapath latencies, clocks, memory interfaces, and blocks of a fabric.

``DEVICES`` maps the names that verbs take to devices.  A variant, such as
``dataclasses.replace(DEVICES["arria10"], clock_hz=300e6)``, may be passed in place of a name.
"""

from __future__ import annotations

from t2s.simulator.devices import DEVICES, Device, Fabric, find_device

__all__ = ["DEVICES", "Device", "Fabric", "find_device"]
