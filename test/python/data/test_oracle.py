"""Tests of agreement with the reference implementation of the KV-cache types; see oracle.py."""

import numpy as np
import oracle
import pytest
from devices import TARGETS

PLAIN, QUANTIZED = oracle.plain_cases(), oracle.quantized_cases()
OPEN = oracle.open_cases(every=8)
each_plain_case = pytest.mark.parametrize("case", PLAIN, ids=str)
each_quantized_case = pytest.mark.parametrize("case", QUANTIZED, ids=str)


def test_all_cases_are_listed():
    assert len(PLAIN) == 76
    assert len(QUANTIZED) == 64


def check_numbers(case, kinds, target="cpu"):
    answers = case.ask(kinds, case.allocate(), case.allocate_scales(), target)
    wrong = [(question, got) for question, got in answers if got != question.answer]
    assert not wrong


def check_loads(case, kinds, target="cpu"):
    memory = case.allocate(), case.allocate_scales()
    for question, _ in case.ask(kinds, *memory, target):
        output = question.arguments[-1]
        assert output.astype(np.float64).tolist() == question.answer, question


def check_stores(case, kind, memory, answers, target="cpu"):
    """Stores change only the elements of ``memory`` in the answers."""
    before = memory.copy()
    for question, _ in case.ask(kind, *answers, target=target):
        changed = np.flatnonzero(memory.view(np.uint8) != before.view(np.uint8))
        assert sorted(set((changed // memory.itemsize).tolist())) == question.answer, (
            question
        )
        before[:] = memory


@each_plain_case
@pytest.mark.parametrize("kind", ["queries", "tiles", "rows"])
def test_numbers(case, kind):
    check_numbers(case, kind)


@each_plain_case
def test_loads(case):
    check_loads(case, "loads")


@each_plain_case
def test_stores(case):
    memory = case.allocate()
    check_stores(case, "stores", memory, (memory,))


@each_quantized_case
def test_numbers_of_quantized(case):
    check_numbers(case, "queries tiles rows scale_queries scale_tiles")


@each_quantized_case
def test_loads_of_quantized(case):
    """The reference uses the first lane's scale for all lanes, which are equal here."""
    check_loads(case, "loads raw_loads")


@each_quantized_case
def test_stores_to_quantized(case):
    memory, scales = case.allocate(), case.allocate_scales()
    check_stores(case, "stores", memory, (memory, scales))
    assert scales.tobytes() == case.allocate_scales().tobytes()
    before = memory.tobytes()
    check_stores(case, "scale_stores", scales, (memory, scales))
    assert memory.tobytes() == before


@pytest.mark.parametrize(
    ("case", "target"),
    [(case, TARGETS[i % len(TARGETS)]) for i, case in enumerate((PLAIN + QUANTIZED)[::5])],
    ids=str,
)
def test_chips_agree_on_queries(case, target):
    """Tests every fifth case in a kernel of one chip, on the emulator."""
    check_everything(case, target)


@pytest.mark.parametrize(
    ("case", "target"),
    [(case, ("cpu", *TARGETS)[i % 4]) for i, case in enumerate(OPEN)],
    ids=str,
)
def test_pages_of_any_size_agree(case, target):
    check_everything(case, target)


def check_everything(case, target):
    is_quantized = case.is_quantized
    check_numbers(
        case,
        "queries tiles rows" + (" scale_queries scale_tiles" if is_quantized else ""),
        target,
    )
    check_loads(case, "loads raw_loads" if is_quantized else "loads", target)
    memory, scales = case.allocate(), case.allocate_scales()
    check_stores(case, "stores", memory, (memory, scales), target)
    if is_quantized:
        check_stores(case, "scale_stores", scales, (memory, scales), target)
