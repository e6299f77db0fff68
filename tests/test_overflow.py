"""Sums of integers that leave their type are warned of, and no others are."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse as scipy_sparse

import t2s
from t2s import Func, ImageParam, Int, RDom, Type, UInt, Var, sparse
from t2s.errors import T2SWarning
from t2s.func import overflow

Array = np.ndarray[Any, Any]
i, j, k = Var("i"), Var("j"), Var("k")


def warned(run: Callable[[], Any]) -> list[str]:
    """The first lines of the warnings of a run."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    assert all(issubclass(one.category, T2SWarning) for one in found)
    assert all(one.filename == __file__ for one in found)
    return [str(one.message).splitlines()[0] for one in found]


def product(type: Type, n: int, depth: int, given: Type, widen: bool = False) -> Func:
    """A product of square matrices, padded by nothing."""
    r = RDom(0, depth, name="r")
    a, b = ImageParam(given, 2, name="A"), ImageParam(given, 2, name="B")
    factors = (t2s.cast(type, a[i, r]), t2s.cast(type, b[r, j])) if widen else (a[i, r], b[r, j])
    made = Func("C", type=type)
    made[i, j] = 0
    made[i, j] += factors[0] * factors[1]
    made.bound(i, 0, n).bound(j, 0, n)
    return made


def full(shape: tuple[int, ...], value: int, kind: str = "int8") -> Array:
    return np.full(shape, value, kind)


def test_a_sum_of_80_000_in_int8_says_what_would_do() -> None:
    """In a run and in the interpreter, once for each; the hint, when followed, is silent."""
    inputs = {"A": full((4, 8), 100), "B": full((8, 4), 100)}
    narrow = product(Int(8), 4, 8, Int(8))
    text = "the sum C needs Int(32): its largest value is 80000"
    for run in (t2s.simulate, t2s.interpret, t2s.simulate):
        assert warned(lambda run=run: run(narrow, inputs)) == [text]
    assert warned(lambda: t2s.simulate(product(Int(32), 4, 8, Int(8), True), inputs)) == []
    with pytest.warns(T2SWarning) as found:
        t2s.interpret(narrow, inputs)
    assert "values from -128 to 127, which Int(8) holds" in str(found[0].message)
    assert found[0].lineno == narrow.written[1].location.line
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", T2SWarning)
        t2s.simulate(narrow, inputs)


@pytest.mark.parametrize(("bits", "term"), [(8, 8), (16, 180), (32, 40_000)])
def test_the_largest_value_of_the_type_is_no_overflow_and_the_next_is_one(
    bits: int, term: int
) -> None:
    """Products and sums of random integers: exactly those that numpy finds in wider ones."""
    generator = np.random.default_rng(bits)
    limits = np.iinfo(f"int{bits}")
    for _ in range(20):
        a = generator.integers(-term, term, (3, 5)).astype(f"int{bits}")
        b = generator.integers(-term, term, (5, 3)).astype(f"int{bits}")
        exact = a.astype(object) @ b.astype(object)
        leaves = exact.max() > limits.max or exact.min() < limits.min
        design = product(Int(bits), 3, 5, Int(bits))
        assert bool(warned(lambda: t2s.interpret(design, {"A": a, "B": b}))) == leaves  # noqa: B023
    edge = {"A": np.array([[1, limits.max - 1]]), "B": np.array([[1], [1]])}
    edge = {name: one.astype(f"int{bits}") for name, one in edge.items()}
    design = product(Int(bits), 1, 2, Int(bits))
    assert warned(lambda: t2s.interpret(design, edge)) == []
    edge["B"][0] = 2
    needed = "Int(64)" if bits == 32 else f"Int({2 * bits})"
    assert warned(lambda: t2s.interpret(design, edge)) == [
        f"the sum C needs {needed}: its largest value is {limits.max + 1}"
    ]


def test_a_sum_beyond_64_bits_has_no_integer_type() -> None:
    inputs = {"A": full((1, 4), 1 << 31, "int64"), "B": full((4, 1), -(1 << 31), "int64")}
    design = product(Int(64), 1, 4, Int(64))
    (text,) = warned(lambda: t2s.interpret(design, inputs))
    assert text == f"the sum C needs Float(64): its smallest value is {-(1 << 64)}"


def test_what_goes_out_and_comes_back_is_right() -> None:
    """Partial sums wrap around; nobody reads them."""
    r = RDom(0, 3, name="r")
    a = ImageParam(Int(8), 1, name="A")
    total, out = Func("S", type=Int(8)), Func("O")
    total[i] = 0
    total[i] += a[r]
    out[i] = total[i]
    out.bound(i, 0, 1)
    total.bound(i, 0, 1)
    assert warned(lambda: t2s.interpret(out, {"A": np.array([100, 100, -100], np.int8)})) == []
    texts = warned(lambda: t2s.interpret(out, {"A": np.array([100, 100, 0], np.int8)}))
    assert texts == ["the sum S needs Int(16): its largest value is 200"]


def systolic(n: int) -> Func:
    """A product of matrices as recurrences, whose partial sums are elements."""
    a, b = ImageParam(Int(8), 2, name="A"), ImageParam(Int(8), 2, name="B")
    x, y, z = (Func(name, type=Int(8)) for name in "XYZ")
    x[i, j, k] = t2s.select(j == 0, a[i, k], x[i, j - 1, k])
    y[i, j, k] = t2s.select(i == 0, b[k, j], y[i - 1, j, k])
    z[i, j, k] = t2s.select(k == 0, 0, z[i, j, k - 1]) + x[i, j, k] * y[i, j, k]
    out = Func("O")
    out[i, j] = z[i, j, n - 1]
    for one in (x, y, z):
        one.bound(i, 0, n).bound(j, 0, n).bound(k, 0, n)
    return out.bound(i, 0, n).bound(j, 0, n)


def test_recurrences_are_sums_of_which_the_last_element_counts() -> None:
    n, design = 6, systolic(6)
    generator = np.random.default_rng(1)
    seen = set()
    for size in (3, 6, 9, 12):
        a, b = (generator.integers(-size, size, (n, n)).astype(np.int8) for _ in range(2))
        exact = a.astype(int) @ b.astype(int)
        leaves = exact.max() > 127 or exact.min() < -128
        seen.add(leaves)
        texts = warned(lambda: t2s.simulate(design, {"A": a, "B": b}))  # noqa: B023
        largest = exact.max() if abs(exact.max()) >= abs(exact.min()) else exact.min()
        assert [text.split()[-1] for text in texts] == ([str(largest)] if leaves else [])
    assert seen == {True, False}


def test_other_reductions_hashes_and_unsigned_sums_wrap_around_in_silence() -> None:
    r = RDom(0, 8, name="r")
    given = {"A": full((8,), 100)}
    a = ImageParam(Int(8), 1, name="A")
    values: dict[str, Callable[[Any], Any]] = {
        "hash": lambda own: own * 31 + a[r],
        "xor": lambda own: (own ^ a[r]) + (own & 3),
        "largest": lambda own: t2s.max(own, a[r]),
    }
    for name, value in values.items():
        made = Func(name, type=Int(8))
        made[i] = 0
        made[i] = value(made[i])
        made.bound(i, 0, 1)
        assert warned(lambda: t2s.interpret(made, given)) == [], name  # noqa: B023
    design = product(UInt(8), 2, 8, UInt(8))
    unsigned = {"A": full((2, 8), 200, "uint8"), "B": full((8, 2), 200, "uint8")}
    assert warned(lambda: t2s.interpret(design, unsigned)) == []


def test_a_sum_that_is_clipped_in_place_was_too_large_before() -> None:
    r = RDom(0, 4, name="r")
    a = ImageParam(Int(8), 2, name="A")
    made = Func("R", type=Int(8))
    made[i] = 0
    made[i] += a[i, r]
    made[i] = t2s.max(made[i], 0)
    made.bound(i, 0, 2)
    texts = warned(lambda: t2s.interpret(made, {"A": full((2, 4), 60)}))
    assert texts == ["the sum R needs Int(16): its largest value is 240"]
    assert warned(lambda: t2s.interpret(made, {"A": full((2, 4), 20)})) == []


def test_ragged_sums_and_computed_targets() -> None:
    below = RDom(0, i + 1, name="below")
    a = ImageParam(Int(8), 2, name="A", shape=(20, 20))
    made = Func("P", type=Int(8))
    made[i] = 0
    made[i] += a[i, below]
    made.bound(i, 0, 20)
    assert warned(lambda: t2s.interpret(made, {"A": full((20, 20), 6)})) == []
    texts = warned(lambda: t2s.interpret(made, {"A": full((20, 20), 7)}))
    assert texts == ["the sum P needs Int(16): its largest value is 140"]
    r = RDom(0, 200, name="r")
    keys = ImageParam(Int(32), 1, name="K")
    counts = Func("H", type=Int(8))
    counts[j] = 0
    counts[keys[r]] += 1
    counts.bound(j, 0, 4)
    spread, equal = np.arange(200, dtype=np.int32) % 4, np.ones(200, np.int32)
    assert warned(lambda: t2s.interpret(counts, {"K": spread})) == []
    texts = warned(lambda: t2s.interpret(counts, {"K": equal}))
    assert texts == ["the sum H needs Int(16): its largest value is 200"]


def test_ranges_alone_tell_that_usual_programs_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is computed again where the types of the inputs, or their values, are small."""

    def refuse(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(overflow, "_with_companions", refuse)
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-128, 128, (4, 4)).astype(np.int8) for _ in range(2))
    t2s.interpret(product(Int(32), 4, 4, Int(8), True), {"A": a, "B": b})
    small = {"A": full((4, 4), 5), "B": full((4, 4), 6)}
    t2s.interpret(product(Int(8), 4, 4, Int(8)), small)
    ones = {"A": full((6, 6), 2), "B": full((6, 6), 2)}
    t2s.interpret(systolic(6), ones)


STATEMENTS = {
    "y(i)=A(i,j)*x(j)": ["the sum y needs Int(32): its largest value is 80000"],
    "y(i)=max(sum(j,A(i,j)*x(j)),0)": [
        "the sum sum(j, A(i,j)*x(j)) needs Int(32): its largest value is 80000"
    ],
    "y(i)=sum(j,A(i,j)*x(j))-sum(j,A(i,j)*x(j))": [],
    "y(i)=sum(j,A(i,j))-sum(j,x(j))": [],
    "Y(i,j)=A(i,j)*x(j)": [],
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_sums_of_statements(text: str) -> None:
    inputs = {"A": full((4, 8), 100), "x": full((8,), 100)}
    if text.startswith("y(i)=sum(j,A(i,j))"):
        inputs["x"][:] = 90
    kernel = sparse.compile(sparse.parse(text, {"A": "ds"}))
    assert warned(lambda: kernel.simulate(inputs)) == STATEMENTS[text]
    assert warned(lambda: kernel.interpret(inputs)) == STATEMENTS[text]
    assert warned(lambda: kernel.simulate(inputs, type=Int(32))) == []
    floats = {name: one.astype(np.float32) for name, one in inputs.items()}
    assert warned(lambda: kernel.simulate(floats)) == []


def test_sums_of_random_matrices_are_those_of_scipy() -> None:
    """Products of sparse matrices: a warning exactly where scipy's, in int64, leave the type."""
    kernel = sparse.compile(sparse.parse("X(i,j)=A(i,k)*B(k,j)", {"A": "ds", "B": "ds", "X": "ds"}))
    seen = set()
    for seed in range(8):
        a, b = (
            scipy_sparse.random_array(
                (12, 12), density=0.3, rng=np.random.default_rng(seed + 9 * s)
            )
            for s in range(2)
        )
        a, b = (scipy_sparse.csr_array((one * (6 + 2 * seed)).astype(np.int8)) for one in (a, b))
        exact = (a.astype(np.int64) @ b.astype(np.int64)).toarray()
        leaves = bool(exact.max() > 127 or exact.min() < -128)
        seen.add(leaves)
        assert bool(warned(lambda: kernel.simulate({"A": a, "B": b}))) == leaves  # noqa: B023
    assert seen == {True, False}


def test_sums_on_capstan() -> None:
    inputs = {"A": full((4, 8), 1 << 20, "int32"), "x": full((8,), 1 << 10, "int32")}
    kernel = sparse.compile(sparse.parse("y(i)=A(i,j)*x(j)", {"A": "ds"}), target="capstan")
    text = f"the sum y needs Int(64): its largest value is {8 << 30}"
    assert warned(lambda: kernel.simulate(inputs)) == [text]
    assert warned(lambda: kernel.interpret(inputs)) == [text]
    assert warned(lambda: kernel.simulate(inputs, type=Int(64))) == []
    inputs["x"][:] = 1 << 7
    assert warned(lambda: kernel.simulate(inputs)) == []
