"""What a turn may take, in exact numbers: they are the same on every machine, and grow only on purpose."""

import json
import time
from pathlib import Path

from bench.counted import read_counts
from bench.kit import new_session, server

TOP = Path(__file__).resolve().parents[2]
BUDGET = TOP / "bench" / "budget.json"
TURNS = 6
WITHIN = 10.0
AWAITED = ("statements", "reads", "commits", "hops")


def test_a_turn_takes_no_more_than_its_budget(tmp_path: Path) -> None:
    """The cheapest of some turns counts: now and then one is beside work that is done once a second."""
    tally = tmp_path / "counts"
    found: list[dict[str, int]] = []
    with server(tmp_path / "data", ("bench.counted", str(tally))) as (http, _pid):
        path = f"/sessions/{new_session(http)}/turn"
        for _ in range(TURNS):
            before = wait_until_quiet(tally)
            reply = http.post(path, json={"prompt": "echo hello"})
            assert reply.status_code == 200, reply.text
            after = wait_until_quiet(tally)
            found.append({name: after[name] - before[name] for name in before})
    least = {name: min(each[name] for each in found) for name in found[0]}
    allowed: dict[str, int] = json.loads(BUDGET.read_text())
    dear = {name: (least[name], most) for name, most in allowed.items() if least[name] > most}
    assert not dear, f"more than bench/budget.json allows, as (now, allowed): {dear}"
    assert least["commits"] == 2, "one records the prompt and starts the turn, the other ends it"


def wait_until_quiet(tally: Path) -> dict[str, int]:
    """The counts when a look shows what the one before it showed, or after a while anyway."""
    last, end = read_counts(tally), time.monotonic() + WITHIN
    while time.monotonic() < end:
        time.sleep(0.1)
        now = read_counts(tally)
        if all(now[name] == last[name] for name in AWAITED):
            return now
        last = now
    return last
