"""Text of the files, through templates that hold no decisions."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import jinja2

from t2s.backends.kernels.kernel_ast import (
    HelperFunction,
    KernelDefinition,
    KernelFile,
    declarator,
    lines,
)
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.backends.opencl_fpga.host import HostProgram
from t2s.core.names import one_line


def emit_kernels(file: KernelFile) -> str:
    """The text of the OpenCL file."""
    template = _environment().get_template("kernels.cl.j2")
    return template.render(
        file=file,
        declarator=declarator,
        lines=partial(lines, pragmas=OPENCL),
        parameters=_parameters,
    )


def emit_host(host: HostProgram) -> str:
    """The text of the host program."""
    return _environment().get_template("host.py.j2").render(host=host)


def _parameters(function: HelperFunction | KernelDefinition) -> str:
    return ", ".join(declarator(parameter) for parameter in function.parameters) or "void"


def _quoted(value: object) -> str:
    """Strings and lists of strings as Python literals, by JSON, which has the same escapes.

    Non-ASCII letters are kept, because JSON would write those outside of the basic plane as two.
    """
    return json.dumps(value, ensure_ascii=False)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quote"] = _quoted
    environment.filters["one_line"] = one_line
    return environment
