"""The sizes of blocks along index variables: one for each variable of a statement.

A statement means the same whether the values of its tensors are elements or blocks of elements.  So
blocks have to meet: all tensors of a statement that have a variable are divided alike along it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, Expression, accesses, print_expression


def sizes_at(access: Access, format: Format) -> Iterable[tuple[str, int]]:
    """The variables of an access, each with the size of the tensor's blocks along it."""
    block = format.block or (1,) * len(access.variables)
    return zip(access.variables, block, strict=True)


def check_blocks(
    result: Access,
    value: Expression,
    formats: Mapping[str, Format],
    location: SourceLocation | None,
) -> None:
    """Raise ``UserError`` unless all tensors are divided alike along each variable of a statement,
    and for the diagonal of a tensor of blocks.
    """
    occurring = (result, *accesses(value))
    if not any(formats[access.tensor].block for access in occurring):
        return
    first: dict[str, tuple[int, Access]] = {}
    for access in sorted(occurring, key=lambda access: not formats[access.tensor].block):
        if formats[access.tensor].block and len(set(access.variables)) < len(access.variables):
            raise UserError(
                f"{print_expression(access)} is a diagonal of a tensor of blocks",
                location=access.location or location,
                expected="different variables, or a tensor without blocks",
                given=f"{access.tensor} stored as {formats[access.tensor]}",
            )
        for name, size in sizes_at(access, formats[access.tensor]):
            before = first.setdefault(name, (size, access))
            if before[0] != size:
                raise _different(name, before, (size, access), formats, location)


def _different(
    name: str,
    one: tuple[int, Access],
    other: tuple[int, Access],
    formats: Mapping[str, Format],
    location: SourceLocation | None,
) -> UserError:
    access = other[1]
    format = formats[access.tensor]
    wanted = [one[0] if at == name else size for at, size in sizes_at(access, format)]

    def shown(size: int, access: Access) -> str:
        blocks = f"blocks of {size}" if size > 1 else "single elements"
        return f"{blocks} in {print_expression(access)}"

    return UserError(
        f"{name} is divided in two ways: {shown(*one)} and {shown(*other)}",
        location=access.location or location,
        expected=f"blocks of one size along {name}",
        given=f"{one[1].tensor} stored as {formats[one[1].tensor]}, {access.tensor} as {format}",
        hint=f"store {access.tensor} as {format.in_blocks(wanted)}",
    )


def usual_blocks(
    statements: Sequence[tuple[Access, Expression]], declared: Mapping[str, Format]
) -> dict[str, tuple[int, ...]]:
    """The sizes of blocks of all tensors: of those that are not ``declared``, as the variables of
    their statements are divided, and single elements where nothing says so.
    """
    orders = {
        access.tensor: len(access.variables)
        for result, value in statements
        for access in (result, *accesses(value))
    }
    known: dict[tuple[str, int], int] = {
        (name, mode): size
        for name, format in declared.items()
        for mode, size in enumerate(format.block or (1,) * format.order)
    }
    count = -1
    while count < len(known):
        count = len(known)
        for result, value in statements:
            occurring = (result, *accesses(value))
            places = [
                (name, (access.tensor, mode))
                for access in occurring
                for mode, name in enumerate(access.variables)
            ]
            sizes = {name: known[place] for name, place in places if place in known}
            for name, place in places:
                if name in sizes:
                    known.setdefault(place, sizes[name])
    return {
        name: tuple(known.get((name, mode), 1) for mode in range(order))
        for name, order in orders.items()
    }
