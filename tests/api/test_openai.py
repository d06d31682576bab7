"""The OpenAI dialect against a real server, as the official SDK uses it: who answers, and with what."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest

from tests.api.harness import App, Server, until

SESSION = "X-Clawdforge-Session"
CHAT = "X-OpenWebUI-Chat-Id"


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that serves the face; the others do not."""
    found = Server(tmp_path_factory.mktemp("openai") / "data", {"CLAWDFORGE_FACES": "openai"})
    yield found
    found.stop()


@pytest.fixture
def mine(face: Server) -> Iterator[App]:
    with face.closing_clients():
        yield face.app()


@pytest.fixture
def sdk(mine: App) -> Iterator[openai.OpenAI]:
    with client_of(mine) as found:
        yield found


def client_of(app: App) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{str(app.http.base_url).rstrip('/')}/v1", api_key=app.token, max_retries=2
    )


def user(text: Any) -> Any:
    return {"role": "user", "content": text}


def said(text: str) -> Any:
    return {"role": "assistant", "content": text}


def system(text: str) -> Any:
    return {"role": "system", "content": text}


def ask(app: App, *messages: Any, headers: dict[str, str] | None = None, **body: Any) -> httpx2.Response:
    sent = {"model": "claude", "messages": list(messages), **body}
    return app.http.post("/v1/chat/completions", json=sent, headers=headers or {})


def answer(reply: httpx2.Response) -> str:
    assert reply.status_code == 200, reply.text
    return str(reply.json()["choices"][0]["message"]["content"])


def transcript(app: App, session_id: str) -> list[tuple[str, str]]:
    found = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    return [(message["role"], message["content"]) for message in found]


def count_sessions(app: App) -> int:
    return int(app.http.get("/sessions").json()["count"])


def test_the_face_is_closed_until_it_is_named(app: App) -> None:
    assert app.http.get("/v1/models").status_code == 404
    assert ask(app, user("echo hi")).status_code == 404


def test_another_model_takes_no_memory_away(mine: App) -> None:
    first = ask(mine, user("echo the blue door"))
    session_id = first.headers[SESSION]
    talk = [user("echo the blue door"), said(answer(first)), user("recall")]
    again = ask(mine, *talk, model="claude/m1", headers={SESSION: session_id})
    assert answer(again) == '["echo the blue door"]', "in its own memory"
    row = mine.http.get(f"/sessions/{session_id}").json()
    assert (row["model"], row["context"], row["turn_count"]) == ("m1", 1, 2)


def test_models_are_agents_and_personas(mine: App, sdk: openai.OpenAI) -> None:
    mine.http.put("/personas/reviewer", json={"agent": "claude", "instructions": "be strict"})
    names = {model.id for model in sdk.models.list()}
    assert {"claude", "persona/reviewer", "persona/default-interactive"} <= names
    assert "missing" not in names  # it is not installed


def test_a_completion_is_the_turn_and_names_its_session(mine: App, sdk: openai.OpenAI) -> None:
    raw = sdk.chat.completions.with_raw_response.create(
        model="claude", messages=[user("think hm\ntool read\necho one\nusage 30 7 5")]
    )
    whole = raw.parse()
    session_id = raw.headers[SESSION]
    choice = whole.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.message.tool_calls) == ("one", "stop", None)
    assert "hm" in choice.message.reasoning_content  # type: ignore[attr-defined]
    assert "[read]" in choice.message.reasoning_content  # type: ignore[attr-defined]
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (35, 7)
    assert whole.session_id == session_id  # type: ignore[attr-defined]
    assert transcript(mine, session_id)[1] == ("assistant", "one")
    row = mine.http.get(f"/sessions/{session_id}").json()
    assert (row["permission_mode"], row["retention"]) == ("deny_all", "ttl")


def test_a_stream_is_the_same_answer_in_pieces(mine: App, sdk: openai.OpenAI) -> None:
    options: Any = {"include_usage": True}
    stream = sdk.chat.completions.create(
        model="claude",
        messages=[user("echo a\ntool read\nchunks 5\nusage 3 4")],
        stream=True,
        stream_options=options,
    )
    chunks = list(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    text = "".join(delta.content or "" for delta in deltas)
    assert "[read]" in "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert all(delta.tool_calls is None for delta in deltas)
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 7
    session_id = chunks[0].session_id  # type: ignore[attr-defined]
    assert transcript(mine, session_id)[1] == ("assistant", text)


def test_a_session_that_is_named_gets_the_new_message_alone(mine: App) -> None:
    session_id = ask(mine, user("echo one")).headers[SESSION]
    named = {SESSION: session_id}
    assert answer(ask(mine, user("recall"), headers=named)).count("echo one") == 1
    whole = [user(text) if role == "user" else said(text) for role, text in transcript(mine, session_id)]
    assert answer(ask(mine, *whole, user("echo three"), headers=named)) == "three"
    assert len(transcript(mine, session_id)) == 6
    assert count_sessions(mine) == 1


def test_a_history_that_disagrees_is_refused_and_changes_nothing(mine: App, sdk: openai.OpenAI) -> None:
    session_id = ask(mine, user("echo one")).headers[SESSION]
    head = mine.http.get(f"/sessions/{session_id}").json()["head"]
    with pytest.raises(openai.ConflictError) as caught:
        sdk.chat.completions.create(
            model="claude",
            messages=[user("echo one"), said("another"), user("echo two")],
            extra_headers={SESSION: session_id},
        )
    assert session_id in caught.value.message
    assert caught.value.code == "conflict"
    other = ask(mine, user("echo two"), headers={SESSION: session_id}, model="missing")
    assert (other.status_code, other.headers["x-should-retry"]) == (409, "false")
    changed = ask(mine, system("be brief"), user("echo two"), headers={SESSION: session_id})
    assert changed.status_code == 409  # a session cannot get other instructions
    assert mine.http.get(f"/sessions/{session_id}").json()["head"] == head


def test_a_chat_of_a_front_end_has_one_session(mine: App) -> None:
    """As Open WebUI sends it: the whole conversation each time, and the id of the chat."""
    chat = {CHAT: "chat-1"}
    lead = system("you are brief")
    first = ask(mine, lead, user("echo one"), headers=chat)
    second = ask(mine, lead, user("echo one"), said(" one\n"), user("echo two"), headers=chat)
    third = ask(
        mine,
        *[lead, user("echo one"), said("one"), user("echo two"), said("two"), user("echo three")],
        headers=chat,
    )
    assert [answer(reply) for reply in (first, second, third)] == ["one", "two", "three"]
    assert len({reply.headers[SESSION] for reply in (first, second, third)}) == 1
    assert count_sessions(mine) == 1
    assert mine.http.get(f"/sessions/{first.headers[SESSION]}").json()["retention"] == "keep"
    assert (
        ask(mine, lead, user("echo other"), headers={CHAT: "chat-2"}).headers[SESSION]
        != third.headers[SESSION]
    )
    again = ask(mine, lead, user("echo one"), headers=chat)  # regenerated: its answer is not the last one
    assert again.status_code == 409
    both = ask(mine, user("echo x"), headers={CHAT: "chat-2", SESSION: first.headers[SESSION]})
    assert (both.status_code, both.json()["error"]["type"]) == (400, "invalid_request_error")


def test_two_requests_of_a_new_chat_at_once_make_one_session(mine: App) -> None:
    def once(number: int) -> httpx2.Response:
        return ask(mine, user(f"sleep 0.5\necho {number}"), headers={CHAT: "at once"})

    with ThreadPoolExecutor(4) as threads:
        replies = list(threads.map(once, range(4)))
    assert sorted(reply.status_code for reply in replies) == [200, 409, 409, 409]
    assert count_sessions(mine) == 1


def test_a_history_without_a_session_is_imported(mine: App) -> None:
    reply = ask(mine, system("you are X"), user("my name is Ada"), said("hello Ada"), user("recall"))
    answer(reply)
    named = {SESSION: reply.headers[SESSION]}
    assert "my name is Ada" in answer(ask(mine, user("recall all"), headers=named))  # the agent was told
    found = transcript(mine, reply.headers[SESSION])
    assert found[:3] == [("system", "you are X"), ("user", "my name is Ada"), ("assistant", "hello Ada")]


def test_the_same_key_finds_the_same_turn(mine: App) -> None:
    key = {"Idempotency-Key": "once"}
    first, second = (ask(mine, user("echo one"), headers=key) for _ in range(2))
    assert first.json() == second.json()
    assert count_sessions(mine) == 1
    assert len(transcript(mine, first.headers[SESSION])) == 2
    assert mine.http.get(f"/sessions/{first.headers[SESSION]}").json()["retention"] == "ttl"
    assert ask(mine, user("echo two"), headers=key).status_code == 409


def test_a_turn_that_fails_reads_as_a_failure(mine: App, sdk: openai.OpenAI) -> None:
    """Never as an answer that ended; and the SDK does not send it again by itself."""
    with pytest.raises(openai.APIStatusError) as caught:
        sdk.chat.completions.create(model="claude", messages=[user("echo half\nerror broken")])
    assert caught.value.status_code >= 500
    assert count_sessions(mine) == 1
    stream = sdk.chat.completions.create(
        model="claude", messages=[user("echo half\nerror broken")], stream=True
    )
    with pytest.raises(openai.APIError):
        list(stream)
    chat = {CHAT: "after a failure"}
    assert ask(mine, user("echo half\nerror broken"), headers=chat).status_code >= 500
    assert answer(ask(mine, user("echo whole"), headers=chat)) == "whole"  # the caller knows of no first one


def test_a_stopped_turn_is_cut_short(mine: App) -> None:
    session_id = mine.session()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, mine, user("echo a\nsleep 60"), headers={SESSION: session_id})
        path = f"/sessions/{session_id}"
        until(lambda: mine.http.get(path).json()["running_turn"], "the turn")
        mine.http.post(f"{path}/cancel", json={})
        assert waiting.result().json()["choices"][0]["finish_reason"] == "length"


def test_responses_go_on_from_each_other(mine: App, sdk: openai.OpenAI) -> None:
    first = sdk.responses.create(model="claude", input="think hm\necho one", instructions="be brief")
    assert (first.output_text, first.status) == ("one", "completed")
    assert [item.type for item in first.output] == ["reasoning", "message"]
    second = sdk.responses.create(
        model="claude", input="echo two", instructions="be brief", previous_response_id=first.id
    )
    assert second.conversation is not None
    assert first.conversation is not None
    assert second.conversation.id == first.conversation.id
    third = sdk.responses.create(model="claude", input="recall", conversation=first.conversation.id)
    assert "two" in third.output_text
    assert mine.http.get(f"/sessions/{first.conversation.id}").json()["retention"] == "keep"
    with pytest.raises(openai.ConflictError):  # it is not the last one any more
        sdk.responses.create(model="claude", input="echo x", previous_response_id=first.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model="claude", input="echo x", previous_response_id="resp_unknown_1")


def test_a_streamed_response_is_what_its_events_say(mine: App, sdk: openai.OpenAI) -> None:
    with sdk.responses.stream(model="claude", input="echo a\ntool read\nchunks 3") as stream:
        events = list(stream)
        final = stream.get_final_response()
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(numbers)))
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert final.output_text == deltas
    assert [item.type for item in final.output] == ["message", "reasoning", "message"]
    assert final.conversation is not None
    assert transcript(mine, final.conversation.id)[1] == ("assistant", deltas)
    failing = sdk.responses.create(model="claude", input="echo half\nerror broken", stream=True)
    assert [event.type for event in failing][-1] == "response.failed"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", {"messages": []}),
        ("chat/completions", {"messages": [system("alone")]}),
        ("chat/completions", {"messages": [user("")]}),
        ("chat/completions", {"messages": [user("hi"), said("there")]}),
        ("chat/completions", {"messages": [user("hi")], "n": 2}),
        ("chat/completions", {"messages": [user("hi")], "tools": [{"type": "function"}]}),
        ("chat/completions", {"messages": [user("hi")], "functions": [{"name": "f"}]}),
        ("chat/completions", {"messages": [user("hi")], "response_format": {"type": "json_object"}}),
        ("chat/completions", {"messages": [{"role": "tool", "content": "x"}, user("hi")]}),
        ("chat/completions", {"messages": [user([{"type": "image_url", "image_url": {"url": "data:,"}}])]}),
        ("chat/completions", {"messages": [user("hi")], "model": "claude/"}),
        ("responses", {"input": ""}),
        ("responses", {"input": []}),
        ("responses", {"input": [{"type": "reasoning"}]}),
        ("responses", {"input": [{"type": "function_call_output", "output": "x"}]}),
        ("responses", {"input": "hi", "background": True}),
        ("responses", {"input": "hi", "tools": [{"type": "web_search"}]}),
        ("responses", {"input": "hi", "conversation": "a", "previous_response_id": "resp_b_1"}),
    ],
    ids=lambda value: value if isinstance(value, str) else json.dumps(value)[:40],
)
def test_what_would_be_ignored_is_refused(mine: App, path: str, body: Any) -> None:
    reply = mine.http.post(f"/v1/{path}", json={"model": "claude", **body})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert count_sessions(mine) == 0


def test_another_apps_session_is_an_unknown_one(face: Server, mine: App) -> None:
    other = face.app()
    session_id = ask(mine, user("echo mine"), headers={CHAT: "shared"}).headers[SESSION]
    unknown = ask(other, user("echo x"), headers={SESSION: "nobody"})
    foreign = ask(other, user("echo x"), headers={SESSION: session_id})
    assert (foreign.status_code, foreign.content) == (404, unknown.content)
    response = {"model": "claude", "input": "x", "previous_response_id": f"resp_{session_id}_1"}
    assert other.http.post("/v1/responses", json=response).content == unknown.content
    theirs = ask(other, user("echo theirs"), headers={CHAT: "shared"})
    assert theirs.headers[SESSION] != session_id
    with face.closing_clients():
        assert ask(mine, user("x"), headers={SESSION: "a", CHAT: "b"}).status_code == 404


def test_a_stream_that_nobody_reads_is_a_turn_all_the_same(mine: App) -> None:
    sent = {"model": "claude", "messages": [user("chunks 20 10 10")], "stream": True}
    with mine.http.stream("POST", "/v1/chat/completions", json=sent, headers={CHAT: "left"}) as response:
        session_id = response.headers[SESSION]
        next(response.iter_raw(1))
    path = f"/sessions/{session_id}"
    until(lambda: mine.http.get(path).json()["activity"] == "idle", "the end of the turn")
    whole = transcript(mine, session_id)[1][1]
    assert len(whole.split()) == 20
    part = ask(mine, user("chunks 20 10 10"), said(whole[:25]), user("echo on"), headers={CHAT: "left"})
    assert answer(part) == "on"


def test_streams_are_readers_and_one_too_many_submits_nothing(face: Server, mine: App) -> None:
    face.admin().post("/admin/apps", json={"app_name": mine.name, "limits": {"max_readers": 1}})
    body = {"model": "claude", "messages": [user("hang")], "input": "hang", "stream": True}
    for path in ("/v1/chat/completions", "/v1/responses"):
        until(lambda: mine.http.get("/limits").json()["readers"] == 0, "nobody reads")
        known = count_sessions(mine)
        with mine.http.stream("POST", path, json=body) as first:
            assert (first.status_code, mine.http.get("/limits").json()["readers"]) == (200, 1)
            second = mine.http.post(path, json=body)
            assert (second.status_code, second.headers["Retry-After"]) == (429, "1")
            assert count_sessions(mine) == known + 1, "it was refused before anything was made"
            assert answer(ask(mine, user("echo whole"), headers={"accept": "text/event-stream"})) == "whole"
        mine.http.post(f"/sessions/{first.headers[SESSION]}/cancel")


def test_by_setting_another_history_is_a_fork_and_permissions_wait(
    start: Callable[..., Server],
) -> None:
    server = start(FACES="openai", OPENAI_HISTORY="fork", OPENAI_PERMISSIONS="wait")
    app = server.app()
    chat = {CHAT: "forked"}
    first = ask(app, user("echo one"), headers=chat)
    ask(app, user("echo one"), said("one"), user("echo two"), headers=chat)
    again = ask(app, user("echo one"), said("one"), user("echo other"), headers=chat)
    assert answer(again) == "other"
    assert again.headers[SESSION] != first.headers[SESSION]
    row = app.http.get(f"/sessions/{again.headers[SESSION]}").json()
    assert row["forked_from"] == first.headers[SESSION]
    back = ask(
        app, *[user("echo one"), said("one"), user("echo two"), said("two")], user("echo three"), headers=chat
    )
    assert back.headers[SESSION] == first.headers[SESSION]
    edited = ask(app, user("echo one"), said("edited"), user("recall"), headers=chat)
    assert transcript(app, edited.headers[SESSION])[1] == ("assistant", "edited")
    old = ask(app, user("echo x"), headers={SESSION: first.headers[SESSION]})
    body = {"model": "claude", "input": "echo y", "previous_response_id": f"resp_{first.headers[SESSION]}_1"}
    forked = app.http.post("/v1/responses", json=body)
    assert forked.headers[SESSION] not in {old.headers[SESSION], again.headers[SESSION]}

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, app, user("ask write a file\necho done"))
        asked = until(lambda: app.http.get("/permissions").json()["permissions"], "the question")[0]
        path = f"/sessions/{asked['session_id']}/permissions/{asked['permission_id']}"
        assert app.http.post(path, json={"decision": "allow_once"}).status_code == 200
        assert answer(waiting.result()).endswith("done")


def test_a_killed_server_runs_nothing_twice(start: Callable[..., Server]) -> None:
    """The same request with the same key finds its turn, which never reads as one that ended."""
    server = start(FACES="openai")
    app = server.app()
    request = {"headers": {"Idempotency-Key": "once"}}
    with ThreadPoolExecutor(1) as threads:
        lost = threads.submit(ask, app, user("echo a\nsleep 60"), **request)
        until(lambda: app.http.get("/sessions?activity=running").json()["count"], "the turn")
        server.process.kill()
        assert isinstance(lost.exception(), httpx2.TransportError)
    server.stop()
    server.start()
    app = server.app(app.name)
    again = ask(app, user("echo a\nsleep 60"), **request)
    assert (again.status_code >= 500, again.json()["code"]) == (True, "turn_interrupted")
    assert again.headers["x-should-retry"] == "false"
    (session,) = app.http.get("/sessions").json()["sessions"]
    assert session["turn_count"] == 1
