"""``t2s tensor --target capstan``, and schedules for Capstan in text."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import t2s
from t2s.command.main import app
from t2s.core.errors import UserError
from t2s.sparse import Schedule, Tensor, compile, csr, dense, parse, schedule

FORMATS = {"A": "ds", "B": "ds", "C": "dd", "D": "dd:1,0"}
SDDMM = "A(i,j)=B(i,j)*C(i,k)*D(k,j)"


def test_a_schedule_in_text_is_one_in_python() -> None:
    i, k = t2s.Var("i"), t2s.Var("k")
    c = Tensor("C", dense(2))
    on = Tensor("Con", dense(1).on_chip)
    told = Schedule().env("bp", 4).precompute(c[i, k], on, over=(k,))
    told = (
        told.parallel(k, "reduction")
        .parallel("j", "foreach", 2)
        .promote_sums()
        .communicate("A", "j")
    )
    text = (
        "env(bp,4), precompute(C(i,k),Con:d,k), parallel(k,reduction), parallel(j,foreach,2), "
        "promote_sums(), communicate(A,j)"
    )
    assert schedule(text) == told
    assert schedule("accelerate(k,reduction,8)") == Schedule().accelerate(k, "reduction", 8)
    kernel = compile(parse(SDDMM, FORMATS), text, target="capstan")
    assert "    with Con(k):\n      for k:\n        Con(k) = C(i,k)\n" in str(kernel)


WRONG = {
    "parallel(j)": "parallel(j) does not say a directive"
    "|expected: parallel(j,reduction), or parallel(j,reduction,16)",
    "precompute(C(i,k),T,k)": "precompute(C(i,k), T, k) does not say a directive"
    "|expected: precompute(B(i,k)*C(k,j),T), precompute(B(i,k)*C(k,j),T(i,j),dd),"
    " or precompute(C(i,k),T:d,k)",
    "parallel(j,scan)": "unknown pattern 'scan'|expected: one of foreach, reduction",
    "env(bp,x)": "x is not a number|expected: a positive integer",
    "env(op,1)": "unknown environment variable 'op'|expected: one of bp, outer_par, ip,"
    " inner_par, sp, scan_par",
}


@pytest.mark.parametrize("text", WRONG)
def test_texts_that_are_no_schedule(text: str) -> None:
    with pytest.raises(UserError) as found:
        schedule(text)
    lines = [line.strip() for line in str(found.value).splitlines()]
    said = "|".join(line for line in lines if " | " not in line and not line.startswith("-->"))
    assert said == WRONG[text]


def test_the_command(tmp_path: Path) -> None:
    options = ["-f", "A:ds", "--random", "A", "--random", "x", "-d", "i=5", "-d", "j=9"]
    told = ["--target", "capstan", "-s", "parallel(j,reduction,16),env(bp,16)"]
    out = ["--out", str(tmp_path / "made")]
    result = CliRunner().invoke(app, ["tensor", "y(i)=A(i,j)*x(j)", *options, *told, *out])
    assert result.exit_code == 0, result.output
    assert "    for j:  # reduction by 16\n" in result.stdout
    assert "x.vals  partitioned sparse SRAM  3: a dense vector" in result.stdout
    assert "Shuf    16         16   100%  limits\n" in result.stdout
    assert "matches numpy" in result.stdout
    text = (tmp_path / "made" / "y_kernel.scala").read_text()
    assert text.startswith("import spatial.dsl._\n")
    assert "  type T = Double\n" in text


def test_a_target_that_there_is_not() -> None:
    result = CliRunner().invoke(app, ["tensor", "y(i)=A(i)", "--target", "gpu"])
    assert result.exit_code == 1
    assert "error: unknown target gpu\n  expected: one of streams, cgra, capstan\n" in result.stderr


def test_a_compiled_kernel_is_compiled_already() -> None:
    y, a, x = Tensor("y", dense(1)), Tensor("A", csr), Tensor("x", dense(1))
    y["i"] = a["i", "j"] * x["j"]
    with pytest.raises(UserError, match="this kernel is compiled already"):
        compile(compile(y), target="capstan")
