"""Models in ONNX as statements (the ONNX operator specification, opsets 13 to 23).

Weights become tensors of the program, and what only depends on constants is computed while reading.
Shapes have to be known: index variables have an extent, and a reshape divides it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.models import composed
from t2s.sparse_repr.models.statements import (
    Array,
    ModelStatements,
    NotExpressible,
    StatementWriter,
    Value,
)
from t2s.sparse_repr.notation.ir import LEAST_VARIANCE, RowFunction

OLDEST_OPSET = 13
"""Softmax is along one axis, and axes of reductions are inputs, from this opset on."""

_FUNCTIONS = MappingProxyType(
    {
        "Relu": Function.RELU,
        "Abs": Function.ABSOLUTE,
        "Exp": Function.EXPONENTIAL,
        "Log": Function.LOGARITHM,
        "Tanh": Function.HYPERBOLIC_TANGENT,
        "Erf": Function.ERROR_FUNCTION,
        "Sigmoid": Function.SIGMOID,
        "Sqrt": Function.SQUARE_ROOT,
    }
)

_OPERATORS = MappingProxyType(
    {
        "Add": Op.ADD,
        "Sub": Op.SUBTRACT,
        "Mul": Op.MULTIPLY,
        "Div": Op.DIVIDE,
        "Max": Op.MAXIMUM,
        "Min": Op.MINIMUM,
        "Sum": Op.ADD,
        "Mean": Op.ADD,
    }
)

_REDUCTIONS = MappingProxyType(
    {
        "ReduceMax": RowFunction.MAXIMUM,
        "ReduceMin": RowFunction.MINIMUM,
        "ReduceMean": RowFunction.MEAN,
    }
)

_TOTALS = (
    "ReduceSum",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
)

_FORMULAS = MappingProxyType(
    {
        "HardSwish": composed.hard_swish,
        "Mish": composed.mish,
        "Softplus": composed.softplus,
        "Softsign": composed.softsign,
    }
)


def load_onnx(model: object, location: SourceLocation) -> Any:
    """An ONNX model from a file, or as it is.  Raises ``UserError`` for anything else."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise UserError(
            "ONNX models need the package onnx, which is not installed",
            location=location,
            expected="the extra onnx",
            hint="pip install 't2s-spatial[onnx]'",
        ) from None
    if isinstance(model, onnx.ModelProto):
        return model
    if not isinstance(model, str | Path):
        raise UserError(
            "this is not an ONNX model",
            location=location,
            expected="the path of a file, or an onnx.ModelProto",
            given=repr(model),
        )
    try:
        return onnx.load(str(model))
    except OSError as error:
        raise UserError(
            f"{model} cannot be read: {error.strerror or error}",
            location=location,
            expected="the path of an ONNX file",
            given=str(model),
        ) from None
    except (DecodeError, ValueError) as error:
        raise UserError(
            f"{model} is not an ONNX file, or only a part of one",
            location=location,
            expected="a file that onnx.load reads",
            given=str(error).splitlines()[0],
        ) from None


def statements_of_onnx(
    model: Any, shapes: Mapping[str, Sequence[int]], location: SourceLocation
) -> ModelStatements:
    """The statements of a model; ``shapes`` are those of inputs that the model leaves open.

    Raises ``UserError`` for operations and shapes that index notation does not have.
    """
    return _Reader(model, shapes, location).read()


class _Reader:
    """Reads the nodes of a model one after the other."""

    def __init__(
        self, model: Any, shapes: Mapping[str, Sequence[int]], location: SourceLocation
    ) -> None:
        self.model = model
        self.graph = model.graph
        self.shapes = shapes
        self.location = location
        self.writer = StatementWriter()
        self.values: dict[str, Value] = {}
        self.constants: dict[str, Array] = {}
        self.sparse: set[str] = set()
        self.readers = Counter(name for node in self.graph.node for name in node.input)

    def read(self) -> ModelStatements:
        self.check_version()
        self.read_constants()
        for given in self.graph.input:
            if given.name not in self.constants:
                self.values[given.name] = self.writer.input(given.name, self.shape_of(given))
        for number, node in enumerate(self.graph.node):
            self.read_node(number, node)
        if not self.graph.output:
            raise UserError(
                "the model has no outputs",
                location=self.location,
                expected="a model that gives at least one array",
            )
        for output in self.graph.output:
            self.writer.output(output.name, self.value(output.name))
        return self.writer.finished()

    def check_version(self) -> None:
        versions = {each.domain: each.version for each in self.model.opset_import}
        version = versions.get("", versions.get("ai.onnx", 0))
        if version < OLDEST_OPSET:
            raise UserError(
                f"the model has opset {version} of ONNX",
                location=self.location,
                expected=f"opset {OLDEST_OPSET} or later",
                given=f"opset {version}",
                hint=f"convert it: onnx.version_converter.convert_version(model, {OLDEST_OPSET})",
            )

    def read_constants(self) -> None:
        from onnx import numpy_helper

        for initializer in self.graph.initializer:
            self.constants[initializer.name] = numpy_helper.to_array(initializer)
        for sparse in self.graph.sparse_initializer:
            values, indices = map(numpy_helper.to_array, (sparse.values, sparse.indices))
            array = np.zeros(tuple(sparse.dims), values.dtype)
            places = np.unravel_index(indices, array.shape) if indices.ndim == 1 else indices.T
            array[tuple(places)] = values
            self.constants[sparse.values.name] = array
            self.sparse.add(sparse.values.name)

    def shape_of(self, given: Any) -> tuple[int, ...]:
        """The shape of an input."""
        known = self.shapes.get(given.name)
        dimensions = given.type.tensor_type.shape.dim
        if known is not None and len(known) == len(dimensions):
            fixed = [each.dim_value or known[at] for at, each in enumerate(dimensions)]
            if list(known) == fixed and all(extent > 0 for extent in known):
                return tuple(known)
        texts = [str(each.dim_value or each.dim_param or "?") for each in dimensions]
        shape = f"({', '.join(texts)})"
        if known is not None:
            raise UserError(
                f"the shape of {given.name} is not that of the model",
                location=self.location,
                expected=f"positive extents that are like {shape}",
                given=f"shapes={{{given.name!r}: {tuple(known)}}}",
            )
        if not all(each.dim_value for each in dimensions):
            raise UserError(
                f"the shape of {given.name} is open: {shape}",
                location=self.location,
                expected="a number for each extent",
                hint=f"say it, such as shapes={{{given.name!r}: "
                f"{tuple(each.dim_value or 8 for each in dimensions)}}}",
            )
        return tuple(each.dim_value for each in dimensions)

    def value(self, name: str) -> Value:
        """What an operation reads."""
        if name not in self.values:
            sparse = name in self.sparse
            value = self.writer.constant(name, self.constants[name], sparse=sparse)
            self.values[name] = replace(value, name=name)
        return self.values[name]

    def read_node(self, number: int, node: Any) -> None:
        if node.op_type == "Constant" or all(n in self.constants for n in node.input if n):
            self.fold(node)
            return
        if node.op_type == "Shape":
            shape = self.value(node.input[0]).shape
            self.constants[node.output[0]] = np.array(shape, np.int64)
            return
        make = None if node.domain not in ("", "ai.onnx") else _READERS.get(node.op_type)
        if make is None:
            raise self.refusal(
                number, node, f"{node.op_type} is not an operation of index notation"
            )
        try:
            made = make(_Node(self, node))
        except NotExpressible as reason:
            raise self.refusal(
                number, node, f"{node.op_type} is not in index notation: {reason}"
            ) from None
        values = made if isinstance(made, list) else [made]  # other outputs are optional
        for name, value in zip(node.output, values, strict=False):
            value = replace(value, name=name)
            # what several operations read is computed once
            self.values[name] = self.writer.stored(value) if self.readers[name] > 1 else value

    def fold(self, node: Any) -> None:
        """Compute an operation on constants."""
        from onnx import helper
        from onnx.reference import ReferenceEvaluator

        names = [name for name in node.input if name]
        graph = helper.make_graph(
            [node],
            "constant",
            [helper.make_empty_tensor_value_info(name) for name in names],
            [helper.make_empty_tensor_value_info(name) for name in node.output],
        )
        model = helper.make_model(graph, opset_imports=self.model.opset_import)
        found = ReferenceEvaluator(model).run(None, {name: self.constants[name] for name in names})
        self.constants |= dict(zip(node.output, map(np.asarray, found), strict=True))

    def refusal(self, number: int, node: Any, headline: str) -> UserError:
        """An error that says where in the model an operation is."""
        around = [
            f"{each.op_type}{' (this one)' if each is node else ''}"
            for each in self.graph.node[max(0, number - 2) : number + 3]
        ]
        return UserError(
            headline,
            location=self.location,
            expected=f"one of {', '.join(sorted(_READERS))}",
            given=f"node {number} of the model, {node.name or 'without a name'}: "
            f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)})",
            notes=[(None, f"in the order of the model: {', '.join(around)}")],
        )


@dataclass(frozen=True)
class _Node:
    """An operation with its operands."""

    reader: _Reader
    node: Any

    @property
    def name(self) -> str:
        """The name of what it gives."""
        return str(self.node.output[0])

    @property
    def writer(self) -> StatementWriter:
        return self.reader.writer

    def operand(self, at: int) -> Value:
        if not self.has(at):
            raise NotExpressible("an operand is missing")
        return self.reader.value(self.node.input[at])

    def has(self, at: int) -> bool:
        return at < len(self.node.input) and bool(self.node.input[at])

    def constant(self, at: int, what: str) -> Array:
        name = self.node.input[at]
        if name not in self.reader.constants:
            raise NotExpressible(f"{what} that is not a constant")
        return self.reader.constants[name]

    def attribute(self, name: str, default: Any) -> Any:
        from onnx import helper

        for attribute in self.node.attribute:
            if attribute.name == name:
                return helper.get_attribute_value(attribute)
        return default

    def decimal(self, name: str, default: float) -> float:
        """A number as it was written, of which ONNX keeps 32 bits."""
        found = self.attribute(name, None)
        return default if found is None else float(str(np.float32(found)))

    def integers(self, at: int, name: str) -> list[int] | None:
        """Axes or extents, which are an input or, before opset 18, an attribute."""
        if self.has(at):
            return [int(each) for each in self.constant(at, name).reshape(-1)]
        found = self.attribute(name, None)
        return None if found is None else [int(each) for each in found]


def _choice(node: _Node) -> Value:
    """Where."""
    return node.writer.choice(*(node.operand(at) for at in range(3)))


def _is_zero(node: _Node) -> Value:
    """Not, and Equal with zero, as masks are made."""
    if node.has(1) and node.operand(1).number != 0:
        raise NotExpressible("a comparison with something else than zero")
    return node.writer.choice(node.operand(0), node.writer.number(0), node.writer.number(1))


def _matrix_product(node: _Node) -> Value:
    return node.writer.matrix_product(node.name, node.operand(0), node.operand(1))


def _affine(node: _Node) -> Value:
    """Gemm."""
    left, right = node.operand(0), node.operand(1)
    if node.attribute("transA", 0):
        left = node.writer.transpose(left, (1, 0))
    if node.attribute("transB", 0):
        right = node.writer.transpose(right, (1, 0))
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    if alpha == beta == 1.0:
        return node.writer.affine(node.name, left, right, node.operand(2) if node.has(2) else None)
    product = node.writer.matrix_product(f"{node.name}_product", left, right)
    value = node.writer.pointwise(Op.MULTIPLY, node.writer.number(alpha), product)
    if node.has(2):
        scale = node.writer.number(beta)
        bias = node.writer.pointwise(Op.MULTIPLY, scale, node.operand(2))
        value = node.writer.pointwise(Op.ADD, value, bias)
    return value


def _einsum(node: _Node) -> Value:
    equation = node.attribute("equation", b"").decode()
    operands = [node.operand(at) for at in range(len(node.node.input))]
    return node.writer.einsum(node.name, equation, operands)


def _pointwise(node: _Node) -> Value:
    operator = _OPERATORS[node.node.op_type]
    value = node.operand(0)
    for at in range(1, len(node.node.input)):
        value = node.writer.pointwise(operator, value, node.operand(at))
    return value


def _function(node: _Node) -> Value:
    return node.writer.function(_FUNCTIONS[node.node.op_type], node.operand(0))


def _gelu(node: _Node) -> Value:
    by_tangent = node.attribute("approximate", b"none") == b"tanh"
    function = Function.GELU if by_tangent else Function.GELU_OF_ERROR_FUNCTION
    return node.writer.function(function, node.operand(0))


def _negative(node: _Node) -> Value:
    return node.writer.negative(node.operand(0))


def _reciprocal(node: _Node) -> Value:
    return node.writer.pointwise(Op.DIVIDE, node.writer.number(1), node.operand(0))


def _power(node: _Node) -> Value:
    return node.writer.power(node.operand(0), node.operand(1).number)


def _clip(node: _Node) -> Value:
    value = node.operand(0)
    for at, operator in ((1, Op.MAXIMUM), (2, Op.MINIMUM)):
        if node.has(at):
            value = node.writer.pointwise(operator, value, node.operand(at))
    return value


def _softmax(node: _Node) -> Value:
    along = [int(node.attribute("axis", -1))]
    return node.writer.of_row(RowFunction.SOFTMAX, node.operand(0), along)


def _log_softmax(node: _Node) -> Value:
    return composed.log_softmax(node.writer, node.operand(0), int(node.attribute("axis", -1)))


def _activation(node: _Node) -> Value:
    writer, value = node.writer, node.operand(0)
    match node.node.op_type:
        case "LeakyRelu":
            slope = writer.number(node.decimal("alpha", 0.01))
            return composed.leaky_relu(writer, value, slope)
        case "PRelu":
            return composed.leaky_relu(writer, value, node.operand(1))
        case "Elu":
            return composed.elu(writer, value, node.decimal("alpha", 1.0))
        case "Celu":
            alpha = node.decimal("alpha", 1.0)
            return composed.elu(writer, value, alpha, width=alpha)
        case "Selu":
            alpha = node.decimal("alpha", 1.67326319217681884765625)
            gamma = node.decimal("gamma", 1.05070102214813232421875)
            return composed.elu(writer, value, gamma * alpha, gain=gamma)
        case "HardSigmoid":
            tangent, offset = node.decimal("alpha", 0.2), node.decimal("beta", 0.5)
            return composed.hard_sigmoid(writer, value, slope=tangent, offset=offset)
    return _FORMULAS[node.node.op_type](writer, value)


def _mean(node: _Node) -> Value:
    """The mean of several arrays."""
    count = node.writer.number(len(node.node.input))
    return node.writer.pointwise(Op.DIVIDE, _pointwise(node), count)


def _rms_norm(node: _Node) -> Value:
    value = node.operand(0)
    first = int(node.attribute("axis", -1)) % len(value.axes)
    along = range(first, len(value.axes))
    epsilon = node.decimal("epsilon", LEAST_VARIANCE)
    value = composed.root_mean_square_norm(node.writer, value, along, epsilon)
    return node.writer.pointwise(Op.MULTIPLY, value, node.operand(1))


def _layernorm(node: _Node) -> Value:
    value = node.operand(0)
    first = int(node.attribute("axis", -1)) % len(value.axes)
    along = range(first, len(value.axes))
    epsilon = node.decimal("epsilon", LEAST_VARIANCE)
    value = node.writer.of_row(RowFunction.LAYERNORM, value, along, epsilon=epsilon)
    value = node.writer.pointwise(Op.MULTIPLY, value, node.operand(1))
    return node.writer.pointwise(Op.ADD, value, node.operand(2)) if node.has(2) else value


def _reduction(node: _Node) -> Value:
    value = node.operand(0)
    along = node.integers(1, "axes")
    if along is None:
        along = list(range(len(value.axes)))
    keeps, writer = bool(node.attribute("keepdims", 1)), node.writer

    def total(terms: Value) -> Value:
        return writer.total(node.name, terms, along, keeps=keeps)

    match node.node.op_type:
        case "ReduceSum":
            return total(value)
        case "ReduceL1":
            return total(writer.function(Function.ABSOLUTE, value))
        case "ReduceSumSquare":
            return total(writer.power(value, 2))
        case "ReduceL2":
            return writer.function(Function.SQUARE_ROOT, total(writer.power(value, 2)))
        case "ReduceLogSum":
            return writer.function(Function.LOGARITHM, total(value))
        case "ReduceLogSumExp":
            return composed.log_sum_exp(writer, node.name, value, along, keeps=keeps)
    return writer.of_row(_REDUCTIONS[node.node.op_type], value, along, keeps=keeps)


def _transpose(node: _Node) -> Value:
    value = node.operand(0)
    order = node.attribute("perm", None) or list(reversed(range(len(value.axes))))
    return node.writer.transpose(value, order)


def _reshape(node: _Node) -> Value:
    value = node.operand(0)
    wanted = node.integers(1, "shape") or []
    if not node.attribute("allowzero", 0):
        wanted = [value.shape[at] if each == 0 else each for at, each in enumerate(wanted)]
    return node.writer.reshape(value, wanted)


def _flatten(node: _Node) -> Value:
    value = node.operand(0)
    axis = int(node.attribute("axis", 1))
    outer, inner = value.shape[:axis], value.shape[axis:]
    return node.writer.reshape(value, [int(np.prod(outer)), int(np.prod(inner))])


def _squeeze(node: _Node) -> Value:
    value = node.operand(0)
    axes = node.integers(1, "axes")
    gone = {at % len(value.axes) for at in axes} if axes is not None else None
    shape = value.shape
    kept = [e for at, e in enumerate(shape) if (e != 1 if gone is None else at not in gone)]
    return node.writer.reshape(value, kept)


def _unsqueeze(node: _Node) -> Value:
    value = node.operand(0)
    axes = node.integers(1, "axes") or []
    order = len(value.axes) + len(axes)
    new = {at % order for at in axes}
    extents = iter(value.shape)
    return node.writer.reshape(value, [1 if at in new else next(extents) for at in range(order)])


def _gather(node: _Node) -> Value:
    index = node.constant(1, "an index")
    if index.ndim:
        raise NotExpressible("several coordinates of an axis")
    return node.writer.select(node.operand(0), int(node.attribute("axis", 0)), int(index))


def _pieces(node: _Node) -> list[Value]:
    """``Split`` into equal pieces."""
    value, count = node.operand(0), len(node.node.output)
    along = int(node.attribute("axis", 0)) % len(value.axes)
    sizes = node.integers(1, "split")
    if sizes is not None and len(set(sizes)) > 1:
        raise NotExpressible("pieces of different sizes")
    divided = node.writer.divided(value, along, count)
    return [node.writer.select(divided, along, piece) for piece in range(count)]


def _unchanged(node: _Node) -> Value:
    return node.operand(0)


def _cast(node: _Node) -> Value:
    from onnx import TensorProto

    floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
    if node.attribute("to", None) not in floats:
        raise NotExpressible("a program has one type, and this changes it to integers or halves")
    return node.operand(0)


_READERS: Mapping[str, Callable[[_Node], Value | list[Value]]] = MappingProxyType(
    {
        **dict.fromkeys(_FUNCTIONS, _function),
        **dict.fromkeys(_OPERATORS, _pointwise),
        **dict.fromkeys((*_REDUCTIONS, *_TOTALS), _reduction),
        **dict.fromkeys(_FORMULAS, _activation),
        **dict.fromkeys(("Celu", "Elu", "HardSigmoid", "LeakyRelu", "PRelu", "Selu"), _activation),
        "Cast": _cast,
        "Clip": _clip,
        "Dropout": _unchanged,
        "Einsum": _einsum,
        "Equal": _is_zero,
        "Flatten": _flatten,
        "Gather": _gather,
        "Gelu": _gelu,
        "Gemm": _affine,
        "Identity": _unchanged,
        "LayerNormalization": _layernorm,
        "LogSoftmax": _log_softmax,
        "MatMul": _matrix_product,
        "Mean": _mean,
        "Neg": _negative,
        "Not": _is_zero,
        "Pow": _power,
        "RMSNormalization": _rms_norm,
        "Reciprocal": _reciprocal,
        "Reshape": _reshape,
        "Softmax": _softmax,
        "Split": _pieces,
        "Squeeze": _squeeze,
        "Transpose": _transpose,
        "Unsqueeze": _unsqueeze,
        "Where": _choice,
    }
)
