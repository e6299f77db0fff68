"""What designs run on: datapath latencies, clocks, memory interfaces, and blocks of a fabric.

``DEVICES`` has them by the names that verbs take.  A variant is
``dataclasses.replace(DEVICES["arria10"], clock_hz=300e6)``, passed in place of a name.
"""

from __future__ import annotations

from t2s.simulator.devices import DEVICES, Device, Fabric, find_device

__all__ = ["DEVICES", "Device", "Fabric", "find_device"]
