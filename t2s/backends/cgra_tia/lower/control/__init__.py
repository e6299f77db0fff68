"""Machines on cells: what depends on data is triggered instructions, what does not is units.

In goes a ``Graph`` of machines (sparse stream blocks), out comes a ``Netlist``.  The passes:

* ``unfold``: a machine becomes a *flat block* (``flat``).  Its control states are its modes
  together with the values of those registers that hold tags or flags; in each state there is a
  tree of waits for heads (with a case for each of the tags that may come), of tests of values, of
  loads, and of firings.  Tags are constants in it, so one that is computed (a stop that is raised
  by one) becomes a case for each tag.  Which tags may come is found by unfolding until nothing
  changes (``wiring``): there is nothing for empty tokens where none can come.
* ``sequences``: blocks that do not depend on data (the root, scanners of dense levels, what
  repeats their references) become units ``seq``, if their tokens are those of one loop.
* ``memory_streams``: what is loaded and only put becomes an address that is put, with a unit
  ``ldx`` behind it; what is loaded for every token that is taken (the ends of a fiber) is loaded by
  units ``ldx`` before the cell; all other loads are asked for, and waited for.  Stores are an
  address and a value for a unit ``stx``.  What only passes tokens on after that is not a cell.
* ``choices``: each test is one comparison, and none is made twice on a way.
* ``liveness``, ``expressions``, ``block_cells``: a tree becomes instructions (``places``).  A wait
  is the checks of an instruction; waits after which the same is done are one, where a check for any
  other tag tells them from the rest.  A test writes the last predicate, and the next instruction
  chooses by it: a choice over values costs an instruction (and a cycle) more than one over tags.  A
  rule is an instruction for each different result that it puts or keeps, one after the other, and
  the last of them takes the heads.  The other predicates number the places in between.  A register
  in which the result of an FMA is kept is a channel from the cell to itself, because a register
  would be busy.  A block that does not fit is split by its outputs: several cells see the same
  heads and choose alike, and each puts a part.
* ``wiring``: outputs that always put the same are one net; units and nets.

A run ends when no token is left, so every cell takes the end of its streams (``DONE``) last, and
halts.

Tags: a value has tag 0, the stop of level n tag n + 1, the empty token 14 and the end 15.

Refused, with the block and the user's line: ``refusals`` has the texts.
"""
