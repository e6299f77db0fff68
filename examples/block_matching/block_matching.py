"""Block matching for motion estimation: where has each block of a picture come from?

For every block of ``block`` x ``block`` pixels and every motion (u, v) of at most ``reach`` pixels,
the sum of absolute differences (SAD) to the block that would have moved there; the motion with the
smallest sum is the best one. Six loops: the block (by, bx), the motion (u, v) with negative minima,
and the pixel (i, j).

The array has one PE for each pixel of a block. A PE keeps its pixel for all motions. Sums move
through the array, to the right and then down, to the last PE, which keeps the best motion so far. A
pixel of the picture before moves down, to the PE that needs it for the next u.

Run it with ``python examples/block_matching/block_matching.py``.
"""

import numpy as np

import t2s
from t2s import Func, ImageParam, Int, UInt, Var

FAR = 2**30  # more than any SAD


def design(blocks: int = 2, block: int = 4, reach: int = 2) -> tuple[Func, Func, Func]:
    """``sad``, ``down`` and ``across`` of the best motion of ``blocks`` x ``blocks`` blocks.

    ``now`` is the picture of the blocks; ``before`` has a margin of ``reach`` pixels on all sides.
    """
    now, before = ImageParam(UInt(8), 2, name="now"), ImageParam(UInt(8), 2, name="before")
    by, bx, u, v, i, j = t2s.variables("by bx u v i j")
    Pixel, Row, Sum, Least, LeastV, Best, BestU, BestV = (
        Func(name, type=Int(32))
        for name in ("Pixel", "Row", "Sum", "Least", "LeastV", "Best", "BestU", "BestV")
    )
    here, left, above = (by, bx, u, v, i, j), (by, bx, u, v, i, j - 1), (by, bx, u, v, i - 1, j)
    one_v, one_u = (by, bx, u, v - 1, i, j), (by, bx, u - 1, v, i, j)
    select = t2s.select
    pixel = t2s.cast(Int(32), now[by * block + i, bx * block + j])
    other = t2s.cast(Int(32), before[by * block + i - u + reach, bx * block + j - v + reach])
    Pixel[here] = select(v > -reach, Pixel[one_v], select(u > -reach, Pixel[one_u], pixel))
    Row[here] = t2s.abs(Pixel[here] - other) + select(j == 0, 0, Row[left])
    Sum[here] = Row[here] + select(i == 0, 0, Sum[above])

    # in the last PE Sum is the SAD: the least one of a row of motions, and of all rows so far
    last = (i == block - 1) & (j == block - 1)
    inner, outer = last & (v > -reach), last & (u > -reach)
    least = select(inner, Least[one_v], FAR)
    Least[here] = t2s.min(Sum[here], least)
    LeastV[here] = select(Sum[here] < least, v, select(inner, LeastV[one_v], 0))
    best = select(outer, Best[one_u], FAR)
    Best[here] = t2s.min(Least[here], best)
    BestU[here] = select(Least[here] < best, u, select(outer, BestU[one_u], 0))
    BestV[here] = select(Least[here] < best, LeastV[here], select(outer, BestV[one_u], 0))
    sad, down, across = t2s.funcs("sad down across")
    for result, member in ((sad, Best), (down, BestU), (across, BestV)):
        result[by, bx] = member[by, bx, reach, reach, block - 1, block - 1]
        result.bound(by, 0, blocks).bound(bx, 0, blocks)
    Sum.bound(u, -reach, 2 * reach + 1).bound(v, -reach, 2 * reach + 1)
    Sum.bound(i, 0, block).bound(j, 0, block)

    t = Var("t")
    Sum.space_time_transform([u, v, i, j], {i: i, j: j, t: i + j + (2 * reach + 1) * u + v})
    now_loader, before_loader = t2s.funcs("now_loader before_loader")
    Sum.isolate_producer(now, now_loader).isolate_producer(before, before_loader)
    Sum.forward(before_loader, i)
    return sad, down, across


def expected(now: np.ndarray, before: np.ndarray, block: int, reach: int) -> np.ndarray:
    """SAD, u and v of each block in numpy; of equal SADs the first one counts."""
    windows = np.lib.stride_tricks.sliding_window_view(before.astype(np.int32), (block, block))
    found = np.zeros((3, now.shape[0] // block, now.shape[1] // block), np.int32)
    for by, bx in np.ndindex(found.shape[1:]):
        y, x, span = by * block, bx * block, 2 * reach + 1
        near = windows[y : y + span, x : x + span][::-1, ::-1]
        sads = np.abs(near - now[y : y + block, x : x + block].astype(np.int32)).sum((2, 3))
        u, v = np.unravel_index(np.argmin(sads), sads.shape)
        found[:, by, bx] = sads[u, v], u - reach, v - reach
    return found


def pictures(blocks: int, block: int, reach: int) -> dict[str, np.ndarray]:
    """A random picture, and one that is moved by (1, -1) and a little noisy."""
    generator = np.random.default_rng(0)
    size = blocks * block
    before = generator.integers(0, 250, (size + 2 * reach, size + 2 * reach), np.uint8)
    top, left = reach - 1, reach + 1
    noise = generator.integers(0, 5, (size, size), np.uint8)
    return {"now": before[top : top + size, left : left + size] + noise, "before": before}


def main() -> None:
    sizes = {"blocks": 2, "block": 4, "reach": 2}
    outputs = design(**sizes)
    inputs = pictures(**sizes)
    result = t2s.simulate(outputs, inputs, device="arria10")
    found = np.stack([result.outputs[output.name] for output in outputs])
    wanted = expected(inputs["now"], inputs["before"], sizes["block"], sizes["reach"])
    np.testing.assert_array_equal(found, wanted)
    print(result)
    for by, bx in np.ndindex(found.shape[1:]):
        sad, down, across = found[:, by, bx]
        print(f"block ({by}, {bx}) moved by ({down}, {across}), SAD {sad}")


if __name__ == "__main__":
    main()
