"""Text of the files, through templates that hold no decisions."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import jinja2

from t2s.backends.kernels.host_data import host_layouts, host_tensors
from t2s.backends.kernels.kernel_ast import (
    ChannelArray,
    KernelDefinition,
    TypedName,
    declarator,
    dimensions,
    lines,
)
from t2s.backends.vitis_hls.dialect import PROTOCOL, VITIS_HLS
from t2s.backends.vitis_hls.top import STATUS, Port, TopDesign
from t2s.core.names import one_line
from t2s.core.ops import C_FUNCTIONS
from t2s.graph.graph import Graph

_HERE = Path(__file__).parent
_WIDTH = 96
_HEADERS = {
    "climits": r"\b(INT|LONG)_MIN\b",
    "cmath": r"\b(NAN|INFINITY)\b",
    "hls_math.h": r"\bhls::",
}
_FLOAT16 = "t2s_float16.h"
_ROUNDED = ("sqrt", "floor", "ceil", "fabs")


def emit_files(graph: Graph, top: TopDesign) -> dict[str, str]:
    """All files of a design: relative path to text."""
    layouts = host_layouts(VITIS_HLS, graph)
    named = {layout.tensor: layout.array for layout in layouts}
    arrays = [named.get(tensor.name, tensor.name) for tensor in graph.tensors]
    names = (*dict.fromkeys(arrays), *(parameter.name for parameter in graph.parameters))
    environment = _environment()
    render = {
        f"{top.stem}.cpp": "kernel.cpp.j2",
        f"{top.stem}.h": "header.h.j2",
        f"{top.stem}_tb.cpp": "testbench.cpp.j2",
        f"{top.stem}_host.cpp": "host.cpp.j2",
        f"{top.stem}_host.py": "host.py.j2",
        "hls_config.cfg": "hls_config.cfg.j2",
        "link.cfg": "link.cfg.j2",
        "Makefile": "Makefile.j2",
        "t2s_sim/hls_math.h": "hls_math.h.j2",
    }
    files = {
        path: environment.get_template(template).render(
            top=top,
            tensors=host_tensors(graph),
            layouts=layouts,
            names=names,
            dtypes={p.name: p.type.numpy.name for p in graph.parameters},
            functions=(*_ROUNDED, *C_FUNCTIONS.values()),
            pointer=partial(_pointer, top),
            headers=_headers(top),
            protocol=PROTOCOL,
            status=STATUS,
            outputs=[length for length in top.lengths if length.output],
            capacities={each.name: each.value for each in top.capacities},
        )
        for path, template in render.items()
    }
    own = {"t2s_process.h": "t2s_process.h", "t2s_sim/hls_stream.h": "hls_stream.h"}
    if top.narrow:
        own[_FLOAT16] = _FLOAT16
    for path, name in own.items():
        files[path] = (_HERE / "include" / name).read_text(encoding="utf-8")
    return files


def _headers(top: TopDesign) -> list[str]:
    """The headers of constants and functions that the functions use."""
    bodies = [*(each.body for each in top.helpers), *(each.body for each in top.functions)]
    text = "\n".join(line for body in bodies for line in lines(body, VITIS_HLS))
    return [header for header, used in _HEADERS.items() if re.search(used, text)]


def _signature(start: str, function: KernelDefinition | TopDesign) -> str:
    """``start(parameters)``, in lines that are not too long."""
    done = [f"{start}("]
    for at, parameter in enumerate(function.parameters):
        text = _declared(parameter) + ("," if at + 1 < len(function.parameters) else ")")
        space = "" if done[-1].endswith("(") else " "
        if len(done[-1]) + len(space) + len(text) <= _WIDTH:
            done[-1] += space + text
        else:
            done.append("    " + text)
    return "\n".join(done) if function.parameters else f"{start}()"


def _declared(variable: TypedName | ChannelArray) -> str:
    """``const float *A``, ``hls::stream<float> &in``."""
    space = "" if variable.type.endswith(("*", "&")) else " "
    return f"{variable.type}{space}{variable.name}{dimensions(variable.dimensions)}"


def _pointer(top: TopDesign, port: Port) -> str:
    """The memory of a port in a test bench."""
    data = f"{top.buffer_of(port.tensor).name}.data()"
    if port.lanes == 1:
        return data
    parameter = next(p for p in top.parameters if p.name == port.name)
    return f"reinterpret_cast<{parameter.type}>({data})"


def _quoted(value: object) -> str:
    """Strings and lists of strings as literals of Python and C++, by JSON.

    Non-ASCII letters are kept, because JSON would write those outside of the basic plane as two.
    """
    return json.dumps(value, ensure_ascii=False)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quote"] = _quoted
    environment.filters["one_line"] = one_line
    environment.globals |= {
        "declarator": declarator,
        "signature": _signature,
        "declared": lambda stream: f"{stream.name}{dimensions(stream.dimensions)}",
        "parameters": lambda function: ", ".join(map(_declared, function.parameters)),
        "lines": partial(lines, pragmas=VITIS_HLS),
    }
    return environment
