"""A library in C that a user has written: right, wrong, and hostile; the user's process lives."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

from t2s import Float, Int, Var, external, sparse
from t2s.core.types import INT32, Type
from t2s.errors import UserError
from t2s.sparse import Schedule, Tensor, dense
from tests.errors.refusal import refused
from tests.sampling import sampled

SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
typedef int64_t I;
#define VECTORS(name) name(I n, double *x, double *y, double *z)
static void sum(I n, const double *x, const double *y, double *z) {
    for (I i = 0; i < n; i++) z[i] = x[i] + y[i];
}
void VECTORS(good) { sum(n, x, y, z); }
void VECTORS(aborts) { abort(); }
void VECTORS(faults) { *(volatile int *)0 = 1; }
void VECTORS(leaves) { exit(7); }
void VECTORS(leaves_well) { exit(0); }
void VECTORS(spins) { for (volatile I k = 0;; k++) ; }
void VECTORS(scribbles) { sum(n, x, y, z); for (I i = 0; i < n; i++) x[i] = 7; }
void VECTORS(runs_over) { sum(n, x, y, z); z[n + 16] = 42; }
void VECTORS(starts_early) { sum(n, x, y, z); x[-2] = 42; }
void VECTORS(stops_early) { sum(n - 1, x, y, z); }
void VECTORS(closes) { sum(n, x, y, z); for (int k = 3; k < 300; k++) close(k); }
int VECTORS(refuses) { sum(n, x, y, z); return n > 5 ? 42 : 0; }
static int owner = 0;  /* as of a driver of a GPU: a copy of the process cannot use it */
int starts(void) { if (!owner) owner = getpid(); return owner != getpid(); }
void VECTORS(on_device) { if (!starts()) sum(n, x, y, z); }
void mixed(int m, I n, int lead, const double *x, const double *y, double *z) {
    for (int i = 0; i < m; i++) {
        z[i] = 0;
        for (I j = 0; j < n; j++) z[i] += x[i * (I)lead + j] * y[j];
    }
}
double dot(I n, const double *x, const double *y) {
    double s = 0; for (I i = 0; i < n; i++) s += x[i] * y[i]; return s;
}
struct matrix { I rows, columns; double *values; I lead; };
void gemv(const struct matrix *a, const double *y, double *z) {
    for (I i = 0; i < a->rows; i++) {
        z[i] = 0;
        for (I j = 0; j < a->columns; j++) z[i] += a->values[i * a->lead + j] * y[j];
    }
}
"""

ADD = "z(i) = x(i) + y(i)"
i = Var("i")
a, b, c = (Tensor(name, dense(1)) for name in "abc")
a[i] = b[i] + c[i]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> external.call.LibraryOf:
    compiler = which("cc")
    if compiler is None:
        pytest.skip("there is no compiler of C")
    folder: Path = tmp_path_factory.mktemp("own")
    (folder / "own.c").write_text(SOURCE)
    made = folder / "libown.so"
    command = [compiler, "-O1", "-w", "-shared", "-fPIC", "-o", str(made), str(folder / "own.c")]
    subprocess.run(command, check=True)
    return external.call.LibraryOf(name="own", path=str(made))


def _vectors(
    library: external.call.LibraryOf, symbol: str, *, returns: Type | None = None, **said: Any
) -> external.ExternalFunction:
    data = tuple(external.call.DataOf(tensor=name) for name in "xyz")
    return external.make_function(
        symbol,
        ADD,
        call=external.call.ExternalCall(
            symbol=symbol,
            arguments=(external.call.DimensionOf(variable="i"), *data),
            returns=returns,
        ),
        library=library,
        index=Int(64),
        types="float64",
        **said,
    )


def test_a_good_one(library: external.call.LibraryOf) -> None:
    plan = sparse.compile(a, Schedule().bind(b[i] + c[i], _vectors(library, "good")))
    given = {"b": np.arange(5.0), "c": np.ones(5)}
    assert np.array_equal(plan.run(given).output, np.arange(5.0) + 1)


HOSTILE = [
    ("aborts", "aborts was killed by SIGABRT"),
    ("faults", "faults was killed by SIGSEGV"),
    ("leaves", "leaves ended the process with status 7"),
    ("leaves_well", "leaves_well ended the process with status 0"),
    ("scribbles", r"scribbles does not compute z\(i\) = x\(i\) \+ y\(i\)"),
    ("runs_over", r"given:    z written 128 bytes behind its end"),
    ("starts_early", r"given:    x written 9 bytes before its start"),
    ("stops_early", "stops_early does not compute"),
    ("closes", "closes broke the process, which could not tell how"),
]


@pytest.mark.parametrize(("symbol", "said"), HOSTILE)
def test_hostile_ones(library: external.call.LibraryOf, symbol: str, said: str) -> None:
    """Refused where they are bound, before they see anything of the user's."""
    given = {"b": np.arange(5.0), "c": np.ones(5)}
    with pytest.raises(UserError, match=said) as caught:
        sparse.compile(a, Schedule().bind(b[i] + c[i], _vectors(library, symbol))).run(given)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert np.array_equal(given["b"], np.arange(5.0))
    assert np.array_equal(given["c"], np.ones(5))


def test_one_that_does_not_end(library: external.call.LibraryOf) -> None:
    with pytest.raises(UserError, match=r"spins did not end within 0\.3 seconds"):
        external.check(_vectors(library, "spins"), seconds=0.3)


def test_one_that_says_that_it_failed(library: external.call.LibraryOf) -> None:
    status = external.call.ReturnedStatus(meanings=((42, "too long"),))
    function = _vectors(library, "refuses", returns=INT32, status=status)
    with pytest.raises(UserError, match="given:    refuses failed: status 42, too long"):
        external.check(function)
    trusted = _vectors(library, "refuses", returns=INT32, status=status, trusted=True)
    plan = sparse.compile(a, Schedule().bind(b[i] + c[i], trusted))
    assert np.array_equal(plan.run({"b": np.ones(5), "c": np.ones(5)}).output, np.full(5, 2.0))
    with pytest.raises(UserError, match="given:    status 42, too long"):
        plan.run({"b": np.ones(6), "c": np.ones(6)})


def test_one_that_is_not_there(library: external.call.LibraryOf) -> None:
    with refused("""
        lost is not available: own has no function lost
          --> lost = external.make_function("lost", "z(i) = x(i)", call=call, library=library)
          expected: the name of one of its functions
          given:    lost
    """):
        call = external.call.ExternalCall(symbol="lost", arguments=())
        lost = external.make_function("lost", "z(i) = x(i)", call=call, library=library)
        external.check(lost)


@sampled("type", [Float(32), Int(64), None], quick=2)
def test_a_result_of_another_type(library: external.call.LibraryOf, type: Type | None) -> None:
    data = (external.call.DataOf(tensor="x"), external.call.DataOf(tensor="y"))
    call = external.call.ExternalCall(
        symbol="dot", arguments=(external.call.DimensionOf(variable="i"), *data), returns=type
    )
    with pytest.raises(UserError, match="dot does not compute"):
        external.check(
            external.make_function(
                *("dot", "s = x(i) * y(i)"),
                call=call,
                library=library,
                index=Int(64),
                types="float64",
            )
        )


def _gemv(library: external.call.LibraryOf, *fields: Any) -> external.ExternalFunction:
    arguments = (external.call.StructOf(fields=fields), *map(_data, "yz"))
    return external.make_function(
        "gemv",
        "z(i) = x(i,j) * y(j)",
        call=external.call.ExternalCall(symbol="gemv", arguments=arguments),
        library=library,
        index=Int(64),
        types="float64",
        strides={"x": "rows"},
    )


def _data(name: str) -> external.call.DataOf:
    return external.call.DataOf(tensor=name)


def test_structs(library: external.call.LibraryOf) -> None:
    rows, columns = (external.call.DimensionOf(variable=name) for name in "ij")
    lead = external.call.LeadOf(tensor="x")
    right = _gemv(library, rows, columns, _data("x"), lead)
    assert external.check(right).trials == 200
    how = r"gemv (does not compute|was killed by SIG|did not end within 10 seconds)"
    for wrong in ((columns, rows, _data("x"), lead), (_data("x"), rows, columns, lead), (rows,)):
        with pytest.raises(UserError, match=how):  # it writes anywhere, and that may be its heap
            external.check(_gemv(library, *wrong), seconds=10)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_driver_that_does_not_survive_a_fork(
    library: external.call.LibraryOf, fresh: bool
) -> None:
    """The process has used it before, as any import of a framework for GPUs may do."""
    assert ctypes.CDLL(library.path).starts() == 0
    driver = external.call.LibraryOf(
        name="driver",
        path=library.path,
        probe=external.call.ExternalCall(symbol="starts", arguments=(), returns=INT32),
        probe_fails="it makes no handle",
        fresh=fresh,
    )
    function = _vectors(driver, "on_device")
    if fresh:
        assert external.check(function, 20).trials == 20
        return
    with pytest.raises(UserError, match="it makes no handle"):
        external.check(function, 20)


def test_libraries_of_cuda_are_found_in_the_wheels_of_today() -> None:
    from t2s.libraries.cusparse import CUSPARSE

    assert CUSPARSE.fresh
    assert "nvidia-cusparse" in [file.wheel for file in CUSPARSE.files]
    assert {"libcudart.so.12", "libcudart.so.13"} <= {file.name for file in CUSPARSE.beside}


def test_integers_of_two_widths_in_one_call(library: external.call.LibraryOf) -> None:
    arguments = (
        external.call.DimensionOf(variable="i", type=Int(32)),
        external.call.DimensionOf(variable="j"),
        external.call.LeadOf(tensor="x", type=Int(32)),
        *(external.call.DataOf(tensor=name) for name in "xyz"),
    )
    call = external.call.ExternalCall(symbol="mixed", arguments=arguments)
    said: dict[str, Any] = {
        "types": "float64",
        "strides": {"x": "rows", "y": "dense", "z": "dense"},
    }
    function = external.make_function(
        "mixed", "z(i) = x(i,j)*y(j)", call=call, library=library, index=Int(64), **said
    )
    assert external.check(function, 50).trials == 50
    first = external.call.DimensionOf(variable="i", type=Float(32))
    wrong = replace(call, arguments=(first, *arguments[1:]))
    with pytest.raises(
        UserError, match="the type of an extent or a stride must be an integer type"
    ):
        external.make_function("mixed", "z(i) = x(i,j)*y(j)", call=wrong, library=library, **said)


def test_a_crash_names_the_width_of_integers(library: external.call.LibraryOf) -> None:
    with pytest.raises(UserError, match="extents and steps of 64 bits: index= says another width"):
        external.check(_vectors(library, "aborts"))
