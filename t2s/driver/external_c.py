"""Printing a plan as C: sources, a Makefile, and a main that reads inputs and checks its result.

The program is for inputs of the shapes that it is made with: tiles and strides are constants.  The
expected result is computed by the statements of the steps, without any library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from t2s.backends.text.identifiers import Identifiers, plain
from t2s.capability.description import ExternalFunction, LibraryOf
from t2s.capability.ir import print_condition
from t2s.capability.operands import check_property
from t2s.capability.refusals import wrong_type
from t2s.capability.tiles import condition_holds, tiles_for
from t2s.core.errors import InternalError, UserError
from t2s.core.expr import Const, Expr
from t2s.core.files import write_file, write_texts
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import one_line
from t2s.core.types import Type
from t2s.core.validate import checked_kind
from t2s.driver.external_plan import ExternalPlan
from t2s.driver.plan_inputs import PlanBinding, Value, bind_plan, dense_view, is_dense, run_loops
from t2s.libraries.calling import located
from t2s.libraries.compiled_calls import LoopedCalls, LoopedMapping, looped_mapping
from t2s.libraries.running import operand_extents
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
from t2s.loops.lower import lower_to_loops
from t2s.loops.machine import machine_code
from t2s.loops.running import StageMemory, StageRun, bind_values, loop_stage, names_read, ready
from t2s.loops.tensor_access import count_of, level_array, values_of
from t2s.plan.ir import (
    CallStep,
    CheckStep,
    ConvertStep,
    LoopsStep,
    MoveStep,
    PlanProgram,
    Step,
    print_step,
)
from t2s.sparse_repr.concrete.ir import result_of
from t2s.sparse_repr.notation.ir import Access, Assignment, TensorDeclaration, accesses
from t2s.sparse_repr.notation.types import TYPES
from t2s.sparse_repr.semiring import Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor

Array = np.ndarray[Any, Any]


def emit_plan(
    plan: ExternalPlan, directory: str, inputs: Mapping[str, Any], *, type: Type | None = None
) -> tuple[Path, ...]:
    """Write a plan as C into a folder; see ``t2s.external.emit``."""
    checked_kind("the plan", plan, ExternalPlan, "what sparse.compile makes of a plan's schedule")
    binding = bind_plan(plan.assignment, inputs, type)
    if binding.type.is_float and binding.type.bits == 16:
        raise UserError(
            "float16 is not a type of C",
            location=user_location(),
            expected="type=Float(32), for example",
        )
    nothing = next((name for name, extent in binding.extents.items() if not extent), None)
    if nothing is not None:
        raise UserError(
            f"the extent of {nothing} is 0, and C has no arrays of nothing",
            location=user_location(),
            expected="inputs with elements",
        )
    for step in plan.program.calls:
        library_of(step.mapping.function, step.location)
    in_c = _PlanInC(plan.program, binding)
    in_c.run()
    folder = Path(directory)
    files = write_texts(folder, in_c.program.texts(plan.program.result), user_location())
    paths = list(files)
    for name, array in in_c.program.data.items():
        write_file(folder / name, np.ascontiguousarray(array).tobytes())
        paths.append(folder / name)
    return tuple(paths)


class _PlanInC:
    def __init__(self, plan: PlanProgram, binding: PlanBinding) -> None:
        self.plan, self.binding = plan, binding
        self.program = CProgram(plan.assignment.semiring, binding.type)
        self.values: dict[str, Value] = {
            name: np.ascontiguousarray(operand) if isinstance(operand, np.ndarray) else operand
            for name, operand in binding.values.items()
        }
        for name, value in self.values.items():
            self.program.add_input(name, value)

    def run(self) -> None:
        for number, step in enumerate(self.plan.steps, 1):
            self.program.remark(f"{number}. {print_step(step)}")
            self._step(step)
        self.program.check(self.plan.result, self.values[self.plan.result])

    def _step(self, step: Step) -> None:
        match step:
            case CheckStep(tensor=name, property=property):
                check_property(name, property, dense_view(self.values[name]), step.location)
                self.program.remark("checked as this was made")
            case ConvertStep():
                self._statement(self._conversion(step), None)
            case LoopsStep(assignment=assignment):
                self._statement(assignment, assignment.location)
            case CallStep():
                self._call(step)
            case MoveStep():
                raise InternalError("data moves for hardware only, whose calls are refused")
            case _:
                assert_never(step)

    def _conversion(self, step: ConvertStep) -> Assignment:
        """The copy statement by which loops compute a conversion."""
        names = tuple(f"i{mode}" for mode in range(len(step.modes)))
        source = self.values[step.source]
        format = self.plan.format_of(step.source)
        for mode, name in enumerate(names):
            self.binding.extents[name] = source.shape[step.modes[mode]]
        read = [""] * len(names)
        for mode, own in enumerate(step.modes):
            read[own] = names[mode]
        return Assignment(
            result=Access(tensor=step.target, variables=names),
            value=Access(tensor=step.source, variables=tuple(read)),
            tensors=(
                TensorDeclaration(name=step.target, format=step.format),
                TensorDeclaration(name=step.source, format=format),
            ),
            semiring=self.plan.assignment.semiring,
        )

    def _statement(self, assignment: Assignment, location: SourceLocation | None) -> None:
        result = self.program.add_loops(assignment, self.values, self.binding, location)
        self.values[assignment.result.tensor] = (
            dense_view(result) if is_dense(result.format) else result
        )

    def _call(self, step: CallStep) -> None:
        mapping, binding = step.mapping, self.binding
        function = mapping.function
        types = function.capability.types
        if types and binding.type not in types:
            raise wrong_type(mapping.part, function, binding.type, step.location)
        operands = {name: self.values[source] for name, source in step.reads}
        extents = operand_extents(mapping, operands)
        tiles: Any = ()
        if not condition_holds(mapping, extents):
            tiles = tiles_for(mapping, extents, pad=step.pads) if step.tiles else None
        if not all(extents.values()) or (tiles is None and step.falls_back):
            self._statement(step.meaning, step.location)
            return
        if tiles is None:
            raise UserError(
                f"{function.name} is not for these extents",
                location=step.location,
                expected=print_condition(mapping.condition),
            )
        zero = self.plan.assignment.semiring.zero
        shape = [extents[name] for name in mapping.fixed_free]
        for mode in mapping.result:
            count = 1
            for name in mode:
                count *= extents[name]
            shape.append(count)
        overwritten = function.capability.overwritten
        if overwritten is None:
            target = np.full(shape, zero, binding.kind)
            self.program.add_result(step.target, target)
        else:
            self._copy(step, overwritten)
            target = dense_view(self.values[step.target]).reshape(shape)
        calls = looped_mapping(
            LoopedMapping(
                mapping=mapping,
                operands=operands,
                extents=extents,
                tiles=tiles,
                target=target,
                semiring=self.plan.assignment.semiring,
                location=step.location,
            ),
            fewest=1,
        )
        if calls is None:
            raise UserError(
                f"the calls of {function.name} are not printed as C",
                location=step.location,
                expected="dense operands where they are, an interface of addresses and numbers, "
                "and a result that it writes where it is",
                given=print_step(step),
            )
        for call in calls:
            self.program.add_calls(function, call)
        result = run_loops(step.meaning, self.values, binding.extents, binding.type)
        target.reshape(result.shape)[...] = dense_view(result)
        self.values[step.target] = target.reshape(result.shape)

    def _copy(self, step: CallStep, overwritten: str) -> None:
        """Copy the operand that a function overwrites into its result."""
        source = dict(step.reads)[overwritten]
        read = step.mapping.operand(overwritten).access
        tensors = (
            TensorDeclaration(name=step.target, format=self.plan.format_of(step.target)),
            TensorDeclaration(name=source, format=self.plan.format_of(source)),
        )
        self._statement(
            replace(step.meaning, value=replace(read, tensor=source), tensors=tensors),
            step.location,
        )


# Libraries in C: headers, paths and flags, a Makefile, and helpers of main.

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9_./+-]+\.h")
_SAFE_PATH = re.compile(r"[A-Za-z0-9_./+=:,@%~-]+( [A-Za-z0-9_./+=:,@%~-]+)*")

HELPERS = """\
static void *load(const char *folder, const char *name, size_t size, int64_t count)
{
    char path[4096];
    char more;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    void *made = malloc(count ? size * (size_t)count : 1);
    if (!file || !made || fread(made, size, (size_t)count, file) != (size_t)count ||
        fread(&more, 1, 1, file)) {
        fprintf(stderr, "%s does not have %" PRId64 " values\\n", path, count);
        exit(2);
    }
    fclose(file);
    return made;
}

static void *room(size_t size, int64_t count)
{
    void *made = calloc(count ? (size_t)count : 1, size);
    if (!made) {
        fprintf(stderr, "there is no memory for %" PRId64 " values\\n", count);
        exit(2);
    }
    return made;
}

static void stop(const char *what, int64_t status)
{
    fprintf(stderr, "%s failed with %" PRId64 "\\n", what, status);
    exit(2);
}

static int differ(const char *what, int64_t place)
{
    printf("%s differs at %" PRId64 "\\n", what, place);
    return 1;
}
"""


def headers_of(library: LibraryOf) -> list[str]:
    """The headers among the includes of a library; the other includes are folders."""
    return [include for include in library.includes if _HEADER.fullmatch(include)]


def library_of(function: ExternalFunction, location: SourceLocation | None) -> LibraryOf:
    """The library of a function.  Raises ``UserError`` for one that C cannot call."""

    def refused(what: str, expected: str, given: str = "") -> UserError:
        return UserError(
            what,
            location=location,
            expected=expected,
            given=given or None,
        )

    library = function.library
    if function.hardware is not None:
        raise refused(
            f"{function.name} is hardware, whose calls are simulated: no program calls it",
            "a function of a library, described with call= and library=",
        )
    if function.call is None or library is None:
        raise refused(
            f"{function.name} is not called by C: it is a function in Python",
            "a function of a library, described with call= and library=",
        )
    if library.files:
        library = located(library)
    if not library.path and not (library.library_paths or library.flags):
        raise refused(
            f"{function.name} is not called by C: {library.name} has no file to link",
            "a library with path=, or with flags= and library_paths=",
            f"capsules of {library.capsules}" if library.capsules else library.name,
        )
    texts = [library.path, *library.includes, *library.library_paths, *library.flags]
    for text in filter(None, texts):
        if not _SAFE_PATH.fullmatch(text):
            raise refused(
                f"{text!r} of {library.name} does not go into a Makefile",
                "letters, digits, and none of the characters that make or a shell reads",
            )
    if not _SYMBOL.fullmatch(function.call.symbol):
        raise refused(
            f"{function.call.symbol!r} is not a name in C", "letters, digits and underscores"
        )
    return library


def makefile(libraries: Sequence[LibraryOf]) -> str:
    """The Makefile, with the paths and flags of the descriptions."""
    includes, links, flags = [], [], []
    for library in libraries:
        includes += [
            f"-I'{include}'" for include in library.includes if not _HEADER.fullmatch(include)
        ]
        flags += [f"'{flag}'" for flag in library.flags]
        for path in library.library_paths:
            links += [f"-L'{path}'", f"-Wl,-rpath,'{path}'"]
        if "/" in library.path:
            folder = library.path.rpartition("/")[0] or "/"
            links += [f"'{library.path}'", f"-Wl,-rpath,'{folder}'"]
        elif library.path:
            links.append(f"'-l:{library.path}'")
    more = " ".join(dict.fromkeys(includes))
    return (
        "CC ?= cc\n"
        "CFLAGS ?= -O2\n"
        f"override CFLAGS += -std=gnu11 -fwrapv -ffp-contract=off {more}".rstrip()
        + f"\nFLAGS = {' '.join(dict.fromkeys(flags))}".rstrip()
        + f"\nLINKED = {' '.join(dict.fromkeys(links))}".rstrip()
        + "\n\nplan: plan.c\n"
        "\t$(CC) $(CFLAGS) -o $@ plan.c $(LINKED) $(FLAGS) -lm\n\n"
        "run: plan\n\t./plan\n\n"
        "clean:\n\trm -f plan\n\n"
        ".PHONY: run clean\n"
    )


# The text of a program in C: functions, a main that calls them, data, and a Makefile.


class CProgram:
    """The program so far.  Arrays of C are identified by the addresses of the arrays here."""

    def __init__(self, semiring: Semiring, type: Type) -> None:
        self.semiring, self.type = semiring, type
        self.data: dict[str, Array] = {}
        self.functions: list[str] = []
        self.main: list[str] = []
        self.libraries: list[LibraryOf] = []
        self.prototypes: dict[str, str] = {}
        self.known: list[tuple[Array, str]] = []
        self.computed: set[str] = set()
        # a prefix that no name of this program, and no keyword of C, has
        self.names = Identifiers(lambda wanted: f"m_{plain(wanted)}")
        self.steps = 0
        self.grows = False

    # -- memory -----------------------------------------------------------------------------------

    def add_input(self, name: str, value: Value) -> None:
        """Add an input as data."""
        if isinstance(value, SparseTensor):
            self._load(f"{name}_values", value.values)
            for level, arrays in enumerate(value.levels):
                for array, numbers in arrays.items():
                    self._load(f"{name}_{array}{level}", numbers)
        else:
            self._load(f"{name}_values", value)

    def _load(self, wanted: str, array: Array) -> str:
        """Add an array of data, which main reads from a file."""
        name = self.names.fresh(wanted)
        file = f"{name[2:]}.bin"
        self.data[file] = array
        self._line(
            f'{_element(array)} *{name} = load(folder, "{file}", sizeof *{name}, {array.size});'
        )
        self.known.append((array, name))
        return name

    def add_result(self, name: str, array: Array) -> str:
        """Add a dense array of zeros that a step writes."""
        pointer = self._room(f"{name}_values", array)
        self.known.append((array, pointer))
        self.computed.add(name)
        return pointer

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
        """The C expression for the address of the first element of a view."""
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
        """Add a comment."""
        self.main.append(f"    // {one_line(text)}")

    # -- steps ------------------------------------------------------------------------------------

    def add_loops(
        self,
        assignment: Assignment,
        values: Mapping[str, Value],
        binding: PlanBinding,
        location: SourceLocation | None,
    ) -> SparseTensor:
        """Add the loops of a statement; returns its result."""
        bound = bind_values(assignment, values, binding.extents, binding.type)
        program = bound.program
        sources = {view.name: view.source for view in program.views}
        result: SparseTensor | None = None
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
            read = {
                operand_name: ready(tensors[operand_name], binding.type)
                for operand_name in names_read(stage)
            }
            if name in sources or loop_stage(run, read).writes != run.writes:
                source = sources.get(name, name)
                if source in {access.tensor for access in accesses(assignment.value)}:
                    raise _read_and_written(source, location)
                raise _converted(source, f"as {assignment.tensor(source).format}", location)
            for operand_name, operand in read.items():
                self._find_operand(
                    operand_name, sources.get(operand_name, operand_name), operand, location
                )
            result = self._stage(run, read)
            tensors[name] = result
            self.computed.add(name)
            if any(view.source == name for view in program.views):
                raise _converted(name, "and read in another order", location)
        if result is None:
            raise InternalError("a program has no stage")
        return result

    def _find_operand(
        self, name: str, source: str, operand: Any, location: SourceLocation | None
    ) -> None:
        """Add data for an operand that is not in memory yet: another view of an input."""
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
        """Add the function of a stage and a call of it; returns its result, computed here."""
        stage = loop_stage(run, read)
        lowered = lower_to_loops(stage)
        memory = StageMemory(run, stage, lowered, read)
        self.steps += 1
        function = c_function(lowered.function, f"loops{self.steps}")
        self.functions.append(function.text)
        self.grows = self.grows or bool(lowered.function.groups)
        arguments, places = self._arguments(function, memory.arrays, memory.numbers)
        self._line(f"if ({function.name}({', '.join(arguments)}))")
        self._line(f'    stop("{function.name}", 1);')
        memory.call(machine_code(lowered.function).run)
        result = memory.result()
        self._keep_result(memory, result, places)
        return result

    def _arguments(
        self, function: CFunction, arrays: Mapping[str, Array], numbers: Mapping[str, int]
    ) -> tuple[list[str], dict[str, str]]:
        """The arguments of a call, and the declarations of those that are made for it."""
        arguments, places = [], {}
        for parameter in function.parameters:
            name = parameter.argument.name
            if isinstance(parameter.argument, LoopArray):
                argument = self._pointer(arrays[name])
                if argument is None or parameter.argument.grows:
                    argument = places[name] = self._room(name, arrays[name])
            elif parameter.by_address:
                argument = places[name] = self.names.fresh(name)
                self._line(f"int64_t {argument} = {numbers[name]};")
            else:
                argument = f"INT64_C({numbers[name]})"
            arguments.append(f"&{argument}" if parameter.by_address else argument)
        return arguments, places

    def _keep_result(
        self, memory: StageMemory, result: SparseTensor, places: Mapping[str, str]
    ) -> None:
        """Remember which arrays of C hold the arrays of a result."""
        name = memory.name
        self.known.append((result.values, places[values_of(name)]))
        above = 1
        for level, (kind, extent) in enumerate(
            zip(result.format.levels, memory.extents, strict=True)
        ):
            if kind.full:
                above *= extent
                continue
            pos, crd = (places[level_array(name, level, array)] for array in ("pos", "crd"))
            first = all(outer.full for outer in result.format.levels[:level])
            if first:
                self._line(f"for (int64_t at = 1; at <= {above}; at++)")
                self._line(f"    if ({pos}[at] < {pos}[at - 1])")
                self._line(f"        {pos}[at] = {pos}[at - 1];")
            count, length = places[count_of(name, level)], len(result.levels[level]["crd"])
            self._line(f"if ({count} != {length})")
            self._line(f'    stop("{plain(name)}, a result of another size,", {count});')
            self.known.append((result.levels[level]["pos"], pos))
            self.known.append((result.levels[level]["crd"], crd))

    def add_calls(self, function: ExternalFunction, calls: LoopedCalls) -> None:
        """Add loops around calls of a function of a library."""
        library = located(calls.library)
        if library not in self.libraries:
            self.libraries.append(library)
        if not headers_of(library):
            self.prototypes.setdefault(calls.nest.symbol, _prototype(calls.nest))
        self.steps += 1
        looped = c_function(nest_of(calls.nest), f"calls{self.steps}", [FUNCTION])
        self.functions.append(looped.text)
        arguments, places = self._arguments(looped, calls.arrays, {**calls.numbers, STATUS: 0})
        names = [parameter.argument.name for parameter in looped.parameters]
        for name, array in calls.arrays.items():
            if name.startswith("term ") and name in names:
                listed = c_number(array[0].item(), _type_of_term(calls.nest, name))
                self._line(f"{places[name]}[0] = {listed};")
        self._line(f"if ({looped.name}({', '.join(arguments)}))")
        self._line(f'    stop("{plain(function.name)}", {places[STATUS]});')

    # -- the end ----------------------------------------------------------------------------------

    def check(self, name: str, value: Value) -> None:
        """Add the comparison of the result with the expected one."""
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
        pointer = self._pointer(array)
        if pointer is None:
            raise InternalError(f"nobody has written {name}")
        if not array.size:
            return
        base = next(one for one, other in self.known if other == pointer)
        expected = self._load(f"{name}_expected", np.array(base.reshape(-1)))
        self.known.pop()
        one, other = f"{pointer}[at]", f"{expected}[at]"
        same = f"{one} == {other}"
        if base.dtype.kind == "f":
            bound = "1e-4" if base.dtype.itemsize == 4 else "1e-10"
            same += f" || fabs({one} - {other}) <= {bound} * (1 + fabs({other}))"
            same += f" || ({one} != {one} && {other} != {other})"
        self._line(f"for (int64_t at = 0; at < {base.size} && !wrong; at++)")
        self._line(f"    if (!({same}))")
        self._line(f'        wrong = differ("{plain(name)}", at);')

    def texts(self, result: str) -> dict[str, str]:
        """The text files by name."""
        headers = [header for library in self.libraries for header in headers_of(library)]
        lines = [f"// {one_line(result)}, by external functions and loops: written by t2s"]
        lines += [f'#include "{header}"' for header in dict.fromkeys(headers)]
        lines += [HEAD, *self.prototypes.values(), "", HELPERS]
        lines += [GROWING] if self.grows else []
        lines += self.functions
        lines += ["int main(int count, char **words)", "{"]
        lines += ['    const char *folder = count > 1 ? words[1] : ".";', *self.main, "}", ""]
        return {"plan.c": "\n".join(lines), "Makefile": makefile(self.libraries)}


def _type_of_term(nest: NestedCall, name: str) -> Type:
    for argument in nest.arguments:
        if isinstance(argument, TermAddress) and f"term {argument.number}" == name:
            return argument.type
    raise InternalError(f"{name} is not a term of {nest.symbol}")


def _prototype(nest: NestedCall) -> str:
    """A declaration for a library without a header."""
    types = []
    for argument in nest.arguments:
        match argument:
            case TensorAddress() | TermAddress():
                types.append("void *")
            case TermValue(type=type) | Const(type=type):
                types.append(c_type(type))
            case Expr():
                raise InternalError("an argument is neither known nor an address")
    returns = "void" if nest.returns is None else c_type(nest.returns)
    return f"extern {returns} {nest.symbol}({', '.join(types) or 'void'});"


def _element(array: Array) -> str:
    """The C type of the elements of an array."""
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
