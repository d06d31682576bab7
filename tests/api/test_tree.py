"""The tree of a session: what each turn was said after, what was taken back, what was forked where."""

from typing import Any

from clawdforge import Forge
from tests.api.harness import App, Server
from tests.api.talk import begin, do, say


def tree(app: App, sid: str, **params: Any) -> Any:
    reply = app.http.get(f"/sessions/{sid}/tree", params=params)
    assert reply.status_code == 200, reply.text
    return reply.json()


def shape(page: Any) -> list[tuple[int, int | None, bool]]:
    return [(turn["turn_index"], turn["parent"], turn["cut"]) for turn in page["turns"]]


def test_turns_that_were_taken_back_keep_their_place(app: App) -> None:
    sid = app.session()
    assert tree(app, sid) == {
        "ok": True,
        "session_id": sid,
        "forked_from": None,
        "turns": [],
        "forks": [],
        "next": None,
    }
    for number in range(1, 4):
        say(app, sid, f"echo {number}")
    do(app, sid, "undo")
    say(app, sid, "echo other")
    do(app, sid, "undo", turns=2)
    say(app, sid, "echo last")
    expected = [(1, None, False), (2, 1, True), (3, 2, True), (4, 2, True), (5, 1, False)]
    page = tree(app, sid)
    assert shape(page) == expected
    assert (page["turns"][3]["prompt"], page["turns"][3]["outcome"]) == ("echo other", "completed")
    first = tree(app, sid, limit=2)
    assert (shape(first), first["next"]) == (expected[:2], 2)
    rest = tree(app, sid, after=2, limit=3)
    assert (shape(rest), rest["next"]) == (expected[2:], None)
    do(app, sid, "clear")
    say(app, sid, "echo anew")
    assert shape(tree(app, sid))[-1] == (6, None, False)


def test_forks_hang_on_the_turn_after_which_they_were_made(app: App, other: App) -> None:
    sid = app.session(title="root")
    for number in range(1, 4):
        say(app, sid, f"echo {number}")
    forks = {after: do(app, sid, "fork", after_turn=after, title=f"at {after}") for after in (0, 2, 3)}
    page = tree(app, sid)
    assert [[one["title"] for one in turn["forks"]] for turn in page["turns"]] == [[], ["at 2"], ["at 3"]]
    assert [one["session_id"] for one in page["forks"]] == [forks[0]["session_id"]]
    assert [len(turn["forks"]) for turn in tree(app, sid, after=2)["turns"]] == [1]
    assert tree(app, sid, after=2)["forks"] == []
    fork = forks[2]["session_id"]
    say(app, fork, "echo own")
    page = tree(app, fork)
    assert page["forked_from"] == {"session_id": sid, "after_turn": 2}
    assert shape(page) == [(1, None, False), (2, 1, False), (3, 2, False)]
    app.http.post(f"/sessions/{fork}/purge")
    assert tree(app, sid)["turns"][1]["forks"] == []
    assert other.http.get(f"/sessions/{sid}/tree").status_code == 404


def test_what_waits_is_there_with_the_beginning_of_its_prompt(app: App) -> None:
    sid = app.session()
    begin(app, sid)
    app.http.post(f"/sessions/{sid}/turns", json={"prompt": "é" * 300})
    turns = tree(app, sid)["turns"]
    assert [turn["state"] for turn in turns] == ["running", "queued"]
    assert turns[1]["prompt"] == "é" * 200
    assert turns[1]["parent"] == 1
    app.http.post(f"/sessions/{sid}/cancel", json={"queued": True})


def test_the_sdk_reads_the_tree(server: Server, app: App) -> None:
    with Forge(base_url=server.url, token=app.token) as forge, forge.session(agent="claude") as session:
        session.turn("echo a")
        session.turn("echo b")
        fork = session.fork(after_turn=1)
        found = session.tree()
        assert [turn.parent for turn in found.turns] == [None, 1]
        assert found.turns[0].forks[0].session_id == fork.session_id
        assert session.tree(after=1, limit=1).turns[0].prompt == "echo b"
