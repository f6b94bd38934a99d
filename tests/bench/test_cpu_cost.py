# SPDX-License-Identifier: MIT OR Apache-2.0
"""Instructions are attributed to parts of the kernel, and compared with the goals."""

from steady_lab.figures.cpu_cost import (
    K2,
    K2_RT,
    MQ_DEADLINE,
    MQ_DEADLINE_RT,
    NONE,
    SMALL_LOAD,
    Case,
    Cost,
    missed_goals,
    tables,
)
from steady_lab.figures.instructions import Functions, kernel_functions
from steady_lab.kernels.build import LabKernel


def cost(instructions: float) -> Cost:
    return Cost(instructions, dispatches=1)


def costs(k2: float, mq_deadline: float) -> dict[Case, Cost]:
    return {
        (SMALL_LOAD, NONE): cost(1),
        (SMALL_LOAD, MQ_DEADLINE): cost(mq_deadline),
        (SMALL_LOAD, K2): cost(k2),
    }


def test_k2_may_cost_as_much_as_mq_deadline_but_not_more() -> None:
    assert missed_goals(costs(k2=500, mq_deadline=500)) == []
    (line,) = missed_goals(costs(k2=501, mq_deadline=500))
    assert "k2 501" in line
    assert "mq-deadline 500" in line


def test_with_a_real_time_stream_it_may_cost_a_seventh_more() -> None:
    def real_time(k2: float) -> dict[Case, Cost]:
        return {(SMALL_LOAD, MQ_DEADLINE_RT): cost(1000), (SMALL_LOAD, K2_RT): cost(k2)}

    assert missed_goals(real_time(1150)) == []
    (line,) = missed_goals(real_time(1151))
    assert "k2, real-time class 1151" in line


def test_tables_have_a_row_for_each_scheduler() -> None:
    (totals,) = tables(costs(k2=500, mq_deadline=600))
    assert totals.body == [["none", "1"], ["mq-deadline", "600"], ["k2", "500"]]


def test_functions_belong_to_the_folder_of_their_source(base_kernel: LabKernel) -> None:
    functions = kernel_functions(base_kernel.tree)
    parts = {function.name: function.part for function in functions}
    assert parts["blk_mq_submit_bio"] == "block"
    assert parts["dd_dispatch_request"] == "scheduler"
    assert parts["bfq_dispatch_request"] == "scheduler"
    assert parts["rb_erase"] == "lib"
    assert parts["ktime_get"] == "kernel"
    assert parts["um_set_signals"] == "arch"
    found = Functions(functions)
    submit = next(function for function in functions if function.name == "blk_mq_submit_bio")
    assert found.find(submit.address + 1) == submit
    assert found.find(0x7FFF_0000_0000).part == "host"
