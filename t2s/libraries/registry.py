"""The registry of all shipped functions, by library and name: ``blas.sgemm``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from t2s.capability.description import ExternalFunction, LibraryOf
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.libraries import (
    blas,
    blis,
    cusparse,
    graphblas,
    gsl,
    mkl,
    numpy_functions,
    onednn,
    scipy_products,
    tblis,
    vector_code,
)
from t2s.libraries.calling import Availability, availability


class Library:
    """The functions of a library, as attributes."""

    def __init__(
        self, name: str, description: LibraryOf, functions: Mapping[str, ExternalFunction]
    ) -> None:
        self.name = name
        self.description = description
        self.functions = {
            key: replace(function, location=None) for key, function in functions.items()
        }

    def __getattr__(self, name: str) -> ExternalFunction:
        functions: Mapping[str, ExternalFunction] = self.__dict__.get("functions", {})
        if name in functions:
            return functions[name]
        raise AttributeError(
            f"{self.__dict__.get('name')} has no function {name}; it has {', '.join(functions)}"
        )

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.functions]

    def __repr__(self) -> str:
        return f"<library {self.name}: {', '.join(self.functions)}>"


LIBRARIES: Mapping[str, Library] = MappingProxyType(
    {
        name: Library(name, description, functions)
        for name, description, functions in (
            ("numpy", numpy_functions.NUMPY, numpy_functions.FUNCTIONS),
            ("blas", blas.SCIPY_BLAS, blas.FUNCTIONS),
            ("scipy", scipy_products.SCIPY, scipy_products.FUNCTIONS),
            ("vector", vector_code.VECTORS, vector_code.FUNCTIONS),
            ("openblas", blas.OPENBLAS, blas.OPENBLAS_FUNCTIONS),
            ("tblis", tblis.TBLIS, tblis.FUNCTIONS),
            ("graphblas", graphblas.GRAPHBLAS, graphblas.FUNCTIONS),
            ("atlas", blas.ATLAS, blas.ATLAS_FUNCTIONS),
            ("blis", blis.BLIS, blis.FUNCTIONS),
            ("gsl", gsl.GSL, gsl.FUNCTIONS),
            ("mkl", mkl.MKL, mkl.FUNCTIONS),
            ("onednn", onednn.ONEDNN, onednn.FUNCTIONS),
            ("cusparse", cusparse.CUSPARSE, cusparse.FUNCTIONS),
        )
    }
)
"""All libraries; the first four come with the dependencies of t2s."""

CORE = ("numpy", "blas", "scipy", "vector")
"""Those that are always available."""


def function_named(text: str, location: SourceLocation | None) -> ExternalFunction:
    """The function called ``library.function``.  Raises ``UserError`` for an unknown name."""
    library, dot, name = text.strip().partition(".")
    if dot and library in LIBRARIES and name in LIBRARIES[library].functions:
        return LIBRARIES[library].functions[name]
    known = LIBRARIES.get(library)
    if known is not None:
        expected = f"{library}. and one of {', '.join(known.functions)}"
    else:
        expected = f"one of {', '.join(LIBRARIES)}, a dot and the name of a function"
    raise UserError(f"unknown external function {text}", location=location, expected=expected)


def available() -> tuple[Availability, ...]:
    """The availability of each library: its version and location, or why it is not available."""
    return tuple(availability(library.description) for library in LIBRARIES.values())
