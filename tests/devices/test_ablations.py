# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each mechanism of ablations.toml is in the policy and on the page, and one is left out."""

from __future__ import annotations

import declared_ablations
import pytest
from ablations import ALL_LOADS, PAGE, POLICY, Mechanism, figures, mechanisms, program

pytestmark = pytest.mark.reads("lab", "kernel", "experiments", "docs")


DECLARED = {
    mechanism.name: (mechanism, load) for mechanism, load in declared_ablations.mechanisms()
}
ALL = [*mechanisms(), *(mechanism for mechanism, _ in DECLARED.values())]


@pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: mechanism.name)
def test_the_mechanism_is_in_the_policy_and_on_the_page(mechanism: Mechanism) -> None:
    text = (POLICY / mechanism.file).read_text(encoding="utf-8")
    assert mechanism.left_out(text) != text
    assert f"| {mechanism.name} |" in PAGE.read_text(encoding="utf-8")


def test_without_anticipation_periodic_requests_take_longer() -> None:
    load = ALL_LOADS["every 10 ms"]
    anticipation = next(each for each in mechanisms() if each.name == "Anticipation")
    with program(None) as built:
        base = figures(load, built)
    with program(anticipation) as built:
        without = figures(load, built)
    assert without.p99 > 1.1 * base.p99


@pytest.mark.parametrize("name", DECLARED)
def test_without_what_it_states_a_declared_task_or_the_background_loses(name: str) -> None:
    mechanism, load = DECLARED[name]
    base = declared_ablations.figures(None, load)
    without = declared_ablations.figures(mechanism, load)
    # Before its first job nothing is known of a task.
    assert base.blocked < 0.01
    assert without.background < 0.99 * base.background or without.blocked > 0.1


def test_a_mechanism_that_is_not_there_is_refused() -> None:
    missing = Mechanism("none", "k2_edge.c", "no such text", "")
    with pytest.raises(ValueError, match="not exactly once in k2_edge.c"):
        missing.left_out("something else")
