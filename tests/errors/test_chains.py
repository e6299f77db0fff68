"""Chains that do not say which way a tensor takes."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, Var
from t2s.errors import UnsupportedError
from tests.errors.designs import product
from tests.errors.refusal import refused


def test_a_memory_first() -> None:
    p = product()
    with refused("""
            A cannot go on with sram(feeder)
              --> p.A >> t2s.sram("feeder", scope=p.k)
              expected: input >> [host] >> dram >> sram or registers, any number >> Func
              given:    A >> sram(feeder)
              hint:     operands come from memory: a dram stage loads them, once, and first
            """):
        p.A >> t2s.sram("feeder", scope=p.k)


def test_two_loaders() -> None:
    p = product()
    with refused("""
            A >> dram(loader) cannot go on with dram(another)
              --> p.A >> t2s.dram("loader") >> t2s.dram("another")
              expected: input >> [host] >> dram >> sram or registers, any number >> Func
              given:    A >> dram(loader) >> dram(another)
              hint:     operands come from memory: a dram stage loads them, once, and first
            """):
        p.A >> t2s.dram("loader") >> t2s.dram("another")


def test_nobody_loads_what_the_host_puts() -> None:
    p = product()
    with refused("""
            A >> host(serializer) cannot go on with Func C
              --> p.A >> t2s.host("serializer") >> p.C
              expected: input >> [host] >> dram >> sram or registers, any number >> Func
              given:    A >> host(serializer) >> Func C
              hint:     a dram stage loads what the host puts
            """):
        p.A >> t2s.host("serializer") >> p.C


def test_a_buffer_of_results() -> None:
    p = product()
    with refused("""
            C cannot go on with sram(drainer)
              --> p.C >> t2s.sram("drainer", scope=p.i)
              expected: Func >> registers, any number >> dram [>> host]
              given:    C >> sram(drainer)
              hint:     results go to memory in a dram stage, once, and last on the device
            """):
        p.C >> t2s.sram("drainer", scope=p.i)


def test_going_on_behind_memory() -> None:
    p = product()
    with refused("""
            C >> dram(unloader) cannot go on with registers(drainer)
              --> p.C >> t2s.dram("unloader") >> t2s.registers("drainer")
              expected: Func >> registers, any number >> dram [>> host]
              given:    C >> dram(unloader) >> registers(drainer)
              hint:     results go to memory in a dram stage, once, and last on the device
            """):
        p.C >> t2s.dram("unloader") >> t2s.registers("drainer")


def test_results_that_go_to_another_function() -> None:
    p, square = product(), Func("square")
    with refused("""
            C >> dram(loader) goes on with something that is not a stage
              --> p.C >> t2s.dram("loader") >> square
              expected: Func >> registers, any number >> dram [>> host]
              given:    Func square
              hint:     a chain that begins with a Func saves its results; to load C for another
                        Func, begin with one of its elements
            """):
        p.C >> t2s.dram("loader") >> square


@pytest.mark.parametrize("end", [3, (), (1, 2)], ids=str)
def test_an_end_that_is_no_function(end: object) -> None:
    p = product()
    with refused(f"""
            A >> dram(loader) goes on with something that is neither a stage nor a Func
              --> p.A >> t2s.dram("loader") >> end
              expected: input >> [host] >> dram >> sram or registers, any number >> Func
              given:    {end}
            """):
        p.A >> t2s.dram("loader") >> end


def test_one_function_twice() -> None:
    p = product()
    with refused("""
            A >> dram(loader) ends at C twice
              --> p.A >> t2s.dram("loader") >> (p.C, p.C)
              expected: each Func once
              given:    C, C
            """):
        p.A >> t2s.dram("loader") >> (p.C, p.C)
    assert p.C.plan == []


def test_a_start_that_is_no_operand() -> None:
    array = np.ones(2)
    with refused("""
            a chain cannot begin with array([1., 1.])
              --> array >> t2s.dram("loader")
              expected: an input, an expression of the definition, or the Func whose results are
                        saved
              given:    an object of type ndarray
            """):
        array >> t2s.dram("loader")


def test_scope_of_a_loader() -> None:
    p = product()
    with refused("""
            dram takes no scope
              --> t2s.dram("loader", scope=p.k)
              expected: of the options lanes, depth
              given:    scope
              hint:     scope belongs to t2s.sram
            """):
        t2s.dram("loader", scope=p.k)


def test_an_option_that_no_stage_has() -> None:
    with refused("""
            host takes no banks
              --> t2s.host("serializer", banks=2)
              expected: a name
              given:    banks
            """):
        t2s.host("serializer", banks=2)


def test_depth_of_the_host() -> None:
    with refused("""
            host takes no depth
              --> t2s.host("serializer", depth=2)
              expected: a name
              given:    depth
              hint:     depth belongs to t2s.dram, t2s.sram, t2s.registers
            """):
        t2s.host("serializer", depth=2)


def test_depth_at_the_end() -> None:
    p = product()
    with refused("""
            depth in dram(unloader): the chain of C ends there
              --> p.C >> t2s.dram("unloader", depth=2)
              expected: a stage with a channel behind it
              given:    depth=2
              hint:     depth is the capacity of the channel to the next stage
            """):
        p.C >> t2s.dram("unloader", depth=2)


def test_a_depth_that_is_no_number() -> None:
    with refused("""
            the depth of registers has to be a positive integer
              --> t2s.registers("drainer", depth=True)
              expected: 1 or more
              given:    True
            """):
        t2s.registers("drainer", depth=True)


def test_no_scope() -> None:
    with refused("""
            sram needs a scope
              --> t2s.sram("feeder")
              expected: the loop in which values are used again: t2s.sram("A_feeder", scope=k)
              hint:     a stage that keeps nothing is t2s.registers
            """):
        t2s.sram("feeder")


def test_a_scope_that_is_no_loop() -> None:
    with refused("""
            the scope of sram has to be a loop
              --> t2s.sram("feeder", scope="k")
              expected: a Var or RDom object
              given:    'k'
              hint:     loops are named by objects: ii = Var("ii")
            """):
        t2s.sram("feeder", scope="k")


def test_scatter_along_a_named_loop() -> None:
    p = product()
    with refused("""
            scatter of sram has to be True or False
              --> t2s.sram("feeder", scope=p.k, scatter=p.i)
              expected: True or False
              given:    i
            """):
        t2s.sram("feeder", scope=p.k, scatter=p.i)


def test_a_name_that_is_none() -> None:
    with refused("""
            registers needs the name of a new Func
              --> t2s.registers("C drainer")
              expected: for example t2s.registers("A_feeder")
              given:    'C drainer'
            """):
        t2s.registers("C drainer")


def test_gathering_an_operand() -> None:
    p = product()
    with refused("""
            gather in registers(relay): the chain of A >> dram(loader) brings an operand
              --> p.A >> t2s.dram("loader") >> t2s.registers("relay", gather=p.i)
              expected: gather on the way out, in a chain that begins with a Func
              given:    gather=i
              hint:     PEs take operands from one stream by scatter, in a sram stage
            """):
        p.A >> t2s.dram("loader") >> t2s.registers("relay", gather=p.i)


def test_lanes_of_an_operand() -> None:
    p = product()
    with refused("""
            lanes in dram(loader): the chain of A brings an operand
              --> p.A >> t2s.dram("loader", lanes=p.k)
              expected: lanes on the way out, in a chain that begins with a Func
              given:    lanes=k
              hint:     operands are loaded as vectors by vload, for all operands together
            """):
        p.A >> t2s.dram("loader", lanes=p.k)


def test_two_stages_of_one_name() -> None:
    p = product()
    with refused("""
            isolate_producer_chain on C names loader twice
              --> p.A >> t2s.dram("loader") >> t2s.registers("loader") >> p.C
              expected: each name once
              given:    loader, loader
            """):
        p.A >> t2s.dram("loader") >> t2s.registers("loader") >> p.C


def test_a_name_of_another_chain() -> None:
    p = product()
    p.A >> t2s.dram("loader") >> p.C
    p.B >> t2s.dram("loader") >> p.C
    with refused("""
            isolate_producer_chain(B, loader) on C: two different objects of the design are named
                        loader
              --> p.B >> t2s.dram("loader") >> p.C
              expected: a Func with a name of its own
              given:    Func loader
              note:     Func loader comes from here
              --> p.A >> t2s.dram("loader") >> p.C
              hint:     give the Func another name
            """):
        t2s.lower(p.C)


def test_a_scope_that_is_not_there() -> None:
    p, ii = product(), Var("ii")
    p.A >> t2s.dram("loader") >> t2s.sram("feeder", scope=ii) >> p.C
    with refused("""
            buffer(loader, ii) on feeder: feeder has no loop ii
              --> p.A >> t2s.dram("loader") >> t2s.sram("feeder", scope=ii) >> p.C
              expected: one of its loops, outermost first: i, j, k
              given:    ii
              hint:     loops appear by split, tile and fuse, and in an isolated Func only if the
                        function had them when it was isolated
            """):
        t2s.lower(p.C)


def test_scopes_in_the_wrong_order() -> None:
    p = product()
    first, second = t2s.sram("first", scope=p.j), t2s.sram("second", scope=p.i)
    p.A >> t2s.dram("loader") >> first >> t2s.registers("relay") >> second >> p.C
    with refused("""
            A >> dram(loader) >> sram(first) >> registers(relay) >> sram(second) >> C: the scope i
                        of second is outside of the scope j of first
              --> p.A >> t2s.dram("loader") >> first >> t2s.registers("relay") >> second >> p.C
              expected: i inside of j: first comes first, so it keeps its values longer
              given:    loops, outermost first: i, j, k
              hint:     exchange the two scopes, or reorder the loops
            """):
        t2s.lower(p.C)


def test_two_loops_to_scatter_along() -> None:
    p = product()
    p.C.unroll(p.i, p.k)
    p.A >> t2s.dram("loader") >> t2s.sram("feeder", scope=p.j) >> p.C
    with refused(
        """
            A >> dram(loader) >> sram(feeder) >> C: A[i, k] depends on 2 unrolled loops
              --> p.A >> t2s.dram("loader") >> t2s.sram("feeder", scope=p.j) >> p.C
              expected: one loop along which the PEs take their values from one stream
              given:    i, k
              hint:     write scatter=False in the sram stage: its PEs then take values side by side
            """,
        UnsupportedError,
    ):
        t2s.lower(p.C)


def test_two_stages_that_scatter() -> None:
    p = product()
    p.C.unroll(p.i)
    first, second = t2s.sram("first", scope=p.j), t2s.sram("second", scope=p.j)
    p.A >> t2s.dram("loader") >> first >> second >> p.C
    with refused("""
            A >> dram(loader) >> sram(first) >> sram(second) >> C: 2 sram stages could scatter A
                        along i
              --> p.A >> t2s.dram("loader") >> first >> second >> p.C
              expected: one of them
              given:    first, second
              hint:     write scatter=False in all but one; before the one that scatters, i runs in
                        time
            """):
        t2s.lower(p.C)


def test_a_schedule() -> None:
    p = product()
    p.C.space_time_transform([p.i, p.j], [1, 1])
    p.A >> t2s.dram("loader") >> p.C
    with refused(
        """
            A >> dram(loader) >> C: C has a schedule
              --> p.A >> t2s.dram("loader") >> p.C
              expected: PEs that all use a value at the same time
              given:    A moves through C by the schedule
              hint:     isolate with isolate_producer_chain, and say with forward which values move
            """,
        UnsupportedError,
    ):
        t2s.lower(p.C)


def test_lanes_along_another_loop() -> None:
    p = product()
    p.C.unroll(p.j)
    p.C >> t2s.registers("drainer", gather=p.j) >> t2s.dram("unloader", lanes=p.i)
    with refused("""
            vstore(C) on unloader: i is not the innermost loop of unloader
              --> p.C >> t2s.registers("drainer", gather=p.j) >> t2s.dram("unloader", lanes=p.i)
              expected: the loop whose iterations become lanes: j
              given:    lanes=i
              hint:     what is gathered last is innermost
            """):
        t2s.lower(p.C)


def test_gathering_along_a_loop_in_time() -> None:
    p = product()
    p.C >> t2s.registers("drainer", gather=p.j) >> t2s.dram("unloader")
    with refused("""
            gather(C, j) on drainer: loop j is not unrolled
              --> p.C >> t2s.registers("drainer", gather=p.j) >> t2s.dram("unloader")
              expected: an unrolled loop: the stream goes from PE to PE
              given:    j in drainer: as in C: of the definition
              hint:     write unroll(j) first
            """):
        t2s.lower(p.C)
