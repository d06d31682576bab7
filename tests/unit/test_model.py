"""The scripted model endpoint: four protocols, streamed and whole, tools, errors, hangs, and its log."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from clawdforge.drivers.acp.failures import Failures
from tests.support.model.endpoint import Endpoint, running

SHELL = {"type": "object", "properties": {"command": {"type": "string"}, "why": {"type": "string"}}}
HTTP = httpx2.Client(verify=False, limits=httpx2.Limits(max_keepalive_connections=0))
SCHEMA = {**SHELL, "required": ["command", "why"]}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with running() as found:
        yield found


def anthropic(texts: list[str], result: str | None = None) -> tuple[str, dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for text in texts:
        messages += [{"role": "user", "content": [{"type": "text", "text": text}]}]
        messages += [{"role": "assistant", "content": "fine"}]
    messages.pop()
    if result is not None:
        block = {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": result}]}
        messages += [{"role": "assistant", "content": []}, {"role": "user", "content": [block]}]
    tools = [{"name": "Bash", "input_schema": SCHEMA}]
    return "/v1/messages", {"model": "m", "messages": messages, "tools": tools, "system": "be good"}


def chat(texts: list[str], result: str | None = None) -> tuple[str, dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be good"}]
    for text in texts:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "fine"}]
    messages.pop()
    if result is not None:
        messages += [{"role": "tool", "tool_call_id": "x", "content": result}]
    tools = [{"type": "function", "function": {"name": "run_shell", "parameters": SCHEMA}}]
    return "/v1/chat/completions", {"model": "m", "messages": messages, "tools": tools}


def responses(texts: list[str], result: str | None = None) -> tuple[str, dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for text in texts:
        items += [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
        items += [{"type": "message", "role": "assistant", "content": "fine"}]
    items.pop()
    if result is not None:
        items += [{"type": "function_call_output", "call_id": "x", "output": result}]
    tools = [{"type": "function", "name": "exec_command", "parameters": SCHEMA}]
    return "/v1/responses", {"model": "m", "input": items, "tools": tools, "instructions": "be good"}


def gemini(texts: list[str], result: str | None = None) -> tuple[str, dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    for text in texts:
        contents += [{"role": "user", "parts": [{"text": text}]}]
        contents += [{"role": "model", "parts": [{"text": "fine"}]}]
    contents.pop()
    if result is not None:
        part = {"functionResponse": {"name": "shell", "response": {"output": result}}}
        contents += [{"role": "user", "parts": [part]}]
    tools = [{"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": SCHEMA}]}]
    return "/v1beta/models/m:generateContent", {"contents": contents, "tools": tools}


Ask = Callable[..., tuple[str, dict[str, Any]]]
PROTOCOLS = pytest.mark.parametrize("ask", [anthropic, chat, responses, gemini])


def post(endpoint: Endpoint, asked: tuple[str, dict[str, Any]], **more: Any) -> httpx2.Response:
    path, body = asked
    return HTTP.post(endpoint.url + path, json={**body, **more}, timeout=20)


def stream(endpoint: Endpoint, asked: tuple[str, dict[str, Any]]) -> str:
    path, body = asked
    path = path.replace(":generate", ":streamGenerate") + "?alt=sse"
    reply = HTTP.post(endpoint.url + path, json={**body, "stream": True}, timeout=20)
    assert reply.headers["content-type"] == "text/event-stream"
    return reply.text


def said(reply: Any) -> str:
    """All strings of an answer; whatever the protocol, the words are somewhere in it."""
    if isinstance(reply, dict):
        return "".join(said(value) for value in reply.values())
    return "".join(map(said, reply)) if isinstance(reply, list) else reply if isinstance(reply, str) else ""


@PROTOCOLS
def test_an_answer_tells_how_much_of_the_conversation_the_request_held(endpoint: Endpoint, ask: Ask) -> None:
    reply = post(endpoint, ask(["mark:one hello", "<reminder>mark:no</reminder>", "mark:two <b>x</b> there"]))
    assert "turn=2 first='mark one hello' marks=one,two" in said(reply.json())
    (noted,) = endpoint.requests()
    assert (noted["turn"], noted["marks"], noted["status"]) == (2, ["one", "two"], 200)


@PROTOCOLS
def test_a_stream_says_the_same_word_by_word(endpoint: Endpoint, ask: Ask) -> None:
    text = stream(endpoint, ask(["mark:one hello"]))
    events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert len(events) > 3
    bodies = [json.loads(event) for event in events if event != "[DONE]"]
    assert "turn=1 " in "".join(map(said, bodies))


@PROTOCOLS
@pytest.mark.parametrize("streamed", [True, False])
def test_a_tool_is_called_by_what_it_is_for_and_its_result_told(
    endpoint: Endpoint, ask: Ask, streamed: bool
) -> None:
    asked = ask(["tool:bash echo hi"])
    text = stream(endpoint, asked) if streamed else post(endpoint, asked).text
    name = {anthropic: "Bash", chat: "run_shell", responses: "exec_command", gemini: "run_shell_command"}[ask]
    assert f'"{name}"' in text
    assert "echo hi" in text
    assert "what the script asks for" in text, "a required argument is given"
    after = said(post(endpoint, ask(["tool:bash echo hi"], "it said hi")).json())
    assert "turn=1" in after
    assert "it said hi" in after


def test_a_tool_can_be_called_by_its_name(endpoint: Endpoint) -> None:
    reply = post(endpoint, anthropic(['tool:Bash {"command": "ls", "x": [1]}'])).json()
    assert reply["stop_reason"] == "tool_use"
    assert reply["content"][0]["input"] == {"command": "ls", "x": [1]}
    assert "turn=1" in said(post(endpoint, anthropic(["tool:nothing {}"])).json())


@PROTOCOLS
def test_errors_come_as_often_as_the_script_says(endpoint: Endpoint, ask: Ask) -> None:
    for status in (400, 429, 529):
        reply = post(endpoint, ask([f"error:{status} 2"]))
        assert reply.status_code == status
        assert said(reply.json()), "it says why"
        assert post(endpoint, ask([f"error:{status} 2"])).status_code == status
        assert post(endpoint, ask([f"error:{status} 2"])).status_code == 200
    assert [post(endpoint, ask(["error:500"])).status_code for _ in range(3)] == [500] * 3


@PROTOCOLS
def test_a_conversation_is_refused_as_too_long_in_the_words_of_its_protocol(
    endpoint: Endpoint, ask: Ask
) -> None:
    reply = post(endpoint, ask(["mark:one too_long"]))
    assert reply.status_code == 400
    assert Failures.read().judge(0, said(reply.json()), 0.0).kind == "too_long"


def test_a_hang_says_nothing_until_its_time_is_over(endpoint: Endpoint) -> None:
    path, body = chat(["hang"])
    with pytest.raises(httpx2.TimeoutException):
        HTTP.post(endpoint.url + path, json=body, timeout=0.3)
    assert "turn=1" in said(post(endpoint, chat(["hang 0.05"])).json())
    assert [one["last"] for one in endpoint.requests()] == ["hang", "hang 0.05"]


@PROTOCOLS
def test_a_slow_stream_comes_in_pieces_and_a_cut_one_has_no_end(endpoint: Endpoint, ask: Ask) -> None:
    path, body = ask(["slow:500 20"])
    path = path.replace(":generate", ":streamGenerate")
    with HTTP.stream("POST", endpoint.url + path, json={**body, "stream": True}, timeout=20) as reply:
        heard = ""
        for piece in reply.iter_text():
            heard += piece
            if '"3 "' in heard:
                break
    assert '"400 "' not in heard
    assert "half2 half3 " in said(post(endpoint, ask(["slow:3 1 half"])).json())
    assert "slow:3 1 half" in endpoint.requests()[-1]["held"]
    whole, cut = stream(endpoint, ask(["end"])), stream(endpoint, ask(["cut\nend"]))
    assert len(cut) < len(whole)


def test_a_request_for_a_title_is_not_the_conversation(endpoint: Endpoint) -> None:
    body = {"model": "m", "system": "Write a title.", "messages": [{"role": "user", "content": "error:500"}]}
    assert "title" in said(post(endpoint, ("/v1/messages", body)).json())
    assert endpoint.requests()[0]["aside"]


def test_a_request_for_json_gets_what_its_schema_wants(endpoint: Endpoint) -> None:
    choice = {"type": "STRING", "enum": ["flash", "pro"]}
    schema = {"type": "OBJECT", "properties": {"why": {"type": "STRING"}, "choice": choice}}
    path, body = gemini(["hang"])
    body["generationConfig"] = {"responseSchema": schema}
    reply = post(endpoint, (path, body)).json()
    answer = json.loads(reply["candidates"][0]["content"]["parts"][0]["text"])
    assert (answer["choice"], set(answer)) == ("flash", {"why", "choice"})
    path, body = responses(["hang"])
    body["text"] = {"format": {"type": "json_schema", "schema": {"properties": {"n": {"type": "integer"}}}}}
    assert json.loads(post(endpoint, (path, body)).json()["output"][0]["content"][0]["text"]) == {"n": 1000}


def test_usage_is_told_and_noted_and_a_cache_is_counted_once(endpoint: Endpoint) -> None:
    first = post(endpoint, anthropic(["hello"])).json()["usage"]
    second = post(endpoint, chat(["hello"])).json()["usage"]
    noted = endpoint.requests()
    assert first["input_tokens"] == noted[0]["input_tokens"]
    assert second["prompt_tokens"] == noted[1]["input_tokens"] + noted[1]["cached_tokens"]
    assert first["cache_read_input_tokens"] == noted[0]["cached_tokens"] > 0
    assert HTTP.post(f"{endpoint.url}/v1/messages/count_tokens", json={}).json()["input_tokens"] >= 0


def test_the_log_is_read_and_emptied_over_http(endpoint: Endpoint) -> None:
    post(endpoint, chat(["hello"]))
    assert HTTP.get(f"{endpoint.url}/requests").json()["requests"] == endpoint.requests()
    assert HTTP.delete(f"{endpoint.url}/requests").json() == {"ok": True}
    assert endpoint.requests() == []
    assert HTTP.get(f"{endpoint.url}/v1/models").json()["data"]
    assert HTTP.post(f"{endpoint.url}/elsewhere", json={}).status_code == 404
    assert HTTP.post(f"{endpoint.url}/v1/messages", content=b"{").status_code == 400


def test_closing_ends_what_hangs() -> None:
    with running() as endpoint:
        thread = threading.Thread(target=_hang, args=(endpoint,))
        thread.start()
        while not endpoint.requests():
            thread.join(0.01)
    thread.join(10)
    assert not thread.is_alive()


def _hang(endpoint: Endpoint) -> None:
    path, body = chat(["hang"])
    with pytest.raises(httpx2.TransportError):
        HTTP.post(endpoint.url + path, json=body, timeout=30)


def test_it_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "tests.support.model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert HTTP.get(url).json() == {"ok": True}
        finally:
            process.kill()
