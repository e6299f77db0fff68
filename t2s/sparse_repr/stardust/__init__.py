"""Stardust's compiler: from scheduled concrete index notation to parallel patterns [Stardust]."""
