"""Planted bugs of faces, webhooks and schedules: told twice, told to nobody, run twice."""

from proofs.kit.source import Change
from proofs.planted import SRC, Bug

COURIER = f"{SRC}/core/services/courier.py"
OCCURRENCES = f"{SRC}/core/services/occurrences.py"
KILLED = "tests/api/test_webhooks.py -k kill_between_event_and_delivery"

FACE_BUGS = (
    Bug(
        "face: a bridge that finds its server again begins at the start of the log",
        "tests/unit/test_acp_live.py -k read_from_where_it_was_lost",
        (
            Change(
                f"{SRC}/faces/acp/live.py",
                ".follow(after=self.cursor or 0):",
                ".follow(after=0):",
            ),
        ),
    ),
    Bug(
        "face: a page that was cut off is told the frames again that it has",
        "tests/api/test_ui_streams.py -k agui_has_the_turn",
        (
            Change(
                f"{SRC}/http/dialects/ui/routers.py",
                "        if (stored.seq, number) > after\n",
                "        if stored.seq >= after[0]\n",
            ),
        ),
    ),
    Bug(
        "face: the key of a request to OpenAI's dialect does not reach its turn",
        "tests/api/test_openai.py -k killed_server_runs_nothing_twice",
        (
            Change(
                f"{SRC}/http/dialects/openai/finding.py",
                "request, self.named.key, self.caller)",
                "request, None, self.caller)",
            ),
        ),
    ),
    Bug(
        "face: what comes right behind a request for a WebSocket is dropped",
        "tests/faces/test_upgrades.py -k right_behind_the_request",
        (
            Change(
                f"{SRC}/http/connections/protocol.py",
                "self._keep_behind(data[upgrade.args[0] :])",
                'self._keep_behind(b"")',
            ),
        ),
    ),
    Bug(
        "webhook: a delivery counts as made before it is",
        KILLED,
        (
            Change(
                COURIER,
                "        await self._note(row, *await self._post(row, endpoint, receivers, traced))\n",
                "        await self._note(row, None, None)\n"
                "        await self._post(row, endpoint, receivers, traced)\n",
            ),
        ),
    ),
    Bug(
        "webhook: each try has an id of its own",
        KILLED,
        (
            Change(
                COURIER,
                "signed = sign(endpoint, row.delivery_id, body, self._clock.now())",
                'signed = sign(endpoint, f"msg_{self._clock.now()}", body, self._clock.now())',
            ),
        ),
    ),
    Bug(
        "schedule: an occurrence's turn and its next time are two transactions",
        "tests/unit/test_schedules.py -k two_servers_that_look_at_once",
        (
            Change(
                OCCURRENCES,
                "        await self._submit(row, occurrence_id, Beside(begin, note))\n",
                "        done: list[SubmittedTurn] = []\n"
                "        later = Beside(begin, lambda _tx, submitted: done.append(submitted))\n"
                "        await self._submit(row, occurrence_id, later)\n"
                "        await self._store.write(app, lambda tx: note(tx, done[0]))\n",
            ),
        ),
        quick=True,
    ),
)
