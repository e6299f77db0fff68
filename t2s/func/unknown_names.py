"""Names that users try on Funcs and expressions, and what does the same here.

Most users know Halide or numpy, whose directives and functions have names of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.names import did_you_mean

_OWN_PLACE = (
    "a Func with an update has a loop nest of its own; isolate_producer(G, P) gives another one a "
    "place, and stream(G) connects two by a channel instead of memory"
)
_ON_CHIP = "P.buffer(Q, x) keeps what Q sends in one iteration of x on the chip"
_SPACE = "unroll(x) makes a PE of each iteration; split(x, x, xx, n) first for n of them"
HALIDE: Mapping[str, str] = {
    "vectorize": "split(x, x, xx, n) and then vload(A, B), if the operands are vectors along xx, "
    "and vstore(C), if the results are",
    "parallel": _SPACE,
    "gpu": _SPACE,
    "gpu_tile": "tile(x, y, xx, yy, w, h) and then unroll(xx, yy)",
    "gpu_blocks": _SPACE,
    "gpu_threads": _SPACE,
    "gpu_lanes": _SPACE,
    "compute_root": _OWN_PLACE,
    "compute_at": _OWN_PLACE,
    "compute_with": "stream(G) runs a Func at the pace of what it reads",
    "compute_inline": "a Func without updates is computed inside of the Funcs that read it",
    "store_root": _ON_CHIP,
    "store_at": _ON_CHIP,
    "store_in": _ON_CHIP,
    "hoist_storage": _ON_CHIP,
    "prefetch": "isolate_producer(A, P) loads A ahead of its use, and P.depth(n) says how far",
    "rfactor": "split(k, k, kk, n).unroll(kk) sums up in n PEs, and vload in lanes; reassociate() "
    "allows it for floats",
    "atomic": "reassociate() allows another order of a sum of floats",
    "async_": "isolate_producer(A, P) makes P a kernel that runs at the same time",
    "serial": "loops run in time unless they are unrolled",
    "in_": "isolate_producer(A, P)",
    "clone_in": "isolate_producer(A, P)",
    "estimate": "bound(x, minimum, extent)",
    "set_estimate": "bound(x, minimum, extent)",
    "set_estimates": "bound(x, minimum, extent)",
    "bound_extent": "bound(x, 0, extent)",
    "align_bounds": "split pads a loop whose extent the factor does not divide",
    "realize": "t2s.simulate(F, inputs), or t2s.interpret(F, inputs) to compute with numpy",
    "print_real_time": "t2s.simulate(F, inputs).report(path)",
    "trace_stores": "t2s.simulate(F, inputs).report(path) shows single firings",
    "trace_loads": "t2s.simulate(F, inputs).report(path) shows single firings",
    "compile_to_lowered_stmt": "print(t2s.lower(F))",
    "compile_jit": "t2s.simulate(F, inputs)",
    "space_time_map": "space_time_transform(...)",
}
"""Halide's directives, and what does that here."""


class UnknownAttributeError(UserError, AttributeError):
    """A name that an object of the language does not have."""


def unknown_directive(name: str, attribute: str, known: list[str]) -> UnknownAttributeError:
    """The error for a method that a Func does not have."""
    here = HALIDE.get(attribute)
    if here is not None:
        return UnknownAttributeError(
            f"Func {name} has no directive {attribute}, which is one of Halide",
            location=user_location(),
            hint=f"here: {here}",
        )
    return UnknownAttributeError(
        f"Func {name} has no attribute {attribute}",
        location=user_location(),
        hint=did_you_mean(attribute, known),
    )


NUMPY: Mapping[str, str] = {
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "tanh": "tanh",
    "floor": "floor",
    "ceil": "ceil",
    "absolute": "abs",
    "fabs": "abs",
    "maximum": "max",
    "fmax": "max",
    "minimum": "min",
    "fmin": "min",
    "square": "x * x",
    "reciprocal": "1.0 / x",
    "sign": "select(x > 0, 1, select(x < 0, -1, 0))",
    "where": "select",
}
"""Functions of numpy, and what does that in definitions."""


def refuse_numpy(name: str, inputs: tuple[Any, ...]) -> NoReturn:
    """Raise ``UserError`` for a function of numpy that is called with an expression."""
    shown = ", ".join(map(repr, inputs))
    here = NUMPY.get(name)
    call = here if here is None or not here.isidentifier() else f"t2s.{here}({shown})"
    raise UserError(
        f"np.{name} computes on arrays, not on expressions",
        location=user_location(),
        expected=call or "operators, and functions of t2s such as t2s.exp, t2s.max and t2s.select",
        given=f"np.{name}({shown})",
        hint=None if call is None else f"write {call}",
    )
