"""Libraries as C knows them: headers, paths and flags, a Makefile, and what main needs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from t2s.capability.description import ExternalFunction, LibraryOf
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.libraries.finding import located

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9_./+-]+\.h")
_SAFE_PATH = re.compile(r"[A-Za-z0-9_./+=:,@%~-]+( [A-Za-z0-9_./+=:,@%~-]+)*")

HELPERS = """\
static void *load(const char *folder, const char *name, size_t size, int64_t count)
{
    char path[4096];
    char more;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    void *made = malloc(count ? size * (size_t)count : 1);
    if (!file || !made || fread(made, size, (size_t)count, file) != (size_t)count ||
        fread(&more, 1, 1, file)) {
        fprintf(stderr, "%s does not have %" PRId64 " values\\n", path, count);
        exit(2);
    }
    fclose(file);
    return made;
}

static void *room(size_t size, int64_t count)
{
    void *made = calloc(count ? (size_t)count : 1, size);
    if (!made) {
        fprintf(stderr, "there is no memory for %" PRId64 " values\\n", count);
        exit(2);
    }
    return made;
}

static void stop(const char *what, int64_t status)
{
    fprintf(stderr, "%s failed with %" PRId64 "\\n", what, status);
    exit(2);
}

static int differ(const char *what, int64_t place)
{
    printf("%s differs at %" PRId64 "\\n", what, place);
    return 1;
}
"""


def headers_of(library: LibraryOf) -> list[str]:
    """The headers among the includes of a library; the others are folders."""
    return [one for one in library.includes if _HEADER.fullmatch(one)]


def library_of(function: ExternalFunction, location: SourceLocation | None) -> LibraryOf:
    """The library of a function that C can call.  Raises ``UserError`` for other functions."""

    def refused(what: str, expected: str, given: str = "") -> UserError:
        return UserError(
            what,
            location=location,
            expected=expected,
            given=given or None,
        )

    library = function.library
    if function.hardware is not None:
        raise refused(
            f"{function.name} is hardware, whose calls are simulated: no program calls it",
            "a function of a library, described with call= and library=",
        )
    if function.call is None or library is None:
        raise refused(
            f"{function.name} is not called by C: it is a function in Python",
            "a function of a library, described with call= and library=",
        )
    if library.files:
        library = located(library)
    if not library.path and not (library.library_paths or library.flags):
        raise refused(
            f"{function.name} is not called by C: {library.name} has no file to link",
            "a library with path=, or with flags= and library_paths=",
            f"capsules of {library.capsules}" if library.capsules else library.name,
        )
    texts = [library.path, *library.includes, *library.library_paths, *library.flags]
    for text in filter(None, texts):
        if not _SAFE_PATH.fullmatch(text):
            raise refused(
                f"{text!r} of {library.name} does not go into a Makefile",
                "letters, digits, and none of the characters that make or a shell reads",
            )
    if not _SYMBOL.fullmatch(function.call.symbol):
        raise refused(
            f"{function.call.symbol!r} is no name in C", "letters, digits and underscores"
        )
    return library


def makefile(libraries: Sequence[LibraryOf]) -> str:
    """Compile with the paths and flags of the descriptions, and link."""
    includes, links, flags = [], [], []
    for library in libraries:
        includes += [f"-I'{one}'" for one in library.includes if not _HEADER.fullmatch(one)]
        flags += [f"'{one}'" for one in library.flags]
        for path in library.library_paths:
            links += [f"-L'{path}'", f"-Wl,-rpath,'{path}'"]
        if "/" in library.path:
            folder = library.path.rpartition("/")[0] or "/"
            links += [f"'{library.path}'", f"-Wl,-rpath,'{folder}'"]
        elif library.path:
            links.append(f"'-l:{library.path}'")
    more = " ".join(dict.fromkeys(includes))
    return (
        "CC ?= cc\n"
        "CFLAGS ?= -O2\n"
        f"override CFLAGS += -std=gnu11 -fwrapv -ffp-contract=off {more}".rstrip()
        + f"\nFLAGS = {' '.join(dict.fromkeys(flags))}".rstrip()
        + f"\nLINKED = {' '.join(dict.fromkeys(links))}".rstrip()
        + "\n\nplan: plan.c\n"
        "\t$(CC) $(CFLAGS) -o $@ plan.c $(LINKED) $(FLAGS) -lm\n\n"
        "run: plan\n\t./plan\n\n"
        "clean:\n\trm -f plan\n\n"
        ".PHONY: run clean\n"
    )
