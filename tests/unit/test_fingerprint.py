"""What an Idempotency-Key stands for is stored: the same request must mean the same after an upgrade."""

import hashlib

import orjson
import pytest

from clawdforge.core.rules.turns import fingerprint
from clawdforge.wire.turn import IfBusy, TurnRequest


class LaterRequest(TurnRequest):
    """As a later version may have it."""

    colour: str | None = None
    loud: bool = False


def as_stored_by_0_3(request: TurnRequest) -> str:
    body = {
        "prompt": request.prompt,
        "files": request.files,
        "timeout_secs": request.timeout_secs,
        "if_busy": request.if_busy.value,
    }
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"files": ["ff_1"]},
        {"files": []},
        {"timeout_secs": 3.5},
        {"if_busy": IfBusy.REJECT},
        {"if_busy": IfBusy.QUEUE, "timeout_secs": None, "expected_head": 7},
    ],
)
def test_it_is_the_same_in_every_version(fields: dict[str, object]) -> None:
    request = TurnRequest.model_validate({"prompt": "go", **fields})
    assert fingerprint(request) == as_stored_by_0_3(request)
    assert fingerprint(LaterRequest.model_validate({"prompt": "go", **fields})) == as_stored_by_0_3(request)


def test_a_later_field_counts_where_it_is_given() -> None:
    given = [
        LaterRequest(prompt="go"),
        LaterRequest(prompt="go", loud=True),
        LaterRequest(prompt="go", colour=""),
    ]
    assert len({fingerprint(request) for request in given}) == 3
