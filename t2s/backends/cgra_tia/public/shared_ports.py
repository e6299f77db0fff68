"""Several streams of loads as one, where there are fewer ports than streams.

The loads of one PE can share a port: the words come in the order in which its firings take them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.public.firings import FiringKind, MemoryAccess, WordProcess


def share_ports(
    processes: Sequence[WordProcess], loads: dict[TokenStream, MemoryAccess], ports: int
) -> None:
    """Put the loads of each process into one stream if there are more streams than ports."""
    if len(loads) <= ports:
        return
    for process in processes:
        mine = [stream for stream in process.takes if stream in loads]
        if len(mine) > 1:
            _share(process, mine, loads)


def _share(
    process: WordProcess, mine: list[TokenStream], loads: dict[TokenStream, MemoryAccess]
) -> None:
    together = TokenStream(array=f"the loads of {process.name}")
    brought = [tuple(s for s in kind.takes if s in mine) for kind in process.kinds]
    counts = np.array([len(streams) for streams in brought], np.int64)[process.sequence]
    starts = np.cumsum(counts) - counts
    addresses = np.zeros(int(counts.sum()), np.int64)
    lanes = np.zeros(len(addresses), np.int64)
    accesses = [loads.pop(stream) for stream in mine]
    for lane, (stream, access) in enumerate(zip(mine, accesses, strict=True)):
        place = np.array([s.index(stream) if stream in s else -1 for s in brought], np.int64)
        where = place[process.sequence]
        at = (starts + where)[where >= 0]
        addresses[at], lanes[at] = access.addresses, lane
    names = " and ".join(dict.fromkeys(access.tensor for access in accesses))
    loads[together] = replace(accesses[0], tensor=names, addresses=addresses, lanes=lanes)
    process.kinds = tuple(
        _with_one(kind, streams, together)
        for kind, streams in zip(process.kinds, brought, strict=True)
    )


def _with_one(
    kind: FiringKind, streams: tuple[TokenStream, ...], together: TokenStream
) -> FiringKind:
    if not streams:
        return kind
    others = tuple(stream for stream in kind.takes if stream not in streams)
    return replace(kind, takes=(together, *others), parts=((together, streams),))
