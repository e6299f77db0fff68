"""From concrete index notation for Capstan to parallel patterns [Stardust, sec. 6]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from t2s.core.expr import Expr, Local, Select, apply, const
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.patterns.ir import (
    Bind,
    CountHeader,
    Foreach,
    JoinKind,
    Parallel,
    PatternProgram,
    ProgramResult,
    Reduce,
    ScanHeader,
    binder_count,
)
from t2s.patterns.verify import BitSet, intersected, is_inside, united, verify_patterns
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    Where,
    reads_of,
    result_of,
)
from t2s.sparse_repr.concrete.merge import Leaf
from t2s.sparse_repr.functions import Operator
from t2s.sparse_repr.notation.ir import Access, print_expression
from t2s.sparse_repr.notation.support import StoredValue, StoredValues
from t2s.sparse_repr.semiring import PLUS_TIMES
from t2s.sparse_repr.stardust.build import is_transfer
from t2s.sparse_repr.stardust.coiteration import (
    AllCoordinates,
    CombinedLevels,
    JoinedLevels,
    LoopIteration,
    WalkedLevel,
    iteration_of,
    level_of,
    set_of,
)
from t2s.sparse_repr.stardust.emitter import (
    ArgumentMeaning,
    PatternEmitter,
    is_there,
    located,
    times,
)
from t2s.sparse_repr.stardust.entries import brought_words, joined_bits
from t2s.sparse_repr.stardust.multiway_scans import opened_combination
from t2s.sparse_repr.stardust.operands import PatternOperands, facts_of
from t2s.sparse_repr.stardust.scope import LazyWord, OpenedLoop, PatternScope
from t2s.sparse_repr.stardust.writing import LevelWriting, ResultPlan, ResultWriter, plan_of


@dataclass(frozen=True, kw_only=True)
class LoweredPatterns:
    """A verified program of patterns, and the meaning of its arguments."""

    program: PatternProgram
    meanings: Mapping[str, ArgumentMeaning]


def lower_to_patterns(program: ConcreteProgram, type: Type) -> LoweredPatterns:
    """The program of patterns for values of a type.

    Raises ``UnsupportedError`` for loops that have no pattern.
    """
    return _PatternLowering(program, type).run()


class _PatternLowering:
    def __init__(self, program: ConcreteProgram, type: Type) -> None:
        environment = dict(program.environment)
        taken = [*environment, *(tensor.name for tensor in program.tensors)]
        self.program, self.type, self.environment = program, type, environment
        self.emitter = PatternEmitter(
            environment["bp"], environment["ip"], NameSupply(taken), program.location
        )
        self.operands = PatternOperands(self.emitter, program, facts_of(program), type)
        self.results: list[ProgramResult] = []

    def run(self) -> LoweredPatterns:
        """The whole program."""
        emitter = self.emitter
        for stage in self.program.stages:
            self.nest(stage, PatternScope(coordinates={}, states={}, scalars={}))
        result = PatternProgram(
            name=emitter.names.fresh(f"{self.program.result}_kernel"),
            environment=self.program.environment,
            arguments=tuple(emitter.meanings.values()),
            memories=tuple(emitter.far.values()),
            body=located((*emitter.head, *emitter.body), self.program.location),
            results=tuple(self.results),
            location=self.program.location,
        )
        verify_patterns(result)
        meanings = {argument.name: meaning for meaning, argument in emitter.meanings.items()}
        return LoweredPatterns(program=result, meanings=meanings)

    def nest(self, statement: Statement, scope: PatternScope) -> None:
        """A statement with its result, a workspace or the tensor of the program."""
        if isinstance(statement, Where):
            scope = self.produced(statement.producer, scope)
            self.nest(statement.consumer, scope)
            return
        target = result_of(statement)
        final = target.tensor == self.program.result
        if not target.variables:
            value = self.scalar(statement, scope)
            local = self.emitter.local(f"{target.tensor}_value", self.type)
            self.emitter.put(Bind(target=local.name, value=value, location=target.location))
            self.results.append(ProgramResult(tensor=target.tensor, values=local.name))
            return
        writer = self.writer(statement, plan_of(statement, self.program))
        state = writer.begin()
        self.statement(statement, replace(scope, writer=writer, result=state))
        if final:
            self.results.append(writer.made())

    def writer(self, statement: Statement, plan: ResultPlan) -> ResultWriter:
        """The writer of a statement's result; workspaces may also be read at any address."""
        name = plan.target.tensor
        irregular = any(
            facts.irregular
            for access, facts in self.operands.facts.items()
            if access.tensor == name
        )
        return ResultWriter(self.operands, plan, irregular, {})

    def produced(self, producer: Statement, scope: PatternScope) -> PatternScope:
        """Compute the operand of a consumer: a scalar, a copied part, or any workspace."""
        target = result_of(producer)
        if not target.variables:
            value = self.scalar(producer, scope)
            return replace(scope, scalars={**scope.scalars, target.tensor: value})
        if self.copied(producer, scope):
            return scope
        self.nest(producer, replace(scope, writer=None, result=None))
        return scope

    def copied(self, producer: Statement, scope: PatternScope) -> bool:
        """Load a workspace as a block, if it is a contiguous part of a dense tensor off chip."""
        if not is_transfer(producer):
            return False
        target, (source,) = result_of(producer), reads_of(producer)
        operands = self.operands
        ours, theirs = operands.format(target), operands.format(source)
        levels = [target.variables[mode] for mode in ours.modes]
        around = [source.variables[mode] for mode in theirs.modes]
        dense = operands.is_dense(target) and operands.is_dense(source)
        off_chip = source.tensor not in operands.workspaces
        if not (dense and off_chip and around[-len(levels) :] == levels):
            return False
        if not set(around[: -len(levels)]) <= set(scope.coordinates):
            return False
        begin = operands.index(source, scope.coordinates, slice(0, len(around) - len(levels)))
        for level in range(len(around) - len(levels), len(around)):
            begin = times(begin, operands.extent(source, level))
        begin = self.emitter.bind("from", begin)
        self.writer(producer, plan_of(producer, self.program)).load(source, begin)
        return True

    def entered(self, statement: Statement, scope: PatternScope) -> PatternScope:
        """The scope extended by the compressed operands that a statement is the first to read."""
        states = dict(scope.states)
        for access in dict.fromkeys(reads_of(statement)):
            temporary = access.tensor in scope.scalars or not access.variables
            if not temporary and access not in states and not self.operands.is_dense(access):
                states[access] = self.operands.enter(access)
        return replace(scope, states=states)

    def statement(self, statement: Statement, scope: PatternScope) -> None:
        """A statement that writes its result."""
        match statement:
            case Forall():
                self.loop(statement, self.entered(statement, scope), reducing=False)
            case Where(consumer=consumer, producer=producer):
                self.statement(consumer, self.produced(producer, scope))
            case Assign(value=value):
                assert scope.writer is not None
                assert scope.result is not None
                computed = _PatternValues(scope, self.operands).value(value).value
                scope.writer.put(scope.result, computed, scope.coordinates)

    def scalar(self, statement: Statement, scope: PatternScope) -> Expr:
        """The value of a statement that computes a scalar."""
        match statement:
            case Forall():
                value = self.loop(statement, self.entered(statement, scope), reducing=True)
                assert value is not None
                return value
            case Where(consumer=consumer, producer=producer):
                return self.scalar(consumer, self.produced(producer, scope))
            case Assign(value=value):
                return _PatternValues(scope, self.operands).value(value).value

    def loop(self, loop: Forall, scope: PatternScope, *, reducing: bool) -> Expr | None:
        """Lower a loop to a pattern; returns the sum of a reduction."""
        emitter, writer, before = self.emitter, scope.writer, scope.result
        iteration = iteration_of(loop, self.program)
        writes = (
            not reducing
            and writer is not None
            and before is not None
            and loop.variable in writer.plan.target.variables
        )
        computed = False
        if writes:
            assert writer is not None
            assert before is not None
            computed = writer.plan.levels[before.level].writing is LevelWriting.COMPUTED
        opened = self.opened(loop, iteration, scope, computed=computed)
        if writes:
            assert writer is not None
            assert before is not None
            before = writer.before(before, opened.segment, self.counted(opened, computed))
            scope = replace(scope, result=before)
        value: Expr | None = None
        with emitter.scope() as body:
            inside = self.inside(loop, opened, scope, writes=writes)
            inside = replace(inside, visited=self.visited(iteration, scope))
            if reducing:
                value = self.scalar(loop.body, inside)
            else:
                self.statement(loop.body, inside)
        pops = brought_words(self.operands, opened, body, value)
        binders = tuple(binder.name for binder in opened.binders)
        header, whole = opened.headers[-1], (*opened.taken, *pops, *body)
        if reducing:
            assert value is not None
            total = emitter.local("total", self.type)
            emitter.put(
                Reduce(target=total.name, header=header, binders=binders, body=whole, value=value)
            )
            return total
        emitter.put(Foreach(header=header, binders=binders, body=whole))
        if writes:
            assert writer is not None
            assert before is not None
            writer.after(before, opened.count)
        return None

    def visited(self, iteration: LoopIteration, scope: PatternScope) -> tuple[BitSet, ...]:
        """The sets that contain the coordinates of a loop.

        Facts of an outer loop about operands that this loop joins at a lower level no longer hold:
        these are present only if their next level has the coordinate, too.
        """
        if not isinstance(iteration, JoinedLevels | CombinedLevels):
            return scope.visited
        names = {print_expression(access) for access in iteration.accesses}
        others = (known for known in scope.visited if not names & frozenset[str]().union(*known))
        return (*others, set_of(iteration.merge))

    def parallel(self, loop: Forall, iteration: LoopIteration) -> Parallel:
        """Iterations at a time; scans that are neither outermost nor innermost take ``sp``."""
        factor = loop.factor
        if factor == 1 and isinstance(iteration, JoinedLevels | CombinedLevels):
            factor = "sp"
        if isinstance(factor, str):
            return Parallel(factor=self.environment[factor], variable=factor)
        return Parallel(factor=factor)

    def opened(
        self, loop: Forall, iteration: LoopIteration, scope: PatternScope, *, computed: bool
    ) -> OpenedLoop:
        """The statements before a loop, and its header; two if iterations are counted first."""
        emitter, variable = self.emitter, loop.variable
        parallel = self.parallel(loop, iteration)
        match iteration:
            case AllCoordinates():
                binder, count = emitter.local(variable), emitter.extent(variable)
                header = CountHeader(extent=count, parallel=parallel)
                return OpenedLoop(
                    headers=(header,),
                    binders=(binder,),
                    coordinate=binder,
                    number=binder,
                    count=count,
                )
            case WalkedLevel(access=access):
                segment = scope.states[access].segment
                assert segment is not None
                binder, coordinate = emitter.local(f"{variable}_entry"), emitter.local(variable)
                return OpenedLoop(
                    headers=(CountHeader(extent=segment.length, parallel=parallel),),
                    binders=(binder,),
                    coordinate=coordinate,
                    number=binder,
                    count=segment.length,
                    segment=segment,
                    lazy=self.lazy(access, variable, coordinate),
                    numbers={access: binder},
                )
            case CombinedLevels():
                return opened_combination(
                    self.operands, iteration, variable, scope.states, parallel, counted=computed
                )
            case JoinedLevels():
                pairs = joined_bits(
                    self.operands, iteration, variable, scope.states, copies=1 + computed
                )
                bits = emitter.bits(variable)
                headers = tuple(
                    ScanHeader(
                        bits=bits, left=left, right=right, join=iteration.join, parallel=parallel
                    )
                    for left, right in pairs
                )
                names = (variable, f"{variable}_left", f"{variable}_out", f"{variable}_right")
                binders = tuple(emitter.local(name) for name in names)
                numbers = dict(zip(iteration.accesses, binders[1::2], strict=False))
                return OpenedLoop(
                    headers=headers,
                    binders=binders,
                    coordinate=binders[0],
                    number=binders[2],
                    count=const(0),
                    numbers=numbers,
                    optional=frozenset(numbers if iteration.join is JoinKind.OR else ()),
                )

    def lazy(self, access: Access, variable: str, coordinate: Local) -> tuple[LazyWord, ...]:
        """The coordinate and, at the last level, the value of an entry."""
        level = level_of(access, variable, self.operands.format(access))
        words = [LazyWord(local=coordinate, access=access, array="crd", level=level)]
        if level == len(access.variables) - 1:
            value = self.emitter.local(f"{access.tensor}_value", self.type)
            words.append(LazyWord(local=value, access=access, array="vals"))
        return tuple(words)

    def counted(self, opened: OpenedLoop, computed: bool) -> Expr:
        """The number of iterations of a loop, if it is needed before the loop."""
        if not computed or len(opened.headers) == 1:
            return opened.count
        emitter = self.emitter
        count = emitter.local("count")
        header = opened.headers[0]
        binders = tuple(
            emitter.local(f"{binder.name}_counted").name
            for binder in opened.binders[: binder_count(header)]
        )
        emitter.put(
            Reduce(target=count.name, header=header, binders=binders, body=(), value=const(1))
        )
        return count

    def inside(
        self, loop: Forall, opened: OpenedLoop, scope: PatternScope, *, writes: bool
    ) -> PatternScope:
        """The scope inside a loop: positions and segments of operands, position in the result."""
        variable, operands = loop.variable, self.operands
        states = dict(scope.states)
        used = set(reads_of(loop))
        for access, state in scope.states.items():
            if access not in used or variable not in access.variables:
                continue
            if access in opened.numbers:
                optional = access in opened.optional
                state = operands.at_entry(state, opened.numbers[access], optional=optional)
                values = [word.local for word in opened.lazy if word.array == "vals"]
                state = replace(state, value=values[0] if values else None)
            else:
                state = operands.at_coordinate(state, opened.coordinate)
            states[access] = operands.settle(state)
        result = scope.result
        if writes:
            assert scope.writer is not None
            assert result is not None
            shared = scope.writer.plan.levels[result.level].shared
            place = None if shared is None else states[shared].position
            result = scope.writer.inside(result, opened.coordinate, opened.number, place)
        return replace(
            scope,
            coordinates={**scope.coordinates, variable: opened.coordinate},
            states=states,
            result=result,
        )


class _PatternValues(StoredValues[Expr, BitSet]):
    """The value of an expression where all its variables have coordinates.

    A condition is the set of operand coordinates at which it holds, so that facts implied by the
    enclosing loops are not tested again.
    """

    semiring = PLUS_TIMES
    never: BitSet = frozenset()

    def __init__(self, scope: PatternScope, operands: PatternOperands) -> None:
        self.scope, self.operands = scope, operands
        self.loaded: dict[Access, StoredValue[Expr, BitSet]] = {}
        self.positions: dict[str, Expr] = {}

    def number(self, number: float | int) -> Expr:
        return const(number, self.operands.type)

    def apply(self, operator: Operator, *operands: Expr) -> Expr:
        if isinstance(operator, Op):
            return apply(operator, *operands)
        return operator.expression(*operands)

    def both(self, one: BitSet, other: BitSet) -> BitSet:
        return intersected(one, other)

    def either(self, one: BitSet, other: BitSet) -> BitSet:
        return united(one, other)

    def zero_unless(self, where: BitSet, value: Expr) -> Expr:
        if not value.type.is_float:  # a product of integers with a zero is zero
            return value
        if any(is_inside(visited, where) for visited in self.scope.visited):
            return value
        order = list(self.positions)
        terms = sorted(sorted(map(order.index, term)) for term in where)
        stored = [
            reduce(lambda a, b: a & b, (is_there(self.positions[order[n]]) for n in term))
            for term in terms
        ]
        condition = reduce(lambda a, b: a | b, stored)
        zero = const(0.0, value.type)
        return Select(condition=condition, if_true=value, if_false=zero, type=value.type)

    def read(self, access: Access) -> StoredValue[Expr, BitSet]:
        if access.tensor in self.scope.scalars:
            return StoredValue(self.scope.scalars[access.tensor], None)
        if access not in self.loaded:
            self.loaded[access] = self._load(access)
        return self.loaded[access]

    def _load(self, access: Access) -> StoredValue[Expr, BitSet]:
        state = self.scope.states.get(access)
        value = self.operands.value(access, state, self.scope.coordinates)
        if state is None or not state.optional:
            return StoredValue(value, None)
        self.positions[print_expression(access)] = state.position
        return StoredValue(value, set_of(Leaf(access=access)))
