"""The methods of ``Streams`` that compute with values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.graph.graph import Tensor
from t2s.sparse_repr.blocks import arrays, droppers, lanes, reducers, repeats
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.expressions import Operator
from t2s.sparse_repr.blocks.reducers import EmptyFiber
from t2s.sparse_repr.connections import Stream
from t2s.sparse_repr.conversion import Conversion


class Computation(Conversion):
    """Blocks that compute with values."""

    def load(
        self,
        ref: Stream,
        values: Tensor,
        *,
        lanes: int = 1,
        missing: Expr | None = None,
        name: str = "load",
    ) -> Stream:
        """The values at references, or vectors of so many lanes; N stays N, or is ``missing``."""
        block = self._drafted(arrays.array_load, ref.type, values, lanes=lanes, missing=missing)
        return self.place(block, name, {"ref": ref})[0]

    def compute(
        self,
        function: Callable[..., Expr] | Op,
        *operands: Stream,
        missing: Sequence[Expr] | None = None,
        lost: Callable[..., Expr] | None = None,
        instead: Expr | None = None,
        name: str = "compute",
    ) -> Stream:
        """An ALU: an operator, or a function from expressions to an expression.

        ``lost`` says of which operands are N whether there is nothing to compute: then N is put,
        or ``instead``.
        """
        if not operands:
            raise UserError(
                f"{name!r} has nothing to compute with",
                location=user_location(),
                expected="one stream or more",
            )
        combine = function if not isinstance(function, Op) else Operator(function)
        types = [stream.type for stream in operands]
        block = self._drafted(
            arrays.compute, types, combine, missing=missing, lost=lost, instead=instead
        )
        return self.place(block, name, {f"in{n}": stream for n, stream in enumerate(operands)})[0]

    def reduce(
        self,
        val: Stream,
        combine: Callable[[Expr, Expr], Expr] | Op = Op.ADD,
        *,
        empty: EmptyFiber = EmptyFiber.DROP,
        zero: Expr | None = None,
        outer: Stream | None = None,
        name: str = "reduce",
    ) -> Stream:
        """One value for each innermost list; see ``scalar_reducer`` for empty ones."""
        block = self._drafted(
            reducers.scalar_reducer,
            val.type,
            Operator(combine) if isinstance(combine, Op) else combine,
            empty=empty,
            zero_value=zero,
            outer=None if outer is None else outer.type,
        )
        inputs = {"val": val} if outer is None else {"val": val, "outer": outer}
        return self.place(block, name, inputs)[0]

    def reduce_points(
        self,
        crds: Sequence[Stream],
        val: Stream,
        operator: Op = Op.ADD,
        *,
        banks: int | None = None,
        name: str = "reduce",
    ) -> tuple[tuple[Stream, ...], Stream]:
        """A reducer that keeps n >= 1 coordinates: one level less, every point once, in order.

        ``crds`` are the coordinates from the outermost to the innermost, each one level deeper than
        the one before; the innermost has the shape of ``val``.  With 2 ``banks`` one reduction is
        put while the next one is taken; by default there are 2 where there is more than one
        reduction.
        """
        if not crds or val.nesting < len(crds) + 2:
            raise UserError(
                f"{name!r} has nothing to reduce",
                location=user_location(),
                expected=f"at least one coordinate, and values nested {len(crds) + 2} deep or more",
                given=f"{len(crds)} coordinates, values nested {val.nesting} deep",
            )
        self._counts[BlockKind.REDUCE] += 1
        aligned = self._aligned(crds, name)
        many = val.nesting > len(crds) + 2
        if (banks or (2 if many else 1)) == 1:
            outs = self._bank(aligned, val, operator, name)
            return outs[:-1], outs[-1]
        return self._two_banks(aligned, val, operator, name)

    def _aligned(self, crds: Sequence[Stream], name: str) -> list[Stream]:
        """Every coordinate repeated over the levels inside of its own."""
        found: list[Stream] = []
        for at, crd in enumerate(crds):
            for deeper in crds[at + 1 :]:
                block = self._drafted(repeats.repeat, deeper.type, crd.type)
                inputs = {"crd": deeper, "ref": crd}
                (crd,) = self.place(block, f"{name}_hold", inputs, count=False)
            found.append(crd)
        return found

    def _bank(
        self, crds: Sequence[Stream], val: Stream, operator: Op, name: str
    ) -> tuple[Stream, ...]:
        types = [crd.type for crd in crds]
        block = self._drafted(reducers.point_reducer, types, val.type, operator)
        inputs = {f"crd{n}": crd for n, crd in enumerate(crds)}
        return self.place(block, name, {**inputs, "val": val}, count=False)

    def _two_banks(
        self, crds: Sequence[Stream], val: Stream, operator: Op, name: str
    ) -> tuple[tuple[Stream, ...], Stream]:
        streams, n = [*crds, val], len(crds)
        block = self._drafted(lanes.dealer, [s.type for s in streams], n)
        inputs = {f"in{at}": stream for at, stream in enumerate(streams)}
        dealt = self.place(block, f"{name}_deal", inputs, count=False)
        sides = [
            self._bank(dealt[side : 2 * n : 2], dealt[2 * n + side], operator, name)
            for side in range(2)
        ]
        outs: list[Stream] = []
        for at, (left, right) in enumerate(zip(*sides, strict=True)):
            level = min(at, n - 1)
            merge = self._drafted(lanes.alternator, left.type, level)
            both = {"in0": left, "in1": right}
            outs += self.place(merge, f"{name}_merge", both, count=False)
        return tuple(outs[:-1]), outs[-1]

    def drop(
        self, outer: Stream, inner: Stream, *beside: Stream, name: str = "drop"
    ) -> tuple[Stream, ...]:
        """Outer coordinates (and what is beside them) whose inner lists are not empty, and these.

        Returns (outer, *beside, inner).
        """
        types = [stream.type for stream in beside]
        block = self._drafted(droppers.coordinate_dropper, outer.type, inner.type, types)
        others = {f"in{n}": stream for n, stream in enumerate(beside)}
        return self.place(block, name, {"outer": outer, "inner": inner, **others})

    def drop_values(
        self,
        crd: Stream,
        val: Stream,
        dropped: Expr | None = None,
        *,
        missing_only: bool = False,
        name: str = "drop",
    ) -> tuple[Stream, Stream]:
        """Coordinates and values without those whose value is zero (or ``dropped``) or N.

        With ``missing_only`` without N alone.
        """
        block = self._drafted(
            droppers.value_dropper, crd.type, val.type, dropped, missing_only=missing_only
        )
        out_crd, out_val = self.place(block, name, {"crd": crd, "val": val})
        return out_crd, out_val
