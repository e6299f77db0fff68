"""Models in PyTorch as statements, from the graph of operators that ``torch.export`` makes.

Torch is only imported to make that graph, which is read without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.models.composed import log_softmax
from t2s.sparse_repr.models.statements import (
    ModelStatements,
    NotExpressible,
    StatementWriter,
    Value,
)
from t2s.sparse_repr.notation.ir import LEAST_VARIANCE, RowFunction

_FUNCTIONS = MappingProxyType(
    {
        "relu": Function.RELU,
        "abs": Function.ABSOLUTE,
        "exp": Function.EXPONENTIAL,
        "log": Function.LOGARITHM,
        "tanh": Function.HYPERBOLIC_TANGENT,
        "erf": Function.ERROR_FUNCTION,
        "sigmoid": Function.SIGMOID,
        "silu": Function.SILU,
        "sqrt": Function.SQUARE_ROOT,
        "rsqrt": Function.RECIPROCAL_SQUARE_ROOT,
    }
)

_OPERATORS = MappingProxyType(
    {
        "add": Op.ADD,
        "sub": Op.SUBTRACT,
        "mul": Op.MULTIPLY,
        "div": Op.DIVIDE,
        "maximum": Op.MAXIMUM,
        "minimum": Op.MINIMUM,
    }
)

_REDUCTIONS = MappingProxyType(
    {"mean": RowFunction.MEAN, "amax": RowFunction.MAXIMUM, "amin": RowFunction.MINIMUM}
)


def export_torch(module: object, arguments: Sequence[Any], location: SourceLocation) -> Any:
    """The exported program of a module.  Raises ``UserError`` if torch is missing or cannot."""
    try:
        import torch
    except ImportError:
        raise UserError(
            "models of PyTorch need the package torch, which is not installed",
            location=location,
            expected="an installed PyTorch, of the CPU at least",
            hint="pip install torch; a model saved as ONNX needs only 't2s-spatial[onnx]'",
        ) from None
    if not isinstance(module, torch.nn.Module):
        raise UserError(
            "this is not a model of PyTorch",
            location=location,
            expected="a torch.nn.Module",
            given=repr(module),
        )
    module.eval()
    try:
        return torch.export.export(module, tuple(arguments))
    except Exception as error:  # whatever the module or the exporter raises
        raise UserError(
            "PyTorch cannot export the model",
            location=location,
            expected="a module that torch.export takes, without control flow that depends on data",
            given=f"{type(error).__name__}: {str(error).strip().splitlines()[0]}",
        ) from error


def statements_of_torch(exported: Any, location: SourceLocation) -> ModelStatements:
    """The statements of an exported program.

    Raises ``UserError`` for operators and shapes that index notation does not have.
    """
    return _Reader(exported, location).read()


class _Reader:
    """Reads the nodes of an exported graph one after the other."""

    def __init__(self, exported: Any, location: SourceLocation) -> None:
        self.exported = exported
        self.nodes = list(exported.graph_module.graph.nodes)
        self.location = location
        self.writer = StatementWriter()
        self.values: dict[str, Value] = {}

    def read(self) -> ModelStatements:
        data = {**self.exported.state_dict, **self.exported.constants}
        targets = {
            spec.arg.name: spec.target
            for spec in self.exported.graph_signature.input_specs
            if spec.target is not None
        }
        for number, node in enumerate(self.nodes):
            match node.op:
                case "placeholder" if node.name in targets:
                    self.values[node.name] = self.weight(targets[node.name], data)
                case "placeholder":
                    shape = self.shape_of(node)
                    self.values[node.name] = self.writer.input(node.name, shape)
                case "call_function":
                    self.read_node(number, node)
                case "output":
                    for output in node.args[0]:
                        self.writer.output(output.name, self.values[output.name])
        return self.writer.finished()

    def weight(self, target: str, data: Mapping[str, Any]) -> Value:
        """A parameter, or another array of the module."""
        array = data[target].detach()
        dense = str(array.layout) == "torch.strided"
        array = array if dense else array.to_dense()
        return self.writer.constant(target, array.cpu().numpy(), sparse=not dense)

    def shape_of(self, node: Any) -> tuple[int, ...]:
        shape = tuple(node.meta["val"].shape)
        if not all(isinstance(extent, int) for extent in shape):
            raise UserError(
                f"the shape of {node.name} is open: {shape}",
                location=self.location,
                expected="a number for each extent",
                hint="export the model without dynamic shapes",
            )
        return shape

    def read_node(self, number: int, node: Any) -> None:
        name = str(getattr(node.target, "__name__", node.target))
        name = name.removeprefix("aten.").split(".")[0]
        make = _READERS.get(name)
        if make is None:
            raise self.refusal(number, node, f"{name} is not an operation of index notation")
        try:
            value = make(_Node(self, node, name))
        except NotExpressible as reason:
            headline = f"{name} is not in index notation: {reason}"
            raise self.refusal(number, node, headline) from None
        value = replace(value, name=node.name)
        # what several operations read is computed once
        self.values[node.name] = self.writer.stored(value) if len(node.users) > 1 else value

    def refusal(self, number: int, node: Any, headline: str) -> UserError:
        """An error that says where in the model an operation is."""
        around = [
            f"{each.name}{' (this one)' if each is node else ''}"
            for each in self.nodes[max(0, number - 2) : number + 3]
        ]
        return UserError(
            headline,
            location=self.location,
            expected=f"one of {', '.join(sorted(_READERS))}",
            given=f"{node.name} = {node.target}({', '.join(map(str, node.args))})",
            notes=[(None, f"in the order of the model: {', '.join(around)}")],
        )


@dataclass(frozen=True)
class _Node:
    """A call of an operator."""

    reader: _Reader
    node: Any
    operator: str

    @property
    def name(self) -> str:
        return str(self.node.name)

    @property
    def writer(self) -> StatementWriter:
        return self.reader.writer

    def argument(self, at: int, name: str = "", default: Any = None) -> Any:
        if at < len(self.node.args):
            return self.node.args[at]
        return self.node.kwargs.get(name, default)

    def operand(self, at: int) -> Value:
        return self.value(self.argument(at))

    def optional(self, at: int, name: str) -> Value | None:
        given = self.argument(at, name)
        return None if given is None else self.value(given)

    def value(self, given: Any) -> Value:
        """A value of the graph, or a number."""
        if isinstance(given, int | float):
            return self.writer.number(given)
        return self.reader.values[given.name]


def _function(node: _Node) -> Value:
    return node.writer.function(_FUNCTIONS[node.operator], node.operand(0))


def _pointwise(node: _Node) -> Value:
    right = node.operand(1)
    scale = node.argument(2, "alpha", 1)
    if scale != 1:
        right = node.writer.pointwise(Op.MULTIPLY, node.writer.number(scale), right)
    return node.writer.pointwise(_OPERATORS[node.operator], node.operand(0), right)


def _choice(node: _Node) -> Value:
    """``where(mask, x, y)``, and ``masked_fill(x, mask, y)`` with y where the mask is."""
    operands = [node.operand(at) for at in range(3)]
    if node.operator == "masked_fill":
        operands = [operands[1], operands[2], operands[0]]
    return node.writer.choice(*operands)


def _is_zero(node: _Node) -> Value:
    """Whether a mask is zero, or the contrary."""
    if node.operator in ("eq", "ne") and node.argument(1) != 0:
        raise NotExpressible("a comparison with something else than zero")
    if node.operator == "bitwise_not" and str(node.node.meta["val"].dtype) != "torch.bool":
        raise NotExpressible("the bits of integers")
    numbers = node.writer.number(0), node.writer.number(1)
    return node.writer.choice(node.operand(0), *numbers[:: -1 if node.operator == "ne" else 1])


def _matrix_product(node: _Node) -> Value:
    return node.writer.matrix_product(node.name, node.operand(0), node.operand(1))


def _linear(node: _Node) -> Value:
    weight = node.writer.transpose(node.operand(1), (1, 0))
    return node.writer.affine(node.name, node.operand(0), weight, node.optional(2, "bias"))


def _addmm(node: _Node) -> Value:
    if node.argument(3, "beta", 1) != 1 or node.argument(4, "alpha", 1) != 1:
        raise NotExpressible("factors of its two operands")
    return node.writer.affine(node.name, node.operand(1), node.operand(2), node.operand(0))


def _einsum(node: _Node) -> Value:
    operands = [node.value(each) for each in node.argument(1)]
    return node.writer.einsum(node.name, str(node.argument(0)), operands)


def _gelu(node: _Node) -> Value:
    by_tangent = node.argument(1, "approximate", "none") == "tanh"
    function = Function.GELU if by_tangent else Function.GELU_OF_ERROR_FUNCTION
    return node.writer.function(function, node.operand(0))


def _negative(node: _Node) -> Value:
    return node.writer.negative(node.operand(0))


def _reciprocal(node: _Node) -> Value:
    return node.writer.pointwise(Op.DIVIDE, node.writer.number(1), node.operand(0))


def _power(node: _Node) -> Value:
    exponent = node.argument(1)
    return node.writer.power(
        node.operand(0), exponent if isinstance(exponent, int | float) else None
    )


def _softmax(node: _Node) -> Value:
    return node.writer.of_row(RowFunction.SOFTMAX, node.operand(0), [node.argument(1, "dim", -1)])


def _log_softmax(node: _Node) -> Value:
    return log_softmax(node.writer, node.operand(0), node.argument(1, "dim", -1))


def _layernorm(node: _Node) -> Value:
    value = node.operand(0)
    along = range(len(value.axes) - len(node.argument(1)), len(value.axes))
    epsilon = node.argument(4, "eps", LEAST_VARIANCE)
    value = node.writer.of_row(RowFunction.LAYERNORM, value, along, epsilon=epsilon)
    gain, shift = node.optional(2, "weight"), node.optional(3, "bias")
    value = value if gain is None else node.writer.pointwise(Op.MULTIPLY, value, gain)
    return value if shift is None else node.writer.pointwise(Op.ADD, value, shift)


def _reduction(node: _Node) -> Value:
    value = node.operand(0)
    given = node.argument(1, "dim")
    along = [given] if isinstance(given, int) else list(given or range(len(value.axes)))
    keeps = bool(node.argument(2, "keepdim", False))
    if node.operator == "sum":
        return node.writer.total(node.name, value, along, keeps=keeps)
    return node.writer.of_row(_REDUCTIONS[node.operator], value, along, keeps=keeps)


def _attention(node: _Node) -> Value:
    """``scaled_dot_product_attention``, by its definition in the documentation of PyTorch."""
    query, keys, values = (node.operand(at) for at in range(3))
    if node.argument(4, "dropout_p", 0.0):
        raise NotExpressible("dropout")
    scale = node.argument(6, "scale") or 1 / sqrt(query.shape[-1])
    order = len(keys.axes)
    keys = node.writer.transpose(keys, (*range(order - 2), order - 1, order - 2))
    scores = node.writer.matrix_product(f"{node.name}_scores", query, keys)
    scores = node.writer.pointwise(Op.MULTIPLY, scores, node.writer.number(scale))
    given = node.argument(3, "attn_mask")
    if node.argument(5, "is_causal", False):
        seen = np.tril(np.ones((query.shape[-2], scores.shape[-1])))
        scores = _masked(node, scores, node.writer.constant(f"{node.name}_causal", seen))
    elif given is not None and str(given.meta["val"].dtype) == "torch.bool":
        scores = _masked(node, scores, node.value(given))
    elif given is not None:
        scores = node.writer.pointwise(Op.ADD, scores, node.value(given))
    weights = node.writer.of_row(RowFunction.SOFTMAX, scores, [-1])
    weights = replace(weights, name=f"{node.name}_weights")
    return node.writer.matrix_product(node.name, weights, values)


def _masked(node: _Node, scores: Value, mask: Value) -> Value:
    """Scores where a mask is true; what it lacks has no weight."""
    return node.writer.choice(mask, scores, node.writer.number(-inf))


def _transpose(node: _Node) -> Value:
    value = node.operand(0)
    order = list(range(len(value.axes)))
    one, other = (0, 1) if node.operator == "t" else (node.argument(1), node.argument(2))
    order[one], order[other] = order[other], order[one]
    return node.writer.transpose(value, order)


def _permute(node: _Node) -> Value:
    value = node.operand(0)
    return node.writer.transpose(value, [at % len(value.axes) for at in node.argument(1)])


def _shaped(node: _Node) -> Value:
    """Operators that only change the shape, which the exported graph knows."""
    return node.writer.reshape(node.operand(0), node.reader.shape_of(node.node))


def _select(node: _Node) -> Value:
    return node.writer.select(node.operand(0), node.argument(1), node.argument(2))


def _pieces(node: _Node) -> Value:
    """``chunk`` and ``split``: equal pieces along an axis of their own, the first one."""
    value, along = node.operand(0), node.argument(2, "dim", 0)
    pieces = node.node.meta["val"]
    if len({tuple(piece.shape) for piece in pieces}) > 1:
        raise NotExpressible("pieces of different sizes")
    along %= len(value.axes)
    divided = node.writer.divided(value, along, len(pieces))
    order = list(range(len(divided.axes)))
    return node.writer.transpose(divided, [order.pop(along), *order])


def _piece(node: _Node) -> Value:
    return node.writer.select(node.operand(0), 0, node.argument(1))


def _slice(node: _Node) -> Value:
    value = node.operand(0)
    if node.reader.shape_of(node.node) != value.shape:
        raise NotExpressible("a part of an axis that is not one coordinate")
    return value


def _unchanged(node: _Node) -> Value:
    if node.operator == "dropout" and node.argument(2, "train", False):
        raise NotExpressible("dropout in training")
    return node.operand(0)


_READERS: Mapping[str, Callable[[_Node], Value]] = MappingProxyType(
    {
        **dict.fromkeys(_FUNCTIONS, _function),
        **dict.fromkeys(_OPERATORS, _pointwise),
        **dict.fromkeys((*_REDUCTIONS, "sum"), _reduction),
        **dict.fromkeys(("matmul", "mm", "bmm"), _matrix_product),
        **dict.fromkeys(("clone", "contiguous", "detach", "dropout"), _unchanged),
        **dict.fromkeys(
            ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze"), _shaped
        ),
        "addmm": _addmm,
        "einsum": _einsum,
        **dict.fromkeys(("eq", "ne", "logical_not", "bitwise_not"), _is_zero),
        "gelu": _gelu,
        "layer_norm": _layernorm,
        **dict.fromkeys(("where", "masked_fill"), _choice),
        "linear": _linear,
        "log_softmax": _log_softmax,
        "neg": _negative,
        "permute": _permute,
        "pow": _power,
        "reciprocal": _reciprocal,
        "scaled_dot_product_attention": _attention,
        "getitem": _piece,
        "select": _select,
        "slice": _slice,
        **dict.fromkeys(("chunk", "split", "split_with_sizes"), _pieces),
        "softmax": _softmax,
        "t": _transpose,
        "transpose": _transpose,
    }
)
