"""Load a design file: the design, and the inputs that the file defines for it.

A design is a Func, several output Funcs together, a graph, or a kernel or program of index
notation, either at module level or returned by the file's function ``design``.
"""

from __future__ import annotations

import inspect
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import t2s
from t2s.core.errors import T2SError, UserError
from t2s.core.files import is_file, is_folder
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.func_design import is_sparse
from t2s.driver.statement_program import Program
from t2s.func.collect import needed_funcs
from t2s.graph.graph import Graph, TensorRole
from t2s.sparse_repr.notation.ir import Access, accesses
from t2s.sparse_repr.notation.symbols import Tensor
from t2s.sparse_repr.representation.product_definition import definition_of

DESIGN, INPUTS = "design", "inputs"
DENSITY = 0.1
"""Share of the elements of a random sparse operand that are not zero."""

RANDOM_SIZE = 64
"""Rows and columns of a random sparse operand without ``--size``."""

Inputs = dict[str, Any]
Funcs = tuple[t2s.Func, ...]


@dataclass(frozen=True, kw_only=True)
class LoadedDesign:
    """A design: output Funcs, a graph, a kernel or a program; and how the file makes inputs."""

    design: Funcs | Graph | Kernel | Program
    given: Callable[[int], Inputs] = field(default=lambda seed: {})

    @property
    def name(self) -> str:
        """The name of the output folder."""
        match self.design:
            case Graph() as graph:
                return graph.name
            case Kernel() as kernel:
                return kernel.assignment.result.tensor
            case Program() as program:
                return program.name
            case funcs:
                return "_".join(func.name for func in funcs)


def find_design(file: Path, name: str | None) -> LoadedDesign:
    """Execute a design file and return its design; ``name`` chooses one of several.

    Raises ``UserError`` if the file is missing, fails, or defines no design.
    """
    values = executed(file)
    inputs = _given(file, values.get(INPUTS))
    designs = _designs(values)
    if not designs and _is_callable(values.get(DESIGN)):
        designs = _designs({DESIGN: _guarded(file, values[DESIGN])})
    if name is not None:
        if name not in designs:
            raise UserError(
                f"{file} defines no Func {name}",
                expected=", ".join(sorted(designs)) or "a Func at module level",
                given=name,
            )
        return LoadedDesign(design=designs[name], given=inputs)
    funcs = {
        func.name: func for value in designs.values() if isinstance(value, tuple) for func in value
    }
    chosen = _chosen(values.get(DESIGN))
    outputs = chosen or tuple(funcs[name] for name in sorted(funcs.keys() - _read(funcs)))
    if outputs:
        return LoadedDesign(design=outputs, given=inputs)
    if len(designs) != 1 or funcs:
        _refuse(file, bool(funcs), designs, DESIGN in values)
    return LoadedDesign(design=next(iter(designs.values())), given=inputs)


def executed(file: Path) -> dict[str, Any]:
    """The globals of a user's Python file.  Raises ``UserError`` if it is missing or fails."""
    if not is_file(file):
        hint = "give the path of a Python file"
        if is_folder(file):
            raise UserError(f"{file} is a folder", hint=hint)
        raise UserError(f"no such file: {file}", hint=hint)
    values: dict[str, Any] = _guarded(
        file, lambda: runpy.run_path(str(file), run_name="t2s_design")
    )
    return values


def _refuse(file: Path, recurrent: bool, designs: Iterable[str], function: bool) -> NoReturn:
    """Raise the error for a file that defines no design, or several that are not Funcs."""
    others = sorted(designs)
    if others and not recurrent:
        raise UserError(
            f"{file} defines {len(others)} designs that could be run",
            expected="one graph, kernel or program, or Funcs",
            given=", ".join(others),
            hint="choose one with --func",
        )
    raise UserError(
        f"{file} defines 0 Funcs that could be run",
        expected="one Func that no other Func reads",
        given="Funcs that read each other" if recurrent else "no Func with a definition",
        hint="choose one with --func"
        if recurrent
        else f"the function {DESIGN} needs values for all its arguments"
        if function
        else f"or define a function {DESIGN} that returns Funcs, a graph, a kernel or a program",
    )


def _read(funcs: Mapping[str, t2s.Func]) -> set[str]:
    """The Funcs that other Funcs read."""
    return {
        other.name
        for func in funcs.values()
        for other in needed_funcs((func,))
        if other is not func
    }


def _designs(values: Mapping[str, Any]) -> dict[str, Funcs | Graph | Kernel | Program]:
    """The designs among the globals of a module, by the names that select them."""
    designs: dict[str, Funcs | Graph | Kernel | Program] = {}
    for name, value in values.items():
        match value:
            case t2s.Func() if value.written:
                designs[value.name] = (value,)
            case tuple() | list() if value and all(isinstance(v, t2s.Func) for v in value):
                designs |= {func.name: (func,) for func in value if func.written}
            case Graph() | Kernel() | Program():
                designs[name] = value
            case Tensor() if value.definition is not None:
                designs[value.name] = Kernel(value.definition)
    return designs


def _chosen(design: object) -> Funcs:
    """The outputs that a file names by its variable ``design``: a Func, or several in order."""
    funcs = design if isinstance(design, tuple | list) else (design,)
    chosen = tuple(func for func in funcs if isinstance(func, t2s.Func) and func.written)
    return chosen if len(chosen) == len(funcs) else ()


def _is_callable(function: object) -> bool:
    """Whether ``value`` is a function that can be called without arguments."""
    if not callable(function):
        return False
    parameters = inspect.signature(function).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(p.default is not p.empty or p.kind in variable for p in parameters)


def _given(file: Path, inputs: object) -> Callable[[int], Inputs]:
    """The inputs of the file: a dict, or a function with the seed as its argument, or without."""
    if isinstance(inputs, Mapping):
        return lambda seed: dict(inputs)
    if not inspect.isfunction(inputs):
        return lambda seed: {}
    arguments = len(inspect.signature(inputs).parameters)

    def made(seed: int) -> Inputs:
        result = _guarded(file, lambda: inputs(seed) if arguments else inputs())
        if not isinstance(result, Mapping):
            raise UserError(
                f"the function {INPUTS} of {file} gives no inputs",
                expected="a dict of arrays and scalars by name",
                given=repr(result),
            )
        return dict(result)

    return made


def _guarded(file: Path, action: Callable[[], Any]) -> Any:
    """Call code of the file; its exceptions become a ``UserError``."""
    sys.path.insert(0, str(file.resolve().parent))
    try:
        return action()
    except T2SError:
        raise
    except Exception as error:
        raise UserError(
            f"{file} raised {type(error).__name__}: {error}",
            location=_place(error, str(file)),
            hint=f"python {file} shows the whole traceback",
        ) from error
    finally:
        sys.path.pop(0)


def _place(error: Exception, file: str) -> SourceLocation | None:
    """The innermost line of the file in an exception's traceback."""
    if isinstance(error, SyntaxError):
        return SourceLocation(error.filename or file, error.lineno or 1)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file and frame.lineno is not None
    ]
    return SourceLocation(file, lines[-1]) if lines else None


def design_with_inputs(
    file: Path, func: str | None, seed: int, size: int, constants: Mapping[str, int]
) -> tuple[Any, dict[str, Any]]:
    """The design of a file, as all verbs take it, and its inputs: the file's, or random ones."""
    loaded = find_design(file, func)
    inputs = loaded.given(seed)
    match loaded.design:
        case Graph() as graph:
            return graph, graph_inputs(graph, seed, inputs)
        case Kernel() as kernel:
            return kernel, kernel_inputs(kernel, seed, size, inputs)
        case Program() as program:
            return program, program_inputs(file, program, inputs)
        case (product,) if is_sparse(product):
            return product, product_inputs(product, seed, size, inputs)[1]
        case outputs:
            design = outputs[0] if len(outputs) == 1 else outputs
            graph = t2s.lower(design, constants)
            return design, {**constants, **graph_inputs(graph, seed, inputs)}


def graph_inputs(graph: Graph, seed: int, given: Mapping[str, Any]) -> Inputs:
    """The inputs of a graph; random where the file has none."""
    generator = np.random.default_rng(seed)
    inputs: Inputs = {}
    for tensor in (tensor for tensor in graph.tensors if tensor.role is TensorRole.INPUT):
        value = random_values(generator, tensor.type, tensor.shape)
        if tensor.open and tensor.array not in given:
            raise UserError(
                f"{tensor.array} of {graph.name} has no fixed length, so it cannot be random",
                expected=f"a dict {INPUTS} in the file, or a function that returns one",
                given=", ".join(given) or "no inputs",
            )
        inputs[tensor.array] = given.get(tensor.array, value)
    for parameter in graph.parameters:
        value = random_values(generator, parameter.type, ())[()]
        inputs[parameter.name] = given.get(parameter.name, value)
    return inputs


def product_inputs(
    design: t2s.Func, seed: int, size: int, given: Mapping[str, Any]
) -> tuple[Graph, Inputs]:
    """The graph of a product for its matrix, and all inputs; random where the file has none."""
    matrix = definition_of(design).matrix
    chosen = given.get(matrix.name)
    if chosen is None:
        chosen = random_sparse(np.random.default_rng(seed), matrix.type, (size, size))
    stored = {matrix.name: chosen}
    graph, arrays = t2s.lower(design, stored), t2s.representation.structure(design, stored)
    inputs = graph_inputs(graph, seed, {**arrays, **given})
    others = {name: value for name, value in inputs.items() if name not in arrays}
    return graph, {**others, **stored}


def kernel_inputs(kernel: Kernel, seed: int, size: int, given: Mapping[str, Any]) -> Inputs:
    """The operands of a kernel; random ones of extent ``size`` per mode where the file has none."""
    generator = np.random.default_rng(seed)
    extents: dict[str, int] = {}
    operands: dict[str, Access] = {}
    for access in accesses(kernel.assignment.value):
        operands.setdefault(access.tensor, access)
        value: Any = given.get(access.tensor)
        shape = kernel.assignment.tensor(access.tensor).shape or np.shape(value)
        extents.update(zip(access.variables, shape, strict=False))
    inputs: Inputs = {}
    for name, access in operands.items():
        shape = tuple(extents.get(variable, size) for variable in access.variables)
        inputs[name] = given.get(name, random_sparse(generator, t2s.Float(64), shape))
    return inputs


def program_inputs(file: Path, program: Program, given: Mapping[str, Any]) -> Inputs:
    """The inputs of a program, which the file has: statements do not tell extents."""
    missing = [name for name in program.inputs if name not in given]
    if missing:
        raise UserError(
            f"{file} has no {missing[0]}, an input of its program",
            expected=f"{INPUTS} = {{...}} with {', '.join(program.inputs)}, or a function {INPUTS}",
            given=", ".join(given) or "no inputs",
        )
    return dict(given)


def random_values(generator: np.random.Generator, type: Type, shape: tuple[int, ...]) -> Any:
    """Floats in [0, 1), small integers, random bools."""
    if type.is_float:
        return np.asarray(generator.random(shape)).astype(type.numpy)
    return np.asarray(generator.integers(0, 2 if type.is_bool else 10, shape)).astype(type.numpy)


def random_sparse(generator: np.random.Generator, type: Type, shape: tuple[int, ...]) -> Any:
    """Small integers, mostly zero if there is more than one mode."""
    values = generator.integers(1, 10, shape)
    stored = generator.random(shape) < (DENSITY if len(shape) > 1 else 1.0)
    return np.asarray(values * stored).astype(type.numpy)
