"""Mistakes about the design as a whole, and what is not hardware yet."""

from __future__ import annotations

from pathlib import Path

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.errors import UnsupportedError
from tests.errors.designs import product
from tests.errors.refusal import refused

i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
A = ImageParam(Int(32), 1, name="A")


def test_directive_on_a_func_that_is_not_part_of_a_design() -> None:
    loader = Func("loader")
    with refused("""
            unroll(i) on loader: loader is not part of a design
              --> loader.unroll(i)
              expected: a Func with a definition, or one that was isolated from another Func
              note:     Func loader was made here
              --> loader = Func("loader")
              hint:     isolate it first, as in C.isolate_producer(A, loader)
            """):
        loader.unroll(i)


def test_directive_on_an_inlined_func() -> None:
    f, g = t2s.funcs("f g")
    f[i] = A[i] * 2
    g[i] = f[i] + 1
    g.bound(i, 0, 4)
    f.unroll(i)
    with refused("""
            unroll(i) on f: f is computed inside of the Funcs that use it
              --> f.unroll(i)
              expected: a Func with a loop nest of its own: g
              hint:     isolate f into a Func first: isolate_producer(f, new), and give the
                        directive to the new Func
            """):
        t2s.lower(g)


def test_several_updates() -> None:
    f = Func("f")
    f[i] = 0
    f[i] += A[i]
    f[i] += A[i + k]
    f.bound(i, 0, 4)
    with refused(
        """
            Func f has 2 updates
              --> f[i] += A[i + k]
              expected: one update in a Func that becomes hardware
              hint:     continue in another Func: f2[i, j] = f[i, j]
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_recurrence_over_elements() -> None:
    f, m = Func("f"), RDom(1, 3, name="m")
    f[i] = A[i]
    f[m] += f[m - 1]
    f.bound(i, 0, 4)
    with refused(
        """
            this update of f writes to computed places
              --> f[m] += f[m - 1]
              expected: plain Vars on the left side, as in f[i, j] += ...
              hint:     it can be computed by t2s.interpret; hardware for it is not generated yet
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_recurrence_that_reads_another_element() -> None:
    f = Func("f")
    f[i] = A[i]
    f[i] += f[k]
    f.bound(i, 0, 4)
    with refused(
        """
            this update of f reads another element of f
              --> f[i] += f[k]
              expected: only the element that is updated
              hint:     write it as a recurrence, in one definition of a Func with a declared type:
                        S[i] = t2s.select(i == 0, x[i], S[i - 1] + x[i])
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_histogram() -> None:
    f = Func("f")
    f[i] = 0
    f[t2s.min(t2s.max(A[k], 0), 7)] += 1
    f.bound(i, 0, 8)
    with refused(
        """
            this update of f writes to computed places
              --> f[t2s.min(t2s.max(A[k], 0), 7)] += 1
              expected: plain Vars on the left side, as in f[i, j] += ...
              hint:     it can be computed by t2s.interpret; hardware for it is not generated yet
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_read_at_a_place_that_depends_on_data() -> None:
    f, table = Func("f"), ImageParam(Int(32), 1, name="table", shape=(16,))
    f[i] = table[A[i]]
    f.bound(i, 0, 4)
    with refused(
        """
            table[A[i]] in f is read at a place that depends on data
              --> f[i] = table[A[i]]
              expected: subscripts of loop variables, numbers and Params
              given:    A[i]
              hint:     it can be computed by t2s.interpret; hardware for it is not generated yet
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_load_guarded_by_data_only() -> None:
    f, table = Func("f"), ImageParam(Int(32), 1, name="table", shape=(5,))
    f[i] = t2s.select(A[i] > 0, table[i * i], 0)
    f.bound(i, 0, 4)
    with refused(
        """
            table[i * i] in f cannot be loaded ahead of the condition that guards it
              --> f[i] = t2s.select(A[i] > 0, table[i * i], 0)
              expected: i * i within 0..4 whatever the data
              given:    a guard that depends on data: A[i] > 0
              hint:     add a condition on the loops, as in t2s.select((i > 0) & (x[i] > 0), ...),
                        or clamp the subscript with t2s.max and t2s.min
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_load_with_a_guard_that_data_can_avoid() -> None:
    f = Func("f")
    f[i] = t2s.select((i > 0) | (A[i] > 3), A[i - 1], 0)
    f.bound(i, 0, 4)
    with refused("""
            A[i - 1] is outside of the input A
              --> f[i] = t2s.select((i > 0) | (A[i] > 3), A[i - 1], 0)
              expected: subscript 0 from 0 to 3
              given:    -1 to 2
              hint:     guard the access with t2s.select(condition, inside, outside)
            """):
        t2s.lower(f)


def test_unknown_backend(tmp_path: Path) -> None:
    graph = t2s.lower(product().C)
    with refused("""
            unknown backend 'vhdl'
              --> t2s.emit(graph, "vhdl", tmp_path)
              expected: cgra_tia, opencl_fpga, verilog, vitis_hls
              given:    'vhdl'
            """):
        t2s.emit(graph, "vhdl", tmp_path)


def test_unknown_device() -> None:
    graph = t2s.lower(product().C)
    with refused("""
            unknown device
              --> t2s.cycles(graph, device="virtex")
              expected: one of ideal, arria10, stratix10, alveo_u55c, aup_zu3, ecp5-25k,
                        ecp5-45k, ecp5-85k, gw2a-18, ccgm1a1, xc7a35t, xc7a100t, cgra8,
                        cgra16, cgra32, capstan, tiny-tapeout, rtl-kernel, or a Device
              given:    'virtex'
              hint:     dataclasses.replace(DEVICES['arria10'], clock_hz=...) describes a variant
            """):
        t2s.cycles(graph, device="virtex")


def test_something_that_is_no_design() -> None:
    with refused("""
            ImageParam A is not a design
              --> t2s.lower(A)
              expected: a Func, a tuple of Funcs, an assignment or program of t2s.sparse or a Graph
              given:    an object of type ImageParam
            """):
        t2s.lower(A)


def test_something_that_is_no_output() -> None:
    f = Func("f")
    f[i] = A[i]
    with refused("""
            3 is not a design
              --> t2s.lower((f, 3))
              expected: a Func, or a tuple of Funcs
              given:    an object of type int
            """):
        t2s.lower((f, 3))


def test_no_output() -> None:
    with refused("""
            a design needs at least one output
              --> t2s.lower([])
              expected: a Func, or a tuple of Funcs
              given:    []
            """):
        t2s.lower([])


def test_an_output_twice() -> None:
    f, g = t2s.funcs("f g")
    f[i], g[i] = A[i], A[i]
    with refused("""
            the output f is given twice
              --> t2s.cycles((f, g, f))
              expected: every output once
              given:    f, g, f
            """):
        t2s.cycles((f, g, f))
