"""Elements of SVG: attributes and texts are data."""

from __future__ import annotations

from xml.etree import ElementTree

from t2s.core.svg import element, hover, picture

HOSTILE = '<script>alert("&")</script>'


def test_texts_and_attributes_are_escaped() -> None:
    made = element("text", hover(HOSTILE), text=HOSTILE, class_=HOSTILE, font_size=12)
    assert "<script" not in made
    found = ElementTree.fromstring(made)
    assert found.text == HOSTILE
    assert found.get("class") == HOSTILE
    assert found.get("font-size") == "12"
    assert found[0].text == HOSTILE


def test_numbers_are_short() -> None:
    assert element("rect", x=1.0, y=2.504, width=0.1 + 0.2) == '<rect x="1" y="2.5" width="0.3"/>'
    assert element("rect", x=100.0) == '<rect x="100"/>'


def test_a_picture_says_what_it_is() -> None:
    made = picture(10, 20, element("g"), title="A & B", description="<none>")
    found = ElementTree.fromstring(made.svg)
    assert [child.text for child in found[:2]] == ["A & B", "<none>"]
    assert found.get("viewBox") == "0 0 10 20"
