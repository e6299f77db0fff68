"""``t2s run``: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from t2s.command.main import app

EXAMPLES = Path(__file__).parent.parent / "examples" / "gemm"

HEADER = """\
import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var

A = ImageParam(Int(32), 1, name="A")
i = Var("i")
"""

SEVERAL = f"""{HEADER}
shared, first, second, unused = t2s.funcs("shared first second unused")
shared[i] = A[i] * 2
first[i] = shared[i] + 1
second[i] = shared[i] - 1
first.bound(i, 0, 8)
second.bound(i, 0, 8)
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def succeeds(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def refuses(*arguments: str | Path) -> str:
    """The error text of a run that ends with exit code 1, and not with a traceback."""
    result = run(*arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.stderr


@pytest.fixture
def design(tmp_path: Path) -> Path:
    """A file with two outputs."""
    return written(tmp_path, SEVERAL)


def written(folder: Path, text: str) -> Path:
    path = folder / "design.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def gemm(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What running the first example prints, and the folder that it wrote."""
    folder = tmp_path_factory.mktemp("gemm") / "new" / "folder"
    return succeeds(EXAMPLES / "gemm.py", "--out", folder), folder


def test_sections_come_in_order(gemm: tuple[str, Path]) -> None:
    printed, _ = gemm
    assert re.findall(r"^(\w[\w ]*\w) ─+$", printed, re.MULTILINE) == [
        "loop nest",
        "graph",
        "resources",
        "simulation",
    ]


def test_the_loop_nest_gives_reasons(gemm: tuple[str, Path]) -> None:
    printed, _ = gemm
    assert "C: compute, 64 PEs\n" in printed
    assert re.search(r"parallel ii in 0\.\.7: +# one PE each by unroll\(ii, jj\)\n", printed)
    assert "A = receive from A_feeder, passed on along jj\n" in printed


def test_the_graph_summary_lists_nodes_and_channels(gemm: tuple[str, Path]) -> None:
    printed, _ = gemm
    assert re.search(
        r"^C: \d+ PEs \(64 compute\) in 6 nodes, \d+ FIFOs in 7", printed, re.MULTILINE
    )
    assert re.search(r"^C +compute +64 +i: 2, j: 2, k: 128, it: 4, jt: 4 +8,192$", printed, re.M)
    assert re.search(r"^A_feeder_to_C +A_feeder -> C +8 +float32 +\d+$", printed, re.MULTILINE)


def test_the_result_has_cycles_utilization_and_stalls(gemm: tuple[str, Path]) -> None:
    printed, _ = gemm
    cycles = re.search(r"^cycles +([\d,]+)$", printed, re.MULTILINE)
    assert cycles is not None
    assert re.search(
        r"^utilization +\d+\.\d% of C = firings / \(PEs x cycles\)$",
        printed,
        re.MULTILINE,
    )
    assert f"PE-cycles by node (PEs x {cycles[1]} cycles = 100 %)\n" in printed
    assert re.search(
        r"^node +busy +starved +blocked +waiting +idle +main cause", printed, re.MULTILINE
    )
    assert re.search(r"^time +\S+ µs on arria10 at 215 MHz$", printed, re.MULTILINE)


def test_the_values_are_compared_with_numpy(gemm: tuple[str, Path]) -> None:
    printed, _ = gemm
    assert "\nsimulator: matches numpy" in printed


def test_the_opencl_is_written_where_it_says(gemm: tuple[str, Path]) -> None:
    printed, folder = gemm
    paths = [Path(path) for path in re.findall(r"^wrote (.+)$", printed, re.MULTILINE)]
    assert paths == [folder / "C.cl", folder / "C_host.py"]
    assert "__kernel" in paths[0].read_text(encoding="utf-8")
    assert sorted(folder.iterdir()) == paths


def test_device_engine_and_seed_can_be_chosen(tmp_path: Path) -> None:
    text = (
        f"{HEADER}\nnext_one = Func('next_one')\nnext_one[i] = A[i] + 1\nnext_one.bound(i, 0, 8)\n"
    )
    file = written(tmp_path, text)
    options = ("--device", "ideal", "--engine", "python", "--seed", "7", "--out", tmp_path)
    printed = succeeds(file, *options)
    assert re.search(r"^cycles +10$", printed, re.MULTILINE)
    assert "on ideal at 1000 MHz" in printed
    assert "simulator: matches numpy exactly" in printed
    assert (tmp_path / "next_one.cl").exists()


def test_the_default_folder_is_named_after_the_func(
    design: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "wrote build/first/first.cl\n" in succeeds(design, "--func", "first")


def test_a_design_file_may_import_its_neighbors(tmp_path: Path) -> None:
    (tmp_path / "neighbor_of_the_design.py").write_text("EXTENT = 4\n", encoding="utf-8")
    text = f"{HEADER}\nfrom neighbor_of_the_design import EXTENT\n"
    text += "B = Func('B')\nB[i] = A[i]\nB.bound(i, 0, EXTENT)\n"
    assert "for i in 0..3:" in succeeds(written(tmp_path, text), "--out", tmp_path)


def test_scalar_inputs_are_random_too(tmp_path: Path) -> None:
    text = f"{HEADER}\nalpha = Param(Float(64), name='alpha')\nB = Func('B')\n"
    text += "B[i] = alpha * A[i]\nB.bound(i, 0, 4)\n"
    assert "matches numpy exactly" in succeeds(written(tmp_path, text), "--out", tmp_path)


def test_several_outputs_are_one_design(design: Path, tmp_path: Path) -> None:
    printed = succeeds(design, "--out", tmp_path / "out")
    assert "simulator, first: matches numpy exactly\n" in printed
    assert "simulator, second: matches numpy exactly\n" in printed
    assert len(list((tmp_path / "out").glob("*.cl"))) == 1


def test_func_chooses_an_output(design: Path, tmp_path: Path) -> None:
    printed = succeeds(design, "--func", "second", "--out", tmp_path)
    assert "second = A * 2 - 1\n" in printed
    assert (tmp_path / "second.cl").exists()


def test_func_that_is_not_defined(design: Path) -> None:
    assert refuses(design, "--func", "unused") == (
        f"error: {design} defines no Func unused\n"
        "  expected: first, second, shared\n"
        "  given:    unused\n"
    )


def test_file_without_a_design(tmp_path: Path) -> None:
    file = written(tmp_path, HEADER)
    assert refuses(file) == (
        f"error: {file} defines 0 Funcs that could be run\n"
        "  expected: one Func that no other Func reads\n"
        "  given:    no Func with a definition\n"
        "  hint:     or define a function design that returns Funcs, a graph, a kernel or a"
        " program\n"
    )


def test_file_of_a_recurrence_that_nothing_else_reads(tmp_path: Path) -> None:
    text = f"{HEADER}\nM, D = Func('M', type=Int(32)), Func('D', type=Int(32))\n"
    text += "M[i] = t2s.select(i == 0, 0, D[i - 1])\nD[i] = M[i] + 1\nD.bound(i, 0, 4)\n"
    file = written(tmp_path, text)
    assert refuses(file) == (
        f"error: {file} defines 0 Funcs that could be run\n"
        "  expected: one Func that no other Func reads\n"
        "  given:    Funcs that read each other\n"
        "  hint:     choose one with --func\n"
    )


def test_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "nowhere.py"
    assert refuses(file) == (
        f"error: no such file: {file}\n  hint:     give the path of a Python file\n"
    )


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    assert refuses(tmp_path) == (
        f"error: {tmp_path} is a folder\n  hint:     give the path of a Python file\n"
    )


def test_unknown_device_and_engine(design: Path) -> None:
    assert refuses(design, "--device", "arria11") == (
        "error: unknown device arria11\n"
        "  expected: one of ideal, arria10, stratix10, alveo_u55c, aup_zu3, ecp5-25k, ecp5-45k, "
        "ecp5-85k, gw2a-18, ccgm1a1, xc7a35t, xc7a100t, cgra8, cgra16, cgra32, capstan, "
        "tiny-tapeout, rtl-kernel\n"
    )
    assert refuses(design, "--engine", "fast") == (
        "error: unknown engine fast\n  expected: one of native, array, table, python\n"
    )


def test_a_wrong_definition_shows_the_users_line(tmp_path: Path) -> None:
    line = "B[i] = A[i, i] + 1  # and a comment that makes this line longer than a terminal is wide"
    file = written(tmp_path, f'{HEADER}B = Func("B")\n{line}\n')
    assert refuses(file) == (
        "error: ImageParam A has 1 dimension\n"
        f"  --> {file}:7\n"
        f"   7 | {line}\n"
        "  expected: 1 subscript\n"
        "  given:    2: [i, i]\n"
    )


def test_a_wrong_directive_shows_the_users_line(tmp_path: Path) -> None:
    text = f'{HEADER}B = Func("B")\nB[i] = A[i]\nB.bound(i, 0, 8).unroll(Var("j"))\n'
    file = written(tmp_path, text)
    error = refuses(file)
    assert error.startswith(
        "error: unroll(j) on B: B has no loop j\n"
        f"  --> {file}:8\n"
        '   8 | B.bound(i, 0, 8).unroll(Var("j"))\n'
    )


def test_an_exception_of_the_file_shows_its_line(tmp_path: Path) -> None:
    file = written(tmp_path, f"{HEADER}\ndef half(n):\n    return n / 0\n\n\nhalf(1)\n")
    assert refuses(file) == (
        f"error: {file} raised ZeroDivisionError: division by zero\n"
        f"  --> {file}:8\n"
        "   8 | return n / 0\n"
        f"  hint:     python {file} shows the whole traceback\n"
    )


def test_a_syntax_error_shows_its_line(tmp_path: Path) -> None:
    file = written(tmp_path, "x = 1\ny = (\n")
    assert refuses(file).startswith(
        f"error: {file} raised SyntaxError: '(' was never closed (design.py, line 2)\n"
        f"  --> {file}:2\n"
        "   2 | y = (\n"
    )


def test_a_folder_that_cannot_be_made(design: Path) -> None:
    error = refuses(design, "--func", "first", "--out", design)
    assert error.splitlines() == [
        f"error: {str(design)!r} cannot be written",
        "  expected: a writable folder on a disk with free space",
        "  given:    File exists",
    ]


def test_values_of_params_in_bounds(tmp_path: Path) -> None:
    design = tmp_path / "sized.py"
    design.write_text(
        "from t2s import Func, ImageParam, Int, Param, Var\n"
        'A, N, i = ImageParam(Int(32), 1, name="A"), Param(Int(32), name="N"), Var("i")\n'
        'B = Func("B")\n'
        "B[i] = A[i] * N\n"
        "B.bound(i, 0, N)\n"
    )
    out = str(tmp_path / "out")
    result = run(design, "--set", "N=12", "--out", out)
    assert result.exit_code == 0, result.output
    assert "for i in 0..11" in result.output
    assert "matches numpy exactly" in result.output
    result = run(design, "--set", "N=many")
    assert result.exit_code == 1
    assert "--set N=many gives no value\n  expected: --set NAME=INTEGER" in result.output


def test_opencl_is_an_error_only_if_asked_for(tmp_path: Path) -> None:
    design = tmp_path / "brain.py"
    design.write_text(
        "from t2s import BFloat, Func, ImageParam, Var\n"
        'A, i, B = ImageParam(BFloat(16), 1, name="A"), Var("i"), Func("B")\n'
        "B[i] = A[i] + 1.0\n"
        "B.bound(i, 0, 4)\n"
    )
    result = run(design)
    assert result.exit_code == 0, result.output
    assert "matches numpy exactly\nno OpenCL: " in result.output
    result = run(design, "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "bfloat16" in result.output


ROOT = Path(__file__).parent.parent
BY_HAND = ROOT / "examples" / "cgra" / "public_gemm.py"
"""A program of triggered instructions, and no design; ``tests/examples/test_cgra.py`` runs it."""
PROGRAMS = {
    ROOT / "examples/external" / f"{name}.py" for name in ("block_sparse", "own_vectors", "tttp")
}
"""They time plans on this machine, and define no design; test_external.py runs them."""
FILES = sorted(set((ROOT / "examples").glob("*/*.py")) - {BY_HAND} - PROGRAMS)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_example(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its smallest size: the values are those of numpy, or of the graph or the notation."""
    monkeypatch.chdir(tmp_path)
    small = file.read_text(encoding="utf-8").replace("= design(SMALL)", "= design(TINY)")
    (tmp_path / file.name).write_text(small, encoding="utf-8")
    printed = succeeds(tmp_path / file.name, "--device", "ideal", "--size", "16")
    assert "\nsimulator" in printed
    assert "matches numpy" in printed
    assert "wrote " in printed or "no OpenCL: " in printed


FUNCTION = f"""{HEADER}
def design(n=6):
    first, second = t2s.funcs("first second")
    first[i] = A[i] // 3
    second[i] = A[i] + 1
    return first.bound(i, 0, n), second.bound(i, 0, n)


def inputs(seed):
    return {{"A": [3 * seed] * 6}}
"""


def test_a_function_called_design_and_inputs_of_the_file(tmp_path: Path) -> None:
    text = FUNCTION.replace("[3 * seed] * 6", "np.full(6, 3 * seed, np.int32)")
    file = written(tmp_path, f"import numpy as np\n{text}")
    printed = succeeds(file, "--seed", "4", "--device", "ideal", "--out", tmp_path)
    assert "simulator, second: matches numpy exactly\n" in printed
    assert "simulator, first: matches" not in succeeds(file, "--func", "second", "--out", tmp_path)


def test_inputs_of_the_file_that_do_not_fit(tmp_path: Path) -> None:
    assert "error: the input A" in refuses(written(tmp_path, FUNCTION))
    text = FUNCTION.replace('{"A": [3 * seed] * 6}', "7")
    file = written(tmp_path, text)
    assert refuses(file) == (
        f"error: the function inputs of {file} gives no inputs\n"
        "  expected: a dict of arrays and scalars by name\n"
        "  given:    7\n"
    )


def test_exceptions_of_the_functions_of_the_file(tmp_path: Path) -> None:
    for part in ("def design(n=6):", "def inputs(seed):"):
        file = written(tmp_path, FUNCTION.replace(part, f"{part}\n    1 / 0"))
        assert refuses(file).startswith(f"error: {file} raised ZeroDivisionError: division by zero")


def test_a_design_that_needs_arguments(tmp_path: Path) -> None:
    file = written(tmp_path, FUNCTION.replace("n=6", "n"))
    assert refuses(file).endswith(
        "  hint:     the function design needs values for all its arguments\n"
    )


def test_a_kernel_an_assignment_and_several_of_them(tmp_path: Path) -> None:
    text = """\
from t2s import Var, sparse
i, j = Var("i"), Var("j")
A, x, y = sparse.Tensor("A", sparse.csr), sparse.Tensor("x", "d"), sparse.Tensor("y", "d")
y[i] = A[i, j] * x[j]
"""
    printed = succeeds(written(tmp_path, text), "--size", "9")
    assert "simulator: matches numpy exactly\n" in printed
    assert "no OpenCL: " in printed
    file = written(tmp_path, f"{text}kernel = sparse.compile(y)\n")
    assert refuses(file) == (
        f"error: {file} defines 2 designs that could be run\n"
        "  expected: one graph, kernel or program, or Funcs\n"
        "  given:    kernel, y\n"
        "  hint:     choose one with --func\n"
    )
    assert "matches numpy exactly" in succeeds(file, "--func", "kernel", "--size", "9")


def test_what_has_no_opencl_is_said_at_the_line_of_the_user(tmp_path: Path) -> None:
    """Graphs of index notation carry the line of the assignment, whoever lowers it when."""
    text = """\
from t2s import Var, sparse
i, j = Var("i"), Var("j")
A, x, y = sparse.Tensor("A", sparse.csr), sparse.Tensor("x", "d"), sparse.Tensor("y", "d")
y[i] = A[i, j] * x[j]
"""
    file = written(tmp_path, text)
    printed = refuses(file, "--size", "9", "--out", str(tmp_path / "out"))
    lines = [line.strip() for line in printed.splitlines() if line.startswith("  -->")]
    assert set(lines) == {f"--> {file}:4"}


def test_a_graph_of_streams_has_no_random_inputs(tmp_path: Path) -> None:
    text = """\
import t2s
from t2s import sparse
s = sparse.Streams("copy")
pos, crd = s.tensor("pos", t2s.Int(32)), s.tensor("crd", t2s.Int(32))
values = s.load(s.scan_compressed(s.root(), pos, crd)[1], s.tensor("vals", t2s.Float(64)))
s.write_values(values, s.output("out", t2s.Float(64)))
graph = s.graph()
"""
    assert "pos of copy has no fixed length, so it cannot be random" in refuses(
        written(tmp_path, text)
    )


def test_size_is_positive(design: Path) -> None:
    assert run(design, "--size", "0").exit_code == 2
