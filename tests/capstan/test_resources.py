"""Units of the chip: the ten kernels beside [Stardust, Table 6], fitting, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import t2s
from benchmarks.stardust.paper import PAPER
from t2s.backends.capstan.resources import ChipResources, ChipUnit, count_resources
from t2s.core.errors import UserError
from t2s.sparse import CapstanKernel, Schedule, Tensor, compile, csr, dense
from tests.capstan.kernels import TEN
from tests.capstan.random_kernels import RandomKernel, random_kernels
from tests.sources import ROOT

i, j, k = t2s.Var("i"), t2s.Var("j"), t2s.Var("k")


TABLE_6 = {row.name: row for row in PAPER}
# other numbers than published, each with its reason in docs/capstan.md
CONTROLLERS = {name: row.controllers for name, row in TABLE_6.items()} | {
    "Plus3": 75,
    "TTM": 62,
    "Plus2": 15,
}


def _kernel(name: str, **environment: int | str) -> CapstanKernel:
    paper = TEN[name]()
    if not environment:
        return compile(paper.result, paper.schedule, target="capstan")
    schedule = _without_factor(paper.schedule).environment(**environment)
    return compile(paper.result, schedule, target="capstan")


@pytest.mark.parametrize("name", TEN)
def test_units_of_the_ten_kernels(name: str) -> None:
    published = TABLE_6[name]
    found = _kernel(name).resources()
    assert found.outer_par == published.outer_par
    assert found["Shuf"].used == published.shuffles
    assert found["MC"].used == CONTROLLERS[name]
    assert CONTROLLERS[name] == pytest.approx(published.controllers, rel=0.3)
    assert published.pcu / 2 <= found["PCU"].used <= published.pcu * 2
    assert published.pmu / 2 <= found["PMU"].used <= published.pmu * 2
    assert found.fits


def test_most_units_are_within_35_percent_and_limits_are_the_published_ones() -> None:
    tables = {name: _kernel(name).resources() for name in TEN}
    near = {
        unit: [
            name
            for name, row in TABLE_6.items()
            if tables[name][unit].used == pytest.approx(getattr(row, field), rel=0.35)
        ]
        for unit, field in (("PCU", "pcu"), ("PMU", "pmu"))
    }
    assert set(TEN) - set(near["PMU"]) == {"Plus3"}
    assert set(TEN) - set(near["PCU"]) == {"Plus3", "TTM", "MTTKRP"}
    differ = [n for n, row in TABLE_6.items() if tables[n].limiting.unit is not row.limiting]
    assert differ == ["SDDMM"]


@pytest.mark.parametrize("name", [name for name in TEN if name != "Plus2"])
def test_the_largest_outer_par_that_fits_is_the_published_one(name: str) -> None:
    kernel = _kernel(name, outer_par="fit")
    assert kernel.resources().outer_par == TABLE_6[name].outer_par
    assert dict(kernel.patterns().environment)["bp"] == TABLE_6[name].outer_par
    assert kernel.spatial() == _kernel(name).spatial()


def _spmv(schedule: Schedule) -> CapstanKernel:
    a, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = a[i, j] * x[j]
    return compile(y, schedule, target="capstan")


def test_the_table_is_printed_and_shown() -> None:
    found = _spmv(Schedule().environment(outer_par=16)).resources()
    assert str(found).splitlines() == [
        "y_kernel: units of the chip, outer_par 16",
        "unit  used  available  share",
        "------------------------------------",
        "PCU     40        200    20%",
        "PMU     50        200    25%",
        "MC      35         80    44%",
        "Shuf    16         16   100%  limits",
    ]
    assert '<td style="text-align:right">35</td>' in found._repr_html_()
    assert found.limiting.unit is ChipUnit.SHUFFLE
    assert [row.share for row in found] == [0.2, 0.25, 35 / 80, 1.0]
    with pytest.raises(KeyError):
        found["DSP"]


def test_what_does_not_fit_is_refused_with_the_table() -> None:
    with pytest.raises(UserError) as caught:
        _kernel("Plus3", outer_par=16)
    error = caught.value
    assert error.message == "the program does not fit the chip with outer_par 16"
    assert error.location is not None
    assert error.location.file == __file__
    assert error.expected == "at most 200 PMU, at most 80 MC"
    assert error.given is not None
    assert [line.split() for line in error.given.splitlines()[3:]] == [
        ["PCU", "183", "200", "92%"],
        ["PMU", "326", "200", "163%", "too", "many"],
        ["MC", "147", "80", "184%", "too", "many"],
        ["Shuf", "16", "16", "100%"],
    ]
    hint = 'environment(outer_par="fit") takes the largest of 1, 2, 4, 8, 12, 16 that fits'
    assert error.hint == hint


def test_the_factor_of_a_loop_does_not_fit_either() -> None:
    with pytest.raises(UserError) as caught:
        _spmv(Schedule().parallel(i, "foreach", 64))
    assert caught.value.message == "the program does not fit the chip with outer_par 1"
    assert caught.value.expected == "at most 80 MC"
    assert caught.value.hint == "smaller factors in map(), or fewer tensors in one kernel"


def test_only_the_outer_factor_is_fitted() -> None:
    with pytest.raises(UserError, match="the environment variable inner_par is a positive integer"):
        Schedule().environment(inner_par="fit")
    with pytest.raises(UserError, match="the environment variable bp is a positive integer"):
        Schedule().env("bp", "most")


def test_fitting_in_text() -> None:
    assert _spmv(t2s.sparse.schedule("env(bp,fit)")).resources().outer_par == 16


def test_the_fitted_program_has_the_values() -> None:
    kernel = _kernel("Plus3", outer_par="fit")
    matrix = np.array([[1, 0, 2], [0, 0, 3]], np.int32)
    found = kernel.interpret({"B": matrix, "C": 2 * matrix, "D": matrix})
    np.testing.assert_array_equal(found, 4 * matrix)


def test_lanes_are_no_copies() -> None:
    a, b, c = (Tensor(name, dense(1)) for name in "abc")
    a[i] = b[i] * c[i]
    one = compile(a, Schedule().environment(outer_par=1), target="capstan").resources()
    many = compile(a, Schedule().environment(outer_par=16), target="capstan").resources()
    assert one["PCU"] == many["PCU"]
    assert one["MC"].used == many["MC"].used == 3


def test_wider_memories_take_more_units() -> None:
    kernel = _spmv(Schedule().environment(outer_par=16))
    half = _spmv(Schedule().environment(outer_par=8))
    fewer = count_resources(half.patterns())
    assert fewer["MC"].used == 3 + 8 * 2
    assert kernel.resources()["PMU"].used - fewer["PMU"].used == 8 + 2 * 8


def test_the_table_of_the_document_is_what_is_counted() -> None:
    shown = (ROOT / "docs" / "capstan.md").read_text(encoding="utf-8").splitlines()
    for row in PAPER:
        ours = row.kernel().resources()
        cells = [f"{one.used} ({row.units[one.unit]})" for one in ours]
        limits = f"{ours.limiting.unit.value} ({row.limiting.value})"
        assert f"| {' | '.join([row.name, str(row.outer_par), *cells, limits])} |" in shown


few = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def _is_largest(result: Tensor, schedule: Schedule, found: ChipResources) -> None:
    """Every factor up to the one that was found fits, with no more units; greater ones do not."""
    assert found.fits
    for factor in (1, 2, 4, 8, 12, 16):
        told = schedule.env("bp", factor)
        if factor > found.outer_par:
            with pytest.raises(UserError, match="the program does not fit the chip"):
                compile(result, told, target="capstan")
        else:
            fewer = compile(result, told, target="capstan").resources()
            assert all(a.used <= b.used for a, b in zip(fewer, found, strict=True))


def _without_factor(schedule: Schedule) -> Schedule:
    kept = [one for one in schedule.directives if getattr(one, "name", None) != "bp"]
    return Schedule(directives=tuple(kept))


@pytest.mark.parametrize("name", TEN)
def test_what_is_fitted_is_the_largest_that_fits(name: str) -> None:
    paper = TEN[name]()
    schedule = _without_factor(paper.schedule)
    _is_largest(paper.result, schedule, _kernel(name, outer_par="fit").resources())


def test_random_kernels_are_fitted() -> None:
    factors: list[int] = []

    @few
    @given(random_kernels())
    def run(kernel: RandomKernel) -> None:
        schedule = _without_factor(kernel.schedule)
        try:
            found = compile(kernel.result, schedule.env("bp", "fit"), target="capstan").resources()
        except UserError:
            return
        factors.append(found.outer_par)
        _is_largest(kernel.result, schedule, found)

    run()
    assert len(factors) >= 12
