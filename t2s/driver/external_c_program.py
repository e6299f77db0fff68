"""The text of a program in C: functions, a main that calls them, data, and a Makefile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2s.backends.text.identifiers import Identifiers, plain
from t2s.capability.description import ExternalFunction, LibraryOf
from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Const, Expr
from t2s.core.location import SourceLocation
from t2s.core.names import one_line
from t2s.core.types import Type
from t2s.driver.external_c_library import HELPERS, headers_of, makefile
from t2s.driver.plan_inputs import PlanBinding, Value
from t2s.libraries.by_address import LoopedCalls
from t2s.libraries.finding import located
from t2s.loops.c_text import GROWING, HEAD, CFunction, c_function, c_number, c_type
from t2s.loops.call_nest import (
    FUNCTION,
    STATUS,
    NestedCall,
    TensorAddress,
    TermAddress,
    TermValue,
    nest_of,
)
from t2s.loops.ir import LoopArray
from t2s.loops.loop_stage import count_of, level_array, values_of
from t2s.loops.lower import lower_to_loops
from t2s.loops.machine import machine_code
from t2s.loops.stage_memory import StageMemory, StageRun, loop_stage, names_read, ready
from t2s.loops.whole_program import bind_values
from t2s.sparse_repr.concrete.ir import result_of
from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.notation.types import TYPES
from t2s.sparse_repr.semiring import Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor

Array = np.ndarray[Any, Any]


class CProgram:
    """What has been written so far; arrays are found in memory by where they are here."""

    def __init__(self, semiring: Semiring, type: Type) -> None:
        self.semiring, self.type = semiring, type
        self.data: dict[str, Array] = {}
        self.functions: list[str] = []
        self.main: list[str] = []
        self.libraries: list[LibraryOf] = []
        self.prototypes: dict[str, str] = {}
        self.known: list[tuple[Array, str]] = []
        self.computed: set[str] = set()
        # words of this program, and of C, begin otherwise
        self.names = Identifiers(lambda wanted: f"m_{plain(wanted)}")
        self.steps = 0
        self.grows = False

    # -- memory -----------------------------------------------------------------------------------

    def add_input(self, name: str, value: Value) -> None:
        """An input as data."""
        if isinstance(value, SparseTensor):
            self._load(f"{name}_values", value.values)
            for level, arrays in enumerate(value.levels):
                for array, numbers in arrays.items():
                    self._load(f"{name}_{array}{level}", numbers)
        else:
            self._load(f"{name}_values", value)

    def _load(self, wanted: str, array: Array) -> str:
        """An array of data, which main reads."""
        name = self.names.fresh(wanted)
        file = f"{name[2:]}.bin"
        self.data[file] = array
        self._line(
            f'{_element(array)} *{name} = load(folder, "{file}", sizeof *{name}, {array.size});'
        )
        self.known.append((array, name))
        return name

    def add_result(self, name: str, array: Array) -> str:
        """A dense array of zeros that a step writes."""
        made = self._room(f"{name}_values", array)
        self.known.append((array, made))
        self.computed.add(name)
        return made

    def _room(self, wanted: str, array: Array) -> str:
        name = self.names.fresh(wanted)
        kind = _element(array)
        self._line(f"{kind} *{name} = room(sizeof *{name}, {array.size});")
        if self.semiring.zero != 0 and array.size and array.dtype == self.type.numpy:
            zero = c_number(self.semiring.zero, self.type)
            self._line(f"for (int64_t at = 0; at < {array.size}; at++)")
            self._line(f"    {name}[at] = {zero};")
        return name

    def _pointer(self, array: Array) -> str | None:
        """The address of the first element of a view, as C finds it."""
        if not array.size:
            return "NULL"
        at = array.ctypes.data
        for base, name in self.known:
            offset = at - base.ctypes.data
            if 0 <= offset < base.nbytes:
                return f"{name} + {offset // base.itemsize}" if offset else name
        return None

    def _line(self, text: str) -> None:
        self.main.append(f"    {text}")

    def remark(self, text: str) -> None:
        """A comment."""
        self.main.append(f"    // {one_line(text)}")

    # -- steps ------------------------------------------------------------------------------------

    def add_loops(
        self,
        assignment: Assignment,
        values: Mapping[str, Value],
        binding: PlanBinding,
        location: SourceLocation | None,
    ) -> SparseTensor:
        """The loops of a statement, and its result."""
        bound = bind_values(assignment, values, binding.extents, binding.type)
        program = bound.program
        sources = {view.name: view.source for view in program.views}
        made: SparseTensor | None = None
        tensors: dict[str, Any] = {**bound.binding.tensors, **bound.arrays}
        for stage in program.stages:
            name = result_of(stage).tensor
            run = StageRun(
                statement=stage,
                operands=tensors,
                extents=binding.extents,
                writes=program.format_of(name),
                type=binding.type,
                semiring=program.semiring,
                location=location,
            )
            read = {one: ready(tensors[one], binding.type) for one in names_read(stage)}
            if name in sources or loop_stage(run, read).writes != run.writes:
                source = sources.get(name, name)
                if source in {access.tensor for access in accesses(assignment.value)}:
                    raise _read_and_written(source, location)
                raise _converted(source, f"as {assignment.tensor(source).format}", location)
            for one, operand in read.items():
                self._find_operand(one, sources.get(one, one), operand, location)
            made = self._stage(run, read)
            tensors[name] = made
            self.computed.add(name)
            if any(view.source == name for view in program.views):
                raise _converted(name, "and read in another order", location)
        if made is None:
            raise InternalError("a program has no stage")
        return made

    def _find_operand(
        self, name: str, source: str, operand: Any, location: SourceLocation | None
    ) -> None:
        """Data for an operand that is another view of an input; what is computed is where it is."""
        arrays = [operand] if isinstance(operand, np.ndarray) else [operand.values]
        if not isinstance(operand, np.ndarray):
            arrays += [array for level in operand.levels for array in level.values()]
        for array in arrays:
            if self._pointer(array) is None:
                if source in self.computed:
                    raise _converted(source, f"and read as {name}", location)
                self._load(f"{name}_part", np.ascontiguousarray(array))
                self.known[-1] = (array, self.known[-1][1])

    def _stage(self, run: StageRun, read: Mapping[str, Any]) -> SparseTensor:
        """A stage: its function, a call of it, and its result here."""
        stage = loop_stage(run, read)
        lowered = lower_to_loops(stage)
        memory = StageMemory(run, stage, lowered, read)
        self.steps += 1
        function = c_function(lowered.function, f"loops{self.steps}")
        self.functions.append(function.text)
        self.grows = self.grows or bool(lowered.function.groups)
        given, places = self._arguments(function, memory.arrays, memory.numbers)
        self._line(f"if ({function.name}({', '.join(given)}))")
        self._line(f'    stop("{function.name}", 1);')
        memory.call(machine_code(lowered.function).run)
        made = memory.result()
        self._keep_result(memory, made, places)
        return made

    def _arguments(
        self, function: CFunction, arrays: Mapping[str, Array], numbers: Mapping[str, int]
    ) -> tuple[list[str], dict[str, str]]:
        """The arguments of a call, and the variables of those that are made for it."""
        given, places = [], {}
        for one in function.parameters:
            name = one.argument.name
            if isinstance(one.argument, LoopArray):
                found = self._pointer(arrays[name])
                if found is None or one.argument.grows:
                    found = places[name] = self._room(name, arrays[name])
            elif one.by_address:
                found = places[name] = self.names.fresh(name)
                self._line(f"int64_t {found} = {numbers[name]};")
            else:
                found = f"INT64_C({numbers[name]})"
            given.append(f"&{found}" if one.by_address else found)
        return given, places

    def _keep_result(
        self, memory: StageMemory, made: SparseTensor, places: Mapping[str, str]
    ) -> None:
        """Where the arrays of a result are, here and there."""
        name = memory.name
        self.known.append((made.values, places[values_of(name)]))
        above = 1
        for level, (kind, extent) in enumerate(
            zip(made.format.levels, memory.extents, strict=True)
        ):
            if kind.full:
                above *= extent
                continue
            pos, crd = (places[level_array(name, level, array)] for array in ("pos", "crd"))
            first = all(one.full for one in made.format.levels[:level])
            if first:
                self._line(f"for (int64_t at = 1; at <= {above}; at++)")
                self._line(f"    if ({pos}[at] < {pos}[at - 1])")
                self._line(f"        {pos}[at] = {pos}[at - 1];")
            count, length = places[count_of(name, level)], len(made.levels[level]["crd"])
            self._line(f"if ({count} != {length})")
            self._line(f'    stop("{plain(name)}, a result of another size,", {count});')
            self.known.append((made.levels[level]["pos"], pos))
            self.known.append((made.levels[level]["crd"], crd))

    def add_calls(self, function: ExternalFunction, calls: LoopedCalls) -> None:
        """Loops around calls of a function of a library."""
        library = located(calls.library)
        if library not in self.libraries:
            self.libraries.append(library)
        if not headers_of(library):
            self.prototypes.setdefault(calls.nest.symbol, _prototype(calls.nest))
        self.steps += 1
        made = c_function(nest_of(calls.nest), f"calls{self.steps}", [FUNCTION])
        self.functions.append(made.text)
        given, places = self._arguments(made, calls.arrays, {**calls.numbers, STATUS: 0})
        names = [one.argument.name for one in made.parameters]
        for name, array in calls.arrays.items():
            if name.startswith("term ") and name in names:
                listed = c_number(array[0].item(), _type_of_term(calls.nest, name))
                self._line(f"{places[name]}[0] = {listed};")
        self._line(f"if ({made.name}({', '.join(given)}))")
        self._line(f'    stop("{plain(function.name)}", {places[STATUS]});')

    # -- the end ----------------------------------------------------------------------------------

    def check(self, name: str, value: Value) -> None:
        """Compare the result with what is expected."""
        self.remark("the result, and what is expected")
        self._line("int wrong = 0;")
        values = value.values if isinstance(value, SparseTensor) else value
        self._compare(name, values)
        if isinstance(value, SparseTensor):
            for arrays in value.levels:
                for array in arrays.values():
                    self._compare(name, array)
        self._line(f'puts(wrong ? "{plain(name)} is wrong" : "{plain(name)} is right");')
        self._line("return wrong;")

    def _compare(self, name: str, array: Array) -> None:
        found = self._pointer(array)
        if found is None:
            raise InternalError(f"nobody has written {name}")
        if not array.size:
            return
        base = next(one for one, other in self.known if other == found)
        expected = self._load(f"{name}_expected", np.array(base.reshape(-1)))
        self.known.pop()
        one, other = f"{found}[at]", f"{expected}[at]"
        same = f"{one} == {other}"
        if base.dtype.kind == "f":
            bound = "1e-4" if base.dtype.itemsize == 4 else "1e-10"
            same += f" || fabs({one} - {other}) <= {bound} * (1 + fabs({other}))"
            same += f" || ({one} != {one} && {other} != {other})"
        self._line(f"for (int64_t at = 0; at < {base.size} && !wrong; at++)")
        self._line(f"    if (!({same}))")
        self._line(f'        wrong = differ("{plain(name)}", at);')

    def texts(self, result: str) -> dict[str, str]:
        """The files of text by name."""
        headers = [one for library in self.libraries for one in headers_of(library)]
        lines = [f"// {one_line(result)}, by external functions and loops: written by t2s"]
        lines += [f'#include "{one}"' for one in dict.fromkeys(headers)]
        lines += [HEAD, *self.prototypes.values(), "", HELPERS]
        lines += [GROWING] if self.grows else []
        lines += self.functions
        lines += ["int main(int count, char **words)", "{"]
        lines += ['    const char *folder = count > 1 ? words[1] : ".";', *self.main, "}", ""]
        return {"plan.c": "\n".join(lines), "Makefile": makefile(self.libraries)}


def _type_of_term(nest: NestedCall, name: str) -> Type:
    for one in nest.arguments:
        if isinstance(one, TermAddress) and f"term {one.number}" == name:
            return one.type
    raise InternalError(f"{name} is no term of {nest.symbol}")


def _prototype(nest: NestedCall) -> str:
    """A declaration for a library without a header."""
    types = []
    for one in nest.arguments:
        match one:
            case TensorAddress() | TermAddress():
                types.append("void *")
            case TermValue(type=type) | Const(type=type):
                types.append(c_type(type))
            case Expr():
                raise InternalError("an argument is neither known nor an address")
    returns = "void" if nest.returns is None else c_type(nest.returns)
    return f"extern {returns} {nest.symbol}({', '.join(types) or 'void'});"


def _element(array: Array) -> str:
    """The type of C of the elements of an array."""
    return c_type(next(type for type in TYPES if type.numpy == array.dtype))


def _read_and_written(name: str, location: SourceLocation | None) -> UserError:
    return UserError(
        f"{name} is read and written, and loops in C have one place for it",
        location=location,
        expected="a result that the statement does not read",
        hint="a result of another name",
    )


def _converted(name: str, how: str, location: SourceLocation | None) -> UserError:
    return UserError(
        f"{name} is not stored as the loops of C walk it",
        location=location,
        expected="results and workspaces in the order of the loops, of dense and compressed levels",
        given=f"{name} {how}",
    )
