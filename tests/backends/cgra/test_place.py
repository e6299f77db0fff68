"""Placement and routing: what is promised of the sites and wires, and of the length of the nets."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from itertools import pairwise

import pytest

from t2s.backends.cgra_tia.fabric import FABRICS, CellKind, CgraFabric
from t2s.backends.cgra_tia.netlist import Endpoint, Net, Netlist, NetSink
from t2s.backends.cgra_tia.place import place_netlist
from t2s.backends.cgra_tia.place.anneal import HOT, WARM, annealed, half_perimeters, improve
from t2s.backends.cgra_tia.place.sites import problem_of, sites_of
from t2s.core.errors import T2SWarning, UserError
from tests.backends.cgra.netlists import MOVE, Draft, chain, gemm, mttkrp, ring, ttm, ttmc
from tests.backends.cgra.route_check import check_design, half_perimeter
from tests.sampling import sampled

CGRA8, CGRA16, CGRA32 = (replace(fabric, tracks=2) for fabric in FABRICS.values())


def _bare(netlist: Netlist) -> Netlist:
    """The netlist without names of nodes and points."""
    return replace(
        netlist,
        cells=tuple(replace(cell, origin=None) for cell in netlist.cells),
        units=tuple(replace(unit, origin=None) for unit in netlist.units),
    )


@sampled("count", [1, 3, 8, 12, 15, 16], quick=2)
def test_a_chain_takes_the_least(count: int) -> None:
    """FMAs are two steps apart, and both ends are at the border."""
    design = place_netlist(chain(count), CGRA8)
    check_design(design)
    assert half_perimeter(design) == 2 * (count - 1)


@sampled("seed", range(3), quick=2)
def test_a_small_product_has_short_nets(seed: int) -> None:
    design = place_netlist(gemm(2, 2, 4), CGRA8, seed=seed)
    check_design(design)
    assert half_perimeter(design) <= 95


@pytest.mark.slow
def test_larger_products_have_short_nets() -> None:
    for netlist, fabric, most in ((gemm(4, 4, 4), CGRA16, 570), (gemm(8, 8, 4), CGRA32, 3_170)):
        design = place_netlist(netlist, fabric)
        check_design(design)
        assert half_perimeter(design) <= most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("netlist", "most"),
    [(ttm(), 2_254), (mttkrp(), 2_230), (ttmc(), 2_001), (ttmc((3,) * 5, shared=True), 2_400)],
    ids=lambda item: item.name if isinstance(item, Netlist) else "",
)
def test_arrays_of_more_dimensions(netlist: Netlist, most: int) -> None:
    """On a fabric with deep channels, so that no relays come in."""
    design = place_netlist(netlist, replace(CGRA32, most_depth=400), moves=600_000)
    check_design(design)
    assert half_perimeter(design) <= most


def test_a_seed_is_a_placement() -> None:
    netlist = _bare(gemm(2, 2, 3))
    one, same, other = (place_netlist(netlist, CGRA8, seed=seed) for seed in (5, 5, 6))
    assert one == same
    assert one.sites != other.sites


def test_no_moves_give_the_start() -> None:
    check_design(place_netlist(gemm(2, 2, 4), CGRA8, moves=0))


def test_an_empty_design() -> None:
    empty = Netlist(name="nothing", cells=(), units=(), nets=(), tensors=())
    assert place_netlist(empty, CGRA8).sites == {}


def test_one_cell_that_talks_to_itself() -> None:
    fabric = CgraFabric(name="one", rows=1, columns=1, pattern=("f",))
    draft = Draft("loop")
    cell = draft.fma("x", (), MOVE)
    draft.wire("back", cell, cell)
    with pytest.raises(UserError, match="a cycle of parts of 'loop' never starts") as caught:
        place_netlist(draft.done(), fabric)
    assert "x[] wait for one another" in str(caught.value)


@pytest.mark.slow
def test_odd_fabrics() -> None:
    """Fabrics of one row, of checkers, and of FMAs alone, which serve as control cells too."""
    for fabric in (
        CgraFabric(name="row", rows=1, columns=40, pattern=("fcc",), tracks=4),
        CgraFabric(name="checkers", rows=8, columns=9, pattern=("cf", "fc")),
        CgraFabric(name="all", rows=7, columns=7, pattern=("f",)),
    ):
        check_design(place_netlist(chain(9), fabric))
    check_design(
        place_netlist(gemm(2, 2, 4), CgraFabric(name="f", rows=7, columns=7, pattern=("f",)))
    )


@sampled("pattern", [("cf", "ff"), ("fff", "ffc"), ("ff", "fc")], quick=2)
def test_control_cells_on_cells_with_an_fma(pattern: tuple[str, ...]) -> None:
    """Every cell of the fabric is used, and every FMA finds one."""
    fabric = CgraFabric(name="tight", rows=4, columns=6, pattern=pattern, tracks=6)
    for netlist in (gemm(2, 2, 3), _bare(gemm(2, 2, 3))):
        assert len(netlist.cells) == fabric.rows * fabric.columns
        check_design(place_netlist(netlist, fabric, moves=3_000))


def test_parts_without_points_and_nets() -> None:
    check_design(place_netlist(_bare(gemm(2, 2, 2)), CGRA8))
    draft = Draft("apart")
    for number in range(4):
        draft.control("c", (number,))
    check_design(place_netlist(draft.done(), CGRA8))


def test_compiled_moves_are_those_of_python() -> None:
    """The two engines take the same steps."""
    netlist = gemm(2, 2, 4)
    sites = sites_of(netlist, CGRA8)
    problem = problem_of(netlist, CGRA8, sites)
    start = place_netlist(netlist, CGRA8, moves=0)
    numbers = [sites.places.index(site) for site in start.sites.values()]
    plain = list(annealed(problem, numbers, 3, 6_000, WARM, compiled=False))
    compiled = list(annealed(problem, numbers, 3, 6_000, WARM))
    assert compiled == plain
    assert all(cost == sum(half_perimeters(problem, sites)) for sites, cost, _ in plain)


def test_moves_are_judged_by_all_parts_of_all_nets() -> None:
    """What a move is worth, and whether it is accepted, from the whole placement each time."""
    netlist = gemm(2, 2, 4)
    problem = problem_of(netlist, CGRA8, sites_of(netlist, CGRA8))
    near = problem.near.tolist()
    placed = place_netlist(netlist, CGRA8, moves=0)
    places = sites_of(netlist, CGRA8).places
    start = [places.index(site) for site in placed.sites.values()]
    nets = [problem.parts_of[a:b] for a, b in pairwise(problem.parts_from)]
    own = [problem.nets_of[a:b] for a, b in pairwise(problem.nets_from)]
    random, shared = [12_345], 0
    state = random[0]

    def draw() -> int:
        nonlocal state
        state = state * 48_271 % ((1 << 31) - 1)
        return state

    sites, at = list(start), [-1] * len(problem.rows)
    for part, site in enumerate(start):
        at[site] = part
    accepted = [(1 << 31) - 1, 1 << 30, 1 << 28, *[1 << 20] * 61]
    expected, window, moves = list(start), 20, 1_000
    for _ in range(moves):
        part = draw() % len(own)
        center, reach = problem.cells[expected[part]], window
        if (chance := draw()) & 8192 and own[part]:
            net = nets[own[part][(chance >> 15) % len(own[part])]]
            beside = net[draw() % len(net)]
            if beside != part:
                center, reach = problem.cells[expected[beside]], 6
        kind = problem.kinds[part]
        row = (kind * problem.grid + center) * problem.width
        there = near[row + draw() % min(reach, problem.nearest[kind])]
        here, other = expected[part], at[there]
        allowed = other < 0 or problem.allowed[problem.kinds[other] * len(problem.rows) + here]
        if there == here or not allowed:
            continue
        after = list(expected)
        after[part] = there
        if other >= 0:
            after[other] = here
            shared += bool(set(own[part]) & set(own[other]))
        change = sum(half_perimeters(problem, after)) - sum(half_perimeters(problem, expected))
        chance = draw()
        if change <= 0 or (change < 64 and chance < accepted[change]):
            expected, at[here], at[there] = after, other, part
    number, part_room = [0] * len(nets), [0] * len(own)
    occupied = [-1] * len(problem.rows)
    for part, site in enumerate(start):
        occupied[site] = part
    improve(
        *(problem.kinds, problem.rows, problem.columns, problem.cells),
        *(problem.nets_of, problem.nets_from, problem.parts_of, problem.parts_from),
        *(problem.allowed, near, problem.nearest),
        *(sites, occupied, number, part_room, number * 8, number * 1, number * 1, random, accepted),
        *(problem.grid, problem.width, window, moves),
    )
    assert shared > 5
    assert sites == expected
    assert occupied == at
    assert number == half_perimeters(problem, expected)


def test_a_run_of_the_annealer_is_the_same_everywhere() -> None:
    """Numbers that were once computed: other libraries or machines have to give them too."""
    netlist = gemm(2, 2, 4)
    problem = problem_of(netlist, CGRA8, sites_of(netlist, CGRA8))
    start = [*range(9, 16, 2), *range(25, 32, 2), *range(41, 48, 2), *range(57, 64, 2)]
    controls = [site for site in range(64) if site not in start][:16]
    found = list(annealed(problem, [*controls, *start, *range(64, 88)], 0, 3_000, HOT))
    assert [sum(half_perimeters(problem, sites)) for sites, _, _ in found[::20]] == [230, 172, 157]


def test_too_many_parts_are_refused_by_node() -> None:
    with pytest.raises(UserError) as caught:
        place_netlist(gemm(4, 4, 4), CGRA8)
    text = str(caught.value)
    assert "'gemm4x4x4' does not fit on the fabric 'cgra8'" in text
    assert "expected: at most 16 cells with an FMA" in text
    assert "given:    64: 64 for E" in text
    assert "take the fabric 'cgra16', or unroll fewer iterations" in text


def test_too_many_units_are_refused_by_node() -> None:
    small = CgraFabric(name="small", rows=4, columns=4, pattern=("f",), units_per_position=1)
    with pytest.raises(UserError) as caught:
        place_netlist(ring(16, 2, 2), small)
    text = str(caught.value)
    assert "expected: at most 16 stream units" in text
    assert "given:    18: 16 for load_A, 1 for load_C, 1 for store_E" in text


def test_too_many_control_cells_are_refused_by_node() -> None:
    draft = Draft("many")
    for number in range(10):
        draft.control(f"node{number}", ())
    draft.control("node0", (1,))
    with pytest.raises(UserError) as caught:
        place_netlist(draft.done(), CgraFabric(name="tiny", rows=2, columns=2))
    text = str(caught.value)
    assert "expected: at most 4 control cells" in text
    assert "11: 2 for node0, 1 for node1" in text
    assert "3 for 2 others" not in text
    assert "2 for 2 others" in text


def test_a_place_that_is_too_narrow_is_named() -> None:
    with pytest.raises(UserError) as caught:
        place_netlist(gemm(2, 2, 4), replace(CGRA8, tracks=1))
    text = str(caught.value)
    assert "the nets cannot be routed on the fabric 'cgra8': they meet at the" in text
    assert "expected: at most 1 nets between two neighbors" in text
    assert "hint:     try another seed, a larger fabric, or one with more tracks: tracks=2" in text


@pytest.mark.parametrize("value", [-1, 1.5, "7", True, None, 1 << 63])
def test_seeds_are_whole_numbers(value: object) -> None:
    with pytest.raises(UserError, match="whole numbers of at least 0"):
        place_netlist(chain(1), CGRA8, seed=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1, 1.5, "7", True])
def test_moves_are_whole_numbers(value: object) -> None:
    with pytest.raises(UserError, match="whole numbers of at least 0"):
        place_netlist(chain(1), CGRA8, moves=value)  # type: ignore[arg-type]


def test_ends_have_to_be_there() -> None:
    netlist = chain(2)
    net = Net(
        name="x", group="x", source=Endpoint(part="a"), sinks=(NetSink(end=Endpoint(part="b")),)
    )
    with pytest.raises(UserError, match="the net 'x' of 'chain' ends at a missing part or port"):
        place_netlist(replace(netlist, nets=(*netlist.nets, net)), CGRA8)
    with pytest.raises(UserError, match="two parts of 'chain' have the same name"):
        place_netlist(replace(netlist, cells=(*netlist.cells, netlist.cells[0])), CGRA8)
    with pytest.raises(UserError, match="two nets of 'chain' have the same name"):
        place_netlist(replace(netlist, nets=(*netlist.nets, netlist.nets[0])), CGRA8)


def test_progress_ends_with_all_moves() -> None:
    told: list[tuple[str, int, int]] = []
    place_netlist(gemm(2, 2, 4), CGRA8, moves=1_000, progress=lambda *item: told.append(item))
    assert [item for item in told if item[0] == "place"][-1] == ("place", 1_000, 1_000)
    assert told[-1][0] == "route"


def test_an_interrupt_gives_the_best_so_far() -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if what == "place" and done > total // 2:
            raise KeyboardInterrupt

    with pytest.warns(T2SWarning, match="the placement of 'gemm2x2x4' was interrupted"):
        design = place_netlist(gemm(2, 2, 4), CGRA8, progress=interrupt)
    check_design(design)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_while_moves_are_compiled() -> None:
    """There are far more moves than end in time; a signal that is lost is sent again."""
    netlist = gemm(4, 4, 4)
    start = place_netlist(netlist, CGRA16, moves=0)
    problem = problem_of(netlist, CGRA16, sites_of(netlist, CGRA16))
    places = sites_of(netlist, CGRA16).places
    numbers = [places.index(site) for site in start.sites.values()]
    list(annealed(problem, numbers, 0, 60, HOT))  # compiles
    sent, arrived = [0], [0]

    def interrupt(*_: object) -> None:
        arrived[0] += 1
        raise KeyboardInterrupt

    def send() -> None:
        sent[0] += 1
        signal.raise_signal(signal.SIGINT)

    def send_again(what: str, done: int, total: int) -> None:
        if what != "place":
            return
        assert done < total // 2, "no Ctrl-C gets through"
        if 0 < sent[0] == arrived[0]:  # it fell into the machinery of compiled calls
            threading.Thread(target=send).start()

    first = threading.Timer(0.2, send)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        first.start()
        with pytest.warns(T2SWarning, match="was interrupted"):
            design = place_netlist(netlist, CGRA16, moves=2_000_000_000, progress=send_again)
    finally:
        first.cancel()
        first.join()
        signal.signal(signal.SIGINT, before)
    check_design(design)


def test_rings_are_routed_too() -> None:
    with pytest.warns(T2SWarning, match="of its rate"):
        design = place_netlist(ring(4, 8, 3), CGRA8)
    check_design(design)
    assert all(cell.kind is CellKind.FMA for cell in design.netlist.cells)
