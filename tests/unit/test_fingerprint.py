"""What an Idempotency-Key stands for is stored: the same request must mean the same after an upgrade."""

import hashlib

import orjson
import pytest

from clawdforge.core.rules.fingerprints import fingerprint
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


FROZEN: list[tuple[dict[str, object], str]] = [
    ({}, "3addde264da13684bf8762e19120fdff36fe4f4bb8751a2843d4accd0a50dd47"),
    ({"files": ["ff_1"]}, "af599928dc3a37e92689778fcec742446a3a8f27aec4a762bbc103a4998a4e87"),
    ({"files": []}, "3dd00f3a53ceced341d7698b979240065d19231723a5f1bfce111b02872579bb"),
    ({"timeout_secs": 3.5}, "97d47a5fe47d53b7d9a2e52dc018ca528e73ea36b0643d2f09414aafb1a6d61d"),
    ({"if_busy": "reject"}, "039bd59d4a90438f335c8848a1c9c5dfeabbbcbac2f4558af802177a1a5fd669"),
    (
        {"if_busy": "interrupt", "files": ["ff_1", "ff_2"], "timeout_secs": 60, "expected_head": 7},
        "2537cfe1a4122742c96900b94e9808c51e60d25becaa8845e1eb64ae4e87e2c2",
    ),
]
"""What databases hold already. No line is ever changed: a key that was used would mean another request."""


@pytest.mark.parametrize(("fields", "digest"), FROZEN)
def test_what_is_stored_already_is_recognised(fields: dict[str, object], digest: str) -> None:
    given = {"prompt": "go on, ünd more", **fields}
    assert fingerprint(TurnRequest.model_validate(given)) == digest
    assert fingerprint(LaterRequest.model_validate(given)) == digest


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
