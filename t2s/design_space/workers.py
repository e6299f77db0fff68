"""A function on work items: in this process, in others, or on a cluster by Dask or Ray.

Items travel in batches that take about two seconds, so that a scheduler, which needs milliseconds
for a task, is no bottleneck.  Few batches are under way at a time, so that a best-first search can
still decide what comes next.  Workers may die: no item is lost.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
)
from dataclasses import dataclass
from enum import Enum
from math import ceil
from queue import Empty, SimpleQueue
from types import ModuleType, TracebackType
from typing import Any, Generic, Protocol, TypeVar

from t2s.core.errors import T2SError, UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int
from t2s.explore.parallel import checked_workers

Item = TypeVar("Item")
Value = TypeVar("Value")

MOST_TRIES = 3
"""How often an item is tried whose workers die."""

_BATCHES = 2
"""Batches under way for each worker: one that runs, and one that waits so that it never idles."""

_GROWTH = 4
"""The most by which one measurement makes batches larger."""

_SHARE = 0.1
"""The most that a batch takes of the time until the deadline."""

_RECOUNT = 5.0
"""Seconds after which the workers of a cluster are counted again."""

_PATIENCE = 0.2
"""Seconds between two looks at whether a cluster is still there."""


class Ending(Enum):
    """Why ``completed`` ended."""

    FINISHED = "finished"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    GONE = "executor gone"


class ExecutorGone(UserError):
    """An executor that takes no more work."""


class WorkerDeath(UserError):
    """An item whose workers died each time it was tried, which says nothing about its result."""


@dataclass(frozen=True, kw_only=True)
class Finished(Generic[Item, Value]):
    """An item with its value, or the error of t2s that the function raised."""

    item: Item
    value: Value | None = None
    error: T2SError | None = None


class Workers(Generic[Item, Value]):
    """Runs a function on items that are submitted while results arrive.

    ::

        with Workers(function, executor) as workers:
            workers.submit(first)
            for finished in workers.completed():
                ...
                while workers.room and more:
                    workers.submit(more.pop())

    Parameters
    ----------
    function: a pure function at the top level of a module, or a ``partial`` of one.
    executor: ``None`` runs items in this process, in the order in which they were submitted; a
        number, or ``"processes"`` for one per core, in processes of their own.  Otherwise a
        ``concurrent.futures.Executor``, anything with its ``submit``, a Dask ``Client``, the
        address ``"dask://host:port"`` of a scheduler, or ``"ray"``.
    deadline: when to stop, in seconds of ``time.monotonic()``.
    batch_seconds: how long a batch should take; 0 sends each item on its own.

    Attributes
    ----------
    ending: why ``completed`` ended.  After a deadline or Ctrl-C nothing more is submitted, what has
        not begun is canceled, and ``completed`` yields what has finished.
    """

    def __init__(
        self,
        function: Callable[[Item], Value],
        executor: object = None,
        *,
        deadline: float | None = None,
        batch_seconds: float = 2.0,
    ) -> None:
        self.ending = Ending.FINISHED
        self._function = function
        self._deadline = deadline
        self._batch_seconds = batch_seconds
        self._backend = _backend_of(executor)
        self._backlog: deque[_Task[Item]] = deque()
        self._suspects: deque[_Task[Item]] = deque()
        self._in_flight: dict[Future[Any], list[_Task[Item]]] = {}
        self._arrived: SimpleQueue[Future[Any]] = SimpleQueue()
        self._batch_size = 1
        self._item_seconds: float | None = None

    def __enter__(self) -> Workers[Item, Value]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        unfinished = bool(self._in_flight)
        self._cancel()
        self._in_flight.clear()
        if self._backend is not None:
            self._backend.close(unfinished)

    @property
    def count(self) -> int:
        """The number of workers; those of a cluster may come and go."""
        return 1 if self._backend is None else self._backend.count

    @property
    def room(self) -> int:
        """How many more items keep all workers busy; a best-first search submits no more."""
        if self.ending is not Ending.FINISHED:
            return 0
        waiting = len(self._backlog) + len(self._suspects)
        if self._backend is None:
            return max(1 - waiting, 0)
        waiting += sum(map(len, self._in_flight.values()))
        return max(_BATCHES * self.count * self._batch_size - waiting, 0)

    def submit(self, item: Item) -> None:
        """Add an item; without effect once the workers have been stopped."""
        if self.ending is Ending.FINISHED:
            self._backlog.append(_Task(item))

    def stop_at(self, deadline: float) -> None:
        """Stop then, in seconds of ``time.monotonic()``."""
        self._deadline = deadline

    def stop(self, ending: Ending = Ending.STOPPED) -> None:
        """Submit nothing more and cancel what has not begun; ``completed`` yields the rest."""
        if self.ending is Ending.FINISHED:
            self.ending = ending
            self._cancel()

    def completed(self) -> Iterator[Finished[Item, Value]]:
        """Items in the order in which they finish, until there are none.

        Raises ``UserError`` if the executor is gone, after everything that had finished, and what
        the function raised, with a note that names the item, if it is no ``T2SError``.
        """
        while True:
            try:
                finished = self._serial_step() if self._backend is None else self._step()
            except KeyboardInterrupt:
                self.stop(Ending.INTERRUPTED)
                continue
            if finished is None:
                return
            yield from finished

    def _cancel(self) -> None:
        self._backlog.clear()
        self._suspects.clear()
        for future in tuple(self._in_flight):
            future.cancel()

    def _serial_step(self) -> Sequence[Finished[Item, Value]] | None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.stop(Ending.DEADLINE)
        if not self._backlog:
            return None
        item = self._backlog.popleft().item
        value, error = _run_item(self._function, item)
        return (Finished(item=item, value=value, error=error),)

    def _step(self) -> Sequence[Finished[Item, Value]] | None:
        """What has finished since the last step, after waiting for it; ``None`` at the end."""
        patience = _PATIENCE
        if self._deadline is not None:
            patience = min(patience, self._deadline - time.monotonic())
            if patience <= 0:
                self.stop(Ending.DEADLINE)
        if self.ending is not Ending.FINISHED:
            return self._drained() or None
        assert self._backend is not None
        try:
            self._dispatch(self._backend)
            if not self._in_flight:
                return None
            return self._settled(self._arrived.get(timeout=patience))
        except Empty:
            if (reason := self._backend.gone()) is None:
                return ()
            lost: BaseException = ConnectionError(reason)
        except (BrokenExecutor, CancelledError, _GoneError) as error:
            lost = error
        return self._salvaged(lost)

    def _salvaged(self, lost: BaseException) -> Sequence[Finished[Item, Value]]:
        """What had finished before the executor was gone; raises its error if there is nothing."""
        if finished := self._drained():
            return finished
        known = str(lost) or type(lost).__name__
        self.stop()
        raise ExecutorGone(
            "the executor of the search is gone",
            location=user_location(),
            expected="one that takes work until the search has ended",
            given=known,
            hint="search again with another executor: a journal has what was found",
        ) from lost

    def _drained(self) -> list[Finished[Item, Value]]:
        """Everything that has finished by now, without what was canceled or lost."""
        finished: list[Finished[Item, Value]] = []
        while True:
            try:
                future = self._arrived.get_nowait()
            except Empty:
                return finished
            if self._is_lost(future):
                self._in_flight.pop(future, None)
            else:
                finished += self._settled(future)

    def _is_lost(self, future: Future[Any]) -> bool:
        if future.cancelled():
            return True
        assert self._backend is not None
        error = future.exception()
        return isinstance(error, BrokenExecutor | CancelledError) or (
            error is not None and self._backend.gone() is not None
        )

    def _dispatch(self, backend: _Backend) -> None:
        """Send batches, spread over all workers; a suspect of killing its worker goes alone."""
        while self._suspects and not self._in_flight:
            self._send(backend, [self._suspects.popleft()])
        if self._suspects:
            return
        most = _BATCHES * self.count
        while self._backlog and len(self._in_flight) < most:
            share = ceil(len(self._backlog) / (most - len(self._in_flight)))
            size = min(self._batch_size, share)
            self._send(backend, [self._backlog.popleft() for _ in range(size)])

    def _send(self, backend: _Backend, tasks: list[_Task[Item]]) -> None:
        try:
            future = backend.submit(_run_batch, self._function, [task.item for task in tasks])
        except Exception as error:
            self._backlog.extendleft(reversed(tasks))
            if isinstance(error, BrokenExecutor) and backend.renew():
                return
            if isinstance(error, RuntimeError | OSError) or backend.gone() is not None:
                raise _GoneError(str(error)) from error
            if not isinstance(error, T2SError):
                error.add_note(_named([task.item for task in tasks]))
            raise
        self._in_flight[future] = tasks
        future.add_done_callback(self._arrived.put)

    def _settled(self, future: Future[Any]) -> list[Finished[Item, Value]]:
        """The results of a batch that has ended; its items again if its worker died."""
        tasks = self._in_flight.get(future)
        if tasks is None:  # of a pool that is no more; its items were sent again
            return []
        assert self._backend is not None
        try:
            results, seconds = future.result()
        except BrokenExecutor:
            if not self._backend.renew():
                raise
            return self._retried()
        except CancelledError:
            raise
        except Exception as error:
            if (reason := self._backend.gone()) is not None:
                raise _GoneError(reason) from error
            del self._in_flight[future]
            if not self._backend.died(error):
                error.add_note(_named([task.item for task in tasks]))
                raise
            # the cluster has tried the batch several times itself; but Dask also blames one that
            # only waited for the workers that died, so each item has one more try, alone
            return self._suspected(tasks, MOST_TRIES - 1)
        del self._in_flight[future]
        self._measure(seconds / len(tasks))
        return [
            Finished(item=task.item, value=value, error=error)
            for task, (value, error) in zip(tasks, results, strict=True)
        ]

    def _retried(self) -> list[Finished[Item, Value]]:
        """Send everything that was under way again, after a worker's death broke the pool.

        Batches begin in the order in which they were sent, so the first ones, one for each
        worker, are those that may have killed it.
        """
        batches = [tasks for future, tasks in self._in_flight.items() if not _succeeded(future)]
        survivors = [future for future in self._in_flight if _succeeded(future)]
        finished = [item for future in survivors for item in self._settled(future)]
        self._in_flight.clear()
        waiting = [task for tasks in batches[self.count :] for task in tasks]
        self._backlog.extendleft(reversed(waiting))
        for tasks in reversed(batches[: self.count]):
            finished += self._suspected(tasks)
        return finished

    def _suspected(self, tasks: list[_Task[Item]], least: int = 0) -> list[Finished[Item, Value]]:
        """Try items again whose worker died: together, the last time alone, then no more.

        ``least`` is how many tries at least they have had.
        """
        dead: list[Finished[Item, Value]] = []
        for task in reversed(tasks):
            task.tries = max(task.tries + 1, least)
            if task.tries >= MOST_TRIES:
                dead.append(Finished(item=task.item, error=_death(task.item)))
            elif task.tries == MOST_TRIES - 1:
                self._suspects.appendleft(task)
            else:
                self._backlog.appendleft(task)
        return dead

    def _measure(self, seconds: float) -> None:
        known = self._item_seconds
        self._item_seconds = seconds if known is None else 0.7 * known + 0.3 * seconds
        batch_seconds = self._batch_seconds
        if self._deadline is not None:  # what still runs then is lost
            left = max(self._deadline - time.monotonic(), 0.0)
            batch_seconds = min(batch_seconds, left * _SHARE)
        wanted = int(batch_seconds / max(self._item_seconds, 1e-6))
        self._batch_size = max(1, min(wanted, _GROWTH * self._batch_size))


@dataclass(eq=False)
class _Task(Generic[Item]):
    """An item and how many workers have died of it, perhaps."""

    item: Item
    tries: int = 0


class _GoneError(Exception):
    """``ExecutorGone``, before what had finished was collected."""


def _death(item: object) -> WorkerDeath:
    return WorkerDeath(
        "a work item of the search has no result: its workers died",
        expected="a worker that ends with a result or an error",
        given=f"{MOST_TRIES} dead workers for {_brief(item)}",
        hint="workers die of too little memory, or by signals; try fewer of them",
    )


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _brief(item: object) -> str:
    text = repr(item)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _named(items: Sequence[object]) -> str:
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    return f"while the search worked on {_brief(items[0])}{more}"


# What runs in workers.


def _run_item(
    function: Callable[[Item], Value], item: Item
) -> tuple[Value | None, T2SError | None]:
    try:
        return function(item), None
    except T2SError as error:
        return None, error
    except Exception as error:
        error.add_note(_named([item]))
        raise


def _run_batch(
    function: Callable[[Item], Value], items: list[Item]
) -> tuple[list[tuple[Value | None, T2SError | None]], float]:
    """The values or errors of a batch, and the seconds that it took."""
    start = time.perf_counter()
    try:
        results = [_run_item(function, item) for item in items]
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001 - pickling runs code of users
            # reading it would fail in the driver, which breaks the whole pool
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            plain.__notes__ = list(error.__notes__)
            raise plain from None
        raise
    return results, time.perf_counter() - start


def _ignore_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _is_alive() -> bool:
    return True


# Where batches run.


class _Backend(Protocol):
    """An executor, seen by ``Workers``."""

    @property
    def count(self) -> int:
        """The number of workers."""

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Run a function; ``RuntimeError`` if that is no longer possible."""

    def renew(self) -> bool:
        """Replace a broken pool by a new one, where that is possible."""

    def died(self, error: BaseException) -> bool:
        """Whether the error says that workers died of a batch, and the executor goes on."""

    def gone(self) -> str | None:
        """Why the executor no longer works, if it does not tell by errors; else ``None``."""

    def close(self, unfinished: bool) -> None:
        """Release what ``Workers`` has started itself."""


class _Processes:
    """A pool of processes of our own, started with the first batch."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        if self._pool is None:
            self._pool = self._started()
        return self._pool.submit(function, *arguments)

    def _started(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            self.count, multiprocessing.get_context("spawn"), initializer=_ignore_interrupts
        )
        try:
            pool.submit(_is_alive).result()
        except BrokenExecutor as error:  # before any item, so no item is the cause
            raise UserError(
                "the worker processes of the search do not start",
                location=user_location(),
                expected="a program whose main module can be imported by other processes",
                given=str(error),
                hint='put the search under if __name__ == "__main__":, or use executor=None',
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return pool

    def renew(self) -> bool:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        return True

    def died(self, error: BaseException) -> bool:
        return False

    def gone(self) -> str | None:
        return None

    def close(self, unfinished: bool) -> None:
        if self._pool is None:
            return
        if unfinished:  # nobody waits for their results
            for process in tuple((self._pool._processes or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None


class _Foreign:
    """An executor of the user, which is left running."""

    def __init__(self, executor: Any, workers: int = 1) -> None:
        self._executor = executor
        self._workers = workers

    @property
    def count(self) -> int:
        return self._workers

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def renew(self) -> bool:
        return False

    def died(self, error: BaseException) -> bool:
        return False

    def gone(self) -> str | None:
        return None

    def close(self, unfinished: bool) -> None:
        pass


class _Dask(_Foreign):
    """A Dask client; its scheduler itself gives the work of a dead worker to another one."""

    def __init__(self, client: Any, *, ours: bool) -> None:
        super().__init__(client.get_executor(pure=False))
        self._client = client
        self._ours = ours
        self._counted = -_RECOUNT

    @property
    def count(self) -> int:
        now = time.monotonic()
        if now - self._counted >= _RECOUNT and self.gone() is None:
            self._workers = sum(self._client.ncores().values()) or 1
            self._counted = now
        return self._workers

    def died(self, error: BaseException) -> bool:
        from distributed import KilledWorker

        return isinstance(error, KilledWorker)

    def gone(self) -> str | None:
        status = self._client.status
        return None if status == "running" else f"a Dask client whose connection is {status}"

    def close(self, unfinished: bool) -> None:
        if self._ours:
            self._client.close()


class _Ray(_Foreign):
    """Ray, which tries again itself when a worker dies."""

    def __init__(self, ray: Any, *, ours: bool) -> None:
        super().__init__(ray, max(int(ray.cluster_resources().get("CPU", 1)), 1))
        self._ours = ours
        self._remote = ray.remote(max_retries=MOST_TRIES - 1)(_run_batch)
        self._crashes = (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError)

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        future: Future[Any] = self._remote.remote(*arguments).future()
        return future

    def died(self, error: BaseException) -> bool:
        return isinstance(error, self._crashes)

    def gone(self) -> str | None:
        return None if self._executor.is_initialized() else "Ray, which was shut down"

    def close(self, unfinished: bool) -> None:
        if self._ours:
            self._executor.shutdown()


def _backend_of(executor: object) -> _Backend | None:
    """The executor for what a user may give; ``None`` for this process."""
    match executor:
        case None:
            return None
        case "processes":
            return _Processes(checked_workers(None))
        case "ray":
            return _ray()
        case str() if executor.startswith("dask://"):
            return _dask_at(executor.removeprefix("dask://"))
        case ModuleType(__name__="ray"):
            return _ray()
    count = as_int(executor)
    if count is not None and count >= 1:
        return _Processes(count)
    if hasattr(executor, "get_executor") and hasattr(executor, "ncores"):
        return _Dask(executor, ours=False)
    if count is None and callable(getattr(executor, "submit", None)):
        workers = as_int(getattr(executor, "_max_workers", None))
        return _Foreign(executor, workers or checked_workers(None))
    raise UserError(
        "executor= is nothing that runs a search",
        location=user_location(),
        expected='None, a number of processes, "processes", an Executor of concurrent.futures, a '
        'Dask Client, "dask://host:port" or "ray"',
        given=_brief(executor),
    )


def _dask_at(address: str) -> _Dask:
    try:
        from distributed import Client
    except ImportError as error:
        raise _missing("Dask", "dask") from error
    try:
        client = Client(f"tcp://{address}", timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"no Dask scheduler answers at {address!r}",
            location=user_location(),
            expected="the host and port of a running scheduler",
            given=str(error).splitlines()[0] if str(error) else type(error).__name__,
            hint="dask scheduler prints its address when it starts: tcp://HOST:PORT",
        ) from error
    return _Dask(client, ours=True)


def _ray() -> _Ray:
    try:
        import ray
    except ImportError as error:
        raise _missing("Ray", "ray") from error
    if ours := not ray.is_initialized():
        ray.init(log_to_driver=False)
    return _Ray(ray, ours=ours)


def _missing(library: str, extra: str) -> UserError:
    return UserError(
        f"executor= needs {library}, which is not installed",
        location=user_location(),
        expected=f"the extra {extra!r} of t2s",
        given="a Python without it",
        hint=f"pip install 't2s-spatial[{extra}]'",
    )
