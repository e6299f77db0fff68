"""The clock of this machine, as far as a process gets it.

The goals of the benchmarks are times on a machine of 3.2 GHz, on which the published simulators
were measured as well.  A machine that is slower, or shared, would need longer for them too, so
measured times are scaled to that clock before they are compared.
"""

from __future__ import annotations

import ctypes
import time

from t2s.llvm.compile import compile_module

REFERENCE_GHZ = 3.2

_CHAIN = """
define i64 @chain(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %x = phi i64 [1, %entry], [%y, %loop]
  %product = mul i64 %x, %x
  %y = add i64 %product, %i
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %leave
leave:
  ret i64 %y
}
"""
_CHAIN_CYCLES = 4
_STEPS = 2_000_000
_RUNS = 5


def gigahertz() -> float:
    """The clock: from multiplications and additions that wait for each other, four cycles a step.

    That is their latency on the processors of the last ten years, of either make.
    """
    engine = compile_module(_CHAIN)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    chain = prototype(engine.get_function_address("chain"))
    times = []
    for _ in range(_RUNS):
        start = time.process_time()
        chain(_STEPS)
        times.append(time.process_time() - start)
    return _CHAIN_CYCLES * _STEPS / min(times) / 1e9


def slowness() -> float:
    """How many times longer this machine takes than one of the reference clock."""
    return REFERENCE_GHZ / gigahertz()
