"""Capstan's units as machines of a graph: how a program of patterns takes its time.

``lower.py`` walks through a program and puts a unit for each statement; the other files have a unit
each.  ``kit.py`` is what units are written with, ``bodies.py`` says where they find their operands.

**Streams of a body.**  The body of a pattern *fires*: once for each iteration, or once for a vector
of ``lanes`` of them, if the pattern is an innermost one that takes so many at a time.

* The *control* stream of a body has a token for each firing, which carries the numbers of its
  iterations, -1 in lanes without one.  Its tag is ``VALUE``, or ``stop(0)`` in the last firing of
  those that belong to one firing of the body around; it keeps its value then.  An iteration of the
  body around that has none inside has one firing without iterations.  ``DONE`` is the last token.
* Every other value of a body, a *local*, is a stream without tags that has a token for each firing,
  so all streams of a body are aligned.  What it carries in lanes without an iteration is nobody's.
* A unit looks at the control token first and takes one token of each of its streams with it, in the
  last of the firings that it makes of them.  A local of the body around is *held*: it is looked at
  in every firing of a segment and taken with the last one.  A local from further out passes through
  a repeater in each body between.
* An effect has no effect in lanes without an iteration: addresses are -1 there, lengths 0.

**Partitions.**  The outermost pattern takes ``p`` iterations at a time: its units, and those of all
patterns inside, are arrays of ``p`` places.  Place ``q`` makes iterations ``q, q + p, ...`` by
itself.  What it needs of the body around comes along a chain of ``spread`` units, and that all are
ready goes back along a chain of ``finish`` units.

**Memories.**  What a ``LoadBlock`` brings on chip is never stored into, so the memory *is* the
DRAM's array from ``begin`` on: readers load from a copy (``Tensor.copy_of``), and order is enforced
by the local ``there`` that the loader puts when all of the block has come.  A block that is
loaded again in an inner body has two buffers: who reads it gives a *credit* back.  A memory that a
program writes is a tensor of single assignment (``Tensor.once``); who reads it waits for tokens of
all who write it.

**Queues.**  A FIFO that is loaded with a segment and popped in the pattern right inside is the
stream of the segment load itself.  What is pushed goes, lane by lane, to the unit that stores the
stream.
"""
