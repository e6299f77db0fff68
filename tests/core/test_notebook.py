"""Cards of notebooks: escaped, well-formed, small, whatever is on them."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.display import (
    MOST_BYTES,
    MOST_ROWS,
    NotebookCard,
    NotebookDisplay,
    Preformatted,
    Table,
)
from t2s.core.svg import (
    MOST_BARS,
    MOST_BOXES,
    MOST_POINTS,
    Bar,
    CellLayer,
    ChartArrow,
    ChartBox,
    ChartPoint,
    bar_chart,
    element,
    layered_chart,
    layers_of,
    picture,
    point_chart,
    raster_chart,
)

HOSTILE = '<script>alert("&")</script>'


def drawn_parts(text: str, name: str) -> list[ElementTree.Element]:
    """The elements of that name, of SVG in a page or in a file."""
    return [p for p in ElementTree.fromstring(text).iter() if p.tag.rpartition("}")[2] == name]


@dataclass(frozen=True)
class Shown(NotebookDisplay):
    """Something with a card."""

    card: NotebookCard

    def __str__(self) -> str:
        return f"shown {self.card.title}"

    def _card(self) -> NotebookCard:
        return self.card


@settings(max_examples=30, deadline=None)
@given(st.text(), st.text(max_size=3000), st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_any_text_gives_a_fragment_that_parses(
    title: str, text: str, summary: list[tuple[str, str]]
) -> None:
    table = Table(title=title, headers=(text, "n"), rows=((title, text),))
    drawing = picture(9, 9, element("text", text=text), title=title, description=text)
    parts = (Preformatted(title=title, text=text), table, drawing, None)
    card = NotebookCard(title=title, summary=tuple(summary), parts=parts)
    bundle = Shown(card)._repr_mimebundle_()
    found = ElementTree.fromstring(bundle["text/html"])
    assert found.tag == "div"
    assert "script" not in {part.tag for part in found.iter()}
    assert bundle["text/plain"] == f"shown {title}"


def test_texts_are_escaped() -> None:
    inner = NotebookCard(title=HOSTILE, parts=(Preformatted(title=HOSTILE, text=HOSTILE),))
    card = NotebookCard(title=HOSTILE, summary=((HOSTILE, HOSTILE),), parts=(inner,))
    made = Shown(card)._repr_html_()
    assert "<script" not in made
    texts = [part.text for part in ElementTree.fromstring(made).iter() if part.text]
    assert texts == [HOSTILE] * 6


def test_what_is_large_is_cut_and_said() -> None:
    lines = Preformatted(title="", text="\n".join(["x"] * 1_000))
    assert "… and 600 more lines" in NotebookCard(title="t", parts=(lines,)).html()
    rows = tuple((str(number),) for number in range(MOST_ROWS + 7))
    table = Table(title="t", headers=("n",), rows=rows)
    assert "and 7 more rows" in table.html()
    assert len(table.text().splitlines()) == MOST_ROWS + 10
    wide = Preformatted(title="", text="\n".join(["x" * 390] * 399))
    card = NotebookCard(title="t", parts=(wide, wide, Preformatted(title="", text="behind")))
    assert len(card.html().encode()) < MOST_BYTES + 200
    assert card.html().count("too large for a notebook") == 1
    assert "behind" in card.html()
    ElementTree.fromstring(card.html())


def test_many_points_are_drawn_small() -> None:
    points = [
        ChartPoint(x=n % 977, y=n % 991, name=f"point {n}", best=n == 3) for n in range(20_000)
    ]
    made = point_chart("points", points, across="PEs", up="cycles").svg
    assert len(made) < MOST_BYTES / 2
    assert len(drawn_parts(made, "circle")) == MOST_POINTS
    assert "point 3: 3 PEs, 3 cycles" in made


numbers = st.floats(0, 1e9, allow_nan=False)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=40), st.lists(numbers, max_size=3)), max_size=60))
def test_bars_are_as_long_as_their_numbers(drawn: list[tuple[str, list[float]]]) -> None:
    bars = [
        Bar(name=name, parts=tuple(("red", length, name) for length in lengths), word=name)
        for name, lengths in drawn
    ]
    made = NotebookCard(title="t", parts=(bar_chart("bars", bars),)).html()
    widths = [float(part.get("width", "")) for part in drawn_parts(made, "rect")]
    left_out = [part for part in drawn_parts(made, "text") if (part.text or "").endswith(" more")]
    assert len(left_out) >= (len(bars) > MOST_BARS)
    most = max((sum(lengths) for _, lengths in drawn), default=0.0) or 1.0
    scale = 420 / most
    expected = [n * scale for _, ns in drawn[:MOST_BARS] for n in ns if n * scale >= 0.01]
    np.testing.assert_allclose(widths, expected, atol=0.006)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(numbers, numbers, st.booleans()), max_size=30))
def test_points_are_drawn_once(drawn: list[tuple[float, float, bool]]) -> None:
    points = [ChartPoint(x=x, y=y, name=HOSTILE, best=best) for x, y, best in drawn]
    made = point_chart("points", points, across="PEs", up="cycles").svg
    assert len(drawn_parts(made, "circle")) == len(points)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**36 - 1))
def test_rasters_have_the_area_of_their_cells(rows: int, columns: int, bits: int) -> None:
    cells = np.array([bits >> n & 1 for n in range(rows * columns)], bool).reshape(rows, columns)
    layer = CellLayer(cells=cells, color="red", opacity=1.0, said="cells")
    made = raster_chart("cells", (rows, columns), [layer], description="some").svg
    paths = [part.get("d", "") for part in ElementTree.fromstring(made).iter()]
    runs = [run for path in paths for run in path.split("z") if run]
    assert sum(int(run.split("h")[1].split("v")[0]) for run in runs) == cells.sum()


names = st.sampled_from("abcdef")


@settings(max_examples=30, deadline=None)
@given(st.lists(names, unique=True), st.data())
def test_layers_go_forward_but_for_circles(found: list[str], data: st.DataObject) -> None:
    pairs = st.tuples(st.sampled_from(found), st.sampled_from(found)) if found else st.nothing()
    arrows = data.draw(st.lists(pairs, max_size=12)) if found else []
    layers = layers_of(found, arrows)
    assert set(layers) == set(found)
    ordered = [(a, b) for a, b in arrows if a < b]
    forward = layers_of(found, ordered)
    assert all(forward[a] < forward[b] for a, b in ordered)
    boxes = [ChartBox(name=n, title=HOSTILE, below=n, said=n, color="red") for n in found]
    wires = [ChartArrow(source=a, sink=b, said=HOSTILE) for a, b in arrows]
    made = layered_chart("boxes", boxes, wires)
    assert (made is None) == (not found)
    if made is not None:
        assert len(drawn_parts(made.svg, "rect")) == len(boxes)
        assert len(drawn_parts(made.svg, "path")) == len(arrows)


def test_too_many_boxes_are_not_drawn() -> None:
    boxes = [
        ChartBox(name=str(n), title="", below="", said="", color="red")
        for n in range(MOST_BOXES + 1)
    ]
    assert layered_chart("boxes", boxes, []) is None
