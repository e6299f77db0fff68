"""Systems of uniform recurrences: what is a system, in which order it runs, and its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom
from t2s.core.printer import show
from t2s.func.freeze import freeze
from t2s.func.ir import System
from tests.func.recurrences import (
    convolution,
    lu,
    lu_of,
    pair_hmm,
    pair_hmm_inputs,
    pair_hmm_of,
    prefix_sums,
    qr,
    recurrences,
    trsm,
    trsm_of,
    well_conditioned,
)

i, j, k = t2s.variables("i j k")
x = ImageParam(Int(32), 1, name="x")
INT = Int(32)


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape, np.float32)


def integers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(np.int32)


def domain(system: System) -> list[str]:
    return [f"{d.name} from {show(d.minimum)}, {show(d.extent)}" for d in system.domain]


class TestWorkloads:
    def test_prefix_sums(self) -> None:
        values = random(50)
        assert np.array_equal(t2s.interpret(prefix_sums(50), {"x": values}), np.cumsum(values))

    def test_convolution(self) -> None:
        values, weights = random(20), random(5, seed=1)
        expected = np.zeros(16, np.float32)
        for q in range(5):
            expected = expected + values[q : q + 16] * weights[q]
        result = t2s.interpret(convolution(16, 5), {"x": values, "w": weights})
        assert np.array_equal(result, expected)

    @pytest.mark.parametrize("sizes", [(2, 2, 16, 16), (3, 1, 2, 5)])
    def test_pair_hmm(self, sizes: tuple[int, int, int, int]) -> None:
        inputs = pair_hmm_inputs(*sizes)
        assert np.array_equal(t2s.interpret(pair_hmm(*sizes), inputs), pair_hmm_of(inputs))

    def test_lu(self) -> None:
        a = well_conditioned(4, 8, 8)
        result = t2s.interpret(lu(4, 8), {"A": a})
        assert np.array_equal(result, lu_of(a))
        lower, upper = np.tril(result, -1) + np.eye(8), np.triu(result)
        assert np.allclose(lower @ upper, a, atol=1e-5)

    def test_trsm(self) -> None:
        lower, a = random(6, 6), random(6, 3, seed=1)
        result = t2s.interpret(trsm(6, 3), {"A": a, "L": lower})
        assert np.array_equal(result, trsm_of(lower, a))
        assert np.allclose((np.tril(lower, -1) + np.eye(6)) @ result, a, atol=1e-5)

    @pytest.mark.parametrize(("rows", "columns"), [(4, 4), (6, 3)])
    def test_qr(self, rows: int, columns: int) -> None:
        a = random(rows, columns) + np.eye(rows, columns, dtype=np.float32)
        result = t2s.interpret(qr(rows, columns), {"A": a})
        assert list(result) == ["Q", "R"]
        q, r = np.linalg.qr(a.astype(np.float64))
        signs = np.sign(np.diag(r))
        assert np.allclose(result["Q"], q * signs, atol=1e-5)
        assert np.allclose(result["R"], r * signs[:, None], atol=1e-5)


class TestMembers:
    def test_a_func_with_the_same_arguments_joins(self) -> None:
        program = freeze(lu(2, 4))
        (system,) = program.systems
        assert system.members == ("P", "L", "V", "U", "Z")
        assert [function.name for function in program.functions] == [*system.members, "O"]
        assert domain(system) == ["b from 0, 2", "k from 0, 4", "j from k, 4 - k", "i from 0, 4"]
        assert system.lanes is None
        assert program.function("Z").bounds == ((0, 2), (0, 4), (0, 4), (0, 4))
        assert program.function("Z").initial.domain == system.domain
        assert program.system_of("O") is None

    def test_funcs_that_are_no_recurrence_stay_outside(self) -> None:
        program = freeze(pair_hmm(1, 1, 4, 4))
        (system,) = program.systems
        assert set(system.members) == {"M", "I", "D", "Sum"}
        assert program.system_of("alpha") is None
        names = [function.name for function in program.functions]
        assert names[:2] == ["alpha", "beta"]
        assert names[-1] == "out"

    def test_lanes(self) -> None:
        program = freeze(qr(4, 3))
        (system,) = program.systems
        assert domain(system) == ["i from -1, 4", "j from i, 3 - i"]
        assert system.lanes is not None
        assert (system.lanes.name, show(system.lanes.minimum), show(system.lanes.extent)) == (
            "k", "0", "4",
        )  # fmt: skip
        assert program.function("New").bounds == ((-1, 4), (-1, 4), (0, 4))
        assert program.function("X").bounds == ((-1, 4), (-1, 4))
        assert [d.name for d in program.function("X").updates[0].domain] == ["i", "j", "kr"]
        order = system.members
        assert order.index("Next") < order.index("X") < order.index("Square") < order.index("S")

    def test_other_subscripts_make_a_projection(self) -> None:
        (S,) = recurrences("S", INT)
        S[i, j] = t2s.select(j == 0, i, S[i, j - 1] + 1)
        T = Func("T")
        T[i, j] = S[j, i]
        program = freeze(T.bound(i, 0, 3).bound(j, 0, 3))
        assert program.systems[0].members == ("S",)
        assert np.array_equal(t2s.interpret(T, {}), [[0, 1, 2], [1, 2, 3], [2, 3, 4]])

    def test_a_projection_that_a_later_func_reads_keeps_it_outside(self) -> None:
        (S,) = recurrences("S", INT)
        S[i, j] = t2s.select(j == 0, i * i, S[i, j - 1] + 1)
        T, both = t2s.funcs("T both")
        T[i, j] = S[j, i]
        both[i, j] = T[i, j] * 100 + S[i, j]
        program = freeze(both.bound(i, 0, 3).bound(j, 0, 3))
        assert program.systems[0].members == ("S",)
        s = np.arange(3)[:, None] ** 2 + np.arange(3)
        assert np.array_equal(t2s.interpret(both, {}), s.T * 100 + s)

    def test_reads_of_later_iterations_make_a_projection(self) -> None:
        (S,) = recurrences("S", INT)
        S[i] = t2s.select(i == 0, 0, S[i - 1]) + x[i]
        ahead = Func("ahead")
        ahead[i] = S[i + 1] - S[i]
        S.bound(i, 0, 5)
        values = integers(5)
        program = freeze(ahead.bound(i, 0, 4))
        assert program.systems[0].members == ("S",)
        assert np.array_equal(t2s.interpret(ahead, {"x": values}), values[1:])

    def test_two_recurrences_with_the_same_arguments_are_one_system(self) -> None:
        S, T = recurrences("S T", INT)
        S[i] = t2s.select(i == 0, 0, S[i - 1]) + x[i]
        T[i] = t2s.select(i == 0, 0, T[i - 1]) + S[i]
        values = integers(9)
        (system,) = freeze(T.bound(i, 0, 9)).systems
        assert system.members == ("S", "T")
        assert np.array_equal(t2s.interpret(T, {"x": values}), np.cumsum(np.cumsum(values)))

    def test_two_recurrences_with_other_subscripts_are_two_systems(self) -> None:
        S, T = recurrences("S T", INT)
        S[i, j] = t2s.select(i == 0, j, S[i - 1, j] + 1)
        T[i, j] = t2s.select(i == 0, 0, T[i - 1, j]) + S[j, i]
        S.bound(i, 0, 4)
        first, second = freeze(T.bound(i, 0, 4).bound(j, 0, 4)).systems
        assert (first.members, second.members) == (("S",), ("T",))
        s = np.add.outer(np.arange(4), np.arange(4))
        assert np.array_equal(t2s.interpret(T, {}), np.cumsum(s.T, 0))

    def test_a_read_at_a_distance_given_by_a_param(self) -> None:
        n = Param(Int(32), name="n")
        (S,) = recurrences("S", INT)
        S[i] = t2s.select(i < n, 1, S[i - n] + 1)
        assert np.array_equal(t2s.interpret(S.bound(i, 0, 7), {"n": 3}), [1, 1, 1, 2, 2, 2, 3])

    def test_an_order_of_the_members_that_is_not_the_written_one(self) -> None:
        A, B, C = recurrences("A B C", INT)
        A[i] = B[i] + 1
        B[i] = C[i] * 2
        C[i] = t2s.select(i == 0, x[0], A[i - 1])
        (system,) = freeze(A.bound(i, 0, 4)).systems
        assert system.members == ("C", "B", "A")
        assert np.array_equal(t2s.interpret(A, {"x": np.int32([1])}), [3, 7, 15, 31])

    def test_an_ordinary_reduction_of_a_recurrence(self) -> None:
        (S,) = recurrences("S", INT)
        S[i, j] = t2s.select(i == 0, j, S[i - 1, j] + 1)
        total, jr = Func("total"), RDom(0, 4, name="jr")
        total[i] = 0
        total[i] += S[i, jr]
        S.bound(i, 0, 3)
        program = freeze(total.bound(i, 0, 3))
        assert program.systems[0].members == ("S",)
        assert np.array_equal(t2s.interpret(total, {}), [6, 10, 14])


class TestOrder:
    def test_a_distance_that_points_back_in_an_outer_loop_and_ahead_in_an_inner_one(self) -> None:
        (S,) = recurrences("S", INT)
        S[i, j] = t2s.select((i == 0) | (j == 3), x[j], S[i - 1, j + 1] + 1)
        result = t2s.interpret(S.bound(i, 0, 3).bound(j, 0, 4), {"x": np.int32([1, 2, 3, 4])})
        assert np.array_equal(result, [[1, 2, 3, 4], [3, 4, 5, 4], [5, 6, 5, 4]])

    def test_a_lane_reduction_rounds_in_the_written_order(self) -> None:
        A = ImageParam(Float(32), 2, name="A")
        kr = RDom(0, 9, name="kr")
        V, W = recurrences("V W")
        V[i, k] = A[i, k] + t2s.select(i == 0, 0.0, W[i - 1])
        W[i] = 0.0
        W[i] += V[i, kr]
        V.bound(k, 0, 9)
        a = random(3, 9)
        expected, last = [], np.float32(0)
        for row in a:
            total = np.float32(0)
            for value in row:
                total = total + (value + last)
            last = total
            expected.append(total)
        result = t2s.interpret(W.bound(i, 0, 3), {"A": a})
        assert np.array_equal(result, np.array(expected, np.float32))

    def test_a_guard_that_depends_on_data(self) -> None:
        y = ImageParam(Int(32), 2, name="y")
        (run,) = recurrences("run", INT)
        run[k, i] = t2s.select(y[k, i] > 2, t2s.select(i > 0, run[k, i - 1], 0) + 1, 0)
        values = np.int32([[1, 3, 4, 1, 5], [3, 3, 3, 0, 9]])
        result = t2s.interpret(run.bound(k, 0, 2).bound(i, 0, 5), {"y": values})
        assert np.array_equal(result, [[0, 1, 2, 0, 1], [1, 2, 3, 0, 1]])

    def test_reads_at_places_that_depend_on_data(self) -> None:
        (S,) = recurrences("S", INT)
        S[i] = t2s.select(i == 0, 0, S[i - 1]) + x[i]
        picked, counts = t2s.funcs("picked counts")
        picked[i] = S[x[i] % 5]
        place = RDom(0, 5, name="place")
        counts[j] = 0
        counts[S[place] % 4] += 1
        S.bound(i, 0, 5)
        outputs = (picked.bound(i, 0, 5), counts.bound(j, 0, 4))
        assert freeze(outputs).systems[0].members == ("S",)
        result = t2s.interpret(outputs, {"x": np.arange(5, dtype=np.int32)})
        assert np.array_equal(result["picked"], [0, 1, 3, 6, 10])
        assert np.array_equal(result["counts"], [1, 1, 2, 1])


class TestDomains:
    def test_elements_outside_of_the_rows_are_zero(self) -> None:
        f = Func("f")
        f[i, j] = i + 10 * j
        result = t2s.interpret(f.bound(i, 0, 3).bound(j, i, 4 - i), {})
        assert np.array_equal(result, [[0, 10, 20, 30], [0, 11, 21, 31], [0, 0, 22, 32]])

    def test_an_empty_row(self) -> None:
        f = Func("f")
        f[i, j] = 1 + i + j
        result = t2s.interpret(f.bound(i, 0, 3).bound(j, 0, i), {})
        assert np.array_equal(result, [[0, 0], [2, 0], [3, 4]])

    def test_negative_minima(self) -> None:
        f, g = t2s.funcs("f g")
        f[i, j] = 10 * i + j
        g[i] = f[i, -2] + f[i - 1, i - 3]
        program = freeze(g.bound(i, -1, 2))
        assert program.function("f").bounds == ((-2, 3), (-4, 3))
        assert np.array_equal(t2s.interpret(g, {}), [-12 - 24, -2 - 13])

    def test_a_triangular_reduction(self) -> None:
        f, r = Func("f"), RDom(0, i + 1, name="r")
        f[i, j] = 0
        f[i, j] += x[r] + j
        values = integers(4)
        result = t2s.interpret(f.bound(i, 0, 4).bound(j, i, 4 - i), {"x": values})
        sums = np.cumsum(values)[:, None] + np.outer(np.arange(1, 5), np.arange(4))
        assert np.array_equal(result, np.triu(sums))

    def test_an_update_with_exchanged_arguments(self) -> None:
        f = Func("f")
        f[i, j] = 1
        f[k, i] += 10 * k + i
        result = t2s.interpret(f.bound(i, 0, 3).bound(j, i, 3 - i), {})
        sums = 1 + np.add.outer(10 * np.arange(3), np.arange(3))
        assert np.array_equal(result, np.triu(sums))

    def test_an_update_that_runs_point_by_point(self) -> None:
        f = Func("f")
        f[i, j] = i + j
        f[i, j] += t2s.select(j > i, f[i, j - 1], 0)
        result = t2s.interpret(f.bound(i, 0, 3).bound(j, i, 4 - i), {})
        assert np.array_equal(result, [[0, 1, 3, 6], [0, 2, 5, 9], [0, 0, 4, 9]])

    def test_bounds_of_a_param(self) -> None:
        n, f = Param(Int(16), name="n"), Func("f")
        f[i, j] = 1
        f.bound(i, 0, n).bound(j, n - i - 1, i + 1)
        assert np.array_equal(t2s.interpret(f, {"n": 3}), [[0, 0, 1], [0, 1, 1], [1, 1, 1]])

    @pytest.mark.parametrize("carried", ["outer", "inner", "both"])
    def test_rows_of_carried_and_of_free_loops(self, carried: str) -> None:
        """Bounds of free loops depend on carried ones, and the other way round."""
        (S,) = recurrences("S", INT)
        first, back = {
            "outer": (i == 0, (i - 1, j)),
            "inner": (j == i, (i, j - 1)),
            "both": ((i == 0) | (j == i), (i - 1, j - 1)),
        }[carried]
        start_values = ImageParam(Int(32), 1, name="x", shape=(5,))
        S[i, j] = t2s.select(first, start_values[j], 2 * S[back] + i)
        S.bound(i, 0, 4).bound(j, i, 5 - i)
        values = integers(5)
        expected = np.zeros((4, 5), np.int32)
        for row, column in np.ndindex(4, 5):
            start = {"outer": row == 0, "inner": column == row, "both": row in (0, column)}
            source = {"outer": (row - 1, column), "inner": (row, column - 1)}
            at = source.get(carried, (row - 1, column - 1))
            if column >= row:
                new = values[column] if start[carried] else 2 * expected[at] + row
                expected[row, column] = new
        assert np.array_equal(t2s.interpret(S, {"x": values}), expected)

    def test_bounds_given_on_different_members(self) -> None:
        S, T = recurrences("S T", INT)
        S[i, j] = t2s.select(j == -1, 0, T[i, j - 1]) + 1
        T[i, j] = S[i, j] + i
        S.bound(i, -2, 3).bound(j, -1, 3)
        T.bound(j, -1, 3)
        rows = np.arange(-2, 1)[:, None]
        assert np.array_equal(t2s.interpret(T, {}), (1 + rows) * np.arange(1, 4))


class TestOutputs:
    def test_interpret_returns_arrays_by_name(self) -> None:
        double, square = t2s.funcs("double square")
        double[i] = 2 * x[i]
        square[i] = double[i] * double[i]
        square.bound(i, 0, 3)
        double.bound(i, 0, 3)
        result = t2s.interpret([square, double], {"x": np.int32([1, 2, 3])})
        assert list(result) == ["square", "double"]
        assert np.array_equal(result["double"], [2, 4, 6])
        assert np.array_equal(result["square"], [4, 16, 36])

    def test_a_sequence_of_one(self) -> None:
        assert list(t2s.interpret([prefix_sums(3)], {"x": random(3)})) == ["S"]

    def test_hardware_with_two_outputs(self) -> None:
        product, largest, r = Func("product"), Func("largest"), RDom(0, 4, name="r")
        product[i] = 1
        product[i] *= x[i + r]
        largest[i] = x[i]
        largest[i] = t2s.max(largest[i], x[i + r])
        product.bound(i, 0, 5)
        largest.bound(i, 0, 5)
        design, inputs = (product, largest), {"x": integers(8)}
        expected = t2s.interpret(design, inputs)
        for engine in ("native", "python"):
            outputs = t2s.simulate(design, inputs, engine=engine).outputs
            assert list(outputs) == ["product", "largest"]
            for name, value in expected.items():
                assert np.array_equal(outputs[name], value)
        assert t2s.cycles(design) == t2s.cycles(t2s.lower(design))
        assert "largest: compute" in t2s.print_loop_nest(design)
