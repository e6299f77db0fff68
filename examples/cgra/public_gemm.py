"""C = A B for B of 4 x 4, in triggered instructions by hand: all 16 PEs of the public 4 x 4 array.

PE (k, j) keeps B[k, j].  The read port of column k brings what row k of the array needs; A[i, k]
then goes along row k, and sums go up column j.  Row 0 gathers C[i, 0], ..., C[i, 3]; they go down
column 0 and, in row 2, over to the one write port.  A wire carries one stream: so rows 0 and 1 pass
A on to the east, rows 2 and 3 to the west.  Tags: 0 is an element of B, or a result; 1 an element
of A, or the last result of a row; 3 the end.  In memory there are B's columns, A's rows, C's rows.
"""

import numpy as np

import t2s

NORTH, EAST, SOUTH, WEST = range(4)
A_OR_B, RESULT = (0, 1), (0,)
BESIDE = {  # streams that only pass by: where they come in, where they leave, and their tags
    (0, 1): (NORTH, SOUTH, A_OR_B),
    (0, 2): (NORTH, SOUTH, A_OR_B),
    (0, 3): (NORTH, SOUTH, A_OR_B),
    (1, 0): (NORTH, SOUTH, RESULT),
    (1, 1): (NORTH, WEST, A_OR_B),
    (1, 2): (NORTH, SOUTH, A_OR_B),
    (1, 3): (NORTH, SOUTH, A_OR_B),
    (2, 0): (NORTH, EAST, RESULT),
    (2, 1): (WEST, SOUTH, RESULT),
    (2, 2): (NORTH, EAST, A_OR_B),
    (2, 3): (NORTH, SOUTH, A_OR_B),
    (3, 1): (NORTH, SOUTH, RESULT),
}


def bits(said: str) -> str:
    """Predicates, as in "p1=0 p2=1"; of all others nothing is said."""
    given = dict(item.split("=") for item in said.split())
    return "".join(given.get(f"p{number}", "X") for number in range(7, -1, -1))


def when(state: str, check: str, do: str, then: str = "") -> str:
    """An instruction in a state; ``then`` is what becomes of predicates."""
    update = f" set %p = {bits(then)};" if then else ""
    return f"when %p == {bits(state)}{check and ' with ' + check}:\n  {do};{update}"


def loads(k: int, rows: int) -> list[str]:
    """Addresses for a read port, every fourth word from k on: those of B, of A, and the end."""
    return [
        f"init %r1, ${k};\ninit %r2, $16;",
        when("p3=0 p5=0 p6=0", "", "ult %p5, %r1, %r2", "p6=1"),
        when("p5=1 p6=1 p7=0", "", "mov %o0.0, %r1", "p6=0"),
        when("p5=1 p6=1 p7=1", "", "mov %o0.1, %r1", "p6=0"),
        when("p5=1 p6=0", "", "add %r1, %r1, $4", "p5=0"),
        when("p5=0 p6=1 p7=0", "", f"mov %r2, ${16 + 4 * rows}", "p6=0 p7=1"),
        when("p5=0 p6=1 p7=1", "", "mov %o0.3, $0", "p3=1 p6=0"),
    ]


def stores(rows: int) -> list[str]:
    """Addresses for the write port: four for each sum that PE (3, 0) begins, which sets p5."""
    return [
        f"init %r1, ${16 + 4 * rows};",
        when("p5=1 p6=0 p7=0", "", "mov %o2.0, %r1", "p5=0 p6=1"),
        when("p5=0 p6=1 p7=0", "", "add %o2.0, %r1, $1", "p5=1"),
        when("p5=1 p6=1 p7=0", "", "add %o2.0, %r1, $2", "p7=1"),
        when("p5=1 p6=1 p7=1", "", "add %o2.0, %r1, $3", "p6=0"),
        when("p5=1 p6=0 p7=1", "", "add %r1, %r1, $4", "p5=0 p7=0"),
    ]


def beside(come: int, go: int, tags: tuple[int, ...], port: bool) -> list[str]:
    """What only passes by; its end sets p4, and does not go into a port of the memory."""
    moves = [
        when("", f"%i{come}.{tag}", f"mov %o{go}.{tag}, %i{come}; deq %i{come}") for tag in tags
    ]
    end = "nop" if port else f"mov %o{go}.3, $0"
    return [*moves, when("", f"%i{come}.3", f"{end}; deq %i{come}", "p4=1")]


def keeps(x: int, on: int | None, row: int) -> list[str]:
    """B: in rows 0 and 1 a PE keeps what comes first, in rows 2 and 3 what comes last."""
    here = f"%i{x}.0"
    keep = f"mov %r0, %i{x}; deq %i{x}"
    if on is None:
        return [when("", here, keep)]
    if row < 2:
        pass_on = when("p0=1", here, f"mov %o{on}.0, %i{x}; deq %i{x}")
        return [when("p0=0", here, keep, "p0=1"), pass_on]
    return [when("p0=0", here, f"mov %o{on}.0, %r0", "p0=1"), when("p0=1", here, keep, "p0=0")]


def element(row: int, column: int, rows: int) -> str:
    """The program of a PE."""
    east = row < 2
    first, last = (0, 3) if east else (3, 0)
    x, on = (WEST, EAST) if east else (EAST, WEST)
    x = {0: NORTH, 1: EAST, 2: WEST, 3: NORTH}[row] if column == first else x
    forward = None if column == last else on
    gathers = row == 0 and column < 3
    out, tag = (NORTH if row else SOUTH if column == 0 else WEST), int(row == 0 and column == 3)
    text = keeps(x, forward, row)
    before, after = "p2=0" * gathers, "p2=1" * gathers
    if (row, column) == (3, 0):
        before, after = "p5=0 p6=0 p7=0", "p5=1"
    if forward is not None:  # A goes on first, then the sum is made
        text.append(when("p1=0", f"%i{x}.1", f"mov %o{forward}.1, %i{x}", "p1=1"))
        before, after = f"p1=1 {before}", f"p1=0 {after}"
    if row == 3:
        text.append(when(before, f"%i{x}.1", f"lmul %o{out}.{tag}, %i{x}, %r0; deq %i{x}", after))
    else:
        sums = f"mac %o{out}.{tag}, %i{SOUTH}, %i{x}, %r0; deq %i{x}, %i{SOUTH}"
        text.append(when(before, f"%i{x}.1, %i{SOUTH}.0", sums, after))
    if gathers:
        for found in (0, 1)[column == 2 :]:
            sent = 0 if column == 0 else found
            move = f"mov %o{out}.{sent}, %i{EAST}; deq %i{EAST}"
            text.append(when("p2=1", f"%i{EAST}.{found}", move, "p2=0" * found))
    if (row, column) in BESIDE:
        text += beside(*BESIDE[row, column], port=row == 3)
    ends = "" if forward is None else f" %o{forward}.3"
    halt = f"halt %o{{{EAST}, {SOUTH}}}.3" if (row, column) == (0, 0) else f"halt{ends}"
    done = f"{'p2=0 ' * gathers}{'p4=1 ' * ((row, column) in BESIDE)}"
    done += "p5=0 p6=0 p7=0" * ((row, column) == (3, 0))
    text.append(when(done, f"%i{x}.3", f"{halt}; deq %i{x}"))
    text += loads(column, rows) if row == 0 else []
    text += stores(rows) if (row, column) == (3, 0) else []
    return "\n".join([f"<pe_{row}_{column}>", *sorted(text, key=lambda part: "init" not in part)])


def program(rows: int) -> str:
    """The text for A of ``rows`` x 4."""
    return "\n\n".join(element(*divmod(number, 4), rows) for number in range(16)) + "\n"


def memory(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The words that it starts from."""
    return np.concatenate([b.T.reshape(-1), a.reshape(-1), np.zeros(4 * len(a), a.dtype)])


if __name__ == "__main__":
    numbers = np.random.default_rng(0)
    a = numbers.integers(-(2**31), 2**31, (24, 4)).astype(np.int32)
    b = numbers.integers(-(2**31), 2**31, (4, 4)).astype(np.int32)
    result = t2s.triggered.run(program(24), memory(a, b), rows=4, columns=4)
    print(result)
    found = np.asarray(result.memory[16 + a.size :][: a.size]).astype(np.uint32).view(np.int32)
    print("equal to numpy:", np.array_equal(found.reshape(24, 4), a @ b))
