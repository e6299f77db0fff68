"""Scalars of a product: parameters of its graph, whose names no local of a node may have."""

from __future__ import annotations

from dataclasses import replace

from t2s.core.expr import Index, Local
from t2s.core.names import NameSupply
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.body import Let, Load, Receive, Register, RegisterRead, RegisterWrite, SpaceDimension
from t2s.graph.graph import Graph, ScalarParameter
from t2s.graph.machine import Head
from t2s.graph.nodes import Loop


def with_scalars(graph: Graph, scalars: tuple[ScalarParameter, ...]) -> Graph:
    """The graph with its parameters; what is named like one of them in a node gets a new name.

    ``Let(a = ...), Send(a * Parameter a)`` becomes ``Let(a_2 = ...), Send(a_2 * Parameter a)``.
    """
    taken = {name for node in walk(graph) for name in _names(node)}
    clashes = sorted(taken & {scalar.name for scalar in scalars})
    names = NameSupply({*taken, *(scalar.name for scalar in scalars)})
    fresh = {name: names.fresh(name) for name in clashes}
    renamed = rewrite(graph, lambda node: _renamed(node, fresh)) if fresh else graph
    return replace(renamed, parameters=scalars)


def _names(node: Term) -> tuple[str, ...]:
    """The names that a term has, or gives, within a node."""
    match node:
        case Local(name=name) | Index(name=name) | Loop(name=name):
            return (name,)
        case SpaceDimension(name=name) | Register(name=name) | Head(value=name):
            return (name,)
        case Let(target=name) | Load(target=name) | Receive(target=name):
            return (name,)
        case RegisterRead(target=name, register=register):
            return (name, register)
    return ()


def _renamed(node: Term, fresh: dict[str, str]) -> Term | None:
    match node:
        case Local(name=name) | Index(name=name) | Loop(name=name) if name in fresh:
            return replace(node, name=fresh[name])
        case SpaceDimension(name=name) | Register(name=name) if name in fresh:
            return replace(node, name=fresh[name])
        case Head(value=value) if value in fresh:
            return replace(node, value=fresh[value])
        case Let(target=name) | Load(target=name) | Receive(target=name) if name in fresh:
            return replace(node, target=fresh[name])
        case RegisterRead(target=name, register=register) if fresh.keys() & {name, register}:
            return replace(
                node, target=fresh.get(name, name), register=fresh.get(register, register)
            )
        case RegisterWrite(register=register) if register in fresh:
            return replace(node, register=fresh[register])
    return None
