"""The table kernel with shared banks beside a DRAM."""

from __future__ import annotations

from t2s.simulator.times.table_banked import banked_policy
from t2s.simulator.times.table_dram import dram_policy, waited
from t2s.simulator.times.table_kernel import advance_with

advance = advance_with(*banked_policy(dram_policy, waited))
