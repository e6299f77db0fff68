"""stream where the reader does not take what is sent."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.errors import UnsupportedError
from tests.errors.refusal import refused

i, j, k, m = Var("i"), Var("j"), RDom(0, 8, name="k"), RDom(0, 6, name="m")
A, B, D = (ImageParam(Int(32), 2, name=name) for name in "ABD")
x = ImageParam(Int(32), 1, name="x")


def product() -> tuple[Func, Func]:
    """A product of 4 x 6 elements, and a function that is to read it."""
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    return C, Func("G")


def test_values_that_are_used_again() -> None:
    C, G = product()
    G[i, j] = 0
    G[i, j] += C[i, m] * D[m, j]
    G.bound(i, 0, 4).bound(j, 0, 3).stream(C)
    with refused("""
            stream(C) on G: G does not take every value of C exactly once
              --> G.bound(i, 0, 4).bound(j, 0, 3).stream(C)
              expected: each of C[i, j] once
              given:    C[i, m] again for every j
              hint:     forward it along j where that is unrolled, or keep it on chip: take the
                        stream in a feeder, isolate_producer(C, feeder), and buffer it there
            """):
        t2s.lower(G)


def test_values_that_are_not_used() -> None:
    C, G = product()
    C.bound(i, 0, 4).bound(j, 0, 6)
    G[i, j] = C[i, j] + 1
    G.bound(i, 0, 4).bound(j, 0, 3).stream(C)
    with refused("""
            stream(C) on G: G does not take every value of C exactly once
              --> G.bound(i, 0, 4).bound(j, 0, 3).stream(C)
              expected: each of C[i, j] once
              given:    never taken: i=0, j=3
              hint:     read C from memory, as without stream
            """):
        t2s.lower(G)


def test_several_elements() -> None:
    C, G = product()
    G[i, j] = C[i, j] + C[i, j + 1]
    G.bound(i, 0, 4).bound(j, 0, 5).stream(C)
    with refused("""
            stream(C) on G: C is read at 2 places
              --> G.bound(i, 0, 4).bound(j, 0, 5).stream(C)
              expected: one element in each iteration: a channel gives every value once
              given:    C[i, j], C[i, j + 1]
              note:     C[i, j] is read here
              --> G[i, j] = C[i, j] + C[i, j + 1]
              note:     C[i, j + 1] is read here
              --> G[i, j] = C[i, j] + C[i, j + 1]
              hint:     read C from memory, as without stream
            """):
        t2s.lower(G)


def test_another_order() -> None:
    C, G = product()
    G[i, j] = C[j, i] + 1
    G.bound(i, 0, 6).bound(j, 0, 4).stream(C)
    with refused("""
            stream(C) on G: C sends its values in another order than G takes them
              --> G.bound(i, 0, 6).bound(j, 0, 4).stream(C)
              expected: the order of G: i, j
              given:    the order of C: i, j; the value for i=1, j=0 comes too early
              hint:     order the loops before isolating, or reorder G in the same way
            """):
        t2s.lower(G)


def test_values_under_a_condition() -> None:
    C, G = product()
    G[i, j] = t2s.select(i > 0, C[i, j], 0)
    G.bound(i, 0, 4).bound(j, 0, 6).stream(C)
    with refused("""
            stream(C) on G: C[i, j] is not needed in every iteration
              --> G.bound(i, 0, 4).bound(j, 0, 6).stream(C)
              expected: every value of the stream to be taken
              hint:     move the access out of the select, or read C from memory
            """):
        t2s.lower(G)


def test_a_func_without_a_nest() -> None:
    f, g = Func("f"), Func("g")
    f[i] = x[i]
    g[i] = f[i] + 1
    g.bound(i, 0, 4).stream(f)
    with refused("""
            stream(f) on g: f has no loop nest of its own
              --> g.bound(i, 0, 4).stream(f)
              expected: a Func with an update
              given:    f
              hint:     a Func without updates is computed inside of the Funcs that use it;
                        isolate_producer gives it a place of its own
            """):
        t2s.lower(g)


def test_a_func_that_is_not_used() -> None:
    C, G = product()
    G[i, j] = C[i, j] + 1
    G.bound(i, 0, 4).bound(j, 0, 6).isolate_producer(C, Func("P")).stream(C)
    with refused("""
            stream(C) on G: C is not used in G
              --> G.bound(i, 0, 4).bound(j, 0, 6).isolate_producer(C, Func("P")).stream(C)
              expected: a function that reads it
              given:    C
              hint:     after isolate_producer(C, P) it is P that reads C: write P.stream(C)
            """):
        t2s.lower(G)


def test_computed_subscripts() -> None:
    f, g = Func("f"), Func("g")
    f[i] = 0
    f[i] += x[i]
    g[i] = f[2 * i]
    g.bound(i, 0, 4).stream(f)
    with refused(
        """
            stream(f) on g: f[2 * i] is not a plain element of f
              --> g.bound(i, 0, 4).stream(f)
              expected: a different plain variable in each subscript of f
              given:    f[2 * i]
              hint:     read f from memory, as without stream
            """,
        UnsupportedError,
    ):
        t2s.lower(g)


def test_vectors_on_one_side() -> None:
    C, G = product()
    G[i, j] = C[i, j] + 1
    C.reorder(j, k, i).vload(B).vstore(C)
    G.bound(i, 0, 4).bound(j, 0, 6).stream(C)
    with refused("""
            stream(C) on G: C does not send what G takes
              --> G.bound(i, 0, 4).bound(j, 0, 6).stream(C)
              expected: the values of G: i in 0..3, j in 0..5
              given:    those of C: i in 0..3, j in 0..5 as lanes
              hint:     give both functions the same ranges, loops and lanes
            """):
        t2s.lower(G)


def test_an_input() -> None:
    C, G = product()
    G[i, j] = C[i, j] + D[i, j]
    with refused("""
            stream on G needs a Func
              --> G.stream(D)  # type: ignore[arg-type]
              expected: a Func with an update, whose results this one reads
              given:    ImageParam D
            """):
        G.stream(D)  # type: ignore[arg-type]


def test_a_buffer_with_less_space() -> None:
    C, G = product()
    feeder = Func("feeder")
    G[i, j] = 0
    G[i, j] += C[i, m] * D[m, j]
    C.unroll(j)
    G.bound(i, 0, 4).bound(j, 0, 3).isolate_producer(C, feeder)
    feeder.stream(C).buffer(C, i)
    with refused(
        """
            buffer(C, i) on feeder: C is unrolled along j and feeder is not
              --> feeder.stream(C).buffer(C, i)
              expected: feeder unrolled along m as well
              hint:     write feeder.unroll(m)
            """,
        UnsupportedError,
    ):
        t2s.lower(G)


def test_a_schedule_whose_results_nothing_takes() -> None:
    S, F, q, t = Func("S"), Func("F"), Var("q"), Var("t")
    S[i] = 0
    S[i] += A[i, k]
    F[i] = S[i] + 1
    F.bound(i, 0, 4).stream(S)
    S.bound(i, 0, 4).space_time_transform([i, k], {q: i, t: i + k})
    with refused("""
            stream(S) on F: S has a schedule, and nothing takes its results yet
              --> F.bound(i, 0, 4).stream(S)
              expected: results that leave through a chain
              given:    S alone
              hint:     write S.isolate_consumer_chain(unloader) first
            """):
        t2s.lower((F, S))


def test_a_schedule_whose_last_step_is_in_another_place_for_each_result() -> None:
    S, F, p, t = Func("S"), Func("F"), Var("p"), Var("t")
    s = RDom(1, j + 1, name="s")
    S[i, j] = 0
    S[i, j] += D[s, j]
    F[i, j] = S[i, j] + 1
    F.bound(i, 0, 1).bound(j, 0, 3).stream(S)
    S.space_time_transform([j, s], {p: s, t: j + 3 * s}).isolate_consumer_chain(Func("U"))
    with refused("""
            stream(S) on F: which PE of S has a result, and when, depends on s
              --> F.bound(i, 0, 1).bound(j, 0, 3).stream(S)
              expected: a schedule in which the last step of s is the same for all results
              given:    a last step that follows from the bounds of s
              hint:     leave s out of the places of S, or store it in memory
            """):
        t2s.lower(F)
