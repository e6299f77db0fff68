"""Real libraries: all that is claimed of their functions is executed, where they are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

import t2s.loops.machine  # here, so that no child has to import it
from t2s import Float, Int, Var, external, sparse
from t2s.capability.description import NULL, ForType, enumerator
from t2s.core.types import INT32
from t2s.errors import UserError
from t2s.libraries import calling
from t2s.libraries.blas import OPENBLAS
from t2s.libraries.calling import CallFrame, availability, call, threads_of_libraries
from t2s.libraries.registry import LIBRARIES
from t2s.sparse import Schedule, Tensor, csr, dense
from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.semiring import OR_AND
from tests.errors.refusal import refused
from tests.sampling import sampled
from tests.sources import ROOT

assert t2s.loops.machine

EXTENTS = {"i": 7, "j": 5, "k": 6, "l": 4, "m": 3, "n": 2}
FURTHER = [name for name in LIBRARIES if name not in ("numpy", "blas", "scipy")]
NAMES = [f"{name}.{one}" for name in FURTHER for one in LIBRARIES[name].functions]


def _function(name: str) -> external.ExternalFunction:
    """A function, if its library is installed."""
    library, _, function = name.partition(".")
    found = availability(LIBRARIES[library].description)
    if not found.there:
        pytest.skip(f"{found.name} is not there: {found.why_not}")
    return LIBRARIES[library].functions[function]


@sampled("name", FURTHER, quick=2)
def test_functions_compute_what_they_claim(name: str) -> None:
    for one in LIBRARIES[name].functions:
        assert external.check(_function(f"{name}.{one}"), trials=4).trials == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_functions_compute_what_they_claim_in_many_trials(name: str) -> None:
    assert external.check(_function(name), trials=200, seed=1).trials == 200


def test_a_family_is_tried_over_all_its_patterns() -> None:
    assert external.check(_function("tblis.smult"), trials=100).patterns > 50


# -- statements -----------------------------------------------------------------------------------

SDDMM = "A(i,k) = B(i,k)*C(i,j)*D(j,k)"
# [Mosaic, Table 2], and more: a statement, formats, and schedules
STATEMENTS = [
    (
        "A(i) = B(i,j)*c(j)",
        {},
        [
            *("bind(B(i,j)*c(j),tblis.smult)", "bind(B(i,j)*c(j),openblas.sgemv)"),
            *("bind(B(i,j)*c(j),gsl.sgemv)", "bind(B(i,j)*c(j),mkl.sgemv)"),
            *("bind(B(i,j)*c(j),blis.sgemv)", "fix(i), bind(B(i,j)*c(j),gsl.sdot)"),
        ],
    ),
    (
        "A(i,k) = B(i,j)*C(j,k)",
        {},
        [
            *("bind(B(i,j)*C(j,k),tblis.smult)", "bind(B(i,j)*C(j,k),atlas.sgemm)"),
            *("bind(B(i,j)*C(j,k),onednn.sgemm)", "bind(B(i,j)*C(j,k),gsl.sgemm)"),
            *("fix(j), bind(B(i,j)*C(j,k),blis.sger)", "bind(B(i,j)*C(j,k),mkl.sgemm)"),
        ],
    ),
    (
        SDDMM,
        {"B": "ds"},
        [
            *("bind(C(i,j)*D(j,k),openblas.sgemm)", "bind(C(i,j)*D(j,k),tblis.smult)"),
            "fix(i,k), bind(C(i,j)*D(j,k),openblas.sdot)",
            "fix(i), bind(C(i,j)*D(j,k),openblas.sgemv_columns)",
            "fix(k), bind(C(i,j)*D(j,k),mkl.sgemv)",
            "bind(B(i,k)*C(i,j)*D(j,k),graphblas.mxm_masked_dense)",
            "map(B(i,k)*C(i,j)*D(j,k),graphblas.mxm_masked_rows)",
        ],
    ),
    (
        SDDMM,
        {"B": "ds", "C": "ds", "D": "ds"},
        [
            "bind(B(i,k)*C(i,j)*D(j,k),graphblas.mxm_masked)",
            "bind(C(i,j)*D(j,k),graphblas.mxm)",
            "bind(C(i,j)*D(j,k),mkl.sspgemm)",
        ],
    ),
    (
        "A(i) = B(i,j)*c(j)",
        {"B": "ds"},
        ["bind(B(i,j)*c(j),graphblas.mxv)", "bind(B(i,j)*c(j),mkl.sspmv)"],
    ),
    (
        "A(i,k) = B(i,j)*C(j,k)",
        {"B": "ds"},
        ["bind(B(i,j)*C(j,k),graphblas.mxm_dense)", "bind(B(i,j)*C(j,k),mkl.sspmm)"],
    ),
    (  # converted to compressed rows by the plan
        "A(i,k) = B(i,j)*C(j,k)",
        {"B": "uq"},
        ["map(B(i,j)*C(j,k),graphblas.mxm_dense)", "map(B(i,j)*C(j,k),mkl.sspmm)"],
    ),
    (
        "A(i,j,k,l) = B(i,j,k,l)*C(i,m)*D(j,m)*E(k,m)*F(l,m)",
        {"B": "ssss"},
        ["map(C(i,m)*D(j,m),tblis.smult)"],
    ),
    (
        "A(i,j,k,l) = B(i,j,m,n)*C(m,n,k,l)",
        {},
        ["bind(B(i,j,m,n)*C(m,n,k,l),tblis.smult)"],
    ),
    (
        "A(i,j) = B(i,j)+C(i,j)",
        {"B": "ds", "C": "ds"},
        ["bind(B(i,j)+C(i,j),graphblas.ewise_add)"],
    ),
    (
        "A(i,j) = B(i,j)*C(i,j)",
        {"B": "ds", "C": "ds"},
        ["bind(B(i,j)*C(i,j),graphblas.ewise_mult)"],
    ),
    ("A(i,j) = B(i,j,k)*c(k)", {}, ["bind(B(i,j,k)*c(k),tblis.smult)"]),
    ("A(i,j,k) = B(i,j,k)+C(i,j,k)", {}, ["bind(B(i,j,k)+C(i,j,k),tblis.sadd)"]),
    ("A(i) = B(i,j,k)", {}, ["bind(B(i,j,k),tblis.stotal)"]),
    ("A = B(i,j,k)*C(i,j,k)", {}, ["bind(B(i,j,k)*C(i,j,k),tblis.sdot)"]),
    ("A(l,k) = B(j,k,i)*C(i,l,j)", {}, ["map(B(j,k,i)*C(i,l,j),tblis.smult)"]),
    ("A(i) = b(i)+c(i)", {}, ["map(b(i)+c(i),vector.add8)", "bind(b(i)+c(i),gsl.sadd)"]),
    ("A(i,j) = B(i,j)*C(i,j)+D(i,j)", {}, ["map(B(i,j)*C(i,j)+D(i,j),vector.mul_add8)"]),
]
CASES = [(text, formats, said) for text, formats, schedules in STATEMENTS for said in schedules]


def _inputs(assignment: Assignment) -> dict[str, Any]:
    generator = np.random.default_rng(5)
    found = {}
    for access in accesses(assignment.value):
        shape = [EXTENTS[name] for name in access.variables]
        values = generator.integers(-4, 5, shape).astype(np.float32)
        if not all(one.full for one in assignment.tensor(access.tensor).format.levels):
            values *= generator.random(shape) < 0.4
        found[access.tensor] = values
    return found


@pytest.mark.parametrize(("text", "formats", "said"), CASES)
def test_statements(text: str, formats: dict[str, str], said: str) -> None:
    _function(said.rpartition(",")[2].removesuffix(")"))
    assignment = sparse.parse(text, formats)
    inputs = _inputs(assignment)
    before = {name: value.copy() for name, value in inputs.items()}
    plan = sparse.compile(assignment, said)
    found = plan.run(inputs, type=Float(32))
    expected = sparse.interpret(assignment, inputs, type=Float(32))
    assert np.array_equal(found.output, expected)
    assert plan.run(inputs, type=Float(32)).output.tobytes() == found.output.tobytes()
    assert all(np.array_equal(inputs[name], before[name]) for name in inputs)
    assert sum(step.calls for step in found.steps) > 0


i, j, k = Var("i"), Var("j"), Var("k")
A = Tensor("A", dense(2))
C, D = Tensor("C", dense(2)), Tensor("D", dense(2))


def test_a_product_of_three_by_one() -> None:
    given = {"C": np.array([[1, 2], [3, 4], [5, 6]], np.float32), "D": np.float32([[1], [-1]])}
    A[i, k] = C[i, j] * D[j, k]
    for name in ("tblis.smult", "openblas.sgemm", "gsl.sgemm", "blis.sgemm"):
        if availability(LIBRARIES[name.partition(".")[0]].description).there:
            plan = sparse.compile(A, f"bind(C(i,j)*D(j,k),{name})")
            assert np.array_equal(plan.run(given).output, given["C"] @ given["D"])


@pytest.mark.parametrize("name", ["tblis.smult", "blis.sgemm"])
def test_any_steps_without_a_copy(name: str) -> None:
    """A window of a larger matrix, every second column of one, and a transposed one."""
    _function(name)
    A[i, k] = C[i, j] * D[j, k]
    plan = sparse.compile(A, f"map(C(i,j)*D(j,k),{name})")
    large = np.arange(400, dtype=np.float32).reshape(20, 20) % 7 - 3
    given = {"C": large[3:7, 1:11:2], "D": large[5:8, 2:7].T}
    found = plan.run(given)
    assert np.array_equal(found.output, given["C"] @ given["D"])
    assert [step.copied for step in found.steps] == [0]


@pytest.mark.parametrize(
    "ring", [sparse.MIN_PLUS, sparse.MAX_PLUS, sparse.MAX_TIMES, sparse.MIN_MAX, OR_AND]
)
@pytest.mark.parametrize("name", ["mxm", "mxm_dense", "mxm_masked", "ewise_add"])
def test_semirings_of_graphblas(ring: sparse.Semiring, name: str) -> None:
    _function(f"graphblas.{name}")
    text, formats = {
        "mxm": ("A(i,k) = B(i,j)*C(j,k)", {"B": "ds", "C": "ds"}),
        "mxm_dense": ("A(i,k) = B(i,j)*C(j,k)", {"B": "ds"}),
        "mxm_masked": ("A(i,k) = B(i,k)*C(i,j)*D(j,k)", {"B": "ds", "C": "ds", "D": "ds"}),
        "ewise_add": ("A(i,j) = B(i,j)+C(i,j)", {"B": "ds", "C": "ds"}),
    }[name]
    assignment = sparse.parse(text, formats)
    generator = np.random.default_rng(2)
    inputs = {}
    for access in accesses(assignment.value):
        shape = [EXTENTS[one] for one in access.variables]
        there = generator.random(shape) < 0.5
        inputs[access.tensor] = np.where(there, generator.integers(1, 9, shape), ring.zero) * 1.0
    part = text.partition("= ")[2]
    plan = sparse.compile(assignment, f"bind({part},graphblas.{name})", semiring=ring)
    expected = sparse.compile(assignment, semiring=ring).interpret(inputs)
    assert np.array_equal(plan.run(inputs).output, expected)


def test_a_mask_says_which_places_are_computed() -> None:
    _function("graphblas.mxm_masked")
    S = Tensor("S", csr)
    P, Q, R = (Tensor(name, csr) for name in "PQR")
    S[i, j] = P[i, j] * Q[i, k] * R[k, j]
    plan = sparse.compile(S, Schedule().bind(P[i, j] * Q[i, k] * R[k, j], "graphblas.mxm_masked"))
    eye, ones = np.eye(4), np.ones((4, 4))
    found = plan.run({"P": eye, "Q": ones, "R": ones})
    stored = found.tensor
    assert stored.levels[1]["crd"].tolist() == [0, 1, 2, 3]
    assert stored.values.tolist() == [4, 4, 4, 4]
    assert len(plan.program.steps) == 1


# -- what is not there, what breaks, what lies ----------------------------------------------------

MISSING = external.call.LibraryOf(
    name="nothing",
    files=(
        external.LibraryFile(wheel="no-such-wheel", name="libnothing"),
        external.LibraryFile(name="libnothing.so.7"),
    ),
    how_to_get="python -m pip install no-such-wheel",
)
WHY = (
    "no package no-such-wheel is installed; libnothing.so.7: cannot open shared object file: "
    "No such file or directory"
)


def _product_of(
    library: external.call.LibraryOf, name: str = "product"
) -> external.ExternalFunction:
    return external.make_function(
        name,
        "z(i,k) = x(i,j) * y(j,k)",
        call=external.call.ExternalCall(symbol="product", arguments=()),
        library=library,
    )


def test_a_missing_library_is_refused_where_it_is_bound() -> None:
    product = _product_of(MISSING)
    A[i, k] = C[i, j] * D[j, k]
    with refused(f"""
        product is not available: nothing is not there
          --> bound = Schedule().bind(C[i, j] * D[j, k], product)
          expected: nothing, found by its path or as a package of Python
          given:    {WHY}
          hint:     python -m pip install no-such-wheel
    """):
        bound = Schedule().bind(C[i, j] * D[j, k], product)
        sparse.compile(A, bound)


def test_a_missing_library_is_skipped_by_a_search_in_one_line() -> None:
    A[i, k] = C[i, j] * D[j, k]
    shapes = {"C": (4, 4), "D": (4, 4)}
    functions = [_product_of(MISSING, name) for name in ("one", "two", "three")]
    found = external.search(A, [*functions, "numpy.matmul"], shapes=shapes)
    assert found.skipped == (f"one, two, three are skipped: nothing is not there: {WHY}",)
    found = external.search(A, [functions[0], "numpy.matmul"], shapes=shapes)
    assert found.skipped == (f"one is skipped: nothing is not there: {WHY}",)


def test_a_missing_library_of_ours_says_how_to_get_it() -> None:
    """Whatever is installed here: each library has a way, which its refusal names."""
    for name in FURTHER:
        description = LIBRARIES[name].description
        gone = replace(description, files=MISSING.files) if description.files else MISSING
        with pytest.raises(UserError, match="is not there") as caught:
            external.check(_product_of(gone))
        assert f"hint:     {gone.how_to_get}" in str(caught.value)
        assert description.how_to_get


def test_a_library_that_aborts_where_it_is_loaded() -> None:
    start = external.call.ExternalCall(symbol="abort", arguments=())
    aborts = external.call.LibraryOf(
        name="a library that aborts",
        files=(external.LibraryFile(name="libc.so.6"),),
        start=(start,),
    )
    assert availability(aborts).why_not == "loading it was killed by SIGABRT"
    with pytest.raises(UserError, match="given:    loading it was killed by SIGABRT"):
        external.check(_product_of(aborts))


def test_a_probe_that_fails_says_why() -> None:
    """As that of cuSPARSE does where no GPU is: a status that is not 0."""
    probe = external.call.ExternalCall(symbol="abs", arguments=(enumerator(3),), returns=INT32)
    library = external.call.LibraryOf(
        name="some device",
        files=(external.LibraryFile(name="libc.so.6"),),
        probe=probe,
        probe_fails="there is no device",
    )
    assert availability(library).why_not == "there is no device (status 3)"
    assert availability(replace(library, probe_fails="")).there


def test_cusparse_is_probed_by_a_handle() -> None:
    found = availability(LIBRARIES["cusparse"].description)
    if found.there:
        external.check(external.cusparse.sspmv, trials=20)
        return
    reasons = ("no package nvidia-cus", "there is no GPU that it can use", "libcu", "no package")
    assert found.why_not.startswith(reasons)
    assert not external.cusparse.sspmv.trusted
    with pytest.raises(UserError, match="sspmv is not available: cuSPARSE is not there"):
        external.check(external.cusparse.sspmv)


def _lie(name: str, **changes: Any) -> external.ExternalFunction:
    return replace(_function(name), **changes)


def _exchanged(term: Any, one: Any, other: Any) -> Any:
    """Arguments with two terms exchanged."""
    given = [
        other if found == one else one if found == other else found for found in term.arguments
    ]
    return replace(term, arguments=tuple(given))


def test_a_struct_with_extents_in_place_of_steps() -> None:
    made = _function("tblis.smult")
    wrong = [
        _exchanged(one, external.call.ExtentsOf(tensor="x"), external.call.StepsOf(tensor="x"))
        for one in made.setup
    ]
    with pytest.raises(
        UserError, match=r"smult (does not compute|was killed by|ended the process|did not end)"
    ):
        external.check(replace(made, setup=tuple(wrong)), trials=50, seconds=2)


def test_a_struct_of_gsl_with_its_sizes_exchanged() -> None:
    made = _function("gsl.sgemv")
    assert made.call is not None
    matrix = next(
        one
        for one in made.call.arguments
        if isinstance(one, external.call.StructOf) and len(one.fields) == 6
    )
    rows, columns, *rest = matrix.fields
    given = tuple(
        external.call.StructOf(fields=(columns, rows, *rest)) if one == matrix else one
        for one in made.call.arguments
    )
    lie = replace(made, call=replace(made.call, arguments=given))
    with pytest.raises(UserError, match=r"sgemv does not compute") as caught:
        external.check(lie)
    assert "given:    sgemv failed" in str(caught.value) or "given:    [" in str(caught.value)


def test_a_status_names_the_function_and_the_line() -> None:
    made = _function("gsl.sgemv")
    frame = CallFrame(
        made,
        {
            "x": np.ones((2, 3), np.float32),
            "y": np.ones(2, np.float32),
            "z": np.ones(2, np.float32),
        },
        {"i": 2, "j": 3},
    )
    wrong = replace(made, call=replace(made.call, arguments=_shorter(made)))
    with pytest.raises(UserError) as caught:
        call(replace(frame, function=wrong))
    assert str(caught.value) == (
        "sgemv failed\n  expected: status 0\n  given:    status 19, extents that do not fit\n"
        "  note:     a function of GSL"
    )


def _shorter(made: external.ExternalFunction) -> tuple[Any, ...]:
    """The arguments with a vector that is shorter than the matrix is wide."""
    assert made.call is not None
    *before, x, y, beta, z = made.call.arguments
    return (*before, x, z, beta, y)


def test_a_lie_about_a_mask() -> None:
    masked = _function("graphblas.mxm_masked")
    capability = external.make_capability(
        "z(i,k) = m(i,k) + x(i,j) * y(j,k)",
        types="float32",
        formats=dict.fromkeys("mxyz", "ds"),
    )
    with pytest.raises(UserError, match="mxm_masked does not compute"):
        external.check(replace(masked, capability=capability), trials=20)


def test_results_that_are_no_compressed_rows() -> None:
    made = _function("graphblas.mxm")
    stored = made.stored
    assert stored is not None
    for changed, given in (
        (replace(stored, pos=stored.crd, crd=stored.pos), ""),
        (replace(stored, pos=NULL), "gave no tensor in compressed rows"),
    ):
        with pytest.raises(UserError, match=f"mxm does not compute(.|\n)*{given}"):
            external.check(replace(made, stored=changed), trials=20)


def test_a_call_that_fails_before_the_function() -> None:
    """No result is read, and what was made is freed."""
    made = _function("graphblas.mxm")
    failing = external.call.ExternalCall(
        symbol="GrB_Matrix_new", arguments=(NULL,) * 4, returns=INT32
    )
    stored = sparse.tensor(np.eye(2, dtype=np.float32), "ds")
    frame = CallFrame(
        replace(made, setup=(*made.setup, failing)),
        {"x": stored, "y": stored},
        dict.fromkeys("ijk", 2),
    )
    with pytest.raises(UserError, match="given:    status -2, no address"):
        call(frame)


# -- what stays as it is --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_public_names_load_none_of_them() -> None:
    program = (
        "import sys; from t2s import external; external.available(); external.tblis.smult\n"
        "from pathlib import Path; sys.stdout.write(Path('/proc/self/maps').read_text())"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("the libraries of a process are read from /proc")
    command = [sys.executable, "-c", program]
    maps = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = ("libtblis", "libgraphblas", "libscipy_openblas.so", "libmkl", "libgsl", "llvmlite")
    assert not [word for word in words if word in maps]


def test_libraries_use_one_thread_from_their_first_call_on() -> None:
    _function("openblas.sgemm")
    import threadpoolctl

    with threads_of_libraries(1, [OPENBLAS]):
        found = [one["num_threads"] for one in threadpoolctl.threadpool_info()]
    assert found
    assert set(found) == {1}


def test_a_controller_knows_libraries_of_modules_that_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with threads_of_libraries(1), threads_of_libraries(1):
        known = calling._controller.cache_info().misses
    with threads_of_libraries(1):
        assert calling._controller.cache_info().misses == known
    monkeypatch.setitem(sys.modules, "one_more_module", sys)
    with threads_of_libraries(1):
        assert calling._controller.cache_info().misses == known + 1


def test_names_of_openblas_in_c() -> None:
    """The symbols of the wheel have a prefix, which the emitted program says."""
    if not availability(OPENBLAS).where.endswith(".so"):
        pytest.skip("OpenBLAS is not that of the wheel")
    from t2s.libraries.calling import exported_name, located

    assert exported_name(OPENBLAS, "cblas_sdot") == "scipy_cblas_sdot"
    assert located(OPENBLAS).path == availability(OPENBLAS).where


@pytest.mark.slow
def test_a_plan_with_openblas_is_a_program_in_c(tmp_path: Path) -> None:
    _function("openblas.sgemm")
    compiler = which("cc")
    if (
        compiler is None
        or which("make") is None
        or not Path(availability(OPENBLAS).where).is_file()
    ):
        pytest.skip("there is no compiler, or no file of OpenBLAS to link")
    assignment = sparse.parse(SDDMM, {"B": "ds"})
    plan = sparse.compile(assignment, "bind(C(i,j)*D(j,k),openblas.sgemm)")
    external.emit(plan, str(tmp_path), _inputs(assignment), type=Float(32))
    run = subprocess.run(["make", "run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "A is right" in run.stdout, run.stderr
    assert "cblas_sgemm(" in (tmp_path / "plan.c").read_text()


def test_functions_of_structs_and_vectors_are_not_printed_as_c(tmp_path: Path) -> None:
    one, b, c = Tensor("a", dense(1)), Tensor("b", dense(1)), Tensor("c", dense(1))
    one[i] = b[i] + c[i]
    plan = sparse.compile(one, "map(b(i)+c(i),vector.add8)")
    inputs = {"b": np.ones(8, np.float32), "c": np.ones(8, np.float32)}
    with pytest.raises(UserError, match="add8 is not called by C: vectors of this CPU has no file"):
        external.emit(plan, str(tmp_path), inputs)


def test_the_page_names_all_functions() -> None:
    lines = (ROOT / "docs" / "external.md").read_text(encoding="utf-8").splitlines()
    rows = {line.split("`")[1]: line for line in lines if line.startswith("| `external")}
    assert {name.removeprefix("external.") for name in rows} == {*LIBRARIES}
    for name, library in LIBRARIES.items():
        named = set(re.findall(r"`(\w+)`", rows[f"external.{name}"]))
        named |= {f"{letter}{one}" for letter in "sd" for one in named}
        if "those of `external.blas`" in rows[f"external.{name}"]:
            named |= set(LIBRARIES["blas"].functions)
        assert not set(library.functions) - named


def test_terms_for_types() -> None:
    """What a call is given may depend on the type of its values."""
    sizes = ForType(
        terms=tuple((type, enumerator(type.bytes)) for type in (Float(32), Float(64), Int(8)))
    )
    function = external.make_function(
        "abs",
        "s = x(i)",
        call=external.call.ExternalCall(symbol="abs", arguments=(sizes,), returns=INT32),
        library=external.call.LibraryOf(name="the C library", path="libc.so.6"),
    )
    for type in (Float(32), Float(64), Int(8)):
        assert call(CallFrame(function, {"x": np.ones(3, type.numpy)}, {"i": 3})) == type.bytes
