"""What clients do to one session: random requests, some of them several at once, some without waiting."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from proofs.kit.http import Cut
from proofs.kit.server import Stuck
from proofs.linear.recorder import SECONDS, Recorder
from proofs.linear.state import OPTIONS

CLIENTS = 4
LOOKS = 30  # as often a client looks whether something has happened, before it goes on
PAUSE = 0.02  # between two looks
HANG_UP = 0.004  # at most, how long a client that hangs up waits
PATIENCE = 3.0  # at most, how long a client waits for the end of its turn
FEW = 3
LAST_TRIES = 100
BUSY = {
    "submit": 9,
    "rude submit": 3,
    "run": 3,
    "again": 4,
    "cancel": 7,
    "withdraw": 6,
    "decide": 10,
    "undo": 2,
    "redo": 1,
    "session": 7,
    "turns": 8,
    "messages": 6,
    "permissions": 4,
}
IDLE = BUSY | {"submit": 10, "run": 8, "cancel": 2, "withdraw": 1, "decide": 1, "undo": 16, "redo": 8}
ASKED = BUSY | {"decide": 50}
"""How often what is done: where something runs, in a session at rest, and where an agent asks."""
SCRIPTS = {"echo": 10, "slow": 4, "ask": 5, "hang": 2, "fail": 1}


def write_prompt(script: str, key: str) -> tuple[str, str]:
    """A prompt that no other is like, and what its turn says if it is not broken off, where that is known."""
    if script == "ask":
        return f"ask {key}", ""
    if script == "slow":
        return f"chunks 4 8 15\necho {key}", "".join(f"{str(n).ljust(7, '.')} " for n in range(1, 5)) + key
    rest = {"echo": "", "hang": "\nhang", "fail": f"\nerror {key}"}[script]
    return f"echo {key}{rest}", key


class Talk:
    """One session and its clients, until they have sent what they are to send."""

    def __init__(self, recorder: Recorder, chance: random.Random, requests: int) -> None:
        self.recorder = recorder
        self._chance = chance
        self._left = requests
        self._keys = 0
        self._sent: list[Mapping[str, Any]] = []
        self._turns = 0  # as many are known
        self._head = 0
        self._is_idle = True
        self._is_asked = False
        self._last: tuple[tuple[str, ...], ...] = ()
        self._asked: dict[int, str] = {}  # permissions by their turns
        self._deeds: dict[str, Callable[[str], Awaitable[Any]]] = {
            "submit": self._submit_new,
            "rude submit": self._submit_rudely,
            "run": self._run_new,
            "again": self._submit_again,
            "cancel": self._cancel_some,
            "withdraw": self._withdraw_some,
            "decide": self._decide_some,
            "undo": self._undo_some,
            "redo": self._redo,
            "session": self._read_session,
            "turns": self._read_turns,
            "messages": self._read_messages,
            "permissions": self._read_permissions,
        }

    async def live(self) -> None:
        await asyncio.gather(*(self._work(f"c{number}") for number in range(1, CLIENTS + 1)))

    async def end(self) -> None:
        """Bring the session to rest, and look at it once more."""
        for _ in range(LAST_TRIES):
            await self.recorder.world.up.wait()
            await self._cancel("last", queued=True)
            seen = await self._read_session("last")
            if seen is not None and not (seen[0] or seen[1]):
                break
        else:
            raise Stuck(f"session {self.recorder.session} does not come to rest")
        for read in (self._read_messages, self._read_permissions, self._read_session):
            await read("last")
        self._last = await self._read_turns("last")

    def note_heard(self, count: Counter[str]) -> None:
        """What the agents heard of all that, by their own record."""
        self.recorder.note("heard", tuple(count[prompt] for prompt, *_ in self._last))

    async def _work(self, client: str) -> None:
        chance = self._chance
        while self._left > 0:
            self._left -= 1
            if chance.random() < 0.5:
                await self._wait_for_news()
            await self.recorder.world.up.wait()
            deeds = IDLE if self._is_idle else ASKED if self._is_asked else BUSY
            (deed,) = chance.choices(list(deeds), list(deeds.values()))
            await self._deeds[deed](client)

    async def _wait_for_news(self) -> None:
        """Wait a little until something has happened in the session: how fast that is depends on the machine.

        What is seen here is no part of the history, since it changes nothing.
        """
        before = self._head
        for _ in range(LOOKS):
            await asyncio.sleep(PAUSE * self._chance.random())
            with suppress(Cut):
                await self._look()
            if self._head != before:
                return

    async def _look(self) -> None:
        seen = (await self.recorder.peek("")).json()
        self._head, self._is_idle = seen["head"], seen["running_turn"] is None and not seen["queued_turns"]
        rows = (await self.recorder.peek("/permissions?state=pending")).json()["permissions"]
        self._is_asked = bool(rows)
        self._asked |= {row["turn_index"]: row["permission_id"] for row in rows}

    async def _submit_new(self, client: str) -> None:
        """Sometimes the same twice at once."""
        given = self._new_prompt(self._chance.choice(("queue", "reject")))
        times = 2 if self._chance.random() < 0.2 else 1
        await asyncio.gather(*(self._submit(f"{client}{'ab'[n]}", given) for n in range(times)))

    async def _submit_rudely(self, client: str) -> None:
        """Hang up, and ask again until there is an answer."""
        given = self._new_prompt("queue")
        answer = await self._submit(client, given, HANG_UP * self._chance.random())
        while answer is None:
            await self.recorder.world.up.wait()
            answer = await self._submit(client, given)

    async def _run_new(self, client: str) -> None:
        """Wait for the answer, but not for long: the turn may be one that somebody else has to end."""
        given = self._new_prompt("queue")
        answer = await self._run(client, given)
        while answer is None:
            await self.recorder.world.up.wait()
            answer = await self._submit(client, given)

    async def _submit_again(self, client: str) -> None:
        """A key that was used before; one time in four with another body, refused if the key is known."""
        if not self._sent:
            return
        given = self._chance.choice(self._sent[-FEW:])
        if self._chance.random() < 0.25:
            prompt, whole = write_prompt("echo", f"another-{given['key']}")
            given = {**given, "prompt": prompt, "script": "echo", "whole": whole}
        await self._submit(client, given)

    def _new_prompt(self, if_busy: str) -> Mapping[str, Any]:
        self._keys += 1
        (script,) = self._chance.choices(list(SCRIPTS), list(SCRIPTS.values()))
        key = f"{self.recorder.session[:8]}-{self._keys}"
        prompt, whole = write_prompt(script, key)
        given = {"key": key, "prompt": prompt, "script": script, "whole": whole, "if_busy": if_busy}
        self._sent.append(given)
        return given

    async def _submit(self, client: str, given: Mapping[str, Any], seconds: float = SECONDS) -> Any:
        def shape(body: Any) -> Any:
            self._turns = max(self._turns, body["turn_index"])
            return "accepted", body["turn_index"], body["state"], body["replayed"], body["head"]

        body = {"prompt": given["prompt"], "if_busy": given["if_busy"]}
        call = ("POST", "/turns", body)
        return await self.recorder.ask(
            client, "submit", given, call, shape, key=given["key"], seconds=seconds
        )

    async def _run(self, client: str, given: Mapping[str, Any]) -> Any:
        def shape(body: Any) -> Any:
            self._turns = max(self._turns, body["turn_index"])
            return "ended", body["turn_index"], body["outcome"]

        body = {"prompt": given["prompt"], "if_busy": given["if_busy"]}
        call = ("POST", "/turn", body)
        seconds = PATIENCE * self._chance.random()
        return await self.recorder.ask(client, "run", given, call, shape, key=given["key"], seconds=seconds)

    async def _cancel_some(self, client: str) -> None:
        times = 2 if self._chance.random() < 0.3 else 1
        queued = self._chance.random() < 0.3
        await asyncio.gather(*(self._cancel(f"{client}{'ab'[n]}", queued=queued) for n in range(times)))

    async def _cancel(self, client: str, *, queued: bool) -> Any:
        call = ("POST", "/cancel", {"queued": queued})
        return await self.recorder.ask(
            client, "cancel", {"queued": queued}, call, lambda body: ("cancelled", body["cancelled"])
        )

    async def _withdraw_some(self, client: str) -> None:
        turn = max(1, self._turns - self._chance.randrange(FEW) + self._chance.randrange(2))
        times = 2 if self._chance.random() < 0.3 else 1
        await asyncio.gather(*(self._withdraw(f"{client}{'ab'[n]}", turn) for n in range(times)))

    async def _withdraw(self, client: str, turn: int) -> Any:
        call = ("DELETE", f"/turns/{turn}", None)
        return await self.recorder.ask(
            client, "withdraw", {"turn": turn}, call, lambda body: ("cancelled", body["cancelled"])
        )

    async def _decide_some(self, client: str) -> None:
        """Several decide at once, and differently."""
        if not self._is_asked:
            await self._read_permissions(client)
        if self._asked:
            turn = max(self._asked)
            some = self._chance.sample(list(OPTIONS), self._chance.randint(1, 3))
            await asyncio.gather(
                *(self._decide(f"{client}{'abc'[n]}", turn, decision) for n, decision in enumerate(some))
            )

    async def _decide(self, client: str, turn: int, decision: str) -> Any:
        call = ("POST", f"/permissions/{self._asked[turn]}", {"decision": decision})
        given = {"turn": turn, "decision": decision}
        return await self.recorder.ask(
            client, "decide", given, call, lambda body: ("decided", body["permission"]["decision"])
        )

    async def _undo_some(self, client: str) -> None:
        """Sometimes two at once; and sometimes what was taken is brought back, which only one can do."""
        times = 2 if self._chance.random() < 0.3 else 1
        await asyncio.gather(*(self._undo(f"{client}{'ab'[n]}") for n in range(times)))
        if self._chance.random() < 0.5:
            await self.recorder.world.up.wait()
            await asyncio.gather(*(self._redo(f"{client}{'ab'[n]}") for n in range(times)))

    async def _undo(self, client: str) -> Any:
        given = {"turns": self._chance.choice((1, 1, 2))}
        return await self.recorder.ask(
            client,
            "undo",
            given,
            ("POST", "/undo", given),
            lambda body: ("cut", tuple(body["removed_turns"]), body["head"]),
        )

    async def _redo(self, client: str) -> Any:
        return await self.recorder.ask(
            client,
            "redo",
            {},
            ("POST", "/redo", {}),
            lambda body: ("restored", tuple(body["restored_turns"]), body["head"]),
        )

    async def _read_session(self, client: str) -> Any:
        names = ("running_turn", "queued_turns", "turn_count", "message_count", "head")
        return await self.recorder.ask(
            client, "session", {}, ("GET", "", None), lambda body: tuple(body[name] for name in names)
        )

    async def _read_turns(self, client: str) -> Any:
        names = ("prompt", "state", "outcome", "cut")
        return await self.recorder.ask(
            client,
            "turns",
            {},
            ("GET", "/turns?limit=1000", None),
            lambda body: tuple(tuple(turn[name] for name in names) for turn in body["turns"]),
        )

    async def _read_messages(self, client: str) -> Any:
        names = ("turn", "role", "content", "pending")
        return await self.recorder.ask(
            client,
            "messages",
            {},
            ("GET", "/messages?limit=1000", None),
            lambda body: tuple(tuple(one[name] for name in names) for one in body["messages"]),
        )

    async def _read_permissions(self, client: str) -> Any:
        def shape(body: Any) -> Any:
            self._asked |= {row["turn_index"]: row["permission_id"] for row in body["permissions"]}
            return tuple((row["turn_index"], row["state"], row["decision"]) for row in body["permissions"])

        return await self.recorder.ask(client, "permissions", {}, ("GET", "/permissions", None), shape)
