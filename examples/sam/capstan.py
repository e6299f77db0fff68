"""Capstan's scanner, the header of its loops [SAM, sec. 6.5].

Two bit vectors are joined by ``and`` or ``or``, and for every bit of the result the body of the
loop gets the addresses of both operands' values (the ranks of the bit), the address to which its
result goes, and the coordinate.  With blocks that is a bitvector scanner for each operand and an
intersecter or a unioner of bits: references, coordinates, and the place in which a level writer
stores what it gets.  The body is arrays, an ALU and a writer.  Capstan's is vectorized; a stream of
ours carries one element per cycle, so the body is in ``lanes`` copies instead, to which elements
are dealt.
"""

from __future__ import annotations

import numpy as np

import t2s
from t2s import sparse

INDEX, VALUE, WIDTH = t2s.Int(32), t2s.Float(64), 64


def scanner(size: int, operator: sparse.Op, lanes: int = 1) -> t2s.Graph:
    """x = b * c (bits joined by ``and``) or x = b + c (by ``or``), of vectors of ``size``.

    Inputs ``b_bits``, ``b_rank``, ``b_vals`` and the same of c; outputs ``x_pos``, ``x_crd`` and
    ``x_vals``.
    """
    s = sparse.Streams("scanner")
    words = -(-size // WIDTH)
    sides = []
    for name in "bc":
        bits, ranks = s.tensor(f"{name}_bits", t2s.UInt(WIDTH)), s.tensor(f"{name}_rank", INDEX)
        sides.append(s.scan_bitvector(s.root(), bits, ranks, words))
    join = s.intersect_bits if operator is sparse.Op.MULTIPLY else s.union_bits
    _, crd, refs = join(*sides)
    vals = [s.tensor(f"{name}_vals", VALUE) for name in "bc"]

    def body(streams: tuple[sparse.Stream, ...]) -> sparse.Stream:
        return s.compute(operator, *(s.load(r, v) for r, v in zip(streams, vals, strict=True)))

    if lanes == 1:
        computed = body(refs)
    else:
        dealt = s.parallelize([crd, *refs], lanes)
        computed = s.serialize(crd, [body(lane[1:]) for lane in dealt])
    s.write_compressed(crd, s.output("x_pos", INDEX), s.output("x_crd", INDEX))
    s.write_values(computed, s.output("x_vals", VALUE))
    return s.graph()


def arrays(name: str, vector: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a vector as bits, by the names of the graph."""
    stored = sparse.tensor(vector, sparse.make_format("b"))
    level = stored.levels[0]
    return {
        f"{name}_bits": level["bits"],
        f"{name}_rank": level["pos"].astype(np.int32),
        f"{name}_vals": stored.values,
    }


def design() -> t2s.Graph:
    """What ``t2s run`` runs."""
    return scanner(500, sparse.Op.MULTIPLY)


def inputs(seed: int) -> dict[str, np.ndarray]:
    """The arrays for ``design``."""
    generator = np.random.default_rng(seed)
    b, c = (generator.integers(1, 9, 500) * (generator.random(500) < 0.1) * 1.0 for _ in "bc")
    return arrays("b", b) | arrays("c", c)


def main() -> None:
    generator = np.random.default_rng(4)
    b, c = (generator.integers(1, 9, 2000) * (generator.random(2000) < 0.1) * 1.0 for _ in "bc")
    for operator, expected in ((sparse.Op.MULTIPLY, b * c), (sparse.Op.ADD, b + c)):
        for lanes in (1, 2):
            graph = scanner(2000, operator, lanes)
            result = t2s.simulate(graph, arrays("b", b) | arrays("c", c))
            found = np.zeros(2000)
            found[result.outputs["x_crd"]] = result.outputs["x_vals"]
            np.testing.assert_array_equal(found, expected)
            print(f"{operator.name.lower()}, {lanes} lanes: {result.cycles} cycles")


if __name__ == "__main__":
    main()
