"""One command for each job: ``nox -l`` lists them, CONTRIBUTING.md says when to use them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True

LATEST = "3.13"


def _installed(session: nox.Session) -> None:
    session.install("-e", ".[test]")


@nox.session(python=["3.11", LATEST])
def tests(session: nox.Session) -> None:
    """The tests, on all cores; arguments go to pytest."""
    _installed(session)
    session.run("python", "-m", "pytest", "-n", "auto", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Mistakes, formatting, and the rules of the house: who imports whom, what files are called."""
    _installed(session)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "-m", "pytest", "-q", "-m", "structure")


@nox.session
def types(session: nox.Session) -> None:
    """Types of the package."""
    _installed(session)
    session.run("mypy", "t2s")


@nox.session
def golden(session: nox.Session) -> None:
    """Write golden files and the texts of documents anew; read the diff."""
    _installed(session)
    session.run("python", "-m", "pytest", "--update-golden", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site, in the folder ``site``; what leads nowhere is an error."""
    session.install("-e", ".[docs]")
    session.run("python", "-m", "mkdocs", "build", "--strict", *session.posargs)


@nox.session
def benchmark(session: nox.Session) -> None:
    """A benchmark by its name, such as ``engine``, alone on the machine."""
    _installed(session)
    name, *arguments = session.posargs or ["engine"]
    session.run("python", "-m", f"benchmarks.{name}", *arguments)


@nox.session
def hunt(session: nox.Session) -> None:
    """Hunt for wrong numbers: ``nox -s hunt -- dense --count 1000``."""
    _installed(session)
    session.run("python", "-m", "benchmarks.hunt", *(session.posargs or ["dense"]))


@nox.session
def packages(session: nox.Session) -> None:
    """Build the sdist and, from it, the wheel; install each into a new place, and use it there."""
    session.install("build")
    session.run("python", "-m", "build")
    version = nox.project.load_toml("pyproject.toml")["project"]["version"]
    for suffix in ("-py3-none-any.whl", ".tar.gz"):
        session.install("--force-reinstall", str(Path("dist") / f"t2s-{version}{suffix}"))
        example = Path("examples/gemm/gemm.py").resolve()
        with tempfile.TemporaryDirectory() as elsewhere, session.chdir(elsewhere):
            session.run("t2s", "run", str(example))
