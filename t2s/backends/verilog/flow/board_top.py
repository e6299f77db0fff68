"""The top of a board: a reset at power-on, lights, and a serial port around a self test."""

from __future__ import annotations

from t2s.backends.text.expressions import Binary, If, Name, TargetExpression, Unary, number
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.flow.constraints import Pin
from t2s.backends.verilog.flow.parts import Board
from t2s.backends.verilog.flow.self_test import CYCLES, DONE, PASSED

TOP = "board"
LIBRARY = ("serial.sv",)
_BAUD = 115_200
_RESET_CYCLES = 64
_RESET_BITS = _RESET_CYCLES.bit_length()


def board_top(board: Board, test: str) -> ast.HardwareModule:
    """The module ``board``, for the self test of that name.

    The first LED is on if all results are right, the second one if some are not; the serial port
    sends ``t2s pass`` or ``t2s fail`` and the cycles in hexadecimal, with 115,200 baud.
    """
    failed = ast.both(Name(name=DONE), ast.negation(Name(name=PASSED)))
    lights: list[tuple[str, TargetExpression]] = [("led_passed", Name(name=PASSED))]
    lights += [] if board.failed is None else [("led_failed", failed)]
    ports = [ast.input_port("clock"), *(ast.output_port(name) for name, _ in lights)]
    ports.append(ast.output_port("transmit"))
    ports += [ast.output_port(f"high_{at}") for at in range(len(board.high))]
    counted = Binary(operator="+", left=Name(name="counted"), right=number(1))
    return ast.HardwareModule(
        name=TOP,
        about=(f"The self test on a board: {board.description}.",),
        ports=tuple(ports),
        items=(
            ast.Declaration(
                variable=ast.Signal(
                    name="counted",
                    type=ast.Bits(width=_RESET_BITS),
                    initial=number(0),
                )
            ),
            *(ast.variable(name) for name in ("reset", DONE, PASSED)),
            ast.variable(CYCLES, ast.WORD),
            ast.AlwaysFF(
                body=(
                    ast.put("reset", ast.TRUE, clocked=True),
                    If(
                        condition=Binary(
                            operator="==", left=Name(name="counted"), right=number(_RESET_CYCLES)
                        ),
                        then=(ast.put("reset", ast.FALSE, clocked=True),),
                        otherwise=(ast.put("counted", counted, clocked=True),),
                    ),
                )
            ),
            ast.Instance(
                module=test,
                name="test",
                connections=tuple(
                    (name, Name(name=name)) for name in ("clock", "reset", DONE, PASSED, CYCLES)
                ),
            ),
            ast.Instance(
                module="serial",
                name="line",
                parameters=(("CLOCKS", number(round(board.clock_mhz * 1e6 / _BAUD))),),
                connections=tuple(
                    (name, Name(name=name))
                    for name in ("clock", "reset", DONE, PASSED, CYCLES, "transmit")
                ),
            ),
            *(
                ast.ContinuousAssignment(target=Name(name=name), value=_lit(board, value))
                for name, value in lights
            ),
            *(
                ast.ContinuousAssignment(target=Name(name=f"high_{at}"), value=ast.TRUE)
                for at in range(len(board.high))
            ),
        ),
    )


def _lit(board: Board, value: TargetExpression) -> TargetExpression:
    return value if board.lit_by else Unary(operator="!", operand=value)


def pins_of(board: Board) -> list[tuple[str, Pin]]:
    """The ports of the top with their pins, the clock first."""
    pins: list[tuple[str, Pin]] = [("clock", board.clock), ("led_passed", board.passed)]
    pins += [] if board.failed is None else [("led_failed", board.failed)]
    pins.append(("transmit", board.transmit))
    return [*pins, *((f"high_{at}", pin) for at, pin in enumerate(board.high))]
