"""A fixed sample of the algorithms that users gave to the TACO website."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sam.website import Algorithm, read_list, run

SAMPLE = Path(__file__).parent / "data" / "website_sample.txt"
ALGORITHMS = list(read_list(SAMPLE.read_text(encoding="utf-8").splitlines()))
SINGLETON = "ill-formed: a singleton level for fibers of several coordinates"

# the only ones of the sample that mean nothing: singleton levels below nothing, or below a level
# that is unique, hold one coordinate in each fiber, and random tensors have others
ILL_FORMED = {
    '"A(i,j,k)=B(i,j,k)+C(i,j,k)" -f=A:ddd:0,1,2 -f=B:sss:0,1,2 -f=C:scc:0,1,2',
    '"y(i)=A(i,j)*x(j)" -f=y:d:0 -f=A:ds:0,1 -f=x:q:0',
    '"C(m,n)=A(m,k)*B(k,n)" -f=C:dd:0,1 -f=A:cd:0,1 -f=B:dd:0,1',
    '"y(i)=A(i,j)*x(j)" -f=y:d:0 -f=A:du:0,1 -f=x:c:0',
    '"A(l,i,j)=B(l,i,k)*C(l,k,j)" -f=A:ddd:0,1,2 -f=B:ccq:0,1,2 -f=C:ddd:0,1,2',
    '"y(i)=A(i,j)*x(j,k)" -f=y:d:0 -f=A:ds:0,1 -f=x:dc:0,1',
    '"y(i)=A(i,j)*x(j)" -f=y:d:0 -f=A:qs:1,0 -f=x:d:0',
}


@pytest.mark.parametrize("part", range(10))
def test_right_or_ill_formed(part: int) -> None:
    for algorithm in ALGORITHMS[part::10]:
        outcome = run(algorithm, "blocks")
        expected = SINGLETON if algorithm.command in ILL_FORMED else "ok"
        assert outcome.kind == expected, f"{algorithm.command}\n{outcome.text}"


@pytest.mark.parametrize("algorithm", ALGORITHMS[5:300:60], ids=lambda a: a.expression)
def test_on_machines(algorithm: Algorithm) -> None:
    outcome = run(algorithm, "python")
    assert outcome.kind == "ok", outcome.text


def test_the_sample_is_what_it_says() -> None:
    assert len({algorithm.command for algorithm in ALGORITHMS}) == 300
