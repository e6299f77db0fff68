"""Hostile arguments of every directive and constructor: an error of ours, or a design."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Bool, Float, Func, ImageParam, Int, Param, RDom, Var, sparse
from t2s.core.errors import InternalError
from t2s.representation import read_matrix, write_matrix
from tests.errors.refusal import refused
from tests.sampling import sampled

SEEDS = range(8)
CALLS = 25

DIRECTIVES = (
    *("buffer", "combine_reduction", "depth", "forward", "fuse", "gather", "isolate_consumer"),
    *("isolate_consumer_chain", "isolate_producer", "isolate_producer_chain", "isolate_reduction"),
    *("load_structure", "reassociate", "reduction_circuit", "remove", "reorder", "scatter"),
    *("space_time_transform", "split", "stream", "tile", "unroll", "update", "vload", "vstore"),
)

SHAPES: tuple[Callable[..., Func], ...] = (
    lambda F, A, B, i, j, k: _summed(F, A[i, k] * B[k, j], i, j).bound(j, 0, 4),
    lambda F, A, B, i, j, k: _summed(F, A[i, j] * B[i, k], i, j).bound(j, i, 4 - i),
    lambda F, A, B, i, j, k: _plain(F, A[i, j] + B[i, 0], i, j).bound(j, 0, 5),
    lambda F, A, B, i, j, k: _plain(
        F, t2s.select(j < 1, 0, F[i, j - 1]) + A[i, j] * B[j, i], i, j
    ).bound(j, 0, 4),
)


def _summed(F: Func, term: Any, i: Var, j: Var) -> Func:
    F[i, j] = 0
    F[i, j] += term
    return F.bound(i, 0, 4)


def _plain(F: Func, value: Any, i: Var, j: Var) -> Func:
    F[i, j] = value
    return F.bound(i, 0, 3)


def _attempt(action: Callable[[], object], what: list[object]) -> None:
    """Do it; only errors of ours may come, and none that blames t2s."""
    try:
        action()
    except InternalError:
        raise AssertionError(f"internal error after {what}") from None
    except t2s.errors.T2SError:
        pass
    except TypeError as error:
        if "positional argument" not in str(error):
            raise AssertionError(f"{error!r} after {what}") from error
    except Exception as error:
        raise AssertionError(f"{error!r} after {what}") from error


def _values(A: ImageParam, F: Func, i: Var, j: Var, k: Any) -> list[Any]:
    p, q, t = t2s.variables("p q t")
    return [
        *(None, 0, 1, 2, -1, 2**31, 2**63, 2**70, 1.5, float("nan"), True, "i", "", "x y", b"x"),
        *(
            [],
            [[]],
            (),
            {},
            object(),
            np.int64(2),
            np.float32(2),
            np.zeros(3),
            1j,
            slice(None),
            ...,
        ),
        *(i + 1, k * 2, i * j, F, A, Func("third"), Func("host", place=t2s.Place.HOST), Int(32)),
        *([i, j], [i, k], [p, t], {p: i, t: j}, {p: k, t: i + j + k}, {t: i}, {p: i, t: A[i, k]}),
        *({p: i, t: i * j}, {"p": i, t: j}, [1, 1], [[1, 0], [0, 1]], [[1, 0], [1]], range(3)),
        *(A[i, k], F[i, j], i < 3, Bool(), *(i, j, k, p, q, t) * 4),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_directives(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(CALLS):
        A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
        i, j, k, F = Var("i"), Var("j"), RDom(0, 3, name="k"), Func("F", Int(32))
        draw.choice(SHAPES)(F, A, B, i, j, k)
        values = [*_values(A, F, i, j, k), B]
        loops = values[-25:-1]
        known = [F]
        log: list[object] = []
        for _ in range(draw.randint(1, 3)):
            name, func = draw.choice(DIRECTIVES), draw.choice(known)
            arguments = [draw.choice(values) for _ in range(draw.randint(1, 4))]
            if name in ("tile", "split"):
                arguments = draw.sample(loops, draw.randint(2, 4))
                arguments += [draw.choice([1, 2, 3, 4, 7, draw.choice(values)])]
            log.append((func.name, name, arguments))
            _attempt(partial(getattr(func, name), *arguments), log)
            known += [x for x in arguments if isinstance(x, Func)]
        _attempt(F.lower, log)


def _one_of_each(draw: random.Random) -> None:
    """Every constructor, and a few definitions, with arguments that are drawn."""
    A, F, G = ImageParam(Int(32), 2, name="A"), Func("F"), Func("G")
    i, j, k = Var("i"), Var("j"), RDom(0, 3, name="k")
    G[i, j] = A[i, j]
    values = [*_values(A, G, i, j, k), Float(32), Param(Int(32), name="n")]
    one, two, three = (draw.choice(values) for _ in range(3))

    def define() -> None:
        left = draw.choice([(i, j), (i, j), (i, one)])
        F[left] = draw.choice([lambda: G[i, j] + two, lambda: two, lambda: A[two, j] * 2])()
        if draw.random() < 0.3:
            F[i, j] += three
        F.bound(i, 0, draw.choice([3, 3, three])).bound(j, draw.choice([0, two]), 2)
        F.lower()

    actions: list[Callable[[], object]] = [
        lambda: Func(*[one, two][: draw.randint(1, 2)]),
        lambda: Var(one),
        lambda: ImageParam(draw.choice([Int(32), one]), draw.choice([2, two]), name="B"),
        lambda: ImageParam(Int(32), 2, name=one),
        lambda: ImageParam(Int(32), 2, name="B", shape=two),
        lambda: RDom(one, two, name=draw.choice(["k", three])),
        lambda: Param(one, name=draw.choice(["m", two])),
        lambda: t2s.select(one, two, three),
        lambda: t2s.variables(one),
        lambda: t2s.funcs(one),
        lambda: A[i, k] + one,
        lambda: i // one,
        lambda: t2s.min(A[i, j], one),
        define,
        define,
        define,
    ]
    for action in actions:
        _attempt(action, [one, two, three, action])


@sampled("seed", SEEDS, quick=2)
def test_constructors_and_definitions(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4 * CALLS):
        _one_of_each(draw)


def test_padding_of_an_inner_part_of_a_recurrence() -> None:
    """The padded iterations of a part are left out, whatever is outside of it."""
    i, j, q, r = t2s.variables("i j q r")
    A, F = ImageParam(Int(32), 2, name="A"), Func("F", Int(32))
    F[i, j] = t2s.select(j < 1, 0, F[i, j - 1]) + A[i, j]
    F.bound(i, 0, 5).bound(j, 0, 4).split(i, i, q, 3).split(q, q, r, 2)
    a = np.arange(20, dtype=np.int32).reshape(5, 4)
    assert t2s.simulate(F, {"A": a}).outputs["F"].tolist() == np.cumsum(a, 1).tolist()


@pytest.mark.parametrize("number", [1.5, float("nan"), float("inf")])
def test_fractions_are_not_cut_off(number: float) -> None:
    """F is an int32 since it starts from 0: 1.5 became 1 without a word."""
    i, F = Var("i"), Func("F")
    F[i] = 0
    F[i] += number
    F.bound(i, 0, 3)
    with pytest.raises(t2s.errors.UserError, match=f"the number {number} does not fit int32"):
        F.lower()


NO_PATHS = (
    None,
    3,
    (1, 2),
    b"x",
    ["a.mtx"],
    {},
    object(),
    1.5,
    "/nowhere/at/all.tns",
    "/nowhere/x",
    "/dev/null/x",
)


@pytest.mark.parametrize("path", NO_PATHS)
@pytest.mark.parametrize(
    "call",
    [sparse.write, sparse.read, write_matrix, read_matrix],
)
def test_what_is_no_place_for_a_file(call: Callable[..., object], path: object) -> None:
    """Raw exceptions of pathlib and of the operating system are not answers."""
    more = {
        sparse.write: (sparse.tensor(np.eye(2)),),
        write_matrix: (np.eye(2),),
        read_matrix: (Float(32),),
    }.get(call, ())
    with pytest.raises(t2s.errors.UserError):
        call(path, *more)


@pytest.mark.parametrize("given", [None, 3, np.eye(2), [[1.0]], "x"])
def test_what_is_no_tensor_is_not_written(given: object) -> None:
    with pytest.raises(t2s.errors.UserError, match="write needs a tensor"):
        sparse.write("never_written.tns", given)  # type: ignore[arg-type]


def test_progress_is_wanted_or_not() -> None:
    with refused("""
            progress has the wrong type
              --> t2s.simulate(_design(), {}, progress=np.eye(1))
              expected: True, False, or None for what takes long
              given:    array([[1.]])
            """):
        t2s.simulate(_design(), {}, progress=np.eye(1))


@pytest.mark.parametrize("given", [None, -3, (1, 2), object(), [1], np.ones((4, 4)), {1}])
@pytest.mark.parametrize(
    "call",
    [
        lambda given: t2s.simulate_many(given, workers=1, progress=False),
        lambda given: t2s.simulate_many([t2s.Run(_design(), name=given)] * 2, workers="x"),
        lambda given: t2s.emit(_design(), given, "never_made"),
        lambda given: t2s.emit(_design(), "verilog", given),
        lambda given: t2s.emulate(_design(), {}, time_limit=given),
        lambda given: t2s.verilate(_design(), {}, time_limit=given),
        lambda given: t2s.fit_depths(_design(), 3 if given is None else given, progress=False),
        lambda given: sparse.make_semiring("min", "+", given),
        lambda given: sparse.schedule(given),
    ],
    ids=(
        "runs",
        "name",
        "backend",
        "folder",
        "emulate",
        "verilate",
        "fit_depths",
        "semiring",
        "schedule",
    ),
)
def test_what_is_of_another_kind(call: Callable[[object], object], given: object) -> None:
    """Runs, results, folders, times and inputs."""
    with pytest.raises(t2s.errors.T2SError) as raised:
        call(given)
    assert not isinstance(raised.value, InternalError)


def _design() -> Func:
    i, F = Var("i"), Func("F")
    F[i] = i
    return F.bound(i, 0, 4)


@pytest.mark.parametrize("given", [3, object(), {1: 2}, [None], "x", Int(32), {"A": 5}])
@pytest.mark.parametrize("what", ["formats", "shapes"])
def test_what_is_no_mapping_of_names(what: str, given: Any) -> None:
    with pytest.raises(t2s.errors.UserError):
        sparse.parse("y(i) = A(i,j) * x(j)", **{what: given})


@pytest.mark.parametrize(
    "end", ["1e", "1ex\n", "0x1\n", "1.5abc\n", "1e+\n", "1.2.3\n", "1-2\n", "-\n", ".\n", "1 %\n"]
)
def test_numbers_of_matrix_market_files_are_whole(end: str, tmp_path: Path) -> None:
    """The reader of scipy takes ``0x1`` for 0, and crashes where a file ends in ``1e``."""
    path = tmp_path / "damaged.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n3 4 1\n1 1 {end}")
    for read in (sparse.read, lambda path: read_matrix(path, Float(32))):
        with pytest.raises(t2s.errors.UserError, match="line 3 has something that is not a number"):
            read(path)


@pytest.mark.parametrize("number", ["1e5", "-inf", "nan", "1.", "-0.5E-3", "Infinity"])
def test_numbers_of_matrix_market_files_in_every_form(number: str, tmp_path: Path) -> None:
    path = tmp_path / "good.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n3 4 1\n1 1 {number}")
    assert np.array_equal(sparse.read(path).values, [float(number)], equal_nan=True)
