"""Models of other frameworks: their program, with the weights, in the shapes of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.driver.program_result import ProgramResult
from t2s.driver.statement_program import Program, checked_formats, program_of_text
from t2s.sparse_repr.formats import Format, csr
from t2s.sparse_repr.models.onnx_reader import load_onnx, statements_of_onnx
from t2s.sparse_repr.models.statements import ModelStatements
from t2s.sparse_repr.models.torch_reader import export_torch, statements_of_torch

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, kw_only=True, repr=False)
class ImportedModel(NotebookDisplay):
    """The program of a model.

    The tensors of the program have the axes of the model, without those of extent 1, and with those
    in parts that a reshape of the model divides; ``operands`` and ``outputs`` convert.

    Attributes
    ----------
    program: the statements, which all verbs take.
    text: the same as a text for ``t2s.sparse.program``.
    shapes: those of the program's tensors, by name.
    weights: the arrays of the model, by tensor of the program.
    inputs: for each input of the model its shape there.
    """

    program: Program
    text: str
    shapes: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, Array]
    inputs: Mapping[str, tuple[int, ...]]
    _statements: ModelStatements
    _expected: Callable[[Mapping[str, Array]], Mapping[str, Array]]

    def __repr__(self) -> str:
        return f"<ImportedModel {', '.join(self.inputs)} -> {', '.join(self._statements.outputs)}>"

    def __str__(self) -> str:
        return self.text

    def _card(self) -> NotebookCard:
        summary = (("inputs", ", ".join(self.inputs)), ("weights", ", ".join(self.weights)))
        parts = (Preformatted(title="", text=self.text),)
        return NotebookCard(title="Model", summary=summary, parts=parts)

    def operands(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of the program: arrays of the model, by its names, and the weights.

        Raises ``UserError`` for inputs that are missing, or have another shape.
        """
        arrays = self._arrays(inputs)
        read = {
            tensor: arrays[name].reshape(self.shapes[tensor])
            for name, (tensor, _) in self._statements.inputs.items()
            if tensor in self.shapes
        }
        return {**self.weights, **read}

    def outputs(self, result: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs of the model, by its names and in its shapes, of a result of the program."""
        return {
            name: np.asarray(result[tensor]).reshape(shape)
            for name, (tensor, shape) in self._statements.outputs.items()
        }

    def simulate(self, inputs: Mapping[str, Any], **options: Any) -> ProgramResult:
        """Run the program; options are those of ``Program.simulate``."""
        return self.program.simulate(self.operands(inputs), **options)

    def expected(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs that the model itself gives, by ONNX's reference or by PyTorch."""
        return dict(self._expected(self._arrays(inputs)))

    def _arrays(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """The inputs of the model as arrays.  Raises ``UserError`` unless they are as it says."""
        missing = [name for name in self.inputs if name not in inputs]
        unknown = [name for name in inputs if name not in self.inputs]
        if missing or unknown:
            raise UserError(
                f"{missing[0]} is missing" if missing else f"the model has no input {unknown[0]}",
                location=user_location(),
                expected=f"arrays of {', '.join(self.inputs) or 'no inputs'}",
                given=", ".join(map(str, inputs)) or "nothing",
            )
        arrays = {}
        for name, shape in self.inputs.items():
            array = np.asarray(inputs[name])
            if array.shape != shape:
                raise UserError(
                    f"{name} has another shape than in the model",
                    location=user_location(),
                    expected=f"an array of shape {shape}",
                    given=f"one of shape {array.shape}",
                )
            arrays[name] = array
        return arrays


def from_onnx(
    model: Any,
    *,
    formats: Mapping[str, Format | str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> ImportedModel:
    """The program of an ONNX model, a file or an ``onnx.ModelProto``.

    ``formats`` are of tensors of the program (``print`` shows them), such as ``{"A": "ds"}``;
    weights that the model stores as sparse tensors are in compressed rows without.  ``shapes`` are
    those of inputs that the model leaves open.  Needs the extra ``t2s-spatial[onnx]``.

    Raises ``UserError`` for operations and shapes that index notation does not have, with their
    place in the model.
    """
    location = user_location()
    proto = load_onnx(model, location)
    statements = statements_of_onnx(proto, shapes or {}, location)

    def expected(inputs: Mapping[str, Array]) -> dict[str, Array]:
        from onnx.reference import ReferenceEvaluator

        names = [output.name for output in proto.graph.output]
        found = ReferenceEvaluator(proto).run(names, dict(inputs))
        return dict(zip(names, map(np.asarray, found), strict=True))

    return _imported(statements, formats, expected, location)


def from_torch(
    module: Any,
    arguments: Sequence[Any],
    *,
    formats: Mapping[str, Format | str] | None = None,
) -> ImportedModel:
    """The program of a ``torch.nn.Module`` in evaluation, for arguments of these shapes.

    ``torch.export`` makes the graph of operators; ``formats`` are as for ``from_onnx``.  PyTorch
    is not in an extra, since its wheels are of many kinds: any installation that exports will do.

    Raises ``UserError`` for operators and shapes that index notation does not have, with their
    place in the model.
    """
    location = user_location()
    exported = export_torch(module, arguments, location)
    statements = statements_of_torch(exported, location)

    def expected(inputs: Mapping[str, Array]) -> dict[str, Array]:
        import torch

        with torch.no_grad():
            found = module(*(torch.from_numpy(inputs[name]) for name in statements.inputs))
        found = found if isinstance(found, tuple | list) else (found,)
        arrays = (each.cpu().numpy() for each in found)
        return dict(zip(statements.outputs, arrays, strict=True))

    return _imported(statements, formats, expected, location)


def _imported(
    statements: ModelStatements,
    formats: Mapping[str, Format | str] | None,
    expected: Callable[[Mapping[str, Array]], Mapping[str, Array]],
    location: SourceLocation,
) -> ImportedModel:
    of_tensors: dict[str, Format | str] = {
        name: csr for name in sorted(statements.sparse) if len(statements.shapes[name]) == 2
    }
    for name, format in (formats or {}).items():
        if name not in statements.shapes:
            raise UserError(
                f"the program has no tensor {name}",
                location=location,
                expected=f"formats of {', '.join(statements.shapes)}",
                given=f"formats={{{name!r}: ...}}",
            )
        of_tensors[name] = format
    given = checked_formats(of_tensors, location)
    for name, format in given.items():
        if format.order != len(statements.shapes[name]):
            raise UserError(
                f"the format of {name} has {format.order} levels",
                location=location,
                expected=f"one for each of its {len(statements.shapes[name])} axes in the program, "
                f"of extents {statements.shapes[name]}",
                given=str(format),
                hint="axes of extent 1 have no level, and axes that a reshape divides have several",
            )
    program = program_of_text(statements.text, given, statements.shapes, location)
    read = {name for statement in program.program.statements for name in statement.reads}
    given_too = [tensor for tensor, _ in statements.outputs.values() if tensor in read]
    return ImportedModel(
        program=program.store(*given_too) if given_too else program,
        text=statements.text,
        shapes=statements.shapes,
        weights=statements.weights,
        inputs={name: shape for name, (_, shape) in statements.inputs.items()},
        _statements=statements,
        _expected=expected,
    )
