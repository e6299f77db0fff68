"""The emitted text is Scala: a grammar that is not ours finds no errors in it."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.stardust.paper import PAPER, PublishedKernel
from t2s.core.types import Float

tree_sitter = pytest.importorskip("tree_sitter", reason="tree-sitter is not installed")
scala = pytest.importorskip("tree_sitter_scala", reason="tree-sitter-scala is not installed")


def _errors(text: str) -> list[str]:
    """Where the nodes are that the grammar has no rule for, or that it misses."""
    parser = tree_sitter.Parser(tree_sitter.Language(scala.language()))
    found: list[str] = []
    nodes: list[Any] = [parser.parse(text.encode()).root_node]
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            found.append(f"line {node.start_point[0] + 1}")
        nodes.extend(node.children)
    return found


@pytest.mark.parametrize("row", PAPER, ids=lambda row: row.name)
def test_programs_are_scala(row: PublishedKernel) -> None:
    kernel = row.kernel()
    assert _errors(kernel.spatial()) == []
    assert _errors(kernel.spatial(Float(32))) == []


def test_the_grammar_finds_errors() -> None:
    text = PAPER[0].kernel().spatial()
    assert _errors(text.replace("} { _ + _ }", "} { _ + ) }", 1)) != []
    assert _errors(text.replace("val x_2 = ", "val = ", 1)) != []
    assert _errors(text.rstrip().removesuffix("}")) != []
