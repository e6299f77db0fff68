"""FIFOs of profile A, and what moves tokens between them: links and memory ports.

All of them look at the state at the start of a cycle: what is put into a FIFO, and taken from it,
is seen in the next one, when ``commit`` has been called.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from t2s.core.errors import UserError


class FifoOwner(Protocol):
    """Who looks at a FIFO: ``changed`` is set when there is reason to."""

    changed: bool


PORT_DEPTH = 4
"""Tokens in each FIFO of a memory port."""


class PublicFifo:
    """A FIFO of tokens (tag, word).

    ``name`` is for messages.  Whatever changes in a cycle enters itself in ``changes``, a list
    that all FIFOs of an array share; ``owner`` is told when it has changed.
    """

    __slots__ = ("_changes", "_put", "_taken", "depth", "name", "owner", "tokens")

    def __init__(
        self, name: str, depth: int, changes: list[PublicFifo], owner: FifoOwner | None = None
    ) -> None:
        self.name = name
        self.depth = depth
        self.owner = owner
        self.tokens: deque[tuple[int, int]] = deque()
        self._changes = changes
        self._put: tuple[int, int] | None = None
        self._taken = False

    @property
    def full(self) -> bool:
        return len(self.tokens) >= self.depth

    def put(self, tag: int, word: int) -> None:
        if not self._taken:
            self._changes.append(self)
        self._put = (tag, word)

    def take(self) -> tuple[int, int]:
        if self._put is None:
            self._changes.append(self)
        self._taken = True
        return self.tokens[0]

    def commit(self) -> int:
        """Let the changes of this cycle take effect; how many tokens there are more."""
        more = 0
        if self._taken:
            self.tokens.popleft()
            self._taken = False
            more -= 1
        if self._put is not None:
            self.tokens.append(self._put)
            self._put = None
            more += 1
        if self.owner is not None:
            self.owner.changed = True
        return more

    def __str__(self) -> str:
        return f"{self.name} ({len(self.tokens)} of {self.depth} tokens)"


class PublicLink:
    """A wire from a sender's FIFO to a receiver's: one token per cycle."""

    __slots__ = ("sink", "source")

    def __init__(self, source: PublicFifo, sink: PublicFifo) -> None:
        self.source = source
        self.sink = sink

    def step(self) -> None:
        if self.source.tokens and not self.sink.full:
            self.sink.put(*self.source.take())


class ReadPort:
    """Takes addresses, and gives the words there with the tags of the addresses."""

    def __init__(self, name: str, changes: list[PublicFifo]) -> None:
        self.name = name
        self.addresses = PublicFifo(f"the addresses of {name}", PORT_DEPTH, changes)
        self.data = PublicFifo(f"the data of {name}", PORT_DEPTH, changes)
        self._pending: tuple[int, int] | None = None

    def step(self, memory: list[int]) -> None:
        if self._pending is not None and not self.data.full:
            self.data.put(*self._pending)
            self._pending = None
        if self._pending is None and self.addresses.tokens:
            tag, address = self.addresses.take()
            self._pending = (tag, memory[checked_address(self.name, address, memory)])


class WritePort:
    """Takes an address and a word in the same cycle, and stores the word there."""

    def __init__(self, name: str, changes: list[PublicFifo]) -> None:
        self.name = name
        self.addresses = PublicFifo(f"the addresses of {name}", PORT_DEPTH, changes)
        self.data = PublicFifo(f"the data of {name}", PORT_DEPTH, changes)

    def step(self, memory: list[int]) -> None:
        if self.addresses.tokens and self.data.tokens:
            _, address = self.addresses.take()
            _, word = self.data.take()
            memory[checked_address(self.name, address, memory)] = word


def checked_address(port: str, address: int, memory: list[int]) -> int:
    """The address, if the memory has a word there."""
    if address < len(memory):
        return address
    raise UserError(
        f"{port} is asked for a word beyond the memory",
        expected=f"an address from 0 to {len(memory) - 1}",
        given=str(address),
        hint="give a larger memory with words=...",
    )
