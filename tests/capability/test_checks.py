"""Claims are checked: those of all functions that t2s has, and lies that have to be found."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
import scipy.linalg.cython_blas  # here, so that no child has to import it
import scipy.sparse

from t2s import Float, Int, Var, external, sparse
from t2s.capability.description import ArrayOfLevelOf, CallNumber, LibraryOf
from t2s.core.types import INT32
from t2s.errors import UserError
from t2s.libraries.calling import CallFrame, DoesNotFit, call
from t2s.libraries.child import ChildCrash, in_child
from t2s.sparse import Schedule, Tensor, dense
from tests.capability.functions import NINE
from tests.errors.refusal import refused
from tests.sampling import sampled

assert scipy.linalg.cython_blas

SHELVES = (external.numpy, external.blas, external.scipy)


@sampled(
    "name",
    [f"{shelf.name}.{name}" for shelf in SHELVES for name in shelf.functions],
    quick=3,
)
def test_every_function_computes_what_it_claims(name: str) -> None:
    library, _, function = name.partition(".")
    shelf = next(one for one in SHELVES if one.name == library)
    report = external.check(shelf.functions[function], trials=60)
    assert report.trials == 60


@sampled("function", NINE, quick=4, ids=lambda one: str(one.name))
def test_the_functions_of_the_counts(function: external.ExternalFunction) -> None:
    external.check(function, trials=60)


def test_families_are_tried_over_their_whole_range() -> None:
    report = external.check(external.numpy.contract, trials=200)
    assert report.patterns > 60
    assert str(report).endswith("patterns, all right")


def _changed(function: external.ExternalFunction, **changes: Any) -> external.ExternalFunction:
    call = function.call
    said = {
        "call": call,
        "library": function.library,
        "index": function.index,
        "types": function.capability.types,
        "strides": {one.name: one.strides for one in function.capability.needs},
    }
    statement = changes.pop("statement")
    return external.make_function(function.name, statement, **(said | changes))


def test_a_transposed_operand_that_is_not() -> None:
    lie = _changed(external.blas.sgemm, statement="z(i,k) = x(i,j) * y(k,j)")
    with pytest.raises(UserError, match=r"sgemm does not compute z\(i,k\) = x\(i,j\)\*y\(k,j\)"):
        external.check(lie)


def test_a_leading_dimension_that_is_the_number_of_rows() -> None:
    made = external.blas.sgemm
    assert made.call is not None
    rows = external.call.AddressOf(value=external.call.DimensionOf(variable="i"))
    arguments = list(made.call.arguments)
    leads = [
        at
        for at, one in enumerate(arguments)
        if one == external.call.AddressOf(value=external.call.LeadOf(tensor="z"))
    ]
    for at in leads:
        arguments[at] = rows
    call = external.call.ExternalCall(symbol="sgemm", arguments=tuple(arguments))
    lie = _changed(made, statement="z(i,k) = x(i,j) * y(j,k)", call=call)
    with pytest.raises(UserError, match=r"sgemm (does not compute|was killed by)"):
        external.check(lie)  # a step that is too long writes behind the result


def test_a_function_that_accumulates_and_does_not_say_so() -> None:
    lie = _changed(external.blas.sger, statement="z(i,j) = x(i) * y(j)")
    with pytest.raises(UserError, match="sger does not compute"):
        external.check(lie)


def test_a_symmetric_function_for_any_matrix() -> None:
    lie = _changed(external.blas.ssymv, statement="z(i) = x(i,j) * y(j)")
    with pytest.raises(UserError, match="ssymv does not compute"):
        external.check(lie)


def test_the_smallest_case_is_shown() -> None:
    with refused("""
        product does not compute z(i) = x(i)*y(i)
          --> @external.function("z(i) = x(i) * y(i)", types="int32")  # a lie
          expected: [-2]
          given:    [0]
          note:     for x [-2] at steps 1, y [1] at steps 1 of int32
          note:     19 of 20 trials differ
    """):

        @external.function("z(i) = x(i) * y(i)", types="int32")  # a lie
        def product(x: Any, y: Any, z: Any) -> None:
            z[...] = 0

        external.check(product, trials=20)


def test_an_operand_that_is_written() -> None:
    @external.function("z(i) = x(i) + y(i)", types="float64")
    def scribble(x: Any, y: Any, z: Any) -> None:
        np.add(x, y, out=z)
        x[...] = 0

    with pytest.raises(UserError, match="an array that was written"):
        external.check(scribble)


def test_a_stored_operand_that_is_written() -> None:
    @external.function("z(i) = x(i,j) * y(j)", types="float64", formats={"x": "ds"})
    def scribble(x: Any, y: Any, z: Any) -> None:
        z[...] = x.to_dense() @ y
        x.values[...] = 0

    with pytest.raises(UserError, match="an array that was written"):
        external.check(scribble)


def test_a_crash_takes_a_child_along() -> None:
    parent = os.getpid()

    @external.function("z(i) = x(i)", types="float64")
    def abort(x: Any, z: Any) -> None:
        os.abort()

    with refused("""
        abort was killed by SIGABRT
          --> @external.function("z(i) = x(i)", types="float64")
          expected: a call that computes z(i) = x(i)
          given:    x [0.0] at steps 2 of float64
          hint:     it ran in a child process; its arguments, and the handlers of its library, are
                    what to look at
    """):
        external.check(abort)
    assert os.getpid() == parent


def test_a_wrong_address_is_a_crash() -> None:
    zero = CallNumber(value=0, type=INT32)
    broken = external.make_function(
        "broken",
        "s = x(i) * y(i)",
        call=external.call.ExternalCall(symbol="sdot", arguments=(zero,) * 5, returns=Float(32)),
        library=LibraryOf(name="scipy's BLAS", capsules="scipy.linalg.cython_blas"),
        index=INT32,
        types="float32",
    )
    with pytest.raises(UserError, match="broken was killed by SIGSEGV"):
        external.check(broken, trials=3)


def test_a_function_that_ends_the_process() -> None:
    @external.function("z(i) = x(i)")
    def leave(x: Any, z: Any) -> None:
        os._exit(3)

    with pytest.raises(UserError, match="leave ended the process with status 3"):
        external.check(leave)


def test_children_that_do_not_end() -> None:
    found = in_child(lambda say: (say("waiting"), time.sleep(60)), seconds=0.2)
    assert isinstance(found, ChildCrash)
    assert (found.why, found.last) == ("did not end within 0.2 seconds", "waiting")


def test_what_children_return_and_raise() -> None:
    assert in_child(lambda say: list(range(100_000))) == list(range(100_000))

    def fail(say: Any) -> None:
        raise UserError("no", expected="yes")

    with pytest.raises(UserError, match="no\n  expected: yes"):
        in_child(fail)
    with pytest.raises(RuntimeError, match="lambda"):
        in_child(lambda say: lambda: None)  # what cannot be told


def test_an_exception_is_the_case_that_failed() -> None:
    @external.function("z(i) = x(i)")
    def fail(x: Any, z: Any) -> None:
        raise ValueError("no")

    with pytest.raises(UserError, match="given:    fail failed: ValueError: no"):
        external.check(fail, trials=4)


def test_the_first_use_of_a_function_tries_it() -> None:
    i = Var("i")
    a, b = Tensor("a", dense(1)), Tensor("b", dense(1))
    a[i] = b[i]

    @external.function("z(i) = x(i)", types="float64")
    def halved(x: Any, z: Any) -> None:
        z[...] = x / 2

    with pytest.raises(UserError, match=r"halved does not compute z\(i\) = x\(i\)"):
        sparse.compile(a, Schedule().bind(b[i], halved))

    @external.function("z(i) = x(i)", types="float64", trusted=True)
    def quartered(x: Any, z: Any) -> None:
        z[...] = x / 4

    plan = sparse.compile(a, Schedule().bind(b[i], quartered))
    assert plan.run({"b": np.array([4.0])}).output.tolist() == [1.0]


def test_arrays_of_levels_in_the_integers_of_an_interface() -> None:
    """memcmp of the coordinates of a sparse tensor, which it has in 64 bits, with 32-bit ones."""
    crd = ArrayOfLevelOf(tensor="x", level=1, array="crd")
    size = CallNumber(value=12, type=Int(64))
    function = external.make_function(
        "memcmp",
        "z = x(i,j) * y(j)",
        call=external.call.ExternalCall(
            symbol="memcmp", arguments=(crd, external.call.DataOf(tensor="y"), size), returns=INT32
        ),
        library=LibraryOf(name="the C library", path="libc.so.6"),
        index=INT32,
        formats={"x": "ds"},
    )
    stored = sparse.tensor(np.array([[0, 1.0, 2.0], [0, 0, 3.0]]), "ds")
    tensors = {"x": stored, "y": np.array([1, 2, 2], np.int32)}
    assert call(CallFrame(function, tensors, {})) == 0
    large = sparse.from_levels(
        (1, 2**40), "ds", ({}, {"pos": np.array([0, 1]), "crd": np.array([2**33])}), np.ones(1)
    )
    with pytest.raises(DoesNotFit, match="a position of x does not fit the interface of memcmp"):
        call(CallFrame(function, tensors | {"x": large}, {}))


def test_a_library_that_is_not_there_is_refused_where_it_is_bound() -> None:
    i = Var("i")
    a, b = Tensor("a", dense(1)), Tensor("b", dense(1))
    a[i] = b[i]
    missing = external.make_function(
        "copy",
        "z(i) = x(i)",
        call=external.call.ExternalCall(symbol="copy", arguments=()),
        library=LibraryOf(name="nowhere", path="/nowhere.so", how_to_get="apt install nowhere"),
    )
    with refused("""
        copy is not available: nowhere is not there
          --> absent = Schedule().bind(b[i], missing)
          expected: nowhere, found by its path or as a package of Python
          given:    /nowhere.so: cannot open shared object file: No such file or directory
          hint:     apt install nowhere
    """):
        absent = Schedule().bind(b[i], missing)
        sparse.compile(a, absent)


def test_results_that_are_none() -> None:
    @external.function("z(i,k) = x(i,j) * y(j,k)", types="float64")
    def turned(x: Any, y: Any) -> Any:
        return (x @ y).T

    with pytest.raises(UserError, match="given:    a result of shape"):
        external.check(turned)

    @external.function("z(i) = x(i)", types="float64", formats={"z": "s"})
    def words(x: Any) -> Any:
        return "no tensor"

    with pytest.raises(UserError, match="given:    a str is not a tensor"):
        external.check(words)


def test_libraries_say_whether_they_are_there() -> None:
    found = {one.name: one for one in external.available()}
    assert found["numpy"].there
    assert found["numpy"].version == np.__version__
    assert found["scipy's BLAS"].there
    missing = external.call.LibraryOf(name="nothing", path="/nowhere/libnothing.so")
    function = external.make_function(
        "nothing_dot",
        "s = x(i) * y(i)",
        call=external.call.ExternalCall(symbol="dot", arguments=()),
        library=missing,
    )
    with pytest.raises(UserError, match="nothing_dot is not available: nothing is not there"):
        external.check(function)


def test_the_public_names_load_no_library() -> None:
    program = "import sys; from t2s import external; sys.stdout.write(' '.join(sys.modules))"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"scipy", "z3", "llvmlite"} & set(loaded)
