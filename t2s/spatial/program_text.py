"""Designs as Python text: definitions and directives as a user would write them.

What goes in: the output Funcs of a design, lowered or not.  What comes out: a program that makes an
equal design when it is run, and prints as the same text again: inputs, variables, Funcs,
definitions, bounds, and the directives in the order written.  Objects have variables of their own
names, or of similar ones where Python or another object has that name.  Chains are written
as chains (``>>``) where only these can say it.

What is refused, by name: products of sparse matrices, whose matrices and chains of transformations
are not Funcs; and directives on functions that a chain made, for which a program has no variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from t2s.core.errors import UnsupportedError
from t2s.core.expr import Expr, Read, reads
from t2s.core.location import user_location
from t2s.core.types import Type
from t2s.func.collect import global_symbols, needed_funcs
from t2s.func.expressions import Symbol, Symbols
from t2s.func.func import ImageParam, Param, RVar, TemporalFunc, Var, WrittenDefinition
from t2s.func.python_text import (
    LINE,
    ExpressionWriter,
    PythonNames,
    assignment_lines,
    call_lines,
    type_text,
)
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.directives import settings
from t2s.spatial.directives.buffer import Buffer
from t2s.spatial.directives.distribute import Distribute, RemoveReuse
from t2s.spatial.directives.scatter import Gather
from t2s.spatial.directives.space_time import SpaceTimeTransform
from t2s.spatial.directives.vectors import VectorStore
from t2s.spatial.schedule import Place, ScheduledFunc

DESIGN = "design"
"""The variable that says which Funcs are the outputs, where reading does not tell."""

_PUBLIC = ("BFloat", "Bool", "Float", "Func", "ImageParam", "Int", "Param", "RDom", "UInt", "Var")

_ACCUMULATING = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>")

Step = tuple[str, Directive]


def program_text(outputs: Sequence[TemporalFunc[Directive]]) -> str:
    """The program that makes these outputs."""
    for func in outputs:
        if not isinstance(func, ScheduledFunc):
            raise _unwritable(f"{func!r}", func)
    return _Program(tuple(f for f in outputs if isinstance(f, ScheduledFunc))).text()


@dataclass
class _Program:
    """A program while it is written."""

    outputs: tuple[ScheduledFunc, ...]
    names: dict[int, str] = field(default_factory=dict)  # Python names by object
    loops: dict[str, str] = field(default_factory=dict)  # Python names of Vars by name
    imported: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    in_chains: set[int] = field(default_factory=set)  # Funcs without a variable
    done: dict[str, int] = field(default_factory=dict)  # definitions written so far, by Func

    def __post_init__(self) -> None:
        self.python = PythonNames((*_PUBLIC, "t2s", "float", DESIGN))
        self.funcs: list[ScheduledFunc] = []
        for func in needed_funcs(self.outputs):
            if not isinstance(func, ScheduledFunc):
                raise _unwritable(f"{func!r}", func)
            self.funcs.append(func)
        self.symbols = global_symbols(self.funcs)
        self.isolated = {id(func): isolated_funcs(func) for func in self.funcs}

    def used(self, name: str) -> str:
        """Note that the text uses a name of the package."""
        self.imported.add(name if name in _PUBLIC else "t2s")
        return name

    def named(self, symbol: Symbol) -> str:
        """The variable of an object."""
        if id(symbol) not in self.names:
            self.names[id(symbol)] = self.python.fresh(symbol.name)
        return self.names[id(symbol)]

    def text(self) -> str:
        inputs = [s for s in self.symbols.values() if isinstance(s, ImageParam)]
        params = [s for s in self.symbols.values() if isinstance(s, Param)]
        for symbol in (*inputs, *params, *self.funcs):
            self.named(symbol)
        self._check_symbols()
        domains = self._domains()
        loops = self._vars()
        steps = self._statements()
        for func in self._partners():
            self.named(func)
        definitions = self._collected(self._definitions)
        bounds = self._collected(self._bounds)
        directives = self._collected(lambda: self._directives(steps))
        declared = self._collected(lambda: self._declarations(inputs, params, loops, domains))
        others = [name for name in self.loops if name not in loops]
        new_loops = self._collected(lambda: self._declare_vars(others))
        partners = self._collected(lambda: self._declare_funcs(self._partners()))
        last = self._collected(self._outputs)
        parts = [declared, [*definitions, *bounds], [*new_loops, *partners, *directives], last]
        body = "\n\n".join("\n".join(part) for part in parts if part)
        return f"{self._imports()}\n\n{body}\n"

    def _collected(self, write: Callable[[], None]) -> list[str]:
        before, self.lines = self.lines, []
        write()
        made, self.lines = self.lines, before
        return made

    def _imports(self) -> str:
        names = [name for name in _PUBLIC if name in self.imported]
        lines = ["import t2s"] if "t2s" in self.imported else []
        if names:
            lines.append(f"from t2s import {', '.join(names)}")
        return "\n".join(lines)

    # Declarations.

    def _check_symbols(self) -> None:
        for func in self.funcs:
            for written in func.written:
                for symbol in _with_bounds(written.symbols):
                    plain = type(symbol) in (ImageParam, Param, Var, RVar)  # no kinds of matrices
                    if not plain and not isinstance(symbol, ScheduledFunc):
                        raise _unwritable(f"{symbol.name}, which {func.name} reads", func)

    def _domains(self) -> list[tuple[RVar, ...]]:
        """The reduction domains, each after those that its bounds use."""
        found: list[tuple[RVar, ...]] = []

        def visit(symbols: Symbols) -> None:
            for symbol in symbols.values():
                if isinstance(symbol, RVar) and all(symbol.domain is not d for d in found):
                    for dimension in symbol.domain:
                        visit(dimension.minimum.symbols)
                        visit(dimension.extent.symbols)
                    found.append(symbol.domain)

        for func in self.funcs:
            for written in func.written:
                visit(written.symbols)
        return found

    def _vars(self) -> list[str]:
        """The names of the Vars of definitions, in the order of the arguments."""
        for func in self.funcs:
            for name in func.arguments:
                self._loop_of_var(name)
            for written in func.written:
                for symbol in _with_bounds(written.symbols):
                    if isinstance(symbol, Var):
                        self._loop_of_var(symbol.name)
        loops = list(self.loops)
        for domain in self._domains():
            for dimension in domain:
                self.named(dimension)
        return loops

    def _loop_of_var(self, name: str) -> str:
        if name not in self.loops:
            self.loops[name] = self.python.fresh(name)
        return self.loops[name]

    def _declarations(
        self,
        inputs: list[ImageParam],
        params: list[Param],
        loops: list[str],
        domains: list[tuple[RVar, ...]],
    ) -> None:
        for image in inputs:
            shape = "" if image.shape is None else f", shape={image.shape!r}"
            arguments = f"{self._type(image.type)}, {image.rank}, name={_quoted(image.name)}{shape}"
            self._call(f"{self.named(image)} = {self.used('ImageParam')}", arguments)
        for param in params:
            arguments = f"{self._type(param.type)}, name={_quoted(param.name)}"
            self._call(f"{self.named(param)} = {self.used('Param')}", arguments)
        self._declare_vars(loops)
        for domain in domains:
            symbols: dict[str, Symbol] = {}
            for dimension in domain:
                symbols |= {**dimension.minimum.symbols, **dimension.extent.symbols}
            write = self._writer(symbols)
            parts = [b.node for d in domain for b in (d.minimum, d.extent)]
            bounds = ", ".join(write.written(node).text for node in parts)
            targets = ", ".join(self.named(dimension) for dimension in domain)
            name = _quoted(" ".join(dimension.name for dimension in domain))
            self._call(f"{targets} = {self.used('RDom')}", f"{bounds}, name={name}")
        self._declare_funcs(self.funcs)

    def _declare_vars(self, names: Sequence[str]) -> None:
        for some in _chunks(names, [self.loops[name] for name in names]):
            targets = ", ".join(self.loops[name] for name in some)
            if len(some) == 1:
                self._call(f"{targets} = {self.used('Var')}", _quoted(some[0]))
            else:
                self.used("t2s")
                self._call(f"{targets} = t2s.variables", _quoted(" ".join(some)))

    def _declare_funcs(self, funcs: Sequence[ScheduledFunc]) -> None:
        for place in Place:
            here = [func for func in funcs if func.place is place]
            where = "" if place is Place.DEVICE else ", place=t2s.Place.HOST"
            plain = [func for func in here if func.declared_type is None]
            names = [func.name for func in plain]
            at = 0
            for some in _chunks(names, [self.named(func) for func in plain]):
                targets = ", ".join(self.named(f) for f in plain[at : at + len(some)])
                at += len(some)
                if where:
                    self.used("t2s")
                if len(some) == 1:
                    self._call(f"{targets} = {self.used('Func')}", f"{_quoted(some[0])}{where}")
                else:
                    self.used("t2s")
                    self._call(f"{targets} = t2s.funcs", f"{_quoted(' '.join(some))}{where}")
            for func in here:
                if func.declared_type is not None:
                    if where:
                        self.used("t2s")
                    arguments = f"{_quoted(func.name)}, type={self._type(func.declared_type)}"
                    self._call(f"{self.named(func)} = {self.used('Func')}", f"{arguments}{where}")

    def _call(self, start: str, arguments: str) -> None:
        self.lines += call_lines(start, arguments)

    def _type(self, type: Type) -> str:
        return type_text(type, self.used)

    # Definitions.

    def _writer(self, symbols: Symbols) -> ExpressionWriter:
        def named(name: str) -> str:
            symbol = symbols[name]
            return self._loop_of_var(name) if isinstance(symbol, Var) else self.named(symbol)

        def read_type(read: Read) -> Type:
            source = symbols[read.source]
            if not isinstance(source, ScheduledFunc) or source.declared_type is not None:
                return read.type
            before = source.written[: self.done.get(source.name, len(source.written))]
            types = [written.value.type for written in before]
            return next((type for type in types if not type.weak), types[0])

        return ExpressionWriter(symbol=named, read_type=read_type, used=self.used, let=self._let)

    def _let(self, text: str) -> str:
        name = self.python.fresh("part")
        self.lines += assignment_lines(name, f"= {text}")
        return name

    def _definitions(self) -> None:
        """All definitions: those of a Func together, unless types tell that others came between."""
        self.done = {func.name: 0 for func in self.funcs}
        waiting = list(self.funcs)
        while waiting:
            func = next((f for f in waiting if self._is_next(f)), None)
            if func is None:
                raise _unwritable("the order of the definitions", waiting[0])
            while self.done[func.name] < len(func.written) and self._is_next(func):
                self._define(func, func.written[self.done[func.name]])
                self.done[func.name] += 1
            waiting = [f for f in waiting if self.done[f.name] < len(f.written)]
        self.done = {}

    def _is_next(self, func: ScheduledFunc) -> bool:
        """Whether the Funcs that the next definition reads have the types that it reads."""
        for read in reads(func.written[self.done[func.name]].value.node):
            source = self.symbols.get(read.source)
            if (
                source is func
                or not isinstance(source, ScheduledFunc)
                or source.declared_type is not None
            ):
                continue
            before = source.written[: self.done[source.name]]
            typed = any(not written.value.type.weak for written in before)
            if not before or (not source.type.weak and typed == read.type.weak):
                return False
        return True

    def _define(self, func: ScheduledFunc, written: WrittenDefinition) -> None:
        write, node = self._writer(written.symbols), written.value.node
        target = ", ".join(write.written(part.node).text for part in written.target) or "()"
        here, text = f"{self.named(func)}[{target}]", write.alone(node)
        for sign in _ACCUMULATING:
            start = f"{here} {sign} "
            if text.startswith(start) and _accumulates(func, written, node, sign):
                self._accumulate(here, sign, text.removeprefix(start))
                return
        self.lines += assignment_lines(here, f"= {text}")

    def _accumulate(self, here: str, sign: str, rest: str) -> None:
        if rest.startswith("(") and _closes_at_end(rest):
            rest = rest[1:-1]
        self.lines += assignment_lines(here, f"{sign}= {rest}")

    def _bounds(self) -> None:
        for func in self.funcs:
            line = ""
            for bound in func.bounds:
                write = self._writer({**bound.minimum.symbols, **bound.extent.symbols})
                parts = [write.written(b.node).text for b in (bound.minimum, bound.extent)]
                call = f".bound({self._loop(func, bound.variable)}, {', '.join(parts)})"
                if line and len(line) + len(call) > LINE:
                    self.lines.append(line)
                    line = ""
                line = f"{line or self.named(func)}{call}"
            if line:
                self.lines.append(line)

    def _outputs(self) -> None:
        """Which Funcs are the outputs, unless it is the one that no other Func reads."""
        read = {
            name
            for func in self.funcs
            for other in needed_funcs((func,))
            if other is not func and (name := other.name)
        }
        names = [self.named(output) for output in self.outputs]
        if len(names) > 1:
            self.lines += assignment_lines(DESIGN, f"= ({', '.join(names)})")
        elif self.outputs[0].name in read:
            self.lines.append(f"{DESIGN} = {names[0]}")

    # Directives.

    def _loop(self, func: ScheduledFunc, name: str) -> str:
        """The variable of a loop of a Func or of its system."""
        for other in (func, *self.funcs):
            for written in other.written:
                symbol = written.symbols.get(name)
                if isinstance(symbol, RVar):
                    return self.named(symbol)
                if isinstance(symbol, Var):
                    return self._loop_of_var(name)
        return self._loop_of_var(name)

    def _function(self, root: ScheduledFunc, name: str) -> str:
        """The variable of a Func or an input, as the directives of ``root`` name it."""
        symbol = self._object(root, name)
        if id(symbol) in self.in_chains:
            raise UnsupportedError(
                f"{name} was made by a chain and has a directive besides, so the design cannot be "
                "written as a program",
                location=symbol.location,
                expected="only what the chain says about its stages",
                hint="write the directives of the chain one by one; t2s.funcs makes the stages",
            )
        return self.named(symbol)

    def _object(self, root: ScheduledFunc, name: str) -> Symbol:
        own = self.isolated[id(root)]
        if name in own:
            return own[name]
        if name in self.symbols:
            return self.symbols[name]
        for func in self.funcs:
            if func.name == name:
                return func
        for isolated in self.isolated.values():
            if name in isolated:
                return isolated[name]
        raise _unwritable(f"{name}, which a directive of {root.name} names,", root)

    def _partners(self) -> list[ScheduledFunc]:
        return [
            func
            for isolated in self.isolated.values()
            for func in isolated.values()
            if id(func) not in self.in_chains
        ]

    def _statements(self) -> list[list[_Statement]]:
        """The directives of each root Func as statements."""
        statements = [_statements_of(func) for func in self.funcs]
        for root, some in zip(self.funcs, statements, strict=True):
            for statement in some:
                if statement.chain:
                    own = self.isolated[id(root)]
                    self.in_chains |= {id(own[n]) for n in statement.stages if n in own}
        return statements

    def _directives(self, statements: list[list[_Statement]]) -> None:
        """The statements of all Funcs, those about a shared producer after the one that made it."""
        waiting = [(func, list(some)) for func, some in zip(self.funcs, statements, strict=True)]
        made: set[int] = set()
        while any(some for _, some in waiting):
            before = sum(len(some) for _, some in waiting)
            for root, some in waiting:
                while some and self._is_ready(root, some[0], made):
                    statement = some[0]
                    others = self._joining(root, statement, waiting)
                    if others is None:
                        break
                    some.pop(0)
                    for other in others:
                        next(rest for func, rest in waiting if func is other[0]).pop(0)
                    self._state(root, statement, [name for _, name in others])
                    made |= {id(self._object(root, name)) for name in statement.new}
            if sum(len(some) for _, some in waiting) == before:
                root = next(func for func, some in waiting if some)
                raise _unwritable(f"the order of the directives of {root.name}", root)

    def _is_ready(self, root: ScheduledFunc, statement: _Statement, made: set[int]) -> bool:
        first = statement.steps[0][1]
        if not isinstance(first, IsolateProducer) or not first.shared:
            return True
        if any(isinstance(directive, Distribute) for _, directive in statement.steps):
            return False  # written by the chain that it shares
        return id(self._object(root, first.producers[0])) in made

    def _joining(
        self,
        root: ScheduledFunc,
        statement: _Statement,
        waiting: list[tuple[ScheduledFunc, list[_Statement]]],
    ) -> list[tuple[ScheduledFunc, str]] | None:
        """The other Funcs at which a chain ends; ``None`` if not all of them are that far."""
        last = next((d.operand for _, d in statement.steps if isinstance(d, Distribute)), None)
        if last is None:
            return []
        joined: list[tuple[ScheduledFunc, str]] = []
        stage = self._object(root, last)
        for other, some in waiting:
            for at, later in enumerate(some):
                first = later.steps[0][1]
                if (
                    later is not statement
                    and later.chain
                    and isinstance(first, IsolateProducer)
                    and first.shared
                    and self._object(other, first.producers[0]) is stage
                ):
                    if at > (1 if other is root else 0):
                        return None
                    joined.append((other, later.steps[0][0]))
        return joined

    def _state(self, root: ScheduledFunc, statement: _Statement, others: list[str]) -> None:
        if statement.chain:
            self.lines += self._chain(root, statement, others)
        else:
            name, directive = statement.steps[0]
            start, arguments = self._directive(root, directive)
            self._call(f"{self._function(root, name)}.{start}", arguments)

    def _operand(self, root: ScheduledFunc, directive: IsolateProducer) -> str:
        if directive.target is None:
            return self._function(root, directive.operand)
        return self._writer(self._scope(root, directive.target)).alone(directive.target)

    def _scope(self, root: ScheduledFunc, target: Expr) -> Symbols:
        """What an expression of a directive can name: what the definitions of a Func can."""
        scope: dict[str, Symbol] = dict(self.symbols)
        for written in root.written:
            scope |= written.symbols
        for read in reads(target):
            if read.source not in scope:
                raise _unwritable(f"{read.source}, which a directive of {root.name} names,", root)
        return scope

    def _chain(self, root: ScheduledFunc, statement: _Statement, others: list[str]) -> list[str]:
        """A chain, whose stages make their Funcs."""
        self.used("t2s")
        name, first = statement.steps[0]
        stages = [self._stage(root, statement, n) for n in range(len(statement.stages))]
        if isinstance(first, IsolateConsumer):
            parts = [self._function(root, name), *stages]
        else:
            assert isinstance(first, IsolateProducer)
            funcs = [self._function(root, func) for func in (name, *others)]
            end = funcs[0] if len(funcs) == 1 else f"({', '.join(funcs)})"
            operand = self._operand(root, first)
            if first.target is not None:
                operand = f"({operand})"  # >> binds tighter than comparisons, and shifts
            parts = [operand, *stages, end]
        whole = " >> ".join(parts)
        if len(whole) <= LINE:
            return [whole]
        return ["(", f"    {parts[0]}", *(f"    >> {part}" for part in parts[1:]), ")"]

    def _stage(self, root: ScheduledFunc, statement: _Statement, at: int) -> str:
        name = statement.stages[at]
        options: list[str] = []
        kind = "registers"
        producing = isinstance(statement.steps[0][1], IsolateProducer)
        on_host = self.isolated[id(root)][name].place is Place.HOST
        if on_host:
            kind = "host"
        elif at == (statement.before if producing else len(statement.stages) - 1 - statement.after):
            kind = "dram"
        scattering = any(
            isinstance(d, Distribute) and name in d.scattering for _, d in statement.steps
        )
        for owner, directive in statement.steps[1:]:
            if owner != name:
                continue
            match directive:
                case Buffer(loop=loop, double=double):
                    kind = "sram"
                    options.append(f"scope={self._loop(root, loop)}")
                    options += [] if double else ["double=False"]
                    options += [] if scattering else ["scatter=False"]
                case Gather(loop=loop):
                    options.append(f"gather={self._loop(root, loop)}")
                case VectorStore(lanes=str() as lanes):
                    options.append(f"lanes={self._loop(root, lanes)}")
                case _ if isinstance(directive, settings.Depth):
                    options.append(f"depth={directive.capacity}")
        return f"t2s.{kind}({', '.join([_quoted(name), *options])})"

    def _directive(self, root: ScheduledFunc, directive: Directive) -> tuple[str, str]:
        """The method of a directive, and its arguments: its text, with names of variables.

        What is neither a number nor an option is a loop, unless a field says that it is a function.
        """
        method, _, given = directive.text.removesuffix(")").partition("(")
        match directive:
            case Distribute() | RemoveReuse() | VectorStore(lanes=str()):
                raise _unwritable(f"a part of the chain {directive.text}", root)
            case SpaceTimeTransform():
                parts = self._space_time(root, directive)
            case IsolateProducer(producers=producers):
                others = [self._function(root, name) for name in producers]
                parts = [self._operand(root, directive), *others]
            case _:
                functions = _functions_of(directive)
                parts = []
                for part in given.split(", ") if given else ():
                    if part in functions:
                        parts.append(self._function(root, part))
                    else:
                        parts.append(self._loop(root, part) if part.isidentifier() else part)
        return method, ", ".join(parts)

    def _space_time(self, root: ScheduledFunc, directive: SpaceTimeTransform) -> list[str]:
        olds = [self._loop(root, name) for name in directive.loops]
        if directive.maps:
            # the loops are variables of any kind, so an expression of them needs only their names
            write = ExpressionWriter(
                symbol=lambda name: self._loop(root, name),
                read_type=lambda read: read.type,
                used=self.used,
                let=self._let,
            )
            items = [
                f"{self._loop(root, name)}: {write.written(value).text}"
                for name, value in directive.maps
            ]
            return [f"[{', '.join(olds)}]", f"{{{', '.join(items)}}}"]
        if directive.coefficients:
            return [f"[{', '.join(olds)}]", str(list(directive.coefficients))]
        return olds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """Consecutive directives that one statement makes: a directive, or a chain with its stages."""

    steps: tuple[Step, ...]
    chain: bool = False
    stages: tuple[str, ...] = ()
    before: int = 0
    """Stages of an input chain before dram: 1 with one on the host."""

    after: int = 0
    """Stages of an output chain after dram."""

    @property
    def new(self) -> tuple[str, ...]:
        return tuple(name for _, directive in self.steps for name in directive.new_functions)


def _statements_of(func: ScheduledFunc) -> list[_Statement]:
    """The journal of a Func, with the directives of each chain together."""
    statements: list[_Statement] = []
    at = 0
    while at < len(func.journal):
        statement = _statement_at(func.journal, at)
        statements.append(statement)
        at += len(statement.steps)
    return statements


def _statement_at(journal: Sequence[Step], at: int) -> _Statement:
    name, first = journal[at]
    rest = journal[at + 1 :]
    match first, rest:
        case IsolateProducer(producers=stages), [(owner, Distribute()), *_] if owner == name:
            count = 1 + _count_of_input(stages, rest[1:]) if not first.shared else 1
            steps = tuple(journal[at : at + 1 + count])
            return _Statement(steps=steps, chain=True, stages=stages, before=int(first.on_host))
        case IsolateConsumer(consumers=stages), _:
            count = _count_of_output(stages, rest)
            steps = tuple(journal[at : at + 1 + count])
            if any(isinstance(d, VectorStore) and d.lanes is not None for _, d in steps):
                return _with_host(journal, at, steps, stages)
    return _Statement(steps=((name, first),))


def _with_host(
    journal: Sequence[Step], at: int, steps: tuple[Step, ...], stages: tuple[str, ...]
) -> _Statement:
    after = journal[at + len(steps) : at + len(steps) + 1]
    match list(after):
        case [(owner, IsolateConsumer(consumers=(host,), on_host=True))] if owner == stages[-1]:
            return _Statement(steps=(*steps, *after), chain=True, stages=(*stages, host), after=1)
    return _Statement(steps=steps, chain=True, stages=stages)


def _count_of_input(stages: Sequence[str], rest: Sequence[Step]) -> int:
    """How many directives an input chain adds behind its first two."""
    at = 0
    for previous, stage in pairwise(stages):
        match list(rest[at : at + 2]):
            case [(a, Buffer(operand=operand)), (b, RemoveReuse())] if (a, operand, b) == (
                stage,
                previous,
                previous,
            ):
                at += 2
    match list(rest[at : at + 1]):
        case [(owner, RemoveReuse(scope=None))] if owner == stages[0]:
            at += 1
    return at + _count_of_depths(stages, rest[at:])


def _count_of_output(stages: Sequence[str], rest: Sequence[Step]) -> int:
    at = 0
    for stage in stages:
        for kind in (Gather, VectorStore):
            if at < len(rest) and rest[at][0] == stage and isinstance(rest[at][1], kind):
                at += 1
    return at + _count_of_depths(stages, rest[at:])


def _count_of_depths(stages: Sequence[str], rest: Sequence[Step]) -> int:
    at = 0
    for stage in stages:
        if at < len(rest) and rest[at][0] == stage and isinstance(rest[at][1], settings.Depth):
            at += 1
    return at


def _functions_of(directive: Directive) -> frozenset[str]:
    """The functions and inputs that a directive names, by the names of its fields."""
    names = ("function", "operand", "operands", "producers", "consumers")
    values = [getattr(directive, name) for name in names if hasattr(directive, name)]
    return frozenset(n for v in values for n in ((v,) if isinstance(v, str) else v))


def isolated_funcs(func: ScheduledFunc) -> dict[str, ScheduledFunc]:
    """The Funcs that were isolated from one, directly or not, by name."""
    found: dict[str, ScheduledFunc] = {}
    for part in func.isolated:
        for name, other in {part.name: part, **isolated_funcs(part)}.items():
            if found.setdefault(name, other) is not other:
                raise _unwritable(f"two Funcs named {name} that are isolated from it", func)
    return found


def _with_bounds(symbols: Symbols) -> Iterator[Symbol]:
    for symbol in symbols.values():
        yield symbol
        if isinstance(symbol, RVar):
            for dimension in symbol.domain:
                yield from dimension.minimum.symbols.values()
                yield from dimension.extent.symbols.values()


def _accumulates(func: ScheduledFunc, written: WrittenDefinition, node: Expr, sign: str) -> bool:
    """Whether a value is an operator on the element that is written, and something else."""
    match getattr(node, "operands", ()):
        case (Read(source=source, indices=indices), _) if source == func.name:
            spelled = {"and": "&", "or": "|", "xor": "^"}
            operator = node.operator.value  # type: ignore[attr-defined]
            same = indices == tuple(part.node for part in written.target)
            return same and spelled.get(operator, operator) == sign and len(func.written) > 0
    return False


def _closes_at_end(text: str) -> bool:
    """Whether the parenthesis that opens a text is closed by its last character."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return at == len(text) - 1
    return False


def _chunks(names: Sequence[str], targets: Sequence[str]) -> Iterator[Sequence[str]]:
    """Names of one statement after the other, so that none is longer than a line."""
    around = len(' = t2s.variables("", place=t2s.Place.HOST)')
    first, width = 0, around
    for at, (name, target) in enumerate(zip(names, targets, strict=True)):
        width += len(name) + len(target) + 3
        if width > LINE and at > first:
            yield names[first:at]
            first, width = at, around + len(name) + len(target) + 3
    if first < len(names):
        yield names[first:]


def _quoted(text: str) -> str:
    """A literal in double quotes, as formatters write it."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in text else literal


def _unwritable(what: str, func: Symbol) -> UnsupportedError:
    return UnsupportedError(
        f"{what} cannot be written as a program",
        location=func.location if func.location is not None else user_location(),
        expected="inputs, Params, Vars, RDoms and Funcs of dense definitions",
    )
