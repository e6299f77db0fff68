"""Machines on cells: data-dependent control becomes triggered instructions, the rest stream units.

The input is a ``Graph`` of machines (sparse stream blocks), the output a ``Netlist``.  The passes:

* ``unfold``: a machine becomes a *flat block* (``flat_blocks``).  Its control states are its modes
  together with the values of the registers that hold tags or flags; each state has a tree of waits
  for heads (with a case for each tag that can arrive), tests of values, loads and firings.  Tags
  are constants in it, so a computed tag (a stop that is raised by one) becomes a case for each
  tag.  Which tags can arrive is found by unfolding up to a fixed point (``wiring``): no code is
  written for empty tokens where none can arrive.
* ``sequences``: blocks that do not depend on data (the root, scanners of dense levels, repeaters
  of their references) become ``seq`` units, if their tokens are those of one loop.
* ``memory_streams``: a loaded value that is only sent becomes an address that is sent, followed by
  an ``ldx`` unit; a load that happens for every token (the ends of a fiber) moves to ``ldx``
  units before the cell; for all other loads the cell sends a request and waits for the answer.  A
  store is an address and a value for an ``stx`` unit.  A block that only forwards tokens after
  that is not a cell.
* ``decision_trees``: each test is one comparison, and none is made twice on a path.
* ``block_cells``: a tree becomes instructions (``control_states``).  A wait becomes the tag checks
  of an instruction; waits with the same continuation are merged where one negated check separates
  them from the rest.  A test writes the last predicate, and the next instruction branches on it,
  so that a branch on a value costs one instruction (and one cycle) more than a branch on tags.  A
  rule becomes an instruction for each distinct result that it sends or keeps, and the last of them
  takes the heads.  The other predicates encode the places in between.  A register that holds the
  result of an FMA is a channel from the cell to itself, because a register would be busy.  A
  block that does not fit is split by its outputs: several cells see the same heads and make the
  same choices, and each sends a part.
* ``wiring``: outputs that always send the same share a net; units and nets.

A run ends when no token is left, so every cell takes the end of its streams (``DONE``) last, and
halts.

Tags: a value has tag 0, the stop of level n tag n + 1, the empty token 14 and the end 15.

Refused, with the block and the user's line: ``refusals`` has the texts.
"""
