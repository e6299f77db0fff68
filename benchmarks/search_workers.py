"""What a work item of a search costs besides itself: ``python -m benchmarks.search_workers``.

Items do nothing, so all time is overhead: of this process, of two processes, and of two workers of
Dask and Ray where they are installed; in batches, and one by one.  At 30 evaluations in a second
an item takes 33 ms, and the overhead must be at most 5 % of that.  The last lines are the journal.
"""

from __future__ import annotations

import logging
import operator
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from t2s.design_space.journal import Journal, Outcome, Subject
from t2s.design_space.workers import Workers

ITEMS = 20_000
SINGLE = 1_000
MOST = 0.05 / 30
"""Seconds of overhead for an item."""

ROWS = 100_000


def overhead(executor: object, items: int, batch_seconds: float) -> tuple[float, float]:
    """Seconds for an item after the workers have started: of this process, and of the clock."""
    with Workers(operator.neg, executor, batch_seconds=batch_seconds) as workers:
        workers.submit(0)
        assert len(list(workers.completed())) == 1  # they have started
        spent, start = time.process_time(), time.perf_counter()
        number = done = 0
        while number < items and (workers.room or not number):
            workers.submit(number := number + 1)
        for _ in workers.completed():
            done += 1
            while number < items and workers.room:
                workers.submit(number := number + 1)
        assert done == items
        return (time.process_time() - spent) / items, (time.perf_counter() - start) / items


@contextmanager
def dask_client() -> Iterator[object]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def ray_module() -> Iterator[object]:
    import ray

    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    try:
        yield ray
    finally:
        ray.shutdown()


def row(name: str, executor: object) -> None:
    for how, items, batch_seconds in (("in batches", ITEMS, 2.0), ("one by one", SINGLE, 0.0)):
        cpu, wall = overhead(executor, items, batch_seconds)
        print(
            f"{name:16}{how:12}{items:8,}{cpu * 1e6:12,.1f}{wall * 1e6:12,.1f}{MOST * 1e6:10,.0f}"
        )


def journal_rows() -> None:
    subject = Subject(
        version="0", definition="f", definition_digest="", device="d", device_digest=""
    )
    rows = [(subject.key(str(number)), Outcome(cycles=number)) for number in range(ROWS)]
    with (
        tempfile.TemporaryDirectory() as folder,
        Journal(Path(folder) / "search.db", subject) as journal,
    ):
        start = time.perf_counter()
        journal.put(rows)
        written = time.perf_counter()
        assert len(journal.known()) == ROWS
        read = time.perf_counter()
        for number in range(SINGLE):
            journal.put([(f"single {number}", Outcome(cycles=number))])
        single = time.perf_counter()
    print(f"\njournal: {ROWS:,} rows written in {written - start:.2f} s (must 5)", end="")
    print(f", read in {read - written:.2f} s (must 1)", end="")
    print(f", {SINGLE:,} batches of one in {single - read:.2f} s")


def main() -> None:
    print(f"{'executor':16}{'':12}{'items':>8}{'us of CPU':>12}{'us':>12}{'must':>10}")
    row("this process", None)
    row("2 processes", 2)
    if find_spec("distributed") is not None:
        with dask_client() as client:
            row("Dask, 2 workers", client)
    if find_spec("ray") is not None:
        with ray_module() as ray:
            row("Ray, 2 workers", ray)
    journal_rows()


if __name__ == "__main__":
    main()
