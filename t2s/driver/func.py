"""``Func``: definitions and directives, with the verbs as methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import T2SError
from t2s.core.renaming import by_name
from t2s.driver.hardware import emulate
from t2s.driver.lower import interpret, lower, print_loop_nest, resources
from t2s.driver.program import program
from t2s.driver.simulate import simulate
from t2s.func.expressions import unknown_directive
from t2s.func.func import split_names
from t2s.graph.graph import Graph
from t2s.spatial.schedule import Place
from t2s.spatial.sparse_directives import SparseFunc

if TYPE_CHECKING:
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.random_stalls import RandomStalls
    from t2s.simulator.report.result import SimResult


class Func(SparseFunc, NotebookDisplay):
    """A function: definitions by assignment, directives as methods, and the ways to run it.

    ``Func("C")``; the element type follows from the definitions unless ``type`` declares it.
    """

    def _card(self) -> NotebookCard:
        """The loop nest, or what is missing for one."""
        try:
            loops = Preformatted(title="", text=print_loop_nest(self))
        except T2SError as error:
            loops = Preformatted(title="No loop nest yet.", text=str(error))
        return NotebookCard(title=f"Func {self.name}", parts=(loops,))

    def __getattr__(self, attribute: str) -> NoReturn:
        """Called for unknown names only: Halide's directives, and misspelled ones."""
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        known = [name for name in dir(type(self)) if not name.startswith("_")]
        raise unknown_directive(self.__dict__.get("name", "?"), attribute, known)

    def lower(self, inputs: Mapping[str, Any] | None = None, **keywords: Any) -> Graph:
        """The PE/channel graph; see ``t2s.lower``."""
        return lower(self, by_name("lower", inputs, keywords))

    def print_loop_nest(self, inputs: Mapping[str, Any] | None = None, **keywords: Any) -> str:
        """The loop nests of the schedule; see ``t2s.print_loop_nest``."""
        return print_loop_nest(self, by_name("print_loop_nest", inputs, keywords))

    def program(self) -> str:
        """The definition and directives as Python text; see ``t2s.program``."""
        return program(self)

    def interpret(self, inputs: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        """Compute with numpy, ignoring the directives; see ``t2s.interpret``."""
        return interpret(self, inputs)

    def simulate(
        self,
        inputs: Mapping[str, Any],
        *,
        device: str | Device = "ideal",
        memory: str | Dram | None = None,
        engine: str = "native",
        max_cycles: int | None = None,
        progress: bool | None = None,
        stalls: RandomStalls | None = None,
    ) -> SimResult:
        """Lower and simulate; see ``t2s.simulate``."""
        return simulate(
            self,
            inputs,
            device=device,
            memory=memory,
            engine=engine,
            max_cycles=max_cycles,
            progress=progress,
            stalls=stalls,
        )

    def resources(self, *, device: str | Device = "arria10") -> ResourceReport:
        """Lower and estimate DSP and RAM blocks; see ``t2s.resources``."""
        return resources(self, device=device)

    def emulate(
        self,
        inputs: Mapping[str, Any],
        *,
        backend: str = "opencl_fpga",
        exact_depths: bool = False,
        time_limit: float = 60.0,
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Lower and run what a backend emits on this computer; see ``t2s.emulate``."""
        return emulate(
            self, inputs, backend=backend, exact_depths=exact_depths, time_limit=time_limit
        )


def funcs(names: str, place: Place = Place.DEVICE) -> tuple[Func, ...]:
    """Several Funcs at once: ``A_loader, A_feeder = t2s.funcs("A_loader A_feeder")``."""
    return tuple(Func(name, place=place) for name in split_names("funcs", names))
