"""Chains of transformations that are refused."""

from __future__ import annotations

from scipy import sparse

import t2s
from t2s import Float, RDom, Var
from t2s.representation import (
    ASAP,
    Chain,
    Columns,
    Diagonals,
    Index,
    Length,
    Longest,
    LongestFirst,
    MatrixParam,
    Representation,
    Rows,
    Whole,
    Zero,
    dense_matrix,
    gallery,
)
from tests.errors.refusal import refused

idx, row, n, b, c, s, job = t2s.variables("idx row n b c s job")


def parameter(chain: Chain, name: str = "A") -> MatrixParam:
    return MatrixParam(Float(32), 2, chain, name=name)


CSR = sparse.csr_array


def test_index_needs_a_var() -> None:
    with refused("""
            Index needs the Var that names this part of the structure
              --> Index("idx")
              expected: for example Index(Var("col_idx"))
              given:    'idx'
            """):
        Index("idx")


def test_length_needs_a_var() -> None:
    with refused("""
            Length needs the Var that names this part of the structure
              --> Length(3)
              expected: for example Length(Var("row_len"))
              given:    3
            """):
        Length(3)


def test_skew_after_a_step() -> None:
    chain = dense_matrix().block(Rows, 2, Zero)
    with refused("""
            skew(Columns) comes too late
              --> chain.skew(Columns)
              expected: skew as the first step, A.dense().skew(Columns)
              given:    after dense().block(Rows, 2, Zero)
            """):
        chain.skew(Columns)


def test_skew_of_rows() -> None:
    with refused("""
            skew(Rows) applies to columns only
              --> dense_matrix().skew(Rows)
              expected: skew(Columns)
              given:    Rows
            """):
        dense_matrix().skew(Rows)


def test_pack_without_index() -> None:
    with refused("""
            pack(Columns, Length(n)) loses the column of every value
              --> dense_matrix().pack(Columns, Length(n))
              expected: an Index that records it, as in pack(Columns, Index(idx))
              given:    after dense()
            """):
        dense_matrix().pack(Columns, Length(n))


def test_pack_of_an_unknown_dimension() -> None:
    with refused("""
            pack('rows', Index(idx)) names an unknown dimension
              --> dense_matrix().pack("rows", Index(idx))
              expected: one of Rows, Columns
              given:    'rows'
            """):
        dense_matrix().pack("rows", Index(idx))


def test_pack_of_diagonals_that_are_not_there() -> None:
    with refused("""
            pack(Diagonals, Index(idx)) names an unknown dimension
              --> dense_matrix().pack(Diagonals, Index(idx))
              expected: one of Rows, Columns
              given:    Diagonals
            """):
        dense_matrix().pack(Diagonals, Index(idx))


def test_pack_of_columns_that_are_diagonals() -> None:
    chain = dense_matrix().skew(Columns)
    with refused("""
            pack(Columns, Index(idx)) names an unknown dimension
              --> chain.pack(Columns, Index(idx))
              expected: one of Rows, Diagonals
              given:    Columns
            """):
        chain.pack(Columns, Index(idx))


def test_pack_twice() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            pack(Columns, Index(row)) packs Columns a second time
              --> chain.pack(Columns, Index(row))
              expected: every dimension packed at most once
              given:    after dense().pack(Columns, Index(idx), Length(n))
            """):
        chain.pack(Columns, Index(row))


def test_pack_after_block() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n)).block(Columns, 2, Zero)
    with refused("""
            pack(Rows, Index(row)) comes after a block of what is packed
              --> chain.pack(Rows, Index(row))
              expected: both dimensions packed before either is blocked
              given:    after dense().pack(Columns, Index(idx), Length(n)).block(Columns, 2, Zero)
            """):
        chain.pack(Rows, Index(row))


def test_pack_of_rows_with_a_length() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            pack(Rows, Index(row), Length(b)) cannot record Length(b): there is one sequence of
                        rows only
              --> chain.pack(Rows, Index(row), Length(b))
              expected: pack(Rows, Index(row))
              given:    after dense().pack(Columns, Index(idx), Length(n))
            """):
        chain.pack(Rows, Index(row), Length(b))


def test_a_name_used_twice() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            block(Columns, 2, Zero, Length(n)) uses the name n a second time
              --> chain.block(Columns, 2, Zero, Length(n))
              expected: a Var of its own for each part of the structure
              given:    Length(n) after dense().pack(Columns, Index(idx), Length(n))
            """):
        chain.block(Columns, 2, Zero, Length(n))


def test_two_indices() -> None:
    with refused("""
            pack(Columns, Index(idx), Index(row)) has two parts of kind Index
              --> dense_matrix().pack(Columns, Index(idx), Index(row))
              expected: one Index
              given:    Index(idx), Index(row)
            """):
        dense_matrix().pack(Columns, Index(idx), Index(row))


def test_something_else_as_structure() -> None:
    with refused("""
            pack(Columns, idx) has an unknown argument
              --> dense_matrix().pack(Columns, idx)
              expected: Index(variable) or Length(variable)
              given:    idx
            """):
        dense_matrix().pack(Columns, idx)


def test_index_of_blocks() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            block(Columns, 2, Zero, Index(b)) has an unknown argument
              --> chain.block(Columns, 2, Zero, Index(b))
              expected: Length(variable)
              given:    Index(b)
            """):
        chain.block(Columns, 2, Zero, Index(b))


def test_length_of_a_schedule() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            schedule(Rows, 2, ASAP, Zero, Length(job)) has an unknown argument
              --> chain.schedule(Rows, 2, ASAP, Zero, Length(job))
              expected: Index(variable)
              given:    Length(job)
            """):
        chain.schedule(Rows, 2, ASAP, Zero, Length(job))


def test_schedule_twice() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n)).schedule(Rows, 4, ASAP, Zero)
    with refused("""
            schedule(Rows, 2, ASAP, Zero) comes after the schedule
              --> chain.schedule(Rows, 2, ASAP, Zero)
              expected: the schedule as the last step
              given:    after dense().pack(Columns, Index(idx), Length(n)).schedule(Rows, 4,
                        ASAP, Zero)
            """):
        chain.schedule(Rows, 2, ASAP, Zero)


def test_rows_packed_twice() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n)).pack(Rows, Index(row))
    with refused("""
            pack(Rows, Index(s)) packs Rows a second time
              --> chain.pack(Rows, Index(s))
              expected: every dimension packed at most once
              given:    after dense().pack(Columns, Index(idx), Length(n)).pack(Rows, Index(row))
            """):
        chain.pack(Rows, Index(s))


def test_block_of_zero() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            block(Columns, 0, Zero, Length(b)) needs a factor of at least 1
              --> chain.block(Columns, 0, Zero, Length(b))
              expected: a positive integer, or Whole before pack
              given:    0
            """):
        chain.block(Columns, 0, Zero, Length(b))


def test_block_without_padding() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            block(Columns, 2, None) needs a padding
              --> chain.block(Columns, 2, None)
              expected: Zero or Longest
              given:    None
            """):
        chain.block(Columns, 2, None)


def test_whole_block_after_pack() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            block(Columns, Whole, Zero) blocks a whole dimension that is packed
              --> chain.block(Columns, Whole, Zero)
              expected: an integer factor; Whole stands before pack
              given:    after dense().pack(Columns, Index(idx), Length(n))
            """):
        chain.block(Columns, Whole, Zero)


def test_dense_blocks_padded_to_the_longest() -> None:
    with refused("""
            block(Rows, 2, Longest) pads dense blocks
              --> dense_matrix().block(Rows, 2, Longest)
              expected: Zero: all blocks of a dense dimension are equally long
              given:    after dense()
            """):
        dense_matrix().block(Rows, 2, Longest)


def test_two_blocks_of_a_whole() -> None:
    chain = dense_matrix().block(Rows, Whole, Zero)
    with refused("""
            block(Rows, 2, Zero) blocks Rows again, which is a single block
              --> chain.block(Rows, 2, Zero)
              expected: no block
              given:    after dense().block(Rows, Whole, Zero)
            """):
        chain.block(Rows, 2, Zero)


def test_columns_blocked_twice() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n)).block(Columns, 2, Zero, Length(b))
    with refused("""
            block(Columns, 2, Zero) blocks Columns a second time
              --> chain.block(Columns, 2, Zero)
              expected: a block of the last blocks, by the name that their Length gives them
              given:    after dense().pack(Columns, Index(idx), Length(n)).block(Columns, 2,
                        Zero, Length(b))
            """):
        chain.block(Columns, 2, Zero)


def test_rows_padded_to_the_longest() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            block(Rows, 4, Longest, Length(s)) pads blocks of rows to the longest block
              --> chain.block(Rows, 4, Longest, Length(s))
              expected: Zero: the last block is filled with empty rows
              given:    after dense().pack(Columns, Index(idx), Length(n))
              hint:     to make the rows of a block equally long, block Columns with Longest
                        afterwards
            """):
        chain.block(Rows, 4, Longest, Length(s))


def test_block_of_an_unknown_var() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            block(s, 4, Zero) names an unknown dimension
              --> chain.block(s, 4, Zero)
              expected: one of Rows, Columns
              given:    s
            """):
        chain.block(s, 4, Zero)


def test_schedule_to_no_machines() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            schedule(Rows, 0, ASAP, Zero) needs machines
              --> chain.schedule(Rows, 0, ASAP, Zero)
              expected: a number of machines, at least 1
              given:    0
            """):
        chain.schedule(Rows, 0, ASAP, Zero)


def test_schedule_without_policy() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            schedule(Rows, 4, 'asap', Zero) needs a policy
              --> chain.schedule(Rows, 4, "asap", Zero)
              expected: ASAP, RoundRobin or LongestFirst
              given:    'asap'
            """):
        chain.schedule(Rows, 4, "asap", Zero)


def test_schedule_padded_to_the_longest() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            schedule(Rows, 4, ASAP, Longest) has the wrong padding
              --> chain.schedule(Rows, 4, ASAP, Longest)
              expected: Zero: the machines' streams are filled up at their ends
              given:    Longest
              hint:     to keep machines in step, block Rows by their number and Columns with
                        Longest
            """):
        chain.schedule(Rows, 4, ASAP, Longest)


def test_schedule_of_an_unknown_var() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            schedule(s, 4, ASAP, Zero) names an unknown dimension
              --> chain.schedule(s, 4, ASAP, Zero)
              expected: one of Rows, Columns
              given:    s
            """):
        chain.schedule(s, 4, ASAP, Zero)


def test_a_step_after_the_schedule() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n)).schedule(Rows, 4, ASAP, Zero)
    with refused("""
            block(Rows, 2, Zero) comes after the schedule
              --> chain.block(Rows, 2, Zero)
              expected: the schedule as the last step
              given:    after dense().pack(Columns, Index(idx), Length(n)).schedule(Rows, 4,
                        ASAP, Zero)
            """):
        chain.block(Rows, 2, Zero)


def test_rows_without_ends() -> None:
    chain = dense_matrix().pack(Columns, Index(idx))
    with refused("""
            schedule(Rows, 4, ASAP, Zero) cannot be undone: nothing records where a row ends
              --> chain.schedule(Rows, 4, ASAP, Zero)
              expected: a Length in pack, as in pack(Columns, Length(len), Index(idx))
              given:    after dense().pack(Columns, Index(idx))
              hint:     packing Rows too would record the row of every value
            """):
        chain.schedule(Rows, 4, ASAP, Zero)


def test_blocks_without_ends() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n)).block(Columns, 2, Longest)
    with refused("""
            schedule(Rows, 2, ASAP, Zero) cannot be undone: nothing records where a row ends
              --> chain.schedule(Rows, 2, ASAP, Zero)
              expected: a Length in block(..., Longest, Length(b))
              given:    after dense().pack(Columns, Index(idx), Length(n)).block(Columns, 2,
                        Longest)
            """):
        chain.schedule(Rows, 2, ASAP, Zero)


def test_longest_first_without_numbers() -> None:
    chain = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            schedule(Rows, 4, LongestFirst, Zero) cannot be undone: nothing records which job is
                        which
              --> chain.schedule(Rows, 4, LongestFirst, Zero)
              expected: an Index(job) as its last argument
              given:    after dense().pack(Columns, Index(idx), Length(n))
              hint:     ASAP and RoundRobin follow from the lengths alone
            """):
        chain.schedule(Rows, 4, LongestFirst, Zero)


def test_representation_without_a_name() -> None:
    with refused("""
            a Representation needs a name that is a Python identifier
              --> Representation("2nd")
              expected: a name such as "CISR"
              given:    '2nd'
            """):
        Representation("2nd")


def test_representation_defined_twice() -> None:
    name = Representation("name")
    name.define(gallery.csr())
    with refused("""
            Representation name is defined twice
              --> name.define(gallery.csc())
              note:     it was defined as this chain
              --> name.define(gallery.csr())
              hint:     make another Representation
            """):
        name.define(gallery.csc())


def test_representation_without_a_schedule() -> None:
    name = Representation("name")
    with refused("""
            Representation name does not end with a schedule
              --> name.define(dense_matrix().pack(Columns, Index(idx), Length(n)))
              expected: a last step such as schedule(Rows, 4, ASAP, Zero)
              given:    dense().pack(Columns, Index(idx), Length(n))
              hint:     a schedule gives every value a machine and a position in its stream
            """):
        name.define(dense_matrix().pack(Columns, Index(idx), Length(n)))


def test_representation_that_is_no_chain() -> None:
    name = Representation("name")
    with refused("""
            Representation name is defined by something that is not a chain
              --> name.define(4)
              expected: for example A.dense().pack(...).schedule(...)
              given:    4
            """):
        name.define(4)


def test_inverse_map_before_the_definition() -> None:
    name = Representation("name")
    A = MatrixParam(Float(32), 2, name, name="A")
    with refused("""
            Representation name is used before it is defined
              --> A.inverse_map(Var("p"), RDom(0, 4, name="q"))
              expected: name.define(A.dense().pack(...).schedule(...)) above this line
              note:     name was declared here
              --> name = Representation("name")
            """):
        A.inverse_map(Var("p"), RDom(0, 4, name="q"))


def test_inverse_map_of_numbers() -> None:
    A = parameter(gallery.csr())
    with refused("""
            the inverse map of A needs a machine and a position
              --> A.inverse_map(0, 1)
              expected: a Var over machines and an RDom over positions
              given:    inverse_map(0, 1)
            """):
        A.inverse_map(0, 1)


def test_parameter_of_three_dimensions() -> None:
    with refused("""
            MatrixParam A needs an element type and two dimensions
              --> MatrixParam(Float(32), 3, gallery.csr(), name="A")
              expected: for example MatrixParam(Float(32), 2, CISR, name="A")
              given:    float32, 3
            """):
        MatrixParam(Float(32), 3, gallery.csr(), name="A")


def test_parameter_of_bools() -> None:
    with refused("""
            MatrixParam A has elements of type bool, which have no products and sums
              --> MatrixParam(t2s.Bool(), 2, gallery.csr(3), name="A")
              expected: numbers, for example MatrixParam(Float(32), 2, CISR, name="A")
              given:    bool
              hint:     UInt(8) has 0 and 1: a minimum is their and, a maximum their or
            """):
        MatrixParam(t2s.Bool(), 2, gallery.csr(3), name="A")


def test_parameter_without_a_schedule() -> None:
    unfinished = dense_matrix().pack(Columns, Index(idx), Length(n))
    with refused("""
            MatrixParam A does not end with a schedule
              --> MatrixParam(Float(32), 2, unfinished, name="A")
              expected: a last step such as schedule(Rows, 4, ASAP, Zero)
              given:    dense().pack(Columns, Index(idx), Length(n))
              hint:     a schedule gives every value a machine and a position in its stream
            """):
        MatrixParam(Float(32), 2, unfinished, name="A")


def test_extent_of_a_third_dimension() -> None:
    A = parameter(gallery.csr())
    with refused("""
            A has no dimension 2
              --> A.values.extent(2)
              expected: 0 or 1
              given:    2
            """):
        A.values.extent(2)
