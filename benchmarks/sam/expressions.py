"""The expressions of [SAM, Table 1], and the blocks published for each."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.sparse import Kernel, Schedule, parse
from t2s.sparse_repr.lowering.diagram import PUBLISHED_KINDS

COLUMNS = PUBLISHED_KINDS


@dataclass(frozen=True)
class Row:
    """An expression, its formats, the order of its loops and its blocks, by ``COLUMNS``."""

    name: str
    expression: str
    formats: str
    order: str
    published: tuple[int, ...]
    reason: str = ""

    def kernel(self) -> Kernel:
        """The expression, compiled."""
        assignment = parse(self.expression, self.formats.split())
        return Kernel(assignment, Schedule().scan().reorder(self.order))


TABLE = [
    Row("SpMV", "x(i)=B(i,j)*c(j)", "B:ss c:s x:s", "i j", (3, 1, 1, 0, 1, 1, 1, 2, 2)),
    Row(
        "SpM*SpM ijk", "X(i,j)=B(i,k)*C(k,j)", "B:ss C:ss:1,0 X:ss", "i j k",
        (4, 2, 1, 0, 1, 1, 2, 3, 2),
    ),
    Row(
        "SpM*SpM jik", "X(i,j)=B(i,k)*C(k,j)", "B:ss C:ss:1,0 X:ss:1,0", "j i k",
        (4, 2, 1, 0, 1, 1, 2, 3, 2),
    ),
    Row(
        "SpM*SpM ikj", "X(i,j)=B(i,k)*C(k,j)", "B:ss C:ss X:ss", "i k j",
        (4, 2, 1, 0, 1, 1, 1, 3, 2),
    ),
    Row(
        "SpM*SpM jki", "X(i,j)=B(i,k)*C(k,j)", "B:ss:1,0 C:ss:1,0 X:ss:1,0", "j k i",
        (4, 2, 1, 0, 1, 1, 1, 3, 2),
    ),
    Row(
        "SpM*SpM kij", "X(i,j)=B(i,k)*C(k,j)", "B:ss:1,0 C:ss X:ss", "k i j",
        (4, 2, 1, 0, 1, 1, 0, 3, 2),
    ),
    Row(
        "SpM*SpM kji", "X(i,j)=B(i,k)*C(k,j)", "B:ss:1,0 C:ss X:ss:1,0", "k j i",
        (4, 2, 1, 0, 1, 1, 0, 3, 2),
    ),
    Row(
        "SDDMM", "X(i,j)=B(i,j)*C(i,k)*D(j,k)", "B:ss C:ss D:ss X:ss", "i j k",
        (6, 3, 3, 0, 2, 1, 2, 3, 3),
    ),
    Row("InnerProd", "x=B(i,j,k)*C(i,j,k)", "B:sss C:sss", "i j k", (6, 0, 3, 0, 1, 3, 0, 1, 2)),
    Row(
        "TTV", "X(i,j)=B(i,j,k)*c(k)", "B:sss c:s X:ss", "i j k", (4, 2, 1, 0, 1, 1, 2, 3, 2)
    ),
    Row(
        "TTM", "X(i,j,k)=B(i,j,l)*C(k,l)", "B:sss C:ss X:sss", "i j k l",
        (5, 3, 1, 0, 1, 1, 3, 4, 2),
    ),
    Row(
        "MTTKRP", "X(i,j)=B(i,k,l)*C(j,k)*D(j,l)", "B:sss C:ss D:ss X:ss", "i j k l",
        (7, 5, 3, 0, 2, 2, 3, 3, 3),
    ),
    Row(
        "Residual", "x(i)=b(i)-C(i,j)*d(j)", "b:s C:ss d:s x:s", "i j",
        (4, 1, 1, 1, 2, 1, 1, 2, 3),
        "a row of b stays where C has none: no coordinate is to be dropped",
    ),
    Row(
        "MatTransMul", "x(i)=a*B(j,i)*c(j)+b*d(i)", "B:ss c:s d:s x:s", "j i",
        (4, 4, 1, 1, 4, 1, 1, 2, 5),
        "the reducer keeps the coordinates i, and leaves out what has no entries",
    ),
    Row("MMAdd", "X(i,j)=B(i,j)+C(i,j)", "B:ss C:ss X:ss", "i j", (4, 0, 0, 2, 1, 0, 0, 3, 2)),
    Row(
        "Plus3", "X(i,j)=B(i,j)+C(i,j)+D(i,j)", "B:ss C:ss D:ss X:ss", "i j",
        (6, 0, 0, 2, 2, 0, 0, 3, 3),
    ),
    Row(
        "Plus2", "X(i,j,k)=B(i,j,k)+C(i,j,k)", "B:sss C:sss X:sss", "i j k",
        (6, 0, 0, 3, 1, 0, 0, 4, 2),
    ),
]  # fmt: skip
