"""SVG text: elements with escaped attributes and texts, and a picture that notebooks show.

Pictures have no scripts and load nothing, so that they open anywhere, print, and can be put into a
page.  Every picture has a title and a description for readers who do not see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from t2s.core.checks import checked_file
from t2s.core.files import write_file
from t2s.core.names import printable

PALETTE = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#b6a800",
    "#7a7a7a",
)
"""Colors that stay apart for color-blind readers, after Okabe and Ito, on light and dark pages."""

_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
"""What a file needs, and a picture inside of a page does not."""


@dataclass(frozen=True, repr=False, slots=True)
class SvgPicture:
    """SVG text that notebooks show; ``write`` puts it into a file for a browser."""

    svg: str

    def write(self, path: str | Path) -> Path:
        """Write the picture into a file, in a folder that is there, and return its path."""
        file = checked_file("the file of the picture", path)
        write_file(file, self.svg.encode())
        return file

    def html(self) -> str:
        """The picture inside of a page, which scrolls where it is too wide."""
        inside = self.svg.replace(_NAMESPACE, "", 1)
        return f'<div style="overflow-x:auto">{inside}</div>'

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<SvgPicture of {len(self.svg):,} characters>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:  # inside of a page it has the colors of the page
        return self.html()


def element(name: str, *children: str, text: str = "", **attributes: object) -> str:
    """One element.  Attributes are escaped, ``_`` stands for ``-``; ``text`` is escaped as well.

    ``children`` are elements already.  Numbers have at most two digits behind the point.
    """
    words = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(_word(value))}"'
        for key, value in attributes.items()
    )
    inside = escape(text, quote=False) + "".join(children)
    return f"<{name}{words}>{inside}</{name}>" if inside else f"<{name}{words}/>"


def _word(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def hover(text: str) -> str:
    """The title of an element, which a browser shows under the pointer."""
    return element("title", text=text)


def picture(
    width: float, height: float, *children: str, title: str, description: str
) -> SvgPicture:
    """A picture of so many pixels that scales with the page; its lines have the page's color."""
    body = element(
        "svg",
        hover(title),
        element("desc", text=description),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_word(float(width))} {_word(float(height))}",
        width=float(width),
        role="img",
        font_family="sans-serif",
        font_size=12,
        fill="currentColor",
    )
    return SvgPicture(printable(body))
