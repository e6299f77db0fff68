"""Capstan's units as machines of a graph: the timing model of a program of patterns.

``lower.py`` walks through a program and makes a unit for each statement; the other files each hold
one kind of unit.  ``kit.py`` drafts units, ``bodies.py`` resolves their operands.

**Streams of a body.**  The body of a pattern *fires*: once for each iteration, or once for a vector
of ``lanes`` iterations, if the pattern is an innermost, vectorized one.

* The *control* stream of a body has a token for each firing, which carries the numbers of its
  iterations, -1 in idle lanes.  Its tag is ``VALUE``, or ``stop(0)`` in the last firing of a
  *segment*, the firings that belong to one firing of the enclosing body; that token still has its
  value.  A segment without iterations has one firing with all lanes idle.  ``DONE`` is the last
  token.
* Every other value of a body, a *local*, is a stream without tags that has a token for each firing,
  so all streams of a body are aligned.  Its values in idle lanes are undefined.
* A unit peeks at the control token, and takes it together with one token of each of its streams in
  the last firing that it makes of them.  A local of the enclosing body is *held*: the unit peeks at
  it in every firing of a segment and takes it with the last one.  A local from further out passes
  through a repeater in each body between.
* Idle lanes have no effects: their addresses are -1, their lengths 0.

**Partitions.**  The outermost pattern takes ``p`` iterations at a time: its units, and those of all
patterns inside, are arrays of ``p`` places.  Place ``q`` runs iterations ``q, q + p, ...`` on its
own.  Locals of the enclosing body reach it along a chain of ``spread`` units, and completion is
reported back along a chain of ``finish`` units.

**Memories.**  Programs never store into what a ``LoadBlock`` brings on chip, so the memory *is* the
DRAM's array from ``begin`` on: readers load from a copy (``Tensor.copy_of``), ordered by a local,
``ready``, that the loader sends when the whole block has arrived.  A block that is reloaded in an
inner body is double-buffered: its readers return *credits*.  A memory that a program writes is a
tensor of single assignment (``Tensor.once``); its readers wait for tokens from all of its writers.

**Queues.**  A FIFO that is loaded with a segment and popped in the next inner pattern is the stream
of the segment load itself.  Pushed values go, lane by lane, to the unit that stores the stream.
"""
