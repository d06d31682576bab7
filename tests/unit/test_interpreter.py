"""While a server serves, threads change often and what it is made of is not looked through."""

import gc
import sys

import pytest

from clawdforge.core.pacing.interpreter import SWITCH_SECS, short_pauses


def serve_and_fail() -> None:
    with short_pauses():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECS)
        assert gc.get_freeze_count() > 0
        raise RuntimeError


def test_it_is_set_up_and_put_back_also_after_a_failure() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(RuntimeError):
        serve_and_fail()
    assert sys.getswitchinterval() == before
    assert gc.get_freeze_count() == 0
