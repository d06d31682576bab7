"""What an MCP server may look like, and which of them an agent is given."""

import dataclasses
from typing import Any, cast

import pytest
from pydantic import TypeAdapter, ValidationError

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.models.mcp import McpLaunch, OperatorServers
from clawdforge.core.models.rows import AppRow, SessionRow
from clawdforge.core.rules.mcp_servers import name_servers, plan_servers
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.settings.sources import BadSettings, load_settings
from clawdforge.wire.errors import AgentStartFailed
from clawdforge.wire.mcp import MAX_BYTES, MAX_SERVERS, McpServer, McpServers, escape_value

SERVERS: TypeAdapter[dict[str, McpServer]] = TypeAdapter(McpServers)
COMMAND = {"command": ["tool"]}
SESSION = SessionRow(app_name="a", session_id="s", agent="x", cwd="/", created_at=0, updated_at=0)


@pytest.mark.parametrize(
    "server",
    [
        {},
        {"command": []},
        {"command": [""]},
        {"command": ["a\0b"]},
        {"command": "tool --flag"},
        {"command": ["tool"], "url": "https://x.example/"},
        {"command": ["tool"], "headers": {"A": "b"}},
        {"url": "https://x.example/", "env": {"A": "b"}},
        {"url": "ftp://x.example/"},
        {"url": "https:///mcp"},
        {"url": "https://user:word@x.example/"},
        {"url": "https://x.example/\r\nHost: y"},
        {"url": "https://x.example/", "headers": {"A": "b\r\nC: d"}},
        {"url": "https://x.example/", "headers": {"A b": "c"}},
        {"command": ["tool"], "env": {"A=B": "c"}},
        {"command": ["tool"], "env": {"A": "x" * 8193}},
        {"command": ["tool"] * 65},
        {"command": ["tool"], "more": 1},
    ],
)
def test_what_cannot_be_a_server(server: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SERVERS.validate_python({"name": server})


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "a" * 65, "_a"])
def test_what_cannot_be_a_name(name: str) -> None:
    with pytest.raises(ValidationError):
        SERVERS.validate_python({name: COMMAND})


def test_so_many_servers_and_no_more() -> None:
    many = {f"s{number}": COMMAND for number in range(MAX_SERVERS)}
    assert len(SERVERS.validate_python(many)) == MAX_SERVERS
    with pytest.raises(ValidationError):
        SERVERS.validate_python({**many, "more": COMMAND})


def test_so_many_bytes_and_no_more() -> None:
    one = McpServer(command=["tool"], env={"A": ""})
    room = MAX_BYTES - 2 * len("s0") - 2 * len(one.model_dump_json())
    first, second = room // 2, room - room // 2

    def servers(last: int) -> dict[str, Any]:
        sizes = {"s0": first, "s1": last}
        return {name: {"command": ["tool"], "env": {"A": "x" * size}} for name, size in sizes.items()}

    assert len(SERVERS.validate_python(servers(second))) == 2
    with pytest.raises(ValidationError):
        SERVERS.validate_python(servers(second + 1))


def test_a_secret_is_in_no_repr() -> None:
    server = McpServer(command=["tool"], env={"A": "hidden"})
    launch = McpLaunch(name="x", command=("tool",), env={"A": "hidden"})
    assert "hidden" not in f"{server!r} {launch!r} {OperatorServers({}, {'A': 'hidden'})!r}"


class OneApp:
    app = "a"

    def __init__(self, servers: Any, secrets: dict[str, str]) -> None:
        self._row = AppRow("a", 0, mcp_servers=servers)
        self._secrets = secrets

    def app_row(self) -> AppRow:
        return self._row

    def secrets(self) -> dict[str, str]:
        return self._secrets


def plan(
    operator: OperatorServers, app: Any, session: Any, secrets: dict[str, str] | None = None
) -> dict[str, McpLaunch]:
    view = cast("Any", OneApp(app, secrets or {}))
    row = dataclasses.replace(SESSION, mcp_servers=session)
    return {one.name: one for one in plan_servers(view, row, operator)}


def test_the_nearest_of_a_name_counts() -> None:
    def of(word: str) -> dict[str, Any]:
        return {"command": [word]}

    operator = OperatorServers({name: (McpServer(**of("o")), frozenset[str]()) for name in "xyz"})
    found = plan(operator, {"y": of("a"), "z": of("a")}, {"z": of("s")})
    assert {name: one.command for name, one in found.items()} == {"x": ("o",), "y": ("a",), "z": ("s",)}
    assert [name for name, one in found.items() if one.by_operator] == ["x", "y"]


def test_a_server_that_a_nearer_one_replaces_needs_no_secret() -> None:
    lacking = {"command": ["o"], "env": {"A": "${MISSING}"}}
    operator = OperatorServers({"x": (McpServer.model_validate(lacking), frozenset[str]())})
    assert plan(operator, {}, {"x": {"command": ["s"]}})["x"].command == ("s",)
    with pytest.raises(AgentStartFailed, match="MISSING"):
        plan(operator, {}, {})


def test_an_apps_word_reaches_no_variable_of_the_server() -> None:
    operator = OperatorServers({}, {"KEY": "of the server"})
    with pytest.raises(AgentStartFailed, match="needs KEY"):
        plan(operator, {}, {"x": {"command": ["tool"], "env": {"A": "${KEY}"}}})
    found = plan(
        operator, {}, {"x": {"command": ["tool"], "env": {"A": "${KEY}${KEY}$KEY"}}}, {"KEY": "${KEY}"}
    )
    assert found["x"].env == {"A": "${KEY}${KEY}$KEY"}


@pytest.mark.parametrize(
    "value", ["${KEY}", "$${KEY}", "$$${KEY}x", "${HOME}", "${", "$$", "$", "{KEY}$", "$${${KEY}"]
)
def test_a_value_that_was_escaped_names_no_secret_and_comes_out_as_it_was(value: str) -> None:
    server = {"command": ["tool"], "env": {"A": escape_value(value)}}
    assert McpServer(**cast("Any", server)).list_secrets() == []
    assert plan(OperatorServers(), {}, {"x": server}, {"KEY": "hidden"})["x"].env == {"A": value}


def test_a_secret_and_an_escape_stand_side_by_side() -> None:
    server = {"url": "https://x.example/", "headers": {"A": "$${KEY} ${KEY} $${"}}
    found = plan(OperatorServers(), {}, {"x": server}, {"KEY": "k"})
    assert found["x"].headers == {"A": "${KEY} k ${"}


@pytest.mark.parametrize("kept", ["text", 5, [1]])
def test_what_was_edited_by_hand_is_no_server(kept: Any) -> None:
    assert name_servers(kept) == []
    assert plan(OperatorServers(), {}, kept) == {}


@pytest.mark.parametrize("kept", [{"x": 5}, {"x": {"command": 5}}])
def test_a_server_that_was_edited_by_hand_is_said(kept: Any) -> None:
    assert name_servers(kept) == ["x"]
    with pytest.raises(AgentStartFailed, match="cannot be read"):
        plan(OperatorServers(), {}, kept)


def test_only_the_operator_shows_an_agent_more_of_the_machine() -> None:
    servers = [
        McpLaunch(name="a", command=("/opt/a", "x"), by_operator=True),
        McpLaunch(name="b", command=("/opt/b",)),
        McpLaunch(name="c", url="https://x.example/", by_operator=True),
    ]
    spec = AgentSpec(name="x", driver="acp", command=("agent",))
    assert Needs.of(spec, mcp=servers).commands == (("agent",), ("/opt/a", "x"))


def test_tables_of_two_files_are_put_together(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "config" / "clawdforge" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[mcp_servers.a]\ncommand = ["a"]\n[mcp_servers.b]\ncommand = ["b"]\n')
    (tmp_path / "clawdforge.toml").write_text(
        '[mcp_servers.b]\nurl = "https://b.example/"\napps = "one, two"\n'
    )
    monkeypatch.chdir(tmp_path)
    found = load_settings({"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}).mcp_servers
    assert found["a"].command == ["a"]
    assert (found["b"].url, found["b"].apps) == ("https://b.example/", ("one", "two"))


def test_a_bad_table_is_explained_without_its_secrets(tmp_path: Any) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[mcp_servers.a]\nurl = "https://x.example/"\nenv = { A = "hidden" }\n')
    with pytest.raises(BadSettings) as caught:
        load_settings({}, config=file)
    assert "give headers" in str(caught.value)
    assert "hidden" not in str(caught.value)
