"""Ways of a history: taken back, brought back, copied, exported, imported, cleared, searched and listed."""

from typing import Any

from proofs.kit.client import Client
from proofs.noise.way import Noisy, Way

META_BYTES = 60_000
WORDS = ("apple", "river", "stone", "cloud", "lamp", "wolf", "paper", "salt")


def transcript(noisy: Noisy, length: int) -> dict[str, Any]:
    def text(number: int) -> str:
        return " ".join(noisy.random.choice(WORDS) for _ in range(8)) + f" {number}"

    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text(number)} for number in range(length)]
    return {"messages": messages, "agent": "scripted", "title": "long"}


async def import_long(noisy: Noisy) -> str:
    body = transcript(noisy, noisy.size(20_000, 400))
    return str((await noisy.client.repeat("POST", "/sessions/import", body))["session_id"])


async def prepare_one(noisy: Noisy) -> None:
    await noisy.once("long", lambda: import_long(noisy))


async def undo_and_redo(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: import_long(noisy))
    await noisy.expect(200, "POST", f"/sessions/{session}/undo", {"turns": 10_000})
    await noisy.expect(200, "POST", f"/sessions/{session}/redo", {})


async def fork(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: import_long(noisy))
    await noisy.expect(200, "POST", f"/sessions/{session}/fork", {})


async def clear(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: import_long(noisy))
    made = await noisy.call("POST", f"/sessions/{session}/fork", {})
    if made is not None and made.ok:
        await noisy.expect(200, "POST", f"/sessions/{made.json()['session_id']}/clear", {})


async def export(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: import_long(noisy))
    await noisy.expect(200, "GET", f"/sessions/{session}/export?events=true")


async def export_as_text(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: import_long(noisy))
    reply = await noisy.call("GET", f"/sessions/{session}/export?format=md")
    noisy.bite(reply is not None and reply.status in (200, 429))


async def import_again(noisy: Noisy) -> None:
    await noisy.expect(200, "POST", "/sessions/import", transcript(noisy, noisy.size(5_000, 400)))


async def hermes_session(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: import_long(noisy))
    await noisy.expect(200, "GET", f"/api/session?session_id={session}")


async def message_pages(noisy: Noisy) -> None:
    session = await noisy.once("long", lambda: import_long(noisy))
    await noisy.expect(200, "GET", f"/sessions/{session}/messages?limit=1000")


async def prepare_meta(noisy: Noisy) -> None:
    for number in range(noisy.size(100, 20)):
        await noisy.session(meta={"note": "x" * META_BYTES}, title=f"meta {number}")


async def meta_lists(noisy: Noisy) -> None:
    await noisy.expect(200, "GET", "/sessions?limit=1000")


async def prepare_sessions(noisy: Noisy) -> None:
    for number in range(noisy.size(2_000, 150)):
        await noisy.session(title=f"session {number}")


async def session_lists(noisy: Noisy) -> None:
    await noisy.expect(200, "GET", f"/sessions?limit=1000&q={noisy.random.randrange(100)}")


async def make_sessions(noisy: Noisy) -> None:
    await noisy.expect(200, "POST", "/sessions", {"agent": "scripted", "retention": "keep"})


async def big_pages(noisy: Noisy) -> None:
    session = await noisy.once("big", lambda: _big_messages(noisy))
    await noisy.expect(200, "GET", f"/sessions/{session}/messages?limit=1000")


async def _big_messages(noisy: Noisy) -> str:
    messages = [{"role": "user", "content": "x" * 60_000} for _ in range(noisy.size(400, 40))]
    body = {"messages": messages, "agent": "scripted"}
    client: Client = noisy.client
    return str((await client.repeat("POST", "/sessions/import", body))["session_id"])


async def prepare_big(noisy: Noisy) -> None:
    await noisy.once("big", lambda: _big_messages(noisy))


async def search(noisy: Noisy) -> None:
    await noisy.once("long", lambda: import_long(noisy))
    words = "+".join(noisy.random.sample(WORDS, 2))
    await noisy.expect(200, "GET", f"/search?q={words}&limit=1000")


async def rename(noisy: Noisy) -> None:
    """Small writes, as many as there can be."""
    session = await noisy.once("session", noisy.session)
    await noisy.expect(200, "PATCH", f"/sessions/{session}", {"title": f"{noisy.random.random()}"})


HISTORIES = (
    Way("undo and redo", "20,000 messages taken back and brought back", undo_and_redo, 1, prepare_one),
    Way("forks", "4 forks of 20,000 messages at a time", fork, 4, prepare_one),
    Way("clears", "2 times 20,000 messages forked and cleared", clear, 2, prepare_one),
    Way("exports", "4 exports of 20,000 messages at a time", export, 4, prepare_one),
    Way("exports as text", "the same as Markdown", export_as_text, 4, prepare_one),
    Way("imports", "2 imports of 5,000 messages at a time", import_again, 2),
    Way("hermes sessions", "20,000 messages in one answer, 4 at a time", hermes_session, 4, prepare_one),
    Way("pages of messages", "pages of 1,000 messages", message_pages, 8, prepare_one),
    Way("large pages", "pages of messages of 24 MiB", big_pages, 4, prepare_big),
    Way("lists with much meta", "100 sessions of 60 KB of meta each", meta_lists, 8, prepare_meta),
    Way(
        "lists of many sessions",
        "lists and searches among 2,000 sessions",
        session_lists,
        8,
        prepare_sessions,
    ),
    Way("new sessions", "8 callers that make sessions", make_sessions, 8),
    Way("searches", "searches with 1,000 hits", search, 8, prepare_one),
    Way("renames", "32 callers that change a title", rename, 32),
)
