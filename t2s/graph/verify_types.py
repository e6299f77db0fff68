"""Types and shapes, wherever a graph has them; raises ``GraphError``."""

from __future__ import annotations

from t2s.core.types import MOST_LANES, Type
from t2s.graph.verify_expr import Subject, spell


def verify_extents(subject: Subject, shape: tuple[int, ...], what: str = "the shape") -> None:
    if any(extent < 1 for extent in shape):
        raise subject.error(
            f"{what} has an extent below 1", expected="extents of at least 1", given=str(shape)
        )


def verify_strong(subject: Subject, type: Type) -> None:
    if type.weak:
        raise subject.error(
            "the type is weak",
            expected="a type with a fixed width",
            given=spell(type),
            hint=f"Type.strengthened() gives {type}",
        )
    if type.lanes > MOST_LANES:
        raise subject.error(
            "the vector is too long",
            expected=f"at most {MOST_LANES} lanes",
            given=f"{type.lanes} lanes",
        )


def verify_scalar_type(subject: Subject, type: Type) -> None:
    verify_strong(subject, type)
    if type.lanes != 1:
        raise subject.error(
            "the type is a vector",
            expected=f"the type of one element, {type.scalar}",
            given=str(type),
            hint="vectors are loaded and stored as several contiguous elements",
        )
