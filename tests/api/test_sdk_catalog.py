"""The SDK against a real server, beside sessions: files, runs, agents, personas, what operators do."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clawdforge import Forge
from clawdforge.client.errors import FileNotFound, Forbidden, PersonaNotFound, SessionNotFound, UnknownFile
from tests.api.harness import ADMIN_TOKEN, App, Server

pytestmark = pytest.mark.on_both

CLAUDE = """#!/bin/sh
echo '{"type": "result", "result": "{\\\\"hello\\\\": \\\\"world\\\\"}", "stop_reason": "end_turn"}'
"""


@pytest.fixture
def forge(server: Server, app: App) -> Iterator[Forge]:
    with Forge(server.url, app.token) as client:
        yield client


@pytest.fixture
def operator(server: Server) -> Iterator[Forge]:
    with Forge(server.url, ADMIN_TOKEN) as client:
        yield client


def test_a_file_goes_there_and_back(forge: Forge, tmp_path: Path) -> None:
    data = os.urandom(1_000_000)
    (tmp_path / "in.bin").write_bytes(data)
    told: list[tuple[int, int | None]] = []
    sent = forge.upload(tmp_path / "in.bin", progress=lambda done, size: told.append((done, size)))
    assert (sent.name, sent.size) == ("in.bin", len(data))
    assert told[-1] == (len(data), len(data))
    assert forge.download(sent.file_token) == data
    assert forge.download_to(sent.file_token, tmp_path / "out.bin") == len(data)
    assert (tmp_path / "out.bin").read_bytes() == data
    forge.delete_file(sent.file_token)
    with pytest.raises(FileNotFound):
        forge.download(sent.file_token)
    with forge.session() as session, pytest.raises(UnknownFile):
        session.turn("echo hi", files=[sent.file_token])


def test_a_turn_is_given_its_files(forge: Forge, tmp_path: Path) -> None:
    """S1-44."""
    (tmp_path / "notes.txt").write_text("remember the milk")
    token = forge.upload(tmp_path / "notes.txt").file_token
    with forge.session() as session:
        said = session.turn("echo read it", files=[token]).text()
        assert said.endswith("read it")
        assert "notes.txt" in said
        assert next(session.turns()).files == [token]


def test_a_one_shot_run(start: Callable[..., Server], tmp_path: Path) -> None:
    """S1-90."""
    program = tmp_path / "claude"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    server = start(CLAUDE_BIN=str(program))
    with Forge(server.url, server.app().token) as forge:
        answer = forge.run(prompt="hi", model="sonnet")
        assert (answer.ok, answer.result, answer.stop_reason) == (True, {"hello": "world"}, "end_turn")


def test_agents_and_personas(forge: Forge) -> None:
    assert {"claude", "demo"} <= {agent.name for agent in forge.agents()}
    made = forge.put_persona("critic", agent="claude", instructions="Be strict.", permission_mode="deny_all")
    assert forge.get_persona("critic") == made
    assert "critic" in {persona.name for persona in forge.personas()}
    with forge.session(persona="critic") as session:
        assert session.state()["persona"] == "critic"
    forge.delete_persona("critic")
    with pytest.raises(PersonaNotFound):
        forge.get_persona("critic")


def test_usage_and_purge(forge: Forge) -> None:
    session = forge.create_session()
    session.turn("usage 11 7\necho hi")
    usage = session.usage()
    assert (usage.reported.input_tokens, usage.reported.output_tokens, usage.turns) == (11, 7, 1)
    assert session.purge().purged
    assert session.closed
    with pytest.raises(SessionNotFound):
        session.state()


def test_an_app_rules_over_its_own_tokens(operator: Forge, forge: Forge, server: Server, app: App) -> None:
    made = forge.create_token(scopes=["read", "admin"], expires_in_secs=60, note="for a page")
    assert (made.app_name, made.scopes) == (app.name, ["read", "admin"])
    with Forge(server.url, made.token) as narrow:
        assert narrow.list_sessions() == []
        with pytest.raises(Forbidden, match="scope prompt"):
            narrow.create_session()
        with pytest.raises(Forbidden):
            narrow.revoke_token(app.token_id)
    listed = {row.token_id: row for row in forge.tokens()}
    assert set(listed) == {app.token_id, made.token_id}
    assert listed[made.token_id].last_used_at is not None
    forge.revoke_token(made.token_id)
    assert {row.token_id: row for row in forge.tokens()}[made.token_id].revoked_at is not None
    given = operator.admin.create_token(app.name, scopes=["decide"])
    assert given.scopes == ["decide"]


def test_what_operators_do(operator: Forge, forge: Forge, app: App) -> None:
    with forge.session() as session:
        session.turn("echo hi")
    assert operator.admin.put_app(app.name, limits={"max_sessions": 9}).limits["max_sessions"] == 9
    assert app.name in {known.app_name for known in operator.admin.apps()}
    entries = list(operator.admin.audit(app_name=app.name))
    assert [entry.event for entry in entries if entry.session_id] == ["create", "turn", "close"]
    verdict = operator.admin.verify()
    assert verdict.valid
    assert operator.admin.verify(verdict.head).valid
    assert operator.admin.sweep().ok
    mine = [used for used in operator.admin.usage().apps if used.app_name == app.name]
    assert [(used.sessions, used.turns) for used in mine] == [(1, 1)]
    assert "# TYPE" in operator.metrics()
    with pytest.raises(Forbidden):
        forge.admin.apps()
