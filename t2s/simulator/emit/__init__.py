"""The kit with which all native engines write code: LLVM as text."""
