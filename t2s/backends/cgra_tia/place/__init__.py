"""Placement: a netlist gets sites on a fabric, wires, and channels with latencies and capacities.

``place_netlist`` turns a ``Netlist`` into a ``PlacedDesign``.  Refused are designs with too many
parts of a kind, nets without a route, channels that cannot hold the tokens they have to, and
recurrence cycles that never start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.fabric import CellKind, CgraFabric
from t2s.backends.cgra_tia.netlist import (
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    PlacedDesign,
    Provenance,
    Site,
    StreamUnit,
    UnitKind,
)
from t2s.backends.cgra_tia.place.anneal import HOT, WARM, Problem, annealed, half_perimeters
from t2s.backends.cgra_tia.place.buffer_sizing import (
    RateCause,
    TimedBranches,
    channel_limit,
    shortages,
    timed_branches,
    with_slack,
)
from t2s.backends.cgra_tia.place.route import MOST_ROUNDS, Path, Terminals, routed
from t2s.backends.cgra_tia.place.sites import KINDS, Sites, parts_of, problem_of, sites_of
from t2s.backends.cgra_tia.place.template import shaped_start
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    Instruction,
    Opcode,
    TagCheck,
    ToOutputs,
    Trigger,
)
from t2s.core.errors import UserError, warn
from t2s.core.location import user_location
from t2s.core.names import NameSupply
from t2s.core.validate import as_int

Progress = Callable[[str, int, int], None]
"""Gets ``"place"``, the moves so far and all moves; ``"route"``, rounds and wires in conflict."""

_SMALL = 100
"""Parts of a small design, for which moves in Python do."""

_MOVES_OF_A_SMALL_ONE = 24_000
_MOVES_PER_PART, _MOST_MOVES = 12_000, 3_000_000
_ROUNDS_OF_RELAYS = 6
_ROUTING_OF_RELAYS = 20
"""How often relays are added, and the rounds in which their nets have to find their ways."""

Paths = list[tuple[Path, ...]]


def place_netlist(
    netlist: Netlist,
    fabric: CgraFabric,
    *,
    seed: int = 0,
    balanced: bool = True,
    moves: int | None = None,
    progress: Progress | None = None,
) -> PlacedDesign:
    """Place and route a netlist.  Equal arguments give equal designs, on every machine.

    If a channel has to hold more tokens than it can, the design gets additional control cells as
    relays.

    Parameters
    ----------
    seed: chooses among placements of about the same quality.
    balanced: whether all branches of a net group get the latency of the longest and the capacity of
        the deepest; otherwise each has those of its own path.
    moves: how many moves the annealer tries; 0 keeps the best start.
    progress: is called from time to time.

    Raises ``UserError`` if the design does not fit.  Warns if channels slow it down, and on Ctrl-C,
    after which it continues with the best placement so far.
    """
    _check_ends(netlist)
    parts = parts_of(netlist)
    number, count = _checked(seed, moves, len(parts))
    sites = sites_of(netlist, fabric)
    refused: UserError | None = None
    for chosen in _placements(netlist, fabric, sites, number, count, progress):
        places = {part.name: sites.places[site] for part, site in zip(parts, chosen, strict=True)}
        try:
            paths = _paths(netlist, fabric, places, progress)
            break
        except UserError as error:
            refused = refused or error
    else:
        assert refused is not None
        raise refused
    design = PlacedDesign(
        netlist=netlist,
        fabric=fabric,
        sites=places,
        branches={},
        seed=number,
        balanced=balanced,
    )
    design, paths, timed = _relayed(design, paths, sites, progress)
    design = replace(design, branches=with_slack(timed, fabric, paths, balanced=balanced))
    _warn_of_rate(design, timed)
    return design


def _checked(seed: int, moves: int | None, parts: int) -> tuple[int, int]:
    """The validated seed and moves; the default of the latter depends on the number of parts."""
    many = _MOVES_OF_A_SMALL_ONE if parts <= _SMALL else min(_MOVES_PER_PART * parts, _MOST_MOVES)
    number, count = as_int(seed), many if moves is None else as_int(moves)
    for value in (number, count):
        if value is None or not 0 <= value < 1 << 63:
            raise UserError(
                "invalid seed or moves for a placement",
                location=user_location(),
                expected="whole numbers of at least 0, of 64 bits",
                given=f"seed={seed!r}, moves={moves!r}",
            )
    assert number is not None
    assert count is not None
    return number, count


def _relayed(
    design: PlacedDesign, paths: Paths, sites: Sites, progress: Progress | None
) -> tuple[PlacedDesign, Paths, TimedBranches]:
    """The design with relays for channels that have to hold more tokens than they can.

    It is unchanged if no cells or no wires are left for relays.
    """
    fabric = design.fabric
    timed = timed_branches(design.netlist, fabric, paths, balanced=design.balanced)
    for _ in range(_ROUNDS_OF_RELAYS):
        grown = with_relays(design.netlist, fabric, shortages(timed, fabric))
        taken = set(design.sites.values())
        cells = (sites.places[number] for number in sites.of_kind[KINDS.index(CellKind.CONTROL)])
        free = [site for site in cells if site not in taken]
        added = relay_sites(grown.near, design.sites, free)
        if not added:
            break
        places = {**design.sites, **added}
        try:
            paths = _paths(grown.netlist, fabric, places, progress, _ROUTING_OF_RELAYS)
        except UserError:
            break
        design = replace(design, netlist=grown.netlist, sites=places)
        timed = timed_branches(design.netlist, fabric, paths, balanced=design.balanced)
    return design, paths, timed


def _check_ends(netlist: Netlist) -> None:
    """Raise ``UserError`` for a net without a part at an end, and for duplicate names."""
    parts = [part.name for part in parts_of(netlist)]
    for what, names in (("parts", parts), ("nets", [net.name for net in netlist.nets])):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise UserError(
                f"two {what} of {netlist.name!r} have the same name",
                location=netlist.location,
                expected=f"different names of {what}",
                given=repr(twice),
            )
    known = set(parts)
    for net in netlist.nets:
        for part in (net.source.part, *(sink.end.part for sink in net.sinks)):
            if part not in known:
                raise UserError(
                    f"the net {net.name!r} of {netlist.name!r} ends at a missing part or port",
                    location=net.location or netlist.location,
                    expected="the name of a cell or of a unit",
                    given=repr(part),
                )


def _paths(
    netlist: Netlist,
    fabric: CgraFabric,
    places: Mapping[str, Site],
    progress: Progress | None,
    rounds: int = MOST_ROUNDS,
) -> Paths:
    """The paths of all nets; raises ``UserError`` if they do not fit."""

    def cell(part: str) -> int:
        return places[part].row * fabric.columns + places[part].column

    return routed(
        [
            Terminals(
                net=net,
                source=cell(net.source.part),
                sinks=tuple(cell(sink.end.part) for sink in net.sinks),
            )
            for net in netlist.nets
        ],
        fabric,
        lambda turn, crowded: progress("route", turn, crowded) if progress else None,
        rounds,
    )


class _Best:
    """The best placement so far in a run of the annealer."""

    def __init__(self, problem: Problem, start: list[int]) -> None:
        self.sites = start
        self.cost = sum(half_perimeters(problem, start))

    def told(self, sites: list[int], cost: int) -> None:
        """Keep a placement that is at least as good (on a tie, so that the seed matters)."""
        if cost <= self.cost:
            self.sites, self.cost = sites, cost


def _placements(
    netlist: Netlist,
    fabric: CgraFabric,
    sites: Sites,
    seed: int,
    moves: int,
    progress: Progress | None,
) -> list[list[int]]:
    """Several placements (a site for each part), those with the shortest nets first.

    A third of the moves starts from the shape of the array, at a low temperature; the rest starts
    from an arbitrary placement.
    """
    problem = problem_of(netlist, fabric, sites)
    shaped = shaped_start(netlist, fabric, sites, problem)
    runs = [(_Best(problem, _in_order(problem, sites)), moves, HOT)]
    if shaped is not None:
        runs = [
            (_Best(problem, shaped), moves // 3, WARM),
            (_Best(problem, shaped), moves - moves // 3, HOT),
        ]
    done = 0
    try:
        for number, (best, count, first) in enumerate(runs):
            for improved_sites, cost, tried in annealed(
                problem, best.sites, seed + number, count, first
            ):
                best.told(improved_sites, cost)
                done += tried
                if progress is not None:
                    progress("place", done, moves)
    except KeyboardInterrupt:
        warn(
            f"the placement of {netlist.name!r} was interrupted",
            location=netlist.location or user_location(),
            expected=f"{moves:,} moves of the annealer",
            given=f"{done:,}, and the best placement of those",
            hint="place it again for shorter nets",
        )
    ordered = sorted((best for best, _, _ in runs), key=lambda best: best.cost)
    return [best.sites for best in ordered]


def _in_order(problem: Problem, sites: Sites) -> list[int]:
    """Each part on the first free site of its kind; parts with an FMA come first."""
    taken: set[int] = set()
    start = [0] * len(problem.kinds)
    for part in sorted(range(len(start)), key=lambda part: (problem.kinds[part], part)):
        start[part] = next(site for site in sites.of_kind[problem.kinds[part]] if site not in taken)
        taken.add(start[part])
    return start


def _warn_of_rate(design: PlacedDesign, timed: TimedBranches) -> None:
    """Warn if channels or recurrence cycles keep the design from firing in every cycle.

    There is no warning if it stores at computed addresses: then data decide when parts fire.
    """
    limit = channel_limit(design, timed.firers, timed.waits)
    netlist = design.netlist
    if (
        limit is None
        or limit.cause is RateCause.TURNS
        or any(unit.kind is UnitKind.STORE_AT for unit in netlist.units)
    ):
        return
    shown = ", ".join(limit.parts[:6]) + (", ..." if len(limit.parts) > 6 else "")
    if limit.cause is RateCause.SPACE:
        given = f"{limit.tokens} firings in {limit.cycles} cycles, for lack of room between {shown}"
        hint = f"use a fabric with a most_depth above {design.fabric.most_depth}"
    else:
        given = f"{limit.tokens} tokens circulate in {limit.cycles} cycles through {shown}"
        hint = "use a larger tile, so that more of them circulate"
    warn(
        f"the design {netlist.name!r} runs at {float(limit.rate):.0%} of its rate",
        location=netlist.location or user_location(),
        expected="a firing in every cycle",
        given=given,
        hint=hint,
    )


# Relays: cells that only forward tokens, for channels that cannot hold as many tokens as have to
# wait.
#
# The nets to some sinks get a number of relays each: a chain, with each sink connected to the last
# relay that it needs.  A relay is a control cell with a ``mov`` for each tag, so it does not lower
# the rate.


@dataclass(frozen=True, kw_only=True)
class RelayedNetlist:
    """A netlist with relays, and for each relay the parts that it should be close to."""

    netlist: Netlist
    near: Mapping[str, tuple[str, ...]]


def with_relays(
    netlist: Netlist, fabric: CgraFabric, counts: Mapping[tuple[str, int], int]
) -> RelayedNetlist:
    """The netlist with relays; ``wanted`` is their number, by net and number of the sink.

    Nets whose tokens have more tags than a cell has instructions are not changed.
    """
    parts = {part.name: part for part in parts_of(netlist)}
    names = NameSupply([*parts, *(net.name for net in netlist.nets)])
    cells, nets, near = list(netlist.cells), list[Net](), dict[str, tuple[str, ...]]()
    for net in netlist.nets:
        levels = [counts.get((net.name, number), 0) for number in range(len(net.sinks))]
        tags = _tags(parts[net.source.part], net.source.port, fabric)
        if not max(levels, default=0) or len(tags) > fabric.core.instructions:
            nets.append(net)
            continue
        relays = [names.fresh(f"{net.name}.relay") for _ in range(max(levels))]
        origin = parts[net.source.part].origin
        point = () if origin is None else origin.point
        for number, relay in enumerate(relays):
            cells.append(
                NetCell(
                    name=relay,
                    kind=CellKind.CONTROL,
                    program=_passing(tags),
                    origin=Provenance(
                        node=f"{net.group}.relay",
                        point=(*point, number) if len(relays) > 1 else point,
                        location=net.location,
                    ),
                )
            )
            behind = [
                sink.end.part
                for sink, level in zip(net.sinks, levels, strict=True)
                if level > number
            ]
            near[relay] = tuple(dict.fromkeys(behind))
        nets += _chain(net, relays, levels, fabric)
    return RelayedNetlist(netlist=replace(netlist, cells=tuple(cells), nets=tuple(nets)), near=near)


def _passing(tags: Sequence[int]) -> CellProgram:
    """The program of a relay: input 0 goes to output 0, with its tag."""
    return CellProgram(
        instructions=tuple(
            Instruction(
                trigger=Trigger(checks=(TagCheck(channel=0, tag=tag),)),
                opcode=Opcode.MOV,
                destination=ToOutputs((0,), tag),
                sources=(FromChannel(0),),
                takes=(0,),
            )
            for tag in tags
        )
    )


def _tags(part: NetCell | StreamUnit, port: int, fabric: CgraFabric) -> list[int]:
    """The tags that can leave an output."""
    match part:
        case NetCell():
            sent = (item.destination for item in part.program.instructions)
            return sorted(
                {item.tag for item in sent if isinstance(item, ToOutputs) and port in item.channels}
            )
        case StreamUnit(kind=UnitKind.LOAD_AT):
            return list(range(fabric.core.tags))
        case StreamUnit():
            return sorted({0, *(case.tag for case in part.tags)})


def _chain(net: Net, relays: Sequence[str], levels: Sequence[int], fabric: CgraFabric) -> list[Net]:
    """The net up to the first relay, and a net from each relay.

    The tokens that circulate through a sink are spread over the channels on the path to it.
    """
    most = fabric.most_depth + 2  # the capacity of a channel without hops
    remaining = [sink.tokens for sink in net.sinks]
    nets = []
    for number in range(len(relays) + 1):
        sinks = [
            replace(sink, tokens=max(tokens, 1))
            for sink, level, tokens in zip(net.sinks, levels, remaining, strict=True)
            if level == number
        ]
        if number < len(relays):
            tokens = min(
                most,
                max(
                    tokens
                    for tokens, level in zip(remaining, levels, strict=True)
                    if level > number
                ),
            )
            remaining = [max(item - (tokens - 1), 1) for item in remaining]
            sinks.append(NetSink(end=Endpoint(part=relays[number]), tokens=tokens))
        if number == 0:
            nets.append(replace(net, sinks=tuple(sinks)))
        else:
            name = relays[number - 1]
            nets.append(
                Net(
                    name=name,
                    group=f"{net.group}.relay{number}",
                    source=Endpoint(part=name),
                    sinks=tuple(sinks),
                    location=net.location,
                )
            )
    return nets


def relay_sites(
    near: Mapping[str, tuple[str, ...]], sites: Mapping[str, Site], free: Sequence[Site]
) -> dict[str, Site] | None:
    """A free site for each relay, close to its neighbors; ``None`` if too few are left."""
    remaining = list(free)
    placed: dict[str, Site] = {}
    if len(near) > len(remaining):
        return None
    for relay, parts in near.items():
        rows = sorted(sites[part].row for part in parts)
        columns = sorted(sites[part].column for part in parts)
        row, column = rows[len(rows) // 2], columns[len(columns) // 2]
        placed[relay] = min(
            remaining,
            key=lambda site: (
                abs(site.row - row) + abs(site.column - column),
                site.row,
                site.column,
            ),
        )
        remaining.remove(placed[relay])
    return placed
