"""SystemVerilog: one module per node, FIFOs with registered handshakes, and a testbench.

``nests`` and ``interfaces`` decide, ``pe``, ``arrays``, ``top`` and ``testbench``
build the target AST, ``verilog_printer`` spells it, ``verilator`` runs the result.
"""

from t2s.backends.verilog.backend import BACKEND

__all__ = ["BACKEND"]
