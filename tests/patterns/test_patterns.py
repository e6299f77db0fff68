"""What programs of patterns mean, against scipy; reference cases of scans and of bit vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Parameter, const
from t2s.core.types import INT32, Float, Int
from t2s.patterns.interpret import interpret_patterns
from t2s.patterns.ir import (
    BuildBits,
    CountHeader,
    DeclareMemory,
    Foreach,
    FullLevel,
    JoinKind,
    LoadStream,
    MemoryKind,
    PatternProgram,
    PatternStatement,
    Pop,
    ProgramArgument,
    ProgramResult,
    Push,
    ReadMemory,
    Reduce,
    ScanHeader,
    Update,
    WriteMemory,
)
from t2s.patterns.printer import print_patterns
from t2s.patterns.verify import verify_patterns
from tests.patterns.programs import (
    LANES,
    WORD,
    chip,
    dram,
    local,
    matrix_sum,
    sddmm,
    spmv,
)

TYPES = [Int(32), Float(32)]
few = settings(max_examples=15, deadline=None)
extents = st.integers(0, 12)
densities = st.sampled_from([0.0, 0.05, 0.3, 1.0])


def _matrix(
    rows: int, columns: int, density: float, seed: int, type: str
) -> scipy.sparse.csr_array:
    generator = np.random.default_rng(seed)
    dense = generator.integers(1, 9, (rows, columns)) * (
        generator.random((rows, columns)) < density
    )
    return scipy.sparse.csr_array(dense.astype(type))


def _arrays(name: str, matrix: scipy.sparse.csr_array) -> dict[str, np.ndarray]:
    return {
        f"{name}_pos": matrix.indptr,
        f"{name}_crd": matrix.indices,
        f"{name}_vals": matrix.data,
    }


@few
@given(extents, extents, densities, st.integers(0, 9), st.sampled_from(TYPES))
def test_a_matrix_times_a_vector(
    rows: int, columns: int, density: float, seed: int, type: object
) -> None:
    program = spmv(type)  # type: ignore[arg-type]
    verify_patterns(program)
    matrix = _matrix(rows, columns, density, seed, str(type))
    x = np.arange(columns).astype(str(type))
    sizes = {"rows": rows, "columns": columns, "entries": matrix.nnz}
    found = interpret_patterns(program, {**_arrays("A", matrix), "x_vals": x}, sizes)
    np.testing.assert_array_equal(found.memories["y_vals"], matrix @ x)


@few
@given(extents, extents, st.integers(0, 20), densities, st.integers(0, 9))
def test_a_sampled_product(rows: int, columns: int, depth: int, density: float, seed: int) -> None:
    program = sddmm(Int(32))
    verify_patterns(program)
    b = _matrix(rows, columns, density, seed, "int32")
    generator = np.random.default_rng(seed)
    c, d = (generator.integers(-4, 5, (n, depth)).astype(np.int32) for n in (rows, columns))
    sizes = {"rows": rows, "columns": columns, "depth": depth, "entries": b.nnz}
    arrays = {**_arrays("B", b), "C_vals": c.ravel(), "D_vals": d.ravel()}
    found = interpret_patterns(program, arrays, sizes).memories["A_vals"]
    expected = (c @ d.T)[np.repeat(np.arange(rows), np.diff(b.indptr)), b.indices] * b.data
    np.testing.assert_array_equal(found, expected)


@few
@given(extents, extents, densities, densities, st.integers(0, 9), st.sampled_from(JoinKind))
def test_sums_and_common_entries(
    rows: int, columns: int, left: float, right: float, seed: int, join: JoinKind
) -> None:
    program = matrix_sum(Int(32), join)
    verify_patterns(program)
    b = _matrix(rows, columns, left, seed, "int32")
    c = _matrix(rows, columns, right, seed + 1, "int32")
    bits = -(-columns // 512) * 512
    sizes = {"rows": rows, "bits": bits, "B_entries": b.nnz, "C_entries": c.nnz}
    found = interpret_patterns(program, {**_arrays("B", b), **_arrays("C", c)}, sizes).memories
    dense = b.toarray() + c.toarray()
    if join is JoinKind.AND:
        dense *= (b.toarray() != 0) & (c.toarray() != 0)
    expected = scipy.sparse.csr_array(dense)
    np.testing.assert_array_equal(found["A_pos"], expected.indptr)
    np.testing.assert_array_equal(found["A_crd"][: expected.nnz], expected.indices)
    np.testing.assert_array_equal(found["A_vals"][: expected.nnz], expected.data)


def _words(name: str, size: int) -> list[PatternStatement]:
    return [
        chip(name, MemoryKind.BITS, WORD),
        Foreach(
            header=CountHeader(extent=const(size), parallel=LANES),
            binders=(f"{name}_at",),
            body=(
                ReadMemory(
                    target=f"{name}_word", memory=f"{name}_given", index=local(f"{name}_at")
                ),
                Push(queue=name, value=local(f"{name}_word", WORD)),
            ),
        ),
    ]


def _scanned(a: np.ndarray, b: np.ndarray | None, join: JoinKind) -> list[tuple[int, ...]]:
    """What a scan of words binds, iteration by iteration."""
    size = len(a)
    names = ("coordinate", "in_a") if b is None else ("coordinate", "in_a", "output", "in_b")
    operands = {"a": a} if b is None else {"a": a, "b": b}
    body: list[PatternStatement] = []
    memories = []
    for name in operands:
        held = f"{name}_given"
        memories.append(replace(dram(held, WORD, const(size)), kind=MemoryKind.SPARSE_DRAM))
        body += _words(name, size)
    out = [dram(f"{name}_out", INT32, const(32 * size)) for name in names]
    out = [replace(memory, kind=MemoryKind.SPARSE_DRAM) for memory in out]
    header = ScanHeader(
        bits=const(32 * size), left="a", right=None if b is None else "b", join=join
    )
    counted = local("coordinate")
    stores = tuple(
        WriteMemory(memory=f"{name}_out", index=counted, value=local(name)) for name in names
    )
    body += [Foreach(header=header, binders=names, body=stores)]
    program = PatternProgram(
        name="scan",
        environment=(("ip", 16),),
        memories=(*memories, *out),
        body=tuple(body),
    )
    verify_patterns(program)
    begun = {f"{name}_given": words for name, words in operands.items()}
    begun |= {f"{name}_out": np.full(32 * size, -9, np.int32) for name in names}
    found = interpret_patterns(program, begun).memories
    at = np.flatnonzero(found["coordinate_out"] != -9)
    return list(zip(*(found[f"{name}_out"][at].tolist() for name in names), strict=True))


def _bits(*coordinates: int) -> np.ndarray:
    words = np.zeros(16, np.uint32)
    for c in coordinates:
        words[c // 32] |= np.uint32(1 << c % 32)
    return words


def test_scans_of_one_operand() -> None:
    found = _scanned(np.arange(32, dtype=np.uint32), None, JoinKind.AND)
    assert len(found) == 80
    assert [sum(column) for column in zip(*found, strict=True)] == [47776, 3160]


@pytest.mark.parametrize(
    ("join", "count", "coordinates", "in_a", "in_b"),
    [(JoinKind.AND, 32, 18496, 1216, 4624), (JoinKind.OR, 304, 158304, None, None)],
)
def test_scans_of_two_operands(
    join: JoinKind, count: int, coordinates: int, in_a: int | None, in_b: int | None
) -> None:
    found = _scanned(np.arange(32, dtype=np.uint32), np.full(32, 0xAAAA, np.uint32), join)
    assert len(found) == count
    assert sum(item[0] for item in found) == coordinates
    assert [item[2] for item in found] == list(range(count))
    if in_a is not None:
        assert (sum(item[1] for item in found), sum(item[3] for item in found)) == (in_a, in_b)
    else:
        assert sum(item[1] == -1 for item in found) == 224
        assert sum(item[3] == -1 for item in found) == 48


def test_scans_of_a_few_coordinates() -> None:
    a, b = _bits(0, 2, 5, 9), _bits(2, 3, 9, 40)
    assert _scanned(a, b, JoinKind.AND) == [(2, 1, 0, 0), (9, 3, 1, 2)]
    assert _scanned(a, b, JoinKind.OR) == [
        (0, 0, 0, -1),
        (2, 1, 1, 0),
        (3, -1, 2, 1),
        (5, 2, 3, -1),
        (9, 3, 4, 2),
        (40, -1, 5, 3),
    ]
    assert _scanned(_bits(), _bits(), JoinKind.OR) == []


def _built(coordinates: list[int], words: int) -> np.ndarray:
    size = len(coordinates)
    program = PatternProgram(
        name="bits",
        environment=(("ip", 16),),
        memories=(
            dram("crd", INT32, const(size)),
            replace(dram("out", WORD, const(words)), kind=MemoryKind.SPARSE_DRAM),
        ),
        body=(
            chip("queue", MemoryKind.FIFO, INT32),
            LoadStream(queue="queue", source="crd", begin=const(0), length=const(size)),
            chip("made", MemoryKind.BITS, WORD),
            BuildBits(coordinates="queue", count=const(size), words="made", bits=const(32 * words)),
            Foreach(
                header=CountHeader(extent=const(words)),
                binders=("w",),
                body=(
                    Pop(target="word", queue="made"),
                    WriteMemory(memory="out", index=local("w"), value=local("word", WORD)),
                ),
            ),
        ),
    )
    verify_patterns(program)
    given = {"crd": np.array(coordinates, np.int32)}
    return interpret_patterns(program, given).memories["out"]


def test_bits_of_coordinates() -> None:
    found = _built([0, 2, 4, 6, 8, *range(1024, 1033, 2)], 64)
    assert found[0] == found[32] == 341
    assert not found[[*range(1, 32), *range(33, 64)]].any()
    assert _built([], 16).tolist() == [0] * 16


@pytest.mark.parametrize("coordinates", [[3, 3], [4, 1], [512], [-1]])
def test_coordinates_that_do_not_increase_are_refused(coordinates: list[int]) -> None:
    with pytest.raises(UserError, match=r"follows|out of range"):
        _built(coordinates, 16)


def test_lanes_are_a_tree_and_groups_follow() -> None:
    """As hardware rounds: (a + b) + (c + d) in a group, and the groups one after the other."""
    values = np.array([1e8, 1, -1e8, 1, 1, 1], np.float32)
    program = spmv(Float(32))
    matrix = scipy.sparse.csr_array(values[None, :])
    sizes = {"rows": 1, "columns": 6, "entries": 6}
    arrays = {**_arrays("A", matrix), "x_vals": np.ones(6, np.float32)}
    found = interpret_patterns(program, arrays, sizes).memories["y_vals"]
    one, two, three = (values[0] + values[1]), (values[2] + values[3]), (values[4] + values[5])
    assert found[0] == (one + two) + three


def _body_of(program: PatternProgram, *extra: PatternStatement) -> PatternProgram:
    return replace(program, body=(*program.body, *extra))


WRONG = {
    "names twice": ((chip("x_here", MemoryKind.SRAM, INT32),), "two things are named 'x_here'"),
    "unknown memory": (
        (ReadMemory(target="u", memory="nothing", index=const(0)),),
        "'nothing' is not declared here",
    ),
    "kind": ((Pop(target="u", queue="y_here"),), "'y_here' is a dense SRAM"),
    "left over": (
        (
            chip("queue", MemoryKind.FIFO, INT32),
            LoadStream(queue="queue", source="A_crd", begin=const(0), length=const(3)),
            Pop(target="u", queue="queue"),
        ),
        "3 words are put into 'queue', and 1 taken",
    ),
    "taken in a loop": (
        (
            chip("queue", MemoryKind.FIFO, INT32),
            Push(queue="queue", value=const(1)),
            Foreach(
                header=CountHeader(extent=const(4)),
                binders=("q",),
                body=(Pop(target="u", queue="queue"),),
            ),
        ),
        "1 words are put into 'queue', and 4 taken",
    ),
    "coordinate": (
        (
            chip("queue", MemoryKind.FIFO, INT32),
            Push(queue="queue", value=const(1)),
            Pop(target="u", queue="queue"),
            ReadMemory(target="v", memory="y_here", index=local("u")),
        ),
        "'y_here' is a dense SRAM, and u follows coordinates",
    ),
    "unbound": (
        (WriteMemory(memory="A_crd_here", index=local("q"), value=const(0)),),
        "not one of|is not bound",
    ),
    "wide scan": (
        (
            chip("a_bits", MemoryKind.BITS, WORD),
            Foreach(
                header=ScanHeader(bits=const(1 << 17), left="a_bits"), binders=("c", "p"), body=()
            ),
        ),
        "it has 131072 bits",
    ),
    "binders": (
        (Foreach(header=CountHeader(extent=const(1)), binders=("c", "p"), body=()),),
        "it binds 2 locals",
    ),
    "off chip": (
        (DeclareMemory(memory=dram("far", INT32, const(4))),),
        "'far' is off chip",
    ),
    "type": (
        (
            Reduce(
                target="r",
                header=CountHeader(extent=local("j")),
                binders=("z",),
                body=(),
                value=const(1),
            ),
        ),
        "'j' is not bound here",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_found(name: str) -> None:
    extra, message = WRONG[name]
    with pytest.raises(InternalError, match=message):
        verify_patterns(_body_of(spmv(Int(32)), *extra))


def test_results_have_to_be_stored() -> None:
    program = spmv(Int(32))
    with pytest.raises(InternalError, match="'y_vals' of 'y' is never stored"):
        verify_patterns(replace(program, body=program.body[:-1]))


def test_runs_that_go_wrong_name_the_statement() -> None:
    program = replace(
        spmv(Int(32)),
        arguments=(*(ProgramArgument(name=n, type=INT32) for n in ("rows", "columns", "entries")),),
    )
    arrays = {
        "A_pos": np.array([0, 9], np.int32),
        "A_crd": np.zeros(2, np.int32),
        "A_vals": np.ones(2, np.int32),
        "x_vals": np.ones(1, np.int32),
    }
    with pytest.raises(UserError, match=r"LoadStream .*words 0 to 8 are not all in 'A_crd'"):
        interpret_patterns(program, arrays, {"rows": 1, "columns": 1, "entries": 2})


def test_text() -> None:
    text = print_patterns(spmv(Float(32)))
    assert "x_here: partitioned sparse SRAM float32[columns] in 2, swizzled" in text
    assert "    t = reduce + p in A_length by ip:\n" in text
    assert "A_pos_here: dense SRAM int32[rows + 1]  # read by a counter" in text
    assert "result y(dense) = y_vals" in text
    assert text == print_patterns(spmv(Float(32)))
    assert "scan B_bits or C_bits, bits wide, by ip" in print_patterns(matrix_sum(Int(32)))
    assert "result A(dense, as B.1) = A_vals" in print_patterns(sddmm(Int(32)))


def test_products_of_extents_are_counted_by_their_factors() -> None:
    """A queue of rows times columns words is emptied by a pattern in a pattern."""
    rows, columns = (ProgramArgument(name=name, type=INT32) for name in ("rows", "columns"))
    extents = [Parameter(name=one.name, type=INT32) for one in (rows, columns)]
    pop = Pop(target="word", queue="queue")
    inner = Foreach(header=CountHeader(extent=extents[1]), binders=("j",), body=(pop,))
    taken = Foreach(header=CountHeader(extent=extents[0]), binders=("i",), body=(inner,))
    whole = extents[1] * extents[0]
    program = PatternProgram(
        name="taken",
        arguments=(rows, columns),
        memories=(dram("x", INT32, whole),),
        body=(
            chip("queue", MemoryKind.FIFO, INT32),
            LoadStream(queue="queue", source="x", begin=const(0), length=whole),
            taken,
        ),
    )
    verify_patterns(program)
    one_less = extents[0] * extents[0]
    stream = LoadStream(queue="queue", source="x", begin=const(0), length=one_less)
    with pytest.raises(InternalError, match="rows \\* rows words are put into 'queue', and"):
        verify_patterns(replace(program, body=(program.body[0], stream, taken)))


def test_words_that_are_added_up_are_stored() -> None:
    held = replace(dram("y", INT32, const(4)), kind=MemoryKind.SPARSE_DRAM)
    update = Update(target="sum", memory="y", index=const(0), value=const(1))
    result = ProgramResult(tensor="y", values="y", levels=(None,))
    program = PatternProgram(name="added", memories=(held,), body=(update,), results=(result,))
    verify_patterns(program)
    assert interpret_patterns(program, {}).memories["y"].tolist() == [1, 0, 0, 0]


def test_a_full_level_says_its_extent() -> None:
    level = FullLevel(extent=const(5))
    result = ProgramResult(tensor="y", values="y_vals", levels=(level,))
    text = print_patterns(replace(spmv(Int(32)), results=(result,)))
    assert "result y(all of 5) = y_vals" in text
