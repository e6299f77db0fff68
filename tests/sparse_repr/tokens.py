"""Streams as people write them: lists of numbers and of the texts ``S0``, ``N``, ``D``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2s.core.ops import Array
from t2s.core.types import Type
from t2s.graph.nodes import DONE, EMPTY, VALUE, stop

Tokens = list[Any]

_NAMES = {EMPTY: "N", DONE: "D"}


def tag_of(token: Any) -> int:
    """The tag of a token."""
    if not isinstance(token, str):
        return VALUE
    for tag, name in _NAMES.items():
        if token == name:
            return tag
    if token.startswith("S") and token[1:].isdigit():
        return stop(int(token[1:]))
    raise ValueError(f"a token is a number, N, D, or S and a level, not {token!r}")


def depth_of(tokens: Sequence[Any]) -> int:
    """How deep the lists of a stream are nested, as far as its stops tell."""
    return 1 + max((tag_of(token) for token in tokens), default=0)


def arrays_of(tokens: Sequence[Any], type: Type) -> tuple[Array, Array]:
    """Values and tags, as ``Streams.play`` takes them from memory."""
    values = [0 if isinstance(token, str) else token for token in tokens]
    tags = [tag_of(token) for token in tokens]
    return np.array(values, type.numpy), np.array(tags, np.int32)


def tokens_of(values: Array, tags: Array) -> Tokens:
    """The tokens that ``Streams.record`` has put into memory as values and tags."""
    return [
        value.item() if tag == VALUE else _NAMES.get(int(tag), f"S{int(tag) - 1}")
        for value, tag in zip(values, tags, strict=True)
    ]
