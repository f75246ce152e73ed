"""A gate as a test: it trains for some steps, and fails where a step takes too long or waits too long for its batch."""
import sys

import trainprof


def test_a_step_is_fast_enough():
    trainprof.assert_budget([sys.executable, "train.py"], step_time_ms=400, input_wait="10%")
