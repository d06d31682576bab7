"""Pages of a transcript over HTTP and the SDK: its end, what stands before, after and around a message."""

from typing import Any

import pytest

from clawdforge import Forge
from tests.api.harness import App, Server
from tests.api.talk import do, say


def seqs(page: Any) -> list[int]:
    return [message["seq"] for message in page["messages"]]


def read(app: App, sid: str, **params: Any) -> Any:
    reply = app.http.get(f"/sessions/{sid}/messages", params=params)
    assert reply.status_code == 200, reply.text
    page = reply.json()
    assert page["count"] == len(page["messages"])
    return page


def where(page: Any) -> tuple[list[int], int | None, int | None]:
    return seqs(page), page["previous"], page["next"]


def test_a_transcript_is_read_from_its_end(app: App) -> None:
    sid = app.session()
    for number in range(3):
        say(app, sid, f"echo {number}")
    assert where(read(app, sid, tail=1, limit=2)) == ([5, 6], 5, None)
    assert where(read(app, sid, before=5, limit=3)) == ([2, 3, 4], 2, 4)
    assert where(read(app, sid, before=2, limit=3)) == ([1], None, 1)
    assert where(read(app, sid, after=4, limit=3)) == ([5, 6], 5, None)
    assert where(read(app, sid, limit=4)) == ([1, 2, 3, 4], None, 4)
    assert where(read(app, sid, around=4, limit=3)) == ([3, 4, 5], 3, 5)
    assert where(read(app, sid, around=99, limit=2)) == ([5, 6], 5, None)
    assert where(read(app, sid, tail=0, after=0, limit=1)) == ([1], None, 1)
    assert where(read(app, sid, tail=1)) == ([1, 2, 3, 4, 5, 6], None, None)


def test_the_end_moves_with_undo_redo_clear_and_fork(app: App) -> None:
    sid = app.session()
    for number in range(3):
        say(app, sid, f"echo {number}")
    do(app, sid, "undo")
    assert where(read(app, sid, tail=1, limit=2)) == ([3, 4], 3, None)
    assert where(read(app, sid, around=6, limit=2)) == ([3, 4], 3, None)
    do(app, sid, "redo")
    assert where(read(app, sid, tail=1, limit=2)) == ([5, 6], 5, None)
    fork = do(app, sid, "fork", after_turn=2)["session_id"]
    assert where(read(app, fork, tail=1, limit=2)) == ([3, 4], 3, None)
    do(app, sid, "clear")
    assert where(read(app, sid, tail=1)) == ([], None, None)
    assert where(read(app, sid, tail=1, all=1, limit=2)) == ([5, 6], 5, None)
    say(app, sid, "echo new")
    assert where(read(app, sid, before=8)) == ([7], None, 7)
    assert where(read(app, sid, before=8, limit=2, all=1)) == ([6, 7], 6, 7)


def test_an_empty_session_has_no_neighbours(app: App) -> None:
    sid = app.session()
    for params in ({"tail": 1}, {"before": 7}, {"around": 7}, {"after": 7}, {}):
        assert where(read(app, sid, **params)) == ([], None, None), params


@pytest.mark.parametrize(
    "params",
    [
        {"tail": 1, "after": 0},
        {"before": 3, "after": 1},
        {"around": 3, "tail": 1},
        {"before": 3, "around": 3},
        {"before": -1},
        {"around": "x"},
        {"before": 2**53 + 1},
        {"tail": 1, "limit": 0},
        {"tail": 1, "limit": 1001},
    ],
)
def test_a_page_lies_at_one_place(app: App, params: dict[str, Any]) -> None:
    reply = app.http.get(f"/sessions/{app.session()}/messages", params=params)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), reply.text


def test_a_large_message_does_not_keep_others_from_being_read(app: App) -> None:
    sid = app.session()
    for _ in range(3):
        say(app, sid, f"echo {'x' * 700_000}")
    page = read(app, sid, tail=1)
    assert (seqs(page), page["previous"]) == ([6], 6)
    found = [6]
    while page["previous"] is not None:
        page = read(app, sid, before=page["previous"])
        found[:0] = seqs(page)
    assert found == [1, 2, 3, 4, 5, 6]
    assert 3 in seqs(read(app, sid, around=3))


def test_the_sdk_reads_pages(server: Server, app: App) -> None:
    with Forge(base_url=server.url, token=app.token) as forge, forge.session(agent="claude") as session:
        session.turn("echo a")
        session.turn("echo b")
        page = session.message_page(tail=True, limit=2)
        assert ([message.seq for message in page.messages], page.previous, page.next) == ([3, 4], 3, None)
        above = session.message_page(before=page.previous)
        assert ([message.content for message in above.messages], above.next) == (["echo a", "a"], 2)
        assert [message.seq for message in session.message_page(around=2, limit=1).messages] == [2]
        assert [message.seq for message in session.message_page(after=3, all=True).messages] == [4]
