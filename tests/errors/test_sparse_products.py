"""Products of sparse matrices that are refused."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.errors import UnsupportedError
from t2s.representation import (
    ASAP,
    Chain,
    Columns,
    Index,
    Length,
    MatrixParam,
    MaybeDifferentTarget,
    Rows,
    Tree,
    Zero,
    dense_matrix,
    gallery,
)
from tests.errors.refusal import refused

idx, row, n, b, c, s, job = t2s.variables("idx row n b c s job")


def parameter(chain: Chain, name: str = "A") -> MatrixParam:
    return MatrixParam(Float(32), 2, chain, name=name)


def product(chain: Chain):
    """The pieces of y[i] += A.values[p, q] * x[j]."""
    A = parameter(chain)
    x = ImageParam(Float(32), 1, name="x")  # of a product
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q] * x[j]
    return y, A, x, p, q


ONES = {"A": np.ones((3, 3), np.float32), "x": np.ones(3, np.float32)}
CSR = sparse.csr_array


def test_sparse_directive_on_a_dense_design() -> None:
    C = Func("C")
    i = Var("i")
    C[i] = 0
    C.bound(i, 0, 4)
    C.is_distinct_reduction(i)
    with refused("""
            is_distinct_reduction(i) on C: C reads no sparse matrix
              --> C.is_distinct_reduction(i)
              expected: a definition with A.values[...] of a t2s.representation.MatrixParam
              given:    a dense program
            """):
        t2s.lower(C)


def test_matrix_missing() -> None:
    y, _A, _x, _p, _q = product(gallery.cisr())
    with refused("""
            the matrix A is missing
              --> y.simulate({"x": ONES["x"]})
              expected: an input named A: a scipy.sparse matrix, an array or a Storage
              given:    x
            """):
        y.simulate({"x": ONES["x"]})


def test_two_loops_of_a_promise() -> None:
    y, _A, _x, p, q = product(gallery.cisr())
    with refused("""
            is_distinct_reduction on y takes one loop
              --> y.is_distinct_reduction([p, q])
              expected: for example is_distinct_reduction(p)
              given:    p, q
            """):
        y.is_distinct_reduction([p, q])


def test_combination_without_target() -> None:
    y, _A, _x, p, _q = product(gallery.cisr())
    with refused("""
            combine_reduction on y needs to know the targets
              --> y.combine_reduction(p, "same")
              expected: SameTarget or MaybeDifferentTarget
              given:    'same'
            """):
        y.combine_reduction(p, "same")


def test_circuit_without_structure() -> None:
    y, _A, _x, _p, _q = product(gallery.cisr())
    with refused("""
            reduction_circuit on y needs a structure
              --> y.reduction_circuit(3, 4)
              expected: Tree or LinearArray
              given:    3
            """):
        y.reduction_circuit(3, 4)


def test_circuit_with_many_levels() -> None:
    y, _A, _x, _p, _q = product(gallery.cisr())
    with refused("""
            reduction_circuit on y has too many levels
              --> y.reduction_circuit(Tree, 9)
              expected: 1 to 6: 64 partial sums
              given:    9
            """):
        y.reduction_circuit(Tree, 9)


def test_circuit_without_levels() -> None:
    y, _A, _x, _p, _q = product(gallery.cisr())
    with refused("""
            the number of levels of reduction_circuit on y has to be a positive integer
              --> y.reduction_circuit(Tree, 0)
              expected: 1 or more
              given:    0
            """):
        y.reduction_circuit(Tree, 0)


def test_load_structure_of_names() -> None:
    y, _A, _x, _p, _q = product(gallery.cisr())
    with refused("""
            load_structure on y needs parts of a structure
              --> y.load_structure("row_len")
              expected: the Vars of a chain's Length and Index
              given:    'row_len'
            """):
        y.load_structure("row_len")


def test_load_structure_outside_of_a_design() -> None:
    loader = Func("loader")
    with refused("""
            load_structure(n) on loader: loader is not part of a design
              --> loader.load_structure(n)
              expected: a Func with a definition, or one that was isolated from another Func
              note:     Func loader was made here
              --> loader = Func("loader")
              hint:     isolate it first, as in C.isolate_producer(A, loader)
            """):
        loader.load_structure(n)


def test_load_structure_for_what_is_no_design() -> None:
    loader = Func("loader")
    with refused("""
            load_structure on loader: loader cannot become a part of n
              --> loader.load_structure(n, design=n)
              expected: a Func of its own, and the Func of the design
              given:    design=n
            """):
        loader.load_structure(n, design=n)


def test_unknown_structure() -> None:
    y, A, _x, p, _q = product(gallery.cisr())
    loader = Func("loader")
    y.isolate_producer(A.values, loader)
    loader.load_structure(s).unroll(p)
    with refused("""
            load_structure(s) on loader: the inverse map of A does not use s
              --> loader.load_structure(s).unroll(p)
              expected: parts of row_len, col_idx
              given:    s
            """):
        y.simulate(ONES)


def test_structure_that_nobody_loads() -> None:
    y, A, _x, p, _q = product(gallery.cisr())
    loader = Func("loader")
    y.isolate_producer(A.values, loader)
    loader.load_structure(Var("col_idx")).unroll(p)
    with refused("""
            nothing loads row_len, which the inverse map of A needs
              --> loader.load_structure(Var("col_idx")).unroll(p)
              expected: load_structure(row_len, col_idx)
              given:    load_structure(col_idx)
            """):
        y.simulate(ONES)


def test_a_loader_for_all_machines() -> None:
    y, A, _x, _p, _q = product(gallery.cisr())
    loader = Func("loader")
    y.isolate_producer(A.values, loader)
    with refused("""
            loader is one unit for all machines
              --> y.isolate_producer(A.values, loader)
              expected: loader.unroll(p): a unit for each machine
              given:    no unroll(p) on loader
            """):
        y.simulate(ONES)


def test_rows_on_two_machines() -> None:
    y, _A, _x, p, _q = product(gallery.row_blocks())
    y.is_distinct_reduction(p)
    with refused("""
            is_distinct_reduction(p) is not true for this matrix
              --> y.is_distinct_reduction(p)
              expected: every row on one machine
              given:    row 0 on machines 0 and 1
              hint:     schedule rows, or leave the promise out: sums of machines are then added
            """):
        y.simulate(ONES)


def test_machines_not_divided() -> None:
    y, _A, _x, p, _q = product(gallery.cisr())
    y.tile(p, Var("pp"), 3)
    with refused("""
            tile(p, pp, 3) on y does not divide the machines
              --> y.tile(p, Var("pp"), 3)
              expected: a divisor of 4, without combining machines
              given:    3
            """):
        y.simulate(ONES)


def test_block_left_in_time() -> None:
    y, _A, _x, _p, q = product(gallery.row_blocks())
    y.tile(q, Var("qq"), 2)
    with refused(
        """
            tile(q, qq, 2) on y leaves qq in time
              --> y.tile(q, Var("qq"), 2)
              expected: unroll(qq): a multiplier for each
              given:    tile(q, qq, 2)
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_block_of_another_size() -> None:
    y, _A, _x, _p, q = product(gallery.row_blocks())
    qq = Var("qq")
    y.tile(q, qq, 3).unroll(qq)
    with refused("""
            tile(q, qq, 3) on y: a row may end inside of a block of 3 values
              --> y.tile(q, qq, 3).unroll(qq)
              expected: a divisor of 2, the values of a block of A
              given:    3
              hint:     block(Columns, 3, Zero, Length(b)) in the chain makes such blocks
            """):
        y.simulate(ONES)


def test_combination_of_four_machines() -> None:
    y, _A, _x, p, _q = product(gallery.cisr())
    y.combine_reduction(p, MaybeDifferentTarget)
    with refused(
        """
            combine_reduction(p, MaybeDifferentTarget) is not possible here
              --> y.combine_reduction(p, MaybeDifferentTarget)
              expected: SameTarget for the elements of a block, MaybeDifferentTarget for p over
                        two machines
              given:    4 machines
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_directive_without_meaning() -> None:
    y, _A, x, _p, _q = product(gallery.cisr())
    y.vload(x)
    with refused(
        """
            vload(x) on y does not apply to a product of a sparse matrix
              --> y.vload(x)
              expected: the directives that docs/representations.md lists for this part
              given:    vload(x)
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_isolation_of_something_else() -> None:
    y, A, _x, _p, _q = product(gallery.cisr())
    loader = Func("loader")
    y.isolate_producer_chain(A.values, loader, Func("second"))
    with refused(
        """
            isolate_producer_chain(A_values, loader, second) isolates something else
              --> y.isolate_producer_chain(A.values, loader, Func("second"))
              expected: A.values, x (a chain of at most two), or the whole term
              given:    isolate_producer_chain(A_values, loader, second)
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_update_that_is_no_sum() -> None:
    A = parameter(gallery.cisr())
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] = y[i] * A.values[p, q] * x[j]
    with refused(
        """
            the update of y is not a sum
              --> y[i] = y[i] * A.values[p, q] * x[j]
              expected: y[i] += ...
              given:    y[A_row[p, q]] * A_values[p, q] * x[A_column[p, q]]
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_left_side_that_is_no_row() -> None:
    A = parameter(gallery.cisr())
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    _i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[j] += A.values[p, q] * x[j]
    with refused(
        """
            the left side of y is not a row of A
              --> y[j] += A.values[p, q] * x[j]
              expected: y[i] with i, j = A.inverse_map(p, q)
              given:    y[A_column[p, q]]
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_some_positions() -> None:
    A = parameter(gallery.cisr())
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, 2, name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += 2 * A.values[p, q] * x[j]
    with refused(
        """
            q does not run over the positions of A
              --> y[i] += 2 * A.values[p, q] * x[j]
              expected: RDom(0, A.values.extent(1)), the positions of all machines
              given:    RDom(0, 2)
              note:     q is made here
              --> p, q, r = Var("p"), RDom(0, 2, name="q"), Var("r")
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_bound_of_machines() -> None:
    y, _A, _x, p, _q = product(gallery.cisr())
    y.bound(p, 0, 2)
    with refused(
        """
            p of y has a bound
              --> y.bound(p, 0, 2)
              expected: bounds of right-hand sides only: A decides the other extents
              given:    bound(p, ...)
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_vector_missing() -> None:
    y, *_ = product(gallery.csc())
    with refused("""
            the input x is missing
              --> y.interpret({"A": ONES["A"]})
              expected: x: a float32 array of shape (3,)
              given:    no inputs
              note:     x is declared here
              --> x = ImageParam(Float(32), 1, name="x")  # of a product
              hint:     pass it by name: {"x": ...}
            """):
        y.interpret({"A": ONES["A"]})


def test_term_with_an_index() -> None:
    A = parameter(gallery.cisr())
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q] * x[j] * q
    with refused(
        """
            the term of y uses q
              --> y[i] += A.values[p, q] * x[j] * q
              expected: A_values[p, q], x[A_column[p, q]], Params and numbers only
              given:    A_values[p, q] * x[A_column[p, q]] * float32(q)
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_term_without_a_vector() -> None:
    A = parameter(gallery.cisr())
    ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, _j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q]
    with refused(
        """
            y needs one dense operand
              --> y[i] += A.values[p, q]
              expected: one ImageParam indexed by the column of A
              given:    none
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_lanes_fused_of_rows_in_no_order() -> None:
    y, _A, _x, p, _q = product(gallery.csc(2))
    y.tile(p, Var("pp"), 2).unroll(p)
    with refused(
        """
            tile(p, pp, 2) on y needs consecutive values of each row
              --> y.tile(p, Var("pp"), 2).unroll(p)
              expected: a chain of rows, or is_continuous_reduction where the matrix allows it
              given:    dense().pack(Rows, Length(col_len), Index(row_idx)).schedule(Columns, 2,
                        RoundRobin, Zero)
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_machines_combined_of_rows_in_no_order() -> None:
    y, _A, _x, p, _q = product(gallery.csc(2))
    y.combine_reduction(p, MaybeDifferentTarget)
    with refused(
        """
            combine_reduction(p, MaybeDifferentTarget) on y needs consecutive values of each row
              --> y.combine_reduction(p, MaybeDifferentTarget)
              expected: a chain of rows, or is_continuous_reduction where the matrix allows it
              given:    dense().pack(Rows, Length(col_len), Index(row_idx)).schedule(Columns, 2,
                        RoundRobin, Zero)
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_block_of_several_rows() -> None:
    y, _A, _x, _p, q = product(gallery.blocked_csr(1, 2, 2))
    qq = Var("qq")
    y.tile(q, qq, 6).unroll(qq)
    with refused("""
            tile(q, qq, 6) on y: a row may end inside of a block of 6 values
              --> y.tile(q, qq, 6).unroll(qq)
              expected: a divisor of 2, the values of a block of A, or 2 for each of a divisor of 2
                        rows
              given:    6
              hint:     block(Columns, 6, Zero) before pack makes such blocks
            """):
        y.simulate(ONES)


def test_promise_about_positions() -> None:
    y, _A, _x, _p, q = product(gallery.cisr())
    y.is_distinct_reduction(q)
    with refused(
        """
            is_distinct_reduction(q) promises something about q
              --> y.is_distinct_reduction(q)
              expected: a promise about the machines, p
              given:    q
            """,
        UnsupportedError,
    ):
        y.simulate(ONES)


def test_rows_that_are_interrupted() -> None:
    y, _A, _x, p, _q = product(gallery.csc(2))
    y.is_continuous_reduction(p)
    with refused("""
            is_continuous_reduction(p) is not true for this matrix
              --> y.is_continuous_reduction(p)
              expected: consecutive values of every row on a machine
              given:    row 0 goes on after another row on machine 0
            """):
        y.simulate(ONES)


def test_a_product_inside_of_another_design() -> None:
    y, *_ = product(gallery.cisr())
    z, r = Func("z"), Var("r")
    z[r] = y[r] * 2
    z.bound(r, 0, 3)
    with refused(
        """
            y is a product of a sparse matrix, which is a design of its own
              --> y[i] += A.values[p, q] * x[j]
              expected: y alone, to interpret, lower or simulate
              given:    a design of several Funcs
              hint:     let the next design read the result of this one as an input
            """,
        UnsupportedError,
    ):
        t2s.lower(z)


def test_too_many_machines() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    many = chain.schedule(Rows, 1000, ASAP, Zero)
    y, *_ = product(many)
    with refused(
        """
        y has too many multipliers
          --> many = chain.schedule(Rows, 1000, ASAP, Zero)
          expected: at most 256 of all machines together
          given:    1000 machines
        """,
        UnsupportedError,
    ):
        t2s.simulate(y, ONES)
