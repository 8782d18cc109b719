"""Agreement with the reference implementation of the KV-cache types; see oracle.py."""

import numpy as np
import oracle
import pytest

CASES = oracle.plain_cases()
each_case = pytest.mark.parametrize("case", CASES, ids=str)


def test_all_plain_cases_are_here():
    assert len(CASES) == 76


@each_case
@pytest.mark.parametrize("kind", ["queries", "tiles", "rows"])
def test_numbers(case, kind):
    wrong = [
        (question, answer)
        for question, answer in case.ask(kind, case.allocate())
        if answer != question.answer
    ]
    assert not wrong


@each_case
def test_loads(case):
    for question, _ in case.ask("loads", case.allocate()):
        output = question.arguments[-1]
        assert output.astype(np.float64).tolist() == question.answer, question


@each_case
def test_stores(case):
    memory = case.allocate()
    before = memory.copy()
    for question, _ in case.ask("stores", memory):
        changed = np.flatnonzero(memory.view(np.uint8) != before.view(np.uint8))
        assert sorted(set((changed // memory.itemsize).tolist())) == question.answer, (
            question
        )
        before[:] = memory
