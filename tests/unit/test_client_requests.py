"""Every method sends one request, to its own route, with what was said and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from clawdforge import Forge, ForgeError
from clawdforge.client._calls import drop_nulls, fill
from tests.unit.client_stub import Answer, answers, serving

S = "/sessions/s"
Body = dict[str, Any] | None
Case = tuple[str, Callable[[Forge], Any], str, Body, dict[str, list[str]]]

CASES: list[Case] = [
    ("undo", lambda f: f.attach("s").undo(), f"POST {S}/undo", {}, {}),
    (
        "undo-many",
        lambda f: f.attach("s").undo(2, files=True, expected_head=9),
        f"POST {S}/undo",
        {"turns": 2, "files": True, "expected_head": 9},
        {},
    ),
    ("redo", lambda f: f.attach("s").redo(files=True), f"POST {S}/redo", {"files": True}, {}),
    (
        "retry",
        lambda f: f.attach("s").retry(run=True, prompt="p"),
        f"POST {S}/retry",
        {"run": True, "prompt": "p"},
        {},
    ),
    (
        "fork",
        lambda f: f.attach("s").fork(title="t", after_turn=0),
        f"POST {S}/fork",
        {"title": "t", "after_turn": 0},
        {},
    ),
    ("clear", lambda f: f.attach("s").clear(expected_head=1), f"POST {S}/clear", {"expected_head": 1}, {}),
    ("compact", lambda f: f.attach("s").compact(), f"POST {S}/compact", {}, {}),
    ("patch", lambda f: f.attach("s").patch(pinned=False), f"PATCH {S}", {"pinned": False}, {}),
    ("rename", lambda f: f.attach("s").rename("t"), f"PATCH {S}", {"title": "t"}, {}),
    ("let-agent-go", lambda f: f.attach("s").let_agent_go(), f"DELETE {S}/agent", None, {}),
    ("reopen", lambda f: f.attach("s").reopen(), f"POST {S}/reopen", {}, {}),
    ("export", lambda f: f.attach("s").export(events=True), f"GET {S}/export", None, {"events": ["true"]}),
    ("markdown", lambda f: f.attach("s").export_markdown(), f"GET {S}/export", None, {"format": ["md"]}),
    ("html", lambda f: f.attach("s").export_html(), f"GET {S}/export", None, {"format": ["html"]}),
    (
        "search",
        lambda f: next(f.search("a b", page_size=5)),
        "GET /search",
        None,
        {"q": ["a b"], "limit": ["5"]},
    ),
    (
        "import",
        lambda f: f.import_session(messages=[{"role": "user", "content": "hi"}], title="t"),
        "POST /sessions/import",
        {"messages": [{"role": "user", "content": "hi"}], "title": "t"},
        {},
    ),
    (
        "import-export",
        lambda f: f.import_session(export={"format": "clawdforge"}),
        "POST /sessions/import",
        {"format": "clawdforge", "export": {"format": "clawdforge"}},
        {},
    ),
    ("cancel", lambda f: f.attach("s").cancel(queued=True), f"POST {S}/cancel", {"queued": True}, {}),
    ("cancel-one", lambda f: f.attach("s").cancel(turn=3), f"POST {S}/cancel", {"turn": 3}, {}),
    ("withdraw", lambda f: f.attach("s").withdraw(3), f"DELETE {S}/turns/3", None, {}),
    (
        "messages",
        lambda f: next(f.attach("s").messages(all=True, after=4)),
        f"GET {S}/messages",
        None,
        {"all": ["true"], "after": ["4"]},
    ),
    (
        "decide",
        lambda f: f.attach("s").decide("p", "reject", option_id="o"),
        f"POST {S}/permissions/p",
        {"decision": "reject", "option_id": "o"},
        {},
    ),
]


@pytest.mark.parametrize(("act", "line", "body", "query"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_a_method_sends_its_request(
    act: Callable[[Forge], Any], line: str, body: Body, query: dict[str, list[str]]
) -> None:
    with serving(answers(Answer({"detail": "no"}, 418))) as stub, Forge(stub.url, "t") as forge:
        with pytest.raises(ForgeError):
            act(forge)
        (asked,) = stub.asked
        assert (asked.line, asked.json) == (line, body)
        assert query.items() <= asked.query.items()


def test_paths_and_bodies() -> None:
    assert fill("/a/{x}/b/{y}", ["1/2", 3]) == "/a/1%2F2/b/3"
    assert drop_nulls({"a": None, "b": False, "c": 0, "d": ""}) == {"b": False, "c": 0, "d": ""}
    with pytest.raises(ValueError, match="session_id is empty"):
        fill("/sessions/{session_id}", [""])
