"""SystemVerilog: one module per node, FIFOs with registered handshakes, and a testbench.

``counted_nests`` and ``interfaces`` decide; ``pe``, ``machine_module``, ``emit``, ``top`` and
``testbench`` build the AST; ``verilog_ast`` prints it; ``verilator`` runs the result.
"""

from t2s.backends.verilog.backend import BACKEND

__all__ = ["BACKEND"]
