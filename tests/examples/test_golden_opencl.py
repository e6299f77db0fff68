"""The OpenCL of every example at its smallest size, as golden files to read and to compare.

``gemm`` is in ``test_systolic.py``, ``lu`` and ``pairhmm`` are in ``test_recurrences.py``.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import t2s
from t2s.backends.opencl_fpga import BACKEND
from tests.conftest import Golden

EXAMPLES = Path(__file__).parent.parent.parent / "examples"

SMALLEST: dict[str, tuple[Any, ...]] = {
    "block_matching": (2, 2, 1),
    "capsule": (),
    "convolution": (),
    "convolution_1d": ("ffs",),
    "gbmv": (),
    "ger": (),
    "mttkrp": (),
    "qr": (),
    "syrk": (),
    "trsm": (),
    "ttm": (),
    "ttmc": (),
}
"""The arguments of the design, if they are not the module's TINY or its defaults."""


def module_of(name: str) -> ModuleType:
    folder = EXAMPLES / name
    path = folder / f"{name}.py" if (folder / f"{name}.py").exists() else folder / "mappings.py"
    spec = importlib.util.spec_from_file_location(f"golden_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALLEST)
def test_emitted_text(name: str, golden: Golden) -> None:
    module = module_of(name)
    tiny = (module.TINY,) if hasattr(module, "TINY") else ()
    graph = t2s.lower(module.design(*(SMALLEST[name] or tiny)))
    texts = [text for path, text in BACKEND.emit(graph).items() if path.endswith(".cl")]
    assert len(texts) == 1
    golden(f"opencl_fpga/{name}.cl", texts[0])
