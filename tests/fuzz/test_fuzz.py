"""Mutated inputs of every kind: one line or a result, and nothing else changes.

300 cases here, 10,000 and more with ``make fuzz``.
"""

import pytest
from cases import Worker, kind_of
from kinds import KINDS

CASES = 300


@pytest.fixture(scope="module")
def results():
    worker = Worker()
    found = [worker.run(number, heavy=False) for number in range(CASES)]
    worker.close()
    return found


@pytest.mark.slow
def test_mutated_inputs_are_refused_in_one_line_or_read(results):
    wrong = [result for result in results if result["wrong"]]
    assert not wrong, wrong[:5]


@pytest.mark.slow
def test_the_cases_are_of_every_light_kind_and_not_all_alike(results):
    light = {name for name, kind in KINDS.items() if not kind.heavy}
    assert {result["kind"] for result in results} == light
    refused = sum(result["refused"] for result in results)
    assert CASES // 4 < refused < CASES


def test_a_case_is_known_by_its_number():
    assert {kind_of(number, True) for number in range(len(KINDS))} == set(KINDS)
