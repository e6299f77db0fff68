"""Operations of models that are formulas of others: activations, norms, sums of exponentials."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.ops import Op
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.models.statements import StatementWriter, Value
from t2s.sparse_repr.notation.ir import RowFunction


def leaky_relu(writer: StatementWriter, value: Value, slope: Value) -> Value:
    """``value`` where it is positive, and ``slope`` times it elsewhere."""
    value = writer.stored(value)
    below = writer.function(Function.RELU, writer.negative(value))
    falls = writer.pointwise(Op.MULTIPLY, slope, below)
    return writer.pointwise(Op.SUBTRACT, writer.function(Function.RELU, value), falls)


def elu(
    writer: StatementWriter, value: Value, scale: float, *, width: float = 1.0, gain: float = 1.0
) -> Value:
    """``gain`` times the value where it is positive, and ``scale * (exp(value / width) - 1)``."""
    value = writer.stored(value)
    negative = writer.pointwise(Op.MINIMUM, value, writer.number(0))
    if width != 1:
        negative = writer.pointwise(Op.DIVIDE, negative, writer.number(width))
    grown = writer.function(Function.EXPONENTIAL, negative)
    below = writer.pointwise(Op.SUBTRACT, grown, writer.number(1))
    positive = writer.function(Function.RELU, value)
    return writer.pointwise(Op.ADD, _times(writer, gain, positive), _times(writer, scale, below))


def softplus(writer: StatementWriter, value: Value) -> Value:
    """``log(1 + exp(value))``, of exponentials that do not overflow."""
    value = writer.stored(value)
    size = writer.function(Function.ABSOLUTE, value)
    small = writer.function(Function.EXPONENTIAL, writer.negative(size))
    rest = writer.function(Function.LOGARITHM, writer.pointwise(Op.ADD, writer.number(1), small))
    return writer.pointwise(Op.ADD, writer.function(Function.RELU, value), rest)


def softsign(writer: StatementWriter, value: Value) -> Value:
    """``value / (1 + abs(value))``."""
    value = writer.stored(value)
    size = writer.function(Function.ABSOLUTE, value)
    return writer.pointwise(Op.DIVIDE, value, writer.pointwise(Op.ADD, writer.number(1), size))


def hard_sigmoid(
    writer: StatementWriter, value: Value, *, slope: float = 1 / 6, offset: float = 0.5
) -> Value:
    """``slope * value + offset``, from 0 to 1."""
    line = writer.pointwise(Op.ADD, _times(writer, slope, value), writer.number(offset))
    above = writer.pointwise(Op.MAXIMUM, line, writer.number(0))
    return writer.pointwise(Op.MINIMUM, above, writer.number(1))


def hard_swish(writer: StatementWriter, value: Value) -> Value:
    """A value times its ``hard_sigmoid``."""
    value = writer.stored(value)
    return writer.pointwise(Op.MULTIPLY, value, hard_sigmoid(writer, value))


def mish(writer: StatementWriter, value: Value) -> Value:
    """``value * tanh(softplus(value))``."""
    value = writer.stored(value)
    factor = writer.function(Function.HYPERBOLIC_TANGENT, softplus(writer, value))
    return writer.pointwise(Op.MULTIPLY, value, factor)


def log_softmax(writer: StatementWriter, value: Value, along: int) -> Value:
    """The logarithm of softmax, also where softmax itself is too small for a number."""
    value = writer.stored(value)
    largest = writer.of_row(RowFunction.MAXIMUM, value, [along])
    below = writer.stored(writer.pointwise(Op.SUBTRACT, value, largest))
    grown = writer.function(Function.EXPONENTIAL, below)
    total = writer.total(f"{value.name}_sum", grown, [along], keeps=True)
    return writer.pointwise(Op.SUBTRACT, below, writer.function(Function.LOGARITHM, total))


def log_sum_exp(
    writer: StatementWriter, name: str, value: Value, along: Sequence[int], *, keeps: bool
) -> Value:
    """The logarithm of a sum of exponentials, none of which overflows."""
    value = writer.stored(value)
    largest = writer.stored(writer.of_row(RowFunction.MAXIMUM, value, along))
    below = writer.pointwise(Op.SUBTRACT, value, largest)
    grown = writer.function(Function.EXPONENTIAL, below)
    total = writer.total(f"{name}_sum", grown, along, keeps=True)
    found = writer.pointwise(Op.ADD, writer.function(Function.LOGARITHM, total), largest)
    if keeps:
        return found
    row = {at % len(value.axes) for at in along}
    left = [extent for at, extent in enumerate(value.shape) if at not in row]
    return writer.reshape(found, left)


def root_mean_square_norm(
    writer: StatementWriter, value: Value, along: Sequence[int], epsilon: float
) -> Value:
    """A value divided by the root of the mean square along some axes."""
    value = writer.stored(value)
    square = writer.pointwise(Op.MULTIPLY, value, value)
    mean = writer.of_row(RowFunction.MEAN, square, along)
    sum_of_both = writer.pointwise(Op.ADD, mean, writer.number(epsilon))
    factor = writer.function(Function.RECIPROCAL_SQUARE_ROOT, sum_of_both)
    return writer.pointwise(Op.MULTIPLY, value, factor)


def _times(writer: StatementWriter, factor: float, value: Value) -> Value:
    return value if factor == 1 else writer.pointwise(Op.MULTIPLY, writer.number(factor), value)
