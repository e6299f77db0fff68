"""Chips: synthesis, place and route of the emitted SystemVerilog with open tools, from wheels."""
