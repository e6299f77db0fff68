"""What a search over all maps finds on tiny statements, the matcher finds, and nothing else.

The search knows nothing of backtracking: it takes every assignment of operands to the tensors of
the function, every set of fixed variables and of promoted ones, and compares the substituted
statement with the part, both written out and sorted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

from t2s.capability.ir import parse_capability
from t2s.capability.parts import Summand, normal_form, part_form
from t2s.capability.reshape import Reshape, fewest
from t2s.capability.verify import verify_capability
from t2s.core.errors import UserError
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.ir import Access, accesses, with_sums
from t2s.sparse_repr.notation.parse import parse_expression
from tests.capability.functions import described
from tests.sampling import sampled

Written = tuple[tuple[str, tuple[str, ...]], ...]
"""The factors of a term: tensors, with what is fixed of them, and their variables."""

CASES = 400


def _random_statement(random: Random) -> tuple[str, tuple[str, ...]]:
    """A sum of products of tensors at up to three variables, and the variables that stay free."""
    orders = {name: random.randint(0, 2) for name in "BCD"}

    def access() -> str:
        name = random.choice("BCD")
        variables = [random.choice("ijk") for _ in range(orders[name])]
        return f"{name}({','.join(variables)})" if variables else name

    terms = ["*".join(access() for _ in range(random.randint(1, 3)))]
    if random.random() < 0.3:
        terms.append("*".join(access() for _ in range(random.randint(1, 2))))
    text = random.choice([" + ", " - "]).join(terms)
    used = sorted({name for one in accesses(parse_expression(text)) for name in one.variables})
    return text, tuple(name for name in used if random.random() < 0.6)


def _random_function(random: Random, text: str, free: tuple[str, ...]) -> str:
    """The statement under other names; sometimes one variable is another one, or gone."""
    names = dict(zip("ijk", random.sample("pqr", 3), strict=True))
    tensors = dict(zip("BCD", random.sample("xyw", 3), strict=True))
    letters = [names.get(one, tensors.get(one, one)) for one in text]
    change = random.random()
    places = [at for at, one in enumerate(letters) if one in "pqr"]
    if change < 0.25 and places:
        letters[random.choice(places)] = random.choice("pqr")
    made = "".join(letters)
    result = [names[name] for name in free]
    if change > 0.75 and result:
        result.pop()
    random.shuffle(result)
    return f"z({','.join(result)}) = {made}" if result else f"z = {made}"


def _written(summands: tuple[Summand, ...], fixed: tuple[str, ...]) -> Iterator[object]:
    for one in summands:
        factors = []
        for factor in one.factors:
            assert isinstance(factor, Access)
            slice_of = tuple((at, n) for at, n in enumerate(factor.variables) if n in fixed)
            kept = tuple(name for name in factor.variables if name not in fixed)
            factors.append((f"{factor.tensor}{slice_of}", kept))
        summed = tuple(sorted(name for name in one.summed if name not in fixed))
        yield one.coefficient, tuple(sorted(factors)), summed


def _one_shape(wanted: tuple[Summand, ...], promoted: tuple[str, ...]) -> bool:
    """Whether each tensor of a function has its modes of extent 1 at the same places everywhere."""
    places: dict[str, set[tuple[bool, ...]]] = {}
    for one in wanted:
        for factor in one.factors:
            assert isinstance(factor, Access)
            pattern = tuple(name in promoted for name in factor.variables)
            places.setdefault(factor.tensor, set()).add(pattern)
    return all(len(patterns) == 1 for patterns in places.values())


def _some_map(function: str, summands: tuple[Summand, ...], fixed: tuple[str, ...]) -> bool:
    """Whether some map makes the function's statement the part, for some promoted variables."""
    made = parse_capability(function)
    wanted = normal_form(made.value)
    names = list(dict.fromkeys(n for one in accesses(made.value) for n in one.variables))
    target = sorted(map(repr, _written(summands, fixed)))
    free = {
        name
        for one in summands
        for factor in one.factors
        for name in factor.variables  # type: ignore[union-attr]
        if name not in one.summed and name not in fixed
    }
    given = {part for one in _written(summands, fixed) for part in one[1]}  # type: ignore[index]
    tensors = list(dict.fromkeys(one.tensor for one in accesses(made.value)))
    variables = {name for _, kept in given for name in kept}
    for size in range(len(names) + 1):
        for promoted in itertools.combinations(names, size):
            left = [name for name in names if name not in promoted]
            if len(left) != len(variables) or not _one_shape(wanted, promoted):
                continue
            for images in itertools.permutations(variables):
                image = dict(zip(left, images, strict=True))
                if {image[n] for n in made.result.variables if n not in promoted} != free:
                    continue
                for chosen in itertools.product(
                    sorted({name for name, _ in given}), repeat=len(tensors)
                ):
                    tensor = dict(zip(tensors, chosen, strict=True))
                    mapped = sorted(
                        repr(
                            (
                                one.coefficient,
                                tuple(
                                    sorted(
                                        (
                                            tensor[factor.tensor],  # type: ignore[union-attr]
                                            tuple(
                                                image[n]
                                                for n in factor.variables  # type: ignore[union-attr]
                                                if n not in promoted
                                            ),
                                        )
                                        for factor in one.factors
                                    )
                                ),
                                tuple(sorted(image[n] for n in one.summed if n not in promoted)),
                            )
                        )
                        for one in wanted
                    )
                    if mapped == target:
                        return True
    return False


@sampled("part", range(8), quick=2)
def test_the_matcher_finds_what_there_is(part: int) -> None:
    found_some = 0
    for number in range(part, CASES, 8):
        random = Random(number)
        text, free = _random_statement(random)
        function = _random_function(random, text, free)
        try:
            verify_capability(parse_capability(function))
        except UserError:
            continue
        value = with_sums(parse_expression(text), free)
        orders = {one.tensor: dense(len(one.variables)) for one in accesses(value)}
        form = part_form(value, orders)
        made = described("made", function, _never(function))
        mapped = fewest(form, made, Reshape(fix=True, promote=True))
        expected = None
        for size in range(len(form.variables) + 1):
            for fixed in itertools.combinations(form.variables, size):
                all_or_none = all(
                    name in form.free or all(name in one.summed for one in form.summands)
                    for name in fixed
                )
                if all_or_none and _some_map(function, form.summands, fixed):
                    expected = size
                    break
            if expected is not None:
                break
        shown = f"case {number}: {text}, {free}, {function}"
        assert (expected is None) == (not mapped), shown
        if mapped:
            found_some += 1
            assert len(mapped[0].fixed) == expected, shown
    assert found_some >= 5


def _never(function: str) -> object:
    """A function that is not called, with the tensors of a statement as its parameters."""
    made = parse_capability(function)
    names = dict.fromkeys([made.result.tensor, *(one.tensor for one in accesses(made.value))])
    return eval(f"lambda {', '.join(names)}: None")
