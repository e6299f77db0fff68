"""``t2s external``: listing external functions, testing their claims, searching for plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from t2s import sparse
from t2s.command.design import executed
from t2s.command.options import (
    Extents,
    RandomTensors,
    TensorFiles,
    TensorFormats,
    density_given,
    extent_given,
    extents_given,
    given_texts,
    tensor_inputs,
)
from t2s.command.output import INTERRUPTED, failed, without_lines
from t2s.core.errors import T2SError, UserError
from t2s.core.types import Float, Int, Type, UInt
from t2s.sparse_repr.notation.ir import Assignment, accesses

if TYPE_CHECKING:
    from t2s.capability.description import ExternalFunction

external = typer.Typer(help="External functions: list them, check claims, search for plans.")

SUFFIX = ".py"
_BITS = (8, 16, 32, 64)


@external.command("list")
def list_functions() -> None:
    """Print each library, whether it is there or how to get it, and what its functions compute."""
    from t2s.capability.ir import print_capability
    from t2s.libraries.calling import availability
    from t2s.libraries.registry import LIBRARIES

    console = Console(highlight=False)
    for name, library in LIBRARIES.items():
        available = availability(library.description)
        if available.there:
            console.out(f"{name}: {available.name} {available.version}".rstrip())
        else:
            how = library.description.how_to_get
            console.out(
                f"{name}: {library.description.name} is not there: {available.why_not}"
                + (f"; {how}" if how else "")
            )
        for own, function in library.functions.items():
            types = " ".join(map(str, function.capability.types))
            console.out(f"  {name}.{own}: {print_capability(function.capability)} of {types}")


@external.command("check")
def check_claims(
    what: Annotated[
        list[str],
        typer.Argument(help="blas.sgemm, a library, FILE.py with functions, or FILE.py:NAME"),
    ],
    trials: Annotated[int, typer.Option(help="cases of each function", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="seed of the cases")] = 0,
) -> None:
    """Try what functions claim to compute, each in a child process."""
    from t2s.libraries.claim_tests import check

    console = Console(highlight=False)
    wrong = 0
    try:
        functions = [function for name in what for function in _functions(name)]
    except (T2SError, OSError) as error:
        raise failed(str(error)) from None
    for function in functions:
        try:
            console.out(str(check(function, trials, seed=seed)))
        except T2SError as error:
            wrong += 1
            console.out(str(error))
    if wrong:
        raise failed(f"{wrong} of {len(functions)} claims are wrong, or were not tried")


@external.command("search")
def search_plans(
    expression: Annotated[str, typer.Argument(help='for example "a(i)=B(i,j)*c(j)"')],
    formats: TensorFormats = None,
    files: TensorFiles = None,
    random: RandomTensors = None,
    sizes: Extents = None,
    use: Annotated[
        list[str] | None,
        typer.Option(
            "--use", "-u", metavar="NAMES", help="blas,scipy.spmv,FILE.py:NAME; all if none"
        ),
    ] = None,
    reshape: Annotated[
        str | None, typer.Option(help='what may be done to parts, such as "fix tile pad"')
    ] = None,
    machine: Annotated[
        Path | None, typer.Option(help="rates of a machine, from machine.save(path)")
    ] = None,
    top: Annotated[int, typer.Option(help="plans that are kept", min=1)] = 10,
    type: Annotated[str | None, typer.Option(help="of values, such as float32")] = None,
    tune: Annotated[bool, typer.Option(help="also run them, on files and random values")] = False,
    seed: Annotated[int, typer.Option(help="seed of the random values")] = 0,
) -> None:
    """Find mappings and plans, ranked by predicted time; with --tune beside measured ones."""
    from t2s.driver.external_search import search
    from t2s.plan.cost import GENERIC, load_machine

    console = Console(highlight=False)
    try:
        assignment = sparse.parse(expression, given_texts(formats))
        names = [name for text in given_texts(use) for name in text.split(",")]
        functions = [function for name in names or _all() for function in _functions(name)]
        options: dict[str, Any] = {"limit": top, "progress": False}
        if reshape is not None:
            options["reshape"] = reshape
        options["machine"] = GENERIC if machine is None else load_machine(machine)
        inputs: dict[str, Any] | None = None
        given, sized = given_texts(files), given_texts(sizes)
        if given or tune:
            inputs = tensor_inputs(assignment, given, _rest(assignment, given, random), sized, seed)
            options["inputs"] = inputs
            type = type or "float64"
        else:
            options |= _shapes(assignment, random or [], sized)
        if type is not None:
            options["type"] = kind = type_given(type)
            functions = [
                candidate
                for candidate in functions
                if kind in (candidate.capability.types or (kind,))
            ]
        plans = search(assignment, functions, **options)
        console.out(str(plans))
        if tune and inputs is not None:
            console.out(f"\n{plans.tune(inputs, top=top, type=options['type'])}")
        if plans.interrupted:
            raise typer.Exit(code=INTERRUPTED)
    except (T2SError, OSError) as error:
        raise failed(without_lines(str(error))) from None


def type_given(text: str) -> Type:
    """The type that a ``--type`` option says.  Raises ``UserError`` if it is none of values."""
    known = {
        str(type): type for type in (*map(Float, (32, 64)), *map(Int, _BITS), *map(UInt, _BITS))
    }
    if text not in known:
        raise UserError(f"there is no type {text}", expected=f"one of {', '.join(known)}")
    return known[text]


def _all() -> tuple[str, ...]:
    from t2s.libraries.registry import LIBRARIES

    return tuple(LIBRARIES)


def _rest(assignment: Assignment, files: list[str], random: list[str] | None) -> list[str]:
    """Tensors of random values: those that options name, and those that none names."""
    named = {text.partition("=")[0] for text in (*files, *(random or []))}
    read = dict.fromkeys(access.tensor for access in accesses(assignment.value))
    return [*(random or []), *(name for name in read if name not in named)]


def _shapes(assignment: Assignment, random: list[str], sizes: list[str]) -> dict[str, Any]:
    """Shapes of all tensors, and densities of some."""
    read = {access.tensor: access.variables for access in accesses(assignment.value)}
    densities: dict[str, float] = {}
    for text in random:
        name, _, number = text.partition("=")
        if name not in read:
            raise UserError(
                f"--random names {name}, which the expression does not read",
                expected=f"one of {', '.join(read)}" if read else "no inputs",
            )
        densities[name] = density_given(text, number) if number else 0.1
    extents = extents_given(assignment, {}, sizes)
    shapes = {
        name: tuple(extent_given(extents, variable, name) for variable in variables)
        for name, variables in read.items()
    }
    return {"shapes": shapes, "densities": densities}


def _functions(text: str) -> list[ExternalFunction]:
    """The functions that a name means, or that a file defines.  Raises ``UserError``."""
    from t2s.libraries.registry import LIBRARIES, function_named

    path, _, name = text.partition(":")
    if path.endswith(SUFFIX):
        return _of_file(Path(path), name)
    if text in LIBRARIES:
        return list(LIBRARIES[text].functions.values())
    return [function_named(text, None)]


def _of_file(file: Path, name: str) -> list[ExternalFunction]:
    """External functions at module level; a Func by its name is what its design computes."""
    from t2s.capability.description import ExternalFunction

    values = executed(file)
    functions = {
        own: function for own, function in values.items() if isinstance(function, ExternalFunction)
    }
    if not name and functions:
        return list(dict.fromkeys(functions.values()))
    value = values.get(name)
    if isinstance(value, ExternalFunction):
        return [value]
    if value is not None:
        from t2s.driver.external_hardware import from_design

        return [from_design(value)]
    raise UserError(
        f"{file} defines no external function{f' {name}' if name else ''}",
        expected=", ".join(functions) or "what t2s.external.function makes, at module level",
    )
