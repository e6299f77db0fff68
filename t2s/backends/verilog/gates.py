"""Gates of single bits: what look-up tables, carry cells and registers have to compute.

A *literal* is a number: twice that of a node, plus 1 if the node is inverted.  Equal gates are one
node, and constants are folded, as synthesis does it; inverters are free inside of look-up tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, log

ZERO, ONE = 0, 1
Literals = list[int]

Place = int
"""A node, or a bit of all the bits of chains of carry cells: ``~at`` for the one with number
``at``."""

Places = Collection[Place]

LUT_INPUTS = 4
"""Of one look-up table."""

_NS_OF_FAST_TABLE, _NS_OF_FAST_CHAIN, _NS_OF_FAST_CARRY, _NS_OF_FAST_PRODUCT = 0.68, 1.0, 0.03, 1.9
"""Nanoseconds as synthesis counts them, which knows little of wires: of a table, of a way through
carry cells and of each bit of it, and of a multiplier without registers."""

_NS_OF_SLOW = 3.5
_TABLES_OF_SLOW = 1.6
"""Where sums of sums take longer than that, synthesis shortens them and computes their bits several
times over.  The number is that of sums of 5 to 16 words of 4 to 24 bits by themselves, for each
table of the same sum as a tree of adders of three words."""

NS_OF_TABLE, NS_OF_CHAIN, NS_OF_CARRY, NS_OF_PRODUCT = 1.5, 2.0, 0.035, 6.0
"""Nanoseconds with the wires to it: of a table, of a carry chain and of each of its bits, and of a
multiplier without registers."""


class Gates:
    """A network of gates; nodes are in the order in which they were made.

    ``shortest_chain`` is the shortest sum for which a technology takes carry cells.
    """

    def __init__(self, shortest_chain: int) -> None:
        self.shortest_chain = shortest_chain
        self.inputs: dict[int, tuple[int, ...]] = {}
        """The gates: the literals that a node depends on, if it is no constant and does not come
        in from elsewhere."""
        self.nodes = 1
        """How many nodes there are; the first one is the constant."""
        self.choices: dict[int, tuple[int, int, int]] = {}
        """The condition and both values of a literal that a condition chooses."""
        self.chains: dict[int, int] = {}
        """The bit of a carry chain whose output a node is; all chains are numbered as one."""
        self.chain_inputs: list[tuple[int, ...]] = []
        """The places that each bit of a chain depends on: what goes in, and the bit below."""
        self.chain_of: list[int] = []
        """The chain that each bit is of."""
        self.chain_starts: list[int] = []
        """The first bit of each chain."""
        self.products: set[int] = set()
        """Nodes that come out of multipliers without registers."""
        self.late: set[int] = set()
        """Nodes that compare with a carry chain."""
        self.added: set[int] = set()
        """Nodes that make two words of three in a sum."""
        self.wide: set[int] = set()
        """Nodes that choose by one of them."""
        self._known: dict[tuple[object, ...], int] = {}
        self._sums: dict[tuple[object, ...], Literals] = {}

    def incoming(self, count: int = 1) -> Literals:
        """New signals from elsewhere: inputs, registers, outputs of other cells."""
        first, self.nodes = self.nodes, self.nodes + count
        return [*range(2 * first, 2 * self.nodes, 2)]

    def _node(self, kind: str, *inputs: int) -> int:
        key = (kind, *inputs)
        if key not in self._known:
            (self._known[key],) = self.incoming()
            self.inputs[self.nodes - 1] = inputs
        return self._known[key]

    def both(self, a: int, b: int) -> int:
        """Conjunction."""
        if a > b:
            a, b = b, a
        if a == ZERO or b == a ^ 1:
            return ZERO
        if a in (ONE, b):
            return b
        return self._node("and", a, b)

    def either(self, a: int, b: int) -> int:
        """Disjunction."""
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differs(self, a: int, b: int) -> int:
        """Exclusive disjunction."""
        inverted = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        if a > b:
            a, b = b, a
        if a == b:
            return inverted
        if a == ZERO:
            return b ^ inverted
        return self._node("xor", a, b) ^ inverted

    def choose(self, condition: int, if_true: int, if_false: int) -> int:
        """One of two values."""
        if condition & 1:
            condition, if_true, if_false = condition ^ 1, if_false, if_true
        if condition == ZERO:
            return if_false
        if if_true == if_false:
            return if_true
        if if_true in (ZERO, ONE) or if_false in (ZERO, ONE) or if_true ^ 1 == if_false:
            chosen = self._simple_choice(condition, if_true, if_false)
        else:
            inverted = if_true & 1
            chosen = self._node("choose", condition, if_true ^ inverted, if_false ^ inverted)
            if condition >> 1 in self.late:
                self.wide.add(chosen >> 1)
            chosen ^= inverted
        self.choices.setdefault(chosen, (condition, if_true, if_false))
        return chosen

    def _simple_choice(self, condition: int, if_true: int, if_false: int) -> int:
        if if_true ^ 1 == if_false:
            return self.differs(condition, if_false)
        if if_true == ZERO:
            return self.both(condition ^ 1, if_false)
        if if_true == ONE:
            return self.either(condition, if_false)
        if if_false == ZERO:
            return self.both(condition, if_true)
        return self.either(condition ^ 1, if_true)

    def all_of(self, literals: Iterable[int]) -> int:
        """The conjunction of many."""
        result = ONE
        for literal in literals:
            result = self.both(result, literal)
        return result

    def equal(self, left: Literals, right: Literals) -> int:
        """Whether two words are equal."""
        return self.all_of([self.differs(a, b) ^ 1 for a, b in zip(left, right, strict=True)])

    # ------------------------------------------------------------------------------- carry chains

    def add(self, left: Literals, right: Literals, *, subtract: bool = False) -> Literals:
        """The sum or the difference of two words of the same length, as long as they are.

        What both have in common at the top is the sign, and what is constantly zero at the bottom
        needs no adder.
        """
        length = len(left)
        low = 0
        while low < length and (right[low] == ZERO or (left[low] == ZERO and not subtract)):
            low += 1
        passed = [b if a == ZERO else a for a, b in zip(left[:low], right[:low], strict=True)]
        left, right = left[low:], right[low:]
        if length == low:
            return passed
        if subtract and all(bit == ONE for bit in left[: significant(right)]):
            # no bit borrows
            return [*passed, *(a if b == ZERO else b ^ 1 for a, b in zip(left, right, strict=True))]
        if set(right) <= {ZERO, ONE} and left[-1] == ZERO and not subtract:
            return [*passed, *self._raised(left, right)]
        needed = needed_bits([(left, False), (right, subtract)])
        total = self._total(left, right, subtract, needed)
        if right[0] == ONE:
            total[0] = left[0] ^ 1
        return [*passed, *total]

    def _raised(self, word: Literals, constant: Literals) -> Literals:
        """A positive number and a constant, above which there is a carry at most."""
        used = significant(word)
        low = [*constant[: used - 1], ZERO]
        total = self._chain(word[:used], low, False, used)
        if constant[0] == ONE:
            total = [word[0] ^ 1, *total[1:]]
        carry = total[-1]
        above = constant[used - 1 :]
        raised = sum(bit << at for at, bit in enumerate(above)) + 1
        return [
            *total[:-1],
            *(self.choose(carry, raised >> at & 1, bit) for at, bit in enumerate(above)),
        ]

    def sum_of(self, terms: Sequence[tuple[Literals, bool]]) -> Literals:
        """The sum of words of one length, some of them subtracted: tables make two of three."""
        length = len(terms[0][0])
        number, words = 0, []
        for word, minus in terms:
            if set(word) <= {ZERO, ONE}:
                value = sum(bit << at for at, bit in enumerate(word))
                number += -value if minus else value
            else:
                words.append((word, minus))
        number %= 1 << length
        constant = [number >> at & 1 for at in range(length)]
        words.sort(key=lambda term: term[1])
        match words:
            case []:
                return constant
            case [(word, False)]:
                return self.add(word, constant) if number else word
            case [(word, True)]:
                return self.add(constant, word, subtract=True)
            case [(first, False), (second, minus)] if not number:
                return self.add(first, second, subtract=minus)
        needed = needed_bits(terms)
        waiting = [[bit ^ minus for bit in word] for word, minus in words]
        number = (number + sum(minus for _, minus in words)) % (1 << length)
        if number:
            waiting.append([number >> at & 1 for at in range(length)])
        waiting = _packed(waiting)
        while len(waiting) > 2:
            a, b, c = waiting[:3]
            half = [self.differs(x, y) for x, y in zip(a, b, strict=True)]
            total = [self.differs(x, y) for x, y in zip(half, c, strict=True)]
            carry = [
                self.choose(h, z, x) for h, x, z in zip(half[:-1], a[:-1], c[:-1], strict=True)
            ]
            self.added.update(bit >> 1 for bit in (*half, *total, *carry))
            waiting = [*waiting[3:], total, [ZERO, *carry]]
        if not waiting:
            return [ZERO] * length
        if len(waiting) == 1:
            return waiting[0]
        first, second = waiting
        return self._total(first, second, False, needed)

    def _total(
        self, left: Literals, right: Literals, subtract: bool, needed: tuple[int, bool]
    ) -> Literals:
        """The sum of two words, of which some bits are needed, and maybe a sign above them."""
        used, signed = needed
        total = self._chain(left, right, subtract, used)
        return [*total, *([total[-1] if signed else ZERO] * (len(left) - used))]

    def _chain(self, left: Literals, right: Literals, subtract: bool, used: int) -> Literals:
        """The lowest bits of the sum of two words.

        Synthesis takes carry cells by the length that the words have, before it finds out which
        bits are needed, and finds a sum of one bit and constants to be a table.
        """
        length = min(max(significant(left), significant(right)) + 1, len(left))
        left, right = left[:used], right[:used]
        if length < self.shortest_chain or len({bit >> 1 for bit in (*left, *right)} - {ZERO}) < 2:
            return self._small_sum(left, right, subtract)
        key = ("add", subtract, *left, *right)
        if key not in self._sums:
            self._sums[key] = self.incoming(len(left))
            self.end_chain(self._sums[key], list(zip(left, right, strict=True)))
        return list(self._sums[key])

    def end_chain(self, outputs: Literals, inputs: Sequence[tuple[int, ...]]) -> None:
        """Say that signals come out of a chain of carry cells, the last ones of its bits."""
        start = len(self.chain_of)
        self.chain_of += [len(self.chain_starts)] * len(inputs)
        self.chain_starts.append(start)
        for at, bits in enumerate(inputs):
            places = [literal >> 1 for literal in bits]
            self.chain_inputs.append((*places, ~(start + at - 1)) if at else (*places,))
        first = start + len(inputs) - len(outputs)
        self.chains.update((literal >> 1, first + at) for at, literal in enumerate(outputs))

    def _small_sum(self, left: Literals, right: Literals, subtract: bool) -> Literals:
        carry, total = int(subtract), []
        for a, plain in zip(left, right, strict=True):
            b = plain ^ int(subtract)
            half = self.differs(a, b)
            total.append(self.differs(half, carry))
            carry = self.either(self.both(a, b), self.both(half, carry))
        return total

    def less(self, left: Literals, right: Literals, *, signed: bool, whole: bool = False) -> int:
        """Whether one number is smaller than another of the same length.

        A chain compares all but the highest one or two bits, which go into a table with its result;
        or with ``whole`` all of them.
        """
        if signed and all(bit == ZERO for bit in right):
            return left[-1]
        if all(bit == ZERO for bit in left):
            some = self.all_of(bit ^ 1 for bit in right) ^ 1
            return self.both(some, right[-1] ^ 1) if signed else some
        used = max(significant(left), significant(right)) if signed else len(left)
        while not signed and used > 1 and left[used - 1] == ZERO == right[used - 1]:
            used -= 1
        left, right = left[:used], right[:used]
        if used < self.shortest_chain:
            return self._compared(left, right, ZERO, signed)
        low, chained = 0, used if whole else (used - 1) // 2 * 2
        while low < chained and ZERO == right[low]:
            low += 1
        inputs = list(zip(left[low:chained], right[low:chained], strict=True))
        key = ("less", *inputs)
        if key not in self._sums:
            self._sums[key] = self.incoming(1)
            self.end_chain(self._sums[key], inputs)
        borrow = self._sums[key][0]
        found = self._compared(left[chained:], right[chained:], borrow, signed)
        constant = set(left) <= {ZERO, ONE} or set(right) <= {ZERO, ONE}
        if not constant and any(bit >> 1 in self.inputs for bit in (*left, *right)):
            self.late.add(found >> 1)
        return found

    def _compared(self, left: Literals, right: Literals, below: int, signed: bool) -> int:
        """The same, where ``below`` is the result of what is below these bits."""
        result, last = below, len(left) - 1
        for at, (a, b) in enumerate(zip(left, right, strict=True)):
            larger = a if signed and at == last else b
            result = self.choose(self.differs(a, b), larger, result)
        return result

    # ----------------------------------------------------------------------------- look-up tables

    def tables(self, roots: Iterable[int]) -> tuple[float, int]:
        """About how many look-up tables compute these literals, and how many carry cells.

        Each gate takes those before it into its table as long as all inputs fit.  A chain is as
        long as to the last of its bits that is needed.
        """
        places = self._places()
        before = _needed(roots, places)
        slow = self._slow(before)
        tables = 0.0
        lengths = [0] * len(self.chain_starts)
        for place in before:
            if place < 0:
                lengths[self.chain_of[~place]] += 1
            elif place in self.inputs:
                tables += 3 if place in self.wide else _TABLES_OF_SLOW if place in slow else 1
        return tables, sum((length + 1) // 2 for length in lengths)

    def _places(self) -> dict[Place, Places]:
        """All places that take a cell or time, each with what it depends on."""
        places = self._cuts()
        places |= {node: (~bit,) for node, bit in self.chains.items()}
        places |= {~at: inputs for at, inputs in enumerate(self.chain_inputs)}
        places |= dict.fromkeys(self.products, ())
        return places

    def _slow(self, before: Mapping[Place, Places]) -> set[int]:
        """Gates of sums of sums that synthesis finds too slow, of places in their order."""
        if self.added.isdisjoint(before):
            return set()
        arrivals: dict[Place, float] = {}
        for place, inputs in before.items():
            latest = 0.0
            for each in inputs:
                arrival = arrivals.get(each, 0.0)
                if arrival > latest:
                    latest = arrival
            arrivals[place] = latest + self._fast(place)
        tails = dict.fromkeys(before, 0.0)
        for place in reversed(arrivals):
            tail = tails[place] + self._fast(place)
            for each in before[place]:
                if tail > tails.get(each, tail):
                    tails[each] = tail
        return {
            place
            for place in self.added.intersection(before)
            if arrivals[place] + tails[place] > _NS_OF_SLOW
        }

    def _fast(self, place: Place) -> float:
        """What a place adds to a path, in ns, as synthesis sees it."""
        if place < 0:
            return _NS_OF_FAST_CARRY
        if place in self.inputs:
            return _NS_OF_FAST_TABLE
        if place in self.chains:
            return _NS_OF_FAST_CHAIN
        return _NS_OF_FAST_PRODUCT if place in self.products else 0.0

    def slowest(self, roots: Iterable[int]) -> float:
        """The time in ns that the slowest of these literals takes, without that of registers.

        Gates of many inputs become trees of tables.
        """
        # sets are bits of numbers, which are united quickly: chains, products, and all leaves
        chains = len(self.chain_starts)
        support: dict[int, int] = {0: 0}

        def leaf(node: int) -> int:
            late = 1 << chains if node in self.products else 0
            if node in self.chains:
                late = 1 << self.chain_of[self.chains[node]]
            support[node] = late | 1 << chains + len(support)
            return support[node]

        for gate, inputs in self.inputs.items():
            found = 0
            for literal in inputs:
                node = literal >> 1
                found |= support[node] if node in support else leaf(node)
            support[gate] = found
        starts: dict[int, float] = {}
        latest: dict[int, float] = {}

        def start(chain: int) -> float:
            """When the sum of a chain is there."""
            if chain not in starts:
                starts[chain] = 0.0  # a sum that goes into itself goes through a register
                begin = self.chain_starts[chain]
                end = len(self.chain_inputs)
                if chain + 1 < chains:
                    end = self.chain_starts[chain + 1]
                places = {place for bit in self.chain_inputs[begin:end] for place in bit}
                arrived = max((arrival(node) for node in places if node >= 0), default=0.0)
                starts[chain] = arrived + NS_OF_CHAIN + NS_OF_CARRY * (end - begin)
            return starts[chain]

        def latest_of(late: int) -> float:
            """When the last of some chains and products is there."""
            if late not in latest:
                times = [start(at) for at in range(chains) if late >> at & 1]
                if late >> chains:
                    times.append(NS_OF_PRODUCT)
                latest[late] = max(times, default=0.0)
            return latest[late]

        def arrival(node: int) -> float:
            leaves = support[node] if node in support else leaf(node)
            late = latest_of(leaves & (2 << chains) - 1)
            if node not in self.inputs:
                return late
            count = (leaves >> chains + 1).bit_count()
            return late + max(1, ceil(log(count, LUT_INPUTS))) * NS_OF_TABLE

        nodes = {root >> 1 for root in roots}
        return max((arrival(node) for node in nodes if self._takes_time(node)), default=0.0)

    def _takes_time(self, node: int) -> bool:
        return node in self.inputs or node in self.chains or node in self.products

    def _cuts(self) -> dict[Place, Places]:
        """The inputs of the table that computes each gate."""
        uses: dict[int, int] = {}
        for inputs in self.inputs.values():
            for literal in inputs:
                uses[literal >> 1] = uses.get(literal >> 1, 0) + 1
        cuts: dict[Place, Places] = {}
        leaves: dict[int, frozenset[int]] = {}  # all that a gate depends on, if a table has room
        for gate, inputs in self.inputs.items():
            nodes = [literal >> 1 for literal in inputs]
            cut = frozenset(nodes)
            if cuts.keys().isdisjoint(cut):
                leaves[gate] = cuts[gate] = cut
                continue
            inner = [node for node in cut if node in cuts]
            whole = cut.difference(inner)
            for node in inner:
                if node not in leaves:
                    break
                whole |= leaves[node]
            else:
                if len(whole) <= LUT_INPUTS:
                    leaves[gate] = cuts[gate] = whole
                    continue
            inner.sort(key=lambda node: (uses[node] > 1, len(cuts[node]), node))
            for node in inner:
                wider = cut.difference((node,)).union(cuts[node])
                if len(wider) <= LUT_INPUTS:
                    cut = wider
            cuts[gate] = cut
        return cuts


def _needed(roots: Iterable[int], places: Mapping[Place, Places]) -> dict[Place, Places]:
    """The places that these literals need, each behind those that it depends on.

    A sum that goes into itself goes through a register.
    """
    found: dict[Place, Places] = {}
    entered: set[Place] = set()
    waiting: list[Place] = [root >> 1 for root in roots if root >> 1 in places]
    while waiting:
        place = waiting.pop()
        if place in entered:
            found[place] = places[place]
            continue
        entered.add(place)
        waiting.append(place)
        waiting += [each for each in places[place] if each in places and each not in entered]
    return found


def _packed(words: Sequence[Literals]) -> list[Literals]:
    """Words of the same sum, as few as the most bits that are at one place.

    A bit that is at a place twice is at the next one.
    """
    columns: list[list[int]] = [[] for _ in words[0]] if words else []
    for word in words:
        for at, bit in enumerate(word):
            while at < len(columns) and bit != ZERO:
                if bit not in columns[at]:
                    columns[at].append(bit)
                    break
                columns[at].remove(bit)
                at += 1
    rows = range(max(map(len, columns), default=0))
    return [[bits[row] if row < len(bits) else ZERO for bits in columns] for row in rows]


def significant(word: Sequence[int]) -> int:
    """The bits of a word without those at the top that repeat the sign."""
    length = len(word)
    while length > 1 and word[length - 1] == word[length - 2]:
        length -= 1
    return length


def needed_bits(terms: Sequence[tuple[Literals, bool]]) -> tuple[int, bool]:
    """The bits that a sum of words may have, and whether a sign is above them.

    What is above them is zero otherwise.  A bit that several words have counts with all of its
    places together: three times a number, as four times it less once it, is not negative.
    """
    length = len(terms[0][0])
    least = most = 0
    weights: dict[int, int] = {}
    for word, minus in terms:
        size = significant(word)
        for at, bit in enumerate(word[:size]):
            weight = -1 << at if (at == size - 1) != minus else 1 << at
            if bit & 1:
                least, most = least + weight, most + weight
                weight = -weight
            if bit > ONE:
                weights[bit >> 1] = weights.get(bit >> 1, 0) + weight
    for weight in weights.values():
        least, most = least + min(weight, 0), most + max(weight, 0)
    if 0 <= least and most < 1 << length:
        return most.bit_length(), False
    bits = max(most, ~least).bit_length() + 1
    return min(bits, length), True
