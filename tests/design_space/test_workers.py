"""Work items in this process, in threads, in processes that die, and on Dask and Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from t2s.core.errors import T2SError, UserError
from t2s.design_space.journal import Journal, Outcome
from t2s.design_space.workers import Ending, Finished, WorkerDeath, Workers
from tests.design_space.test_journal import SUBJECT

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


class TwoArguments(Exception):
    """An error that pickles, and does not unpickle."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} and {right}")


def square(item: int) -> int:
    if item == 7:
        raise UserError("7 is refused", expected="another number", given="7")
    return item * item


def slow_square(item: int) -> tuple[int, int]:
    time.sleep(0.1)
    return item * item, os.getpid()


def wrong(item: int) -> int:
    if item == 3:
        raise TwoArguments(item, item)
    if item == 4:
        raise ZeroDivisionError("of 4")
    return item


def deadly(item: int) -> int:
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def deadly_once(item: tuple[int, str]) -> int:
    number, path = item
    if number == 3 and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def run(workers: Workers[Any, Any], items: Iterator[Any] | range) -> list[Finished[Any, Any]]:
    with workers:
        for item in items:
            workers.submit(item)
        return list(workers.completed())


def values(finished: list[Finished[Any, Any]]) -> dict[Any, Any]:
    """Values by item, each of which has to be there once."""
    assert max(Counter(one.item for one in finished).values()) == 1
    return {one.item: one.value for one in finished}


@contextmanager
def interrupted_after(seconds: float, workers: Workers[Any, Any]) -> Iterator[None]:
    """Ctrl-C, also in a shell's background processes, which ignore it.

    It is pressed again while the workers have not heard it: Python drops an interrupt that comes
    while a weak reference's callback runs.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press() -> None:
        while workers.ending is not Ending.INTERRUPTED:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_this_process_takes_items_in_order_while_they_are_added() -> None:
    order = []
    with Workers(square) as workers:
        assert (workers.count, workers.room) == (1, 1)
        workers.submit(1)
        assert workers.room == 0
        for finished in workers.completed():
            order.append((finished.item, finished.value))
            for child in (2 * finished.item, 2 * finished.item + 1):
                if child < 7:
                    workers.submit(child)
        assert workers.ending is Ending.FINISHED
    assert order == [(number, number * number) for number in range(1, 7)]
    (refused,) = run(Workers(square), range(7, 8))
    assert str(refused.error).startswith("7 is refused\n")
    assert refused.value is None


@pytest.mark.parametrize("executor", [None, "threads"])
def test_other_errors_name_their_item(executor: str | None) -> None:
    with ThreadPoolExecutor(2) as threads, pytest.raises(ZeroDivisionError, match="of 4") as caught:
        run(Workers(wrong, threads if executor else None), range(4, 6))
    assert caught.value.__notes__[0] == "while the search worked on 4"


@pytest.mark.parametrize("executor", [None, "threads"])
def test_deadlines_and_interrupts_keep_what_has_finished(executor: str | None) -> None:
    with ThreadPoolExecutor(2) as threads:
        chosen = threads if executor else None
        workers = Workers(slow_square, chosen, deadline=time.monotonic() + 0.55)
        assert 3 <= len(values(run(workers, range(1000)))) <= 12
        assert workers.ending is Ending.DEADLINE
    with ThreadPoolExecutor(2) as threads:
        chosen = threads if executor else None
        workers = Workers(slow_square, chosen, batch_seconds=0)
        with interrupted_after(0.35, workers):
            finished = run(workers, range(1000))
        assert 2 <= len(values(finished)) <= 8
        assert (workers.ending, workers.room) == (Ending.INTERRUPTED, 0)
        workers.submit(1)
        assert list(workers.completed()) == []
    assert run(Workers(square, deadline=time.monotonic() - 1), range(9)) == []


class Counting(Executor):
    """Threads that count how many items and batches are under way."""

    def __init__(self) -> None:
        self._max_workers = 2
        self.threads = ThreadPoolExecutor(2)
        self.now = self.most = 0
        self.sizes: list[int] = []

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        self.now += 1
        self.most = max(self.most, self.now)
        self.sizes.append(len(arguments[1]))
        future = self.threads.submit(function, *arguments)
        future.add_done_callback(lambda _: setattr(self, "now", self.now - 1))
        return future


def tick(item: int) -> int:
    time.sleep(0.002)
    return item


def test_batches_follow_measured_times_and_few_are_under_way() -> None:
    executor = Counting()
    with Workers(tick, executor, batch_seconds=0.04) as workers:
        assert (workers.count, workers.room) == (2, 4)
        more, order = list(reversed(range(300))), []
        while workers.room:
            workers.submit(more.pop())
        for finished in workers.completed():
            order.append(finished.item)
            while workers.room and more:
                workers.submit(more.pop())
    executor.threads.shutdown()
    assert sorted(order) == list(range(300))
    assert executor.most <= 4  # two for each worker
    assert executor.sizes[:4] == [1, 1, 1, 1]
    assert 4 < max(executor.sizes) <= 20
    single = Counting()
    run(Workers(tick, single, batch_seconds=0), range(20))
    single.threads.shutdown()
    assert set(single.sizes) == {1}


class Gone(Executor):
    """An executor that ends in the middle, in one of three ways."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.count = 0

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        self.count += 1
        future: Future[Any] = Future()
        if self.count <= 3:
            future.set_result(function(*arguments))
        elif self.how == "refuses":
            raise RuntimeError("cannot schedule new futures after shutdown")
        elif self.how == "breaks":
            future.set_exception(BrokenExecutor("its processes died"))
        else:
            future.cancel()
        return future


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("refuses", "cannot schedule new futures after shutdown"),
        ("breaks", "its processes died"),
        ("cancels", "CancelledError"),
    ],
)
def test_an_executor_that_is_gone_leaves_what_has_finished(how: str, reason: str) -> None:
    finished = []
    with Workers(square, Gone(how), batch_seconds=0) as workers:
        for item in range(6):
            workers.submit(item)
        with pytest.raises(UserError) as caught:
            finished.extend(workers.completed())
    assert values(finished) == {0: 0, 1: 1, 2: 4}
    assert str(caught.value).startswith("the executor of the search is gone\n")
    assert f"given:    {reason}\n" in str(caught.value)


class Blaming(Executor):
    """A client of Dask that blames 5 for dead workers, and 4, which waited for them, once."""

    status = "running"

    def __init__(self) -> None:
        self.sent: list[list[int]] = []

    def get_executor(self, *, pure: bool) -> Executor:
        return self

    def ncores(self) -> dict[str, int]:
        return {"one": 1, "other": 1}

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        from distributed import KilledWorker

        _, items = arguments
        future: Future[Any] = Future()
        if items == [5] or (items == [4] and items not in self.sent):
            future.set_exception(KilledWorker("batch", None, 3))
        else:
            future.set_result(function(*arguments))
        self.sent.append(items)
        return future


@needs_dask
def test_an_item_that_waited_for_a_dead_worker_is_tried_alone() -> None:
    cluster = Blaming()
    finished = run(Workers(abs, cluster, batch_seconds=0), range(3, 8))
    assert values(finished) == {3: 3, 4: 4, 5: None, 6: 6, 7: 7}
    assert [type(one.error) for one in finished if one.error] == [WorkerDeath]
    assert sorted(cluster.sent) == [[3], [4], [4], [5], [5], [6], [7]]


def test_executors_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for executor in (0, -1, True, "threads", 2.5, object()):
        with pytest.raises(UserError, match="executor= is nothing that runs a search"):
            Workers(square, executor)
    for executor, library, extra in (
        ("dask://localhost:1", "distributed", "dask"),
        ("ray", "ray", "ray"),
    ):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(UserError) as caught:
            Workers(square, executor)
        assert f"hint:     pip install 't2s-spatial[{extra}]'" in str(caught.value)


def test_this_module_loads_no_cluster() -> None:
    program = (
        "import sys, t2s.design_space.workers; "
        "print({'dask', 'distributed', 'ray'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "set()\n"


def test_processes() -> None:
    finished = run(Workers(square, 2), range(20))
    assert values(finished) == {item: item * item if item != 7 else None for item in range(20)}
    (refused,) = (one.error for one in finished if one.error is not None)
    assert type(refused) is UserError
    assert str(refused) == "7 is refused\n  expected: another number\n  given:    7"


@pytest.mark.slow
def test_errors_of_processes_that_cannot_be_read() -> None:
    with pytest.raises(RuntimeError, match="TwoArguments: 3 and 3") as caught:
        run(Workers(wrong, 1), range(3, 4))
    assert caught.value.__notes__[0] == "while the search worked on 3"


@pytest.mark.slow
def test_an_item_that_kills_its_worker_three_times_is_an_outcome() -> None:
    finished = run(Workers(deadly, 2), range(40))
    assert values(finished) == {item: item if item != 5 else None for item in range(40)}
    (death,) = (one.error for one in finished if one.error is not None)
    assert isinstance(death, WorkerDeath)
    assert "given:    3 dead workers for 5\n" in str(death)


@pytest.mark.slow
def test_a_worker_that_is_killed_once_loses_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "killed")
    finished = run(Workers(deadly_once, 2), iter([(number, path) for number in range(40)]))
    assert values(finished) == {(number, path): number for number in range(40)}


@pytest.mark.slow
def test_ctrl_c_ends_processes_at_once() -> None:
    workers: Workers[int, Any] = Workers(slow_square, 2)
    start = time.monotonic()
    with interrupted_after(4, workers):
        finished = run(workers, range(10_000))
    assert workers.ending is Ending.INTERRUPTED
    assert values(finished)
    assert time.monotonic() - start < 9


@pytest.mark.slow
def test_a_program_without_a_guard_is_told_about_it(tmp_path: Path) -> None:
    program = tmp_path / "search.py"
    program.write_text(
        "from t2s.design_space.workers import Workers\n"
        "with Workers(abs, 1) as workers:\n"
        "    workers.submit(-1)\n"
        "    print([one.value for one in workers.completed()])\n"
    )
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert "the worker processes of the search do not start" in run.stderr
    assert 'hint:     put the search under if __name__ == "__main__":' in run.stderr


# On clusters.


def journaled(path: Path, executor: object, stop: Callable[[int, Any], None]) -> int:
    """Run what is missing of 40 items, and count it; ``stop`` is told of each result."""
    computed = 0
    with Journal(path, SUBJECT) as journal:
        known = journal.known()
        with Workers(slow_square, executor, batch_seconds=0) as workers:
            for item in range(40):
                if SUBJECT.key(str(item)) not in known:
                    workers.submit(item)
            for finished in workers.completed():
                assert finished.value is not None
                cycles, process = finished.value
                computed += 1
                key = SUBJECT.key(str(finished.item))
                assert journal.put([(key, Outcome(cycles=cycles))]) == 1  # never twice
                stop(computed, process)
    return computed


def never(computed: int, process: int) -> None:
    pass


def everything(path: Path) -> bool:
    with Journal(path, SUBJECT) as journal:
        return journal.known() == {
            SUBJECT.key(str(item)): Outcome(cycles=item * item) for item in range(40)
        }


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask, about ports and closed connections
def test_dask_loses_nothing_with_a_worker(cluster: Any, tmp_path: Path) -> None:
    from distributed import Client

    def kill(computed: int, process: int) -> None:
        if computed == 6:
            os.kill(process, signal.SIGKILL)

    path = tmp_path / "search.db"
    with Client(cluster) as client:
        assert Workers(square, client).count == 2
        assert journaled(path, client, kill) == 40
        assert everything(path)
        refused = run(Workers(square, client), range(6, 9))
        assert {one.item: str(one.error)[:12] for one in refused if one.error} == {
            7: "7 is refused"
        }
        with pytest.raises(ZeroDivisionError) as caught:
            run(Workers(wrong, client), range(4, 5))
        assert "while the search worked on 4" in caught.value.__notes__


DRIVER = """
import os, signal, sys
from pathlib import Path
from tests.design_space.test_workers import journaled

def kill(computed, process):
    if computed == 25:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    journaled(Path(sys.argv[1]), sys.argv[2], kill)
"""


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_driver_goes_on_where_it_was(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    command = [sys.executable, "-c", DRIVER, str(path), address]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert journaled(path, address, never) == 15
    assert everything(path)


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_is_gone() -> None:
    from distributed import Client, LocalCluster

    with pytest.raises(UserError, match=r"no Dask scheduler answers at '127\.0\.0\.1:9'"):
        Workers(square, "dask://127.0.0.1:9")
    finished = []
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    client = Client(cluster)

    def watch(one: Finished[Any, Any]) -> Finished[Any, Any]:
        if one.item == 5:
            client.close()
            cluster.close()
        return one

    with Workers(slow_square, client, batch_seconds=0) as workers:
        for item in range(40):
            workers.submit(item)
        with pytest.raises(UserError, match="the executor of the search is gone"):
            finished.extend(map(watch, workers.completed()))
    assert 5 <= len(values(finished)) < 40


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_item_that_kills_workers_of_dask(cluster: Any) -> None:
    from distributed import Client

    with Client(cluster) as client:
        finished = run(Workers(deadly, client), range(3, 8))
    assert values(finished) == {3: 3, 4: 4, 5: None, 6: 6, 7: 7}
    assert [type(one.error) for one in finished if one.error] == [WorkerDeath]


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray() -> None:
    finished = run(Workers(square, "ray"), range(20))
    assert values(finished) == {item: item * item if item != 7 else None for item in range(20)}
    assert [isinstance(one.error, T2SError) for one in finished if one.error] == [True]
    import ray

    assert not ray.is_initialized()  # it was started for the search
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    try:
        finished = run(Workers(deadly, ray), range(3, 8))
        assert ray.is_initialized()
    finally:
        ray.shutdown()
    assert values(finished) == {3: 3, 4: 4, 5: None, 6: 6, 7: 7}
    assert [type(one.error) for one in finished if one.error] == [WorkerDeath]
