"""Random directives for a dense program, drawn one after the other with little care."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from benchmarks.hunt.formulas import Program
from benchmarks.hunt.naive import Stage


@dataclass(slots=True)
class Scheduler:
    """Writes directives for one function; ``order`` are its loops in time, innermost first."""

    program: Program
    name: str
    order: list[str]
    depends: dict[str, frozenset[str]]
    reductions: frozenset[str]
    ragged: frozenset[str]
    unrolled: list[str] = field(default_factory=list)
    loaders: list[tuple[str, str]] = field(default_factory=list)
    fresh: int = 0

    def say(self, text: str) -> None:
        self.program.directives.append(text)

    def made(self, kind: str, *arguments: str) -> str:
        """A new name, of a Var or a Func."""
        name = f"{self.name.lower()}{kind[0].lower()}{self.fresh}"
        self.fresh += 1
        self.program.header.append(f"{name} = {kind}({', '.join([repr(name), *arguments])})")
        return name

    def nests(self) -> None:
        """Loops: split, tile, fuse, reorder, unroll, a schedule."""
        c = self.program.choices
        for _ in range(c.below(4)):
            kind = c.below(6)
            if not self.order:
                return
            if kind in (0, 1):
                self.split()
            elif kind in (2, 3):
                self.reorder()
            elif kind == 4 and len(self.order) >= 2:
                self.tile() if c.chance(2) else self.fuse()
        if c.chance(2):
            self.unroll()
        if c.chance(8) and len(self.order) >= 2:
            self.transform()

    def plain(self) -> list[str]:
        """The loops whose bounds are constant; now and then all, which are refused."""
        fixed = [v for v in self.order if v not in self.ragged]
        return self.order if not fixed or self.program.choices.chance(10) else fixed

    def split(self) -> None:
        c = self.program.choices
        v, factor = c.one_of(self.plain()), c.between(1, 4)
        inner = self.made("Var")
        self.say(f"{self.name}.split({v}, {v}, {inner}, {factor})")
        self.order.insert(self.order.index(v), inner)
        self.part_of(v, inner)

    def part_of(self, old: str, new: str) -> None:
        """A part of a loop belongs where the loop does."""
        self.depends = {v: on | {new} if old in on else on for v, on in self.depends.items()}
        self.depends[new] = frozenset([old])
        if old in self.reductions:
            self.reductions |= {new}

    def tile(self) -> None:
        c = self.program.choices
        loops = self.plain()
        if len(loops) < 2:
            return
        u, v = c.shuffled(loops)[:2]
        first, second = self.made("Var"), self.made("Var")
        factors = f"{c.between(1, 3)}, {c.between(1, 3)}"
        self.say(f"{self.name}.tile({u}, {v}, {first}, {second}, {factors})")
        at = min(self.order.index(u), self.order.index(v))
        self.order[at:at] = [first, second]
        self.part_of(u, first)
        self.part_of(v, second)

    def fuse(self) -> None:
        c = self.program.choices
        fixed = self.plain()
        near = [
            at
            for at, (u, v) in enumerate(itertools.pairwise(self.order))
            if u in fixed and v in fixed and (u in self.reductions) is (v in self.reductions)
        ]
        if not near:
            return
        at = c.one_of(near)
        u, v = self.order[at : at + 2]
        fused = self.made("Var")
        self.say(f"{self.name}.fuse({u}, {v}, {fused})")
        self.order[at : at + 2] = [fused]
        self.depends = {w: on | {fused} if {u, v} & on else on for w, on in self.depends.items()}
        if u in self.reductions:
            self.reductions |= {fused}

    def reorder(self) -> None:
        c = self.program.choices
        order = c.shuffled(self.order)
        for _ in range(3):
            inside: set[str] = set()
            ill = False
            for loop in order:
                ill = ill or bool(self.depends.get(loop, frozenset()) & inside & set(self.order))
                inside.add(loop)
            if not ill:
                break
            order = c.shuffled(self.order)
        self.order = order
        if len(order) > 1:
            self.say(f"{self.name}.reorder({', '.join(order)})")

    def unroll(self) -> None:
        c = self.program.choices
        loops = c.some(self.plain(), 2)
        if not loops:
            return
        self.unrolled = loops
        form = "space_time_transform" if c.chance(5) else "unroll"
        self.say(f"{self.name}.{form}({', '.join(loops)})")
        if not c.chance(8):
            self.order = [v for v in self.order if v not in loops]

    def transform(self) -> None:
        """A schedule: one or two loops become a place and a time."""
        c = self.program.choices
        u, v = c.shuffled(self.order)[:2]
        p, t = self.made("Var"), self.made("Var")
        place = c.one_of([u, v])
        time = c.one_of([f"{u} + {v}", f"2 * {u} + {v}", f"{u} + 3 * {v}", u, v])
        self.say(f"{self.name}.space_time_transform([{u}, {v}], {{{p}: {place}, {t}: {time}}})")
        self.order = [w for w in self.order if w not in (u, v)]

    def producers(self) -> None:
        """Functions between the inputs and this one, one by one or as chains of stages."""
        c = self.program.choices
        for name in self.program.reads.get(self.name, ()):
            if not c.chance(2):
                continue
            if c.chance(4) and self.order:
                self.chain(name)
                continue
            functions = [self.made("Func") for _ in range(c.between(1, 2))]
            if c.chance(8):
                host = self.made("Func", "place=t2s.Place.HOST")
                functions.insert(0, host)
            self.say(f"{self.name}.isolate_producer_chain({name}, {', '.join(functions)})")
            self.loaders.append((functions[-min(2, len(functions))], functions[-1]))

    def chain(self, name: str) -> None:
        c = self.program.choices
        f = self.name.lower()
        parts = [f"t2s.dram('{f}_{name}_d')"]
        if c.chance(6):
            parts.insert(0, f"t2s.host('{f}_{name}_h')")
        if c.chance(2):
            scatter = ", scatter=False" if c.chance(3) else ""
            double = ", double=False" if c.chance(4) else ""
            scope = c.one_of(self.order)
            parts.append(f"t2s.sram('{f}_{name}_s', scope={scope}{scatter}{double})")
        elif c.chance(3):
            parts.append(f"t2s.registers('{f}_{name}_r')")
        self.say(f"{name} >> {' >> '.join(parts)} >> {self.name}")

    def consumers(self) -> None:
        c = self.program.choices
        if not c.chance(3):
            return
        if c.chance(4):
            gather = f", gather={c.one_of(self.unrolled)}" if self.unrolled else ""
            f = self.name.lower()
            self.say(f"{self.name} >> t2s.registers('{f}_drain'{gather}) >> t2s.dram('{f}_store')")
            return
        functions = [self.made("Func") for _ in range(c.between(1, 2))]
        if c.chance(8):
            functions.append(self.made("Func", "place=t2s.Place.HOST"))
        self.say(f"{self.name}.isolate_consumer_chain({', '.join(functions)})")
        if self.unrolled and len(functions) == 2 and c.chance(3):
            reverse = ", reverse=True" if c.chance(4) else ""
            self.say(f"{functions[0]}.gather({self.name}, {c.one_of(self.unrolled)}{reverse})")
        if c.chance(6):
            self.say(f"{functions[0]}.depth({c.between(1, 8)})")

    def operands(self) -> None:
        """What the PEs do with what the producers send."""
        c = self.program.choices
        for first, last in self.loaders:
            kind = c.below(8)
            if kind in (1, 2) and self.unrolled:
                depth = f", depth={c.between(1, 4)}" if c.chance(6) else ""
                self.say(f"{self.name}.forward({last}, {c.one_of(self.unrolled)}{depth})")
            elif kind == 3 and self.unrolled and first != last:
                reverse = ", reverse=True" if c.chance(4) else ""
                self.say(f"{last}.scatter({first}, {c.one_of(self.unrolled)}{reverse})")
            elif kind in (4, 5) and first != last and self.order:
                loop = c.one_of(self.order)
                double = ", double=False" if c.chance(4) else ""
                if c.chance(2):
                    self.say(f"{first}.remove({loop})")
                self.say(f"{last}.buffer({first}, {c.one_of(self.order)}{double})")
            elif kind == 6 and c.chance(3):
                self.say(f"{last}.depth({c.between(1, 8)})")

    def vectors(self) -> None:
        c = self.program.choices
        operands = self.program.reads.get(self.name, ())
        if c.chance(12) and operands:
            if self.order and self.order[0] in self.reductions:
                self.program.rough = True
            self.say(f"{self.name}.vload({', '.join(c.some(operands) or operands[:1])})")
            if c.chance(2):
                self.say(f"{self.name}.vstore({self.name})")


def schedule(program: Program, stage: Stage) -> None:
    """Directives for a stage."""
    c = program.choices
    loops = [loop.name for loop in (*stage.loops, *stage.reduction)][::-1]
    depends = {
        loop.name: frozenset(re.findall(r"[a-z]\w*", f"{loop.minimum} {loop.extent}"))
        for loop in (*stage.loops, *stage.reduction)
    }
    reductions = frozenset(loop.name for loop in stage.reduction)
    ragged = frozenset(name for name, others in depends.items() if others)
    scheduler = Scheduler(program, stage.name, loops, depends, reductions, ragged)
    if stage.reduction and c.chance(8):
        program.rough = True
        scheduler.say(f"{stage.name}.reassociate()")
    scheduler.nests()
    scheduler.producers()
    scheduler.consumers()
    scheduler.operands()
    scheduler.vectors()
