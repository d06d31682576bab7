"""What an Idempotency-Key stands for, as a digest."""

import hashlib

import orjson

from clawdforge.wire.turn import IfBusy, TurnRequest

FIRST_FIELDS = ("prompt", "files", "timeout_secs")
"""What every fingerprint holds, given or not: so did those that version 0.3 stored."""


def fingerprint(request: TurnRequest) -> str:
    """What an Idempotency-Key stands for: the prompt and all that goes with it.

    It is stored, and stays the same when a later version adds a field: it counts only where it is given.
    """
    body = request.model_dump(mode="json", exclude={"expected_head"}, exclude_defaults=True)
    body = {**dict.fromkeys(FIRST_FIELDS), "if_busy": IfBusy.QUEUE.value, **body}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
