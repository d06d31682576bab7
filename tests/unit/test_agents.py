"""The registry of agents: the table, what an operator changes, what a new home gets, quirks that are kept."""

import asyncio
import time
from pathlib import Path

import pytest

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.folders import credentials, home_settings
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.registry.builtin import load_builtin
from clawdforge.drivers.registry.registry import Registry
from clawdforge.settings import AgentSettings, BadSettings, load_settings
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.quirks import Quirks
from tests.unit.acp_bench import Bench, Notebook, say, until

NAMES = {spec.name for spec in load_builtin()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, probe("off"))


def spec(**fields: object) -> AgentSpec:
    return AgentSpec(**{"name": "mine", "driver": "acp", "command": ("mine",), **fields})  # type: ignore[arg-type]


def test_the_table_has_the_agents_that_people_ask_for() -> None:
    wanted = "demo claude codex gemini goose opencode kimi qwen vibe fast-agent hermes deepagents"
    others = "pi openclaw cursor copilot antigravity devin droid fx grok-build iflow junie kilocode"
    assert set(f"{wanted} {others} kiro mcode mux pool qoder trae zeroclaw".split()) <= NAMES


@pytest.mark.parametrize("entry", load_builtin()[1:], ids=lambda entry: entry.name)
def test_an_entry_runs_an_installed_program_and_hides_our_secrets(entry: AgentSpec) -> None:
    assert entry.command[0] not in ("npx", "uvx", "bunx", "pnpm", "sh", "bash")
    assert entry.title
    assert entry.install
    assert not [name for name in entry.env if name.startswith("CLAWDFORGE_")]
    files = [*entry.credentials, *entry.copied, *entry.settings]
    assert not [name for name in files if name.startswith("/") or ".." in name]
    assert not set(entry.credentials) & set(entry.copied)
    Quirks.model_validate(entry.quirks)


def test_an_operator_changes_an_entry_and_adds_one() -> None:
    changes = {
        "gemini": dict(AgentSettings(command="my-gemini --acp", quirks=Quirks(settle_ms=5))),
        "mine": dict(AgentSettings(command="mine", settings={".mine/a.toml": "x = 1"})),
    }
    registry = Registry({}, changes, "mine")
    gemini = registry.spec("gemini")
    assert gemini.command == ("my-gemini", "--acp")
    assert (gemini.quirks["load"], gemini.quirks["settle_ms"]) == (False, 5)
    assert "GEMINI_API_KEY" in gemini.env
    assert not registry.is_builtin_command(gemini)
    assert registry.is_builtin_command(registry.spec("claude"))
    assert registry.spec("mine").settings == {".mine/a.toml": "x = 1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[agents.mine]\ncommand = "x"\nquirks = { sleepy = true }', "sleepy"),
        ('[agents.mine]\ncommand = "x"\nquirks = { usage = "often" }', "usage"),
        ('[agents.mine]\ncommand = "x"\ncolour = "red"', "colour"),
        ('[agents.mine]\ncommand = "x"\ncopied = ["../secret"]', "below the home"),
        ('[agents.mine]\ncommand = "x"\nsettings = { "/etc/x" = "" }', "below the home"),
    ],
)
def test_what_an_entry_cannot_say_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "clawdforge.toml"
    path.write_text(text)
    with pytest.raises(BadSettings, match=words):
        load_settings({}, config=path)


def test_what_switches_off_a_sandbox_of_its_own_is_given_only_where_ours_stands() -> None:
    quirks = {"contained_env": {"OWN_WALLS": "off", "CLAWDFORGE_TOKEN": "no"}}
    agent = spec(env=("OWN_WALLS",), quirks=quirks)
    for level in ("bwrap", "bwrap-full"):
        assert agent_env(agent, Path("/h"), {}, level)["OWN_WALLS"] == "off"
        assert agent_env(agent, Path("/h"), {"OWN_WALLS": "on"}, level)["OWN_WALLS"] == "on"
        assert "CLAWDFORGE_TOKEN" not in agent_env(agent, Path("/h"), {}, level)
    for level in ("landlock", "tree"):
        assert "OWN_WALLS" not in agent_env(agent, Path("/h"), {}, level)


def test_an_agent_reaches_the_network_as_the_server_does_and_sees_nothing_else() -> None:
    operator = {"https_proxy": "http://p", "NO_PROXY": "x", "NODE_EXTRA_CA_CERTS": "/ca", "SECRET": "s"}
    env = agent_env(spec(env=("MY_KEY",)), Path("/home"), {**operator, "MY_KEY": "k", "OTHER_KEY": "o"})
    assert {*operator, "MY_KEY"} - {"SECRET"} <= set(env)
    assert not {"SECRET", "OTHER_KEY"} & set(env)


def test_a_new_home_gets_the_operators_settings_or_the_entrys(tmp_path: Path) -> None:
    operator, home = tmp_path / "operator", tmp_path / "home"
    (operator / ".mine").mkdir(parents=True)
    home.mkdir()
    (operator / ".mine" / "config.toml").write_text("his")
    (operator / ".mine" / "huge").write_bytes(b"x" * (home_settings.MAX_BYTES + 1))
    entry = spec(
        copied=(".mine/config.toml", ".mine/huge", ".mine/none"),
        settings={".mine/config.toml": "ours", ".mine/none": "ours", "../out": "never"},
    )
    home_settings.write_settings(home, entry, operator)
    assert (home / ".mine/config.toml").read_text() == "his"
    assert (home / ".mine/none").read_text() == "ours"
    assert not (home / ".mine/huge").exists()
    assert not (tmp_path / "out").exists()
    (home / ".mine/config.toml").write_text("the session's own")
    (operator / ".mine" / "config.toml").write_text("later")
    home_settings.write_settings(home, entry, operator)
    assert (home / ".mine/config.toml").read_text() == "the session's own"


@pytest.mark.parametrize("name", ["a//b", "/a/b", "a/../b", "a/b/", "./a/b"])
def test_a_name_that_is_no_plain_path_is_skipped_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    operator, home = tmp_path / "operator", tmp_path / "home"
    (operator / "a").mkdir(parents=True)
    (operator / "a" / "b").write_text("his")
    home.mkdir()
    entry = spec(copied=(name,), settings={name: "ours"}, credentials=(name,))
    home_settings.write_settings(home, entry, operator)
    credentials.link_files(home, entry.credentials, operator)
    assert list(home.iterdir()) == []
    assert caplog.text.count("no plain path") == 3


def test_a_link_that_an_agent_left_is_never_written_through(tmp_path: Path) -> None:
    operator, home, outside = tmp_path / "operator", tmp_path / "home", tmp_path / "outside"
    for folder in (operator, home, outside):
        folder.mkdir()
    (home / ".mine").symlink_to(outside)
    (home / "dangling").symlink_to(outside / "made")
    home_settings.write_settings(home, spec(settings={".mine/a": "x", "dangling": "x"}), operator)
    assert list(outside.iterdir()) == []
    assert (home / ".mine" / "a").read_text() == "x"


async def test_settings_are_in_the_home_and_in_one_that_is_emptied(tmp_path: Path) -> None:
    homes = HomeFolders(tmp_path / "data", operator_home=tmp_path / "operator")
    home = await homes.prepare("s1", spec(settings={".mine/a": "x"}))
    assert (home / ".mine" / "a").read_text() == "x"
    await homes.restore("s1", 0)
    assert (home / ".mine" / "a").read_text() == "x"
    await homes.close()


async def test_an_agent_that_needs_a_moment_gets_it_before_its_end(bench: Bench) -> None:

    async with bench.scripted(quirks={"settle_ms": 400}) as agent:
        await say(agent, "hello")
        began = time.monotonic()
    assert time.monotonic() - began >= 0.35


async def test_a_cancel_that_is_answered_with_end_turn_counts_as_cancelled(bench: Bench) -> None:
    quirks = {"end_turn_on_cancel": True}
    async with bench.scripted("--end-turn-on-cancel", quirks=quirks) as agent:
        sink = Notebook()
        prompting = asyncio.create_task(agent.prompt("echo a\nsleep 30", sink))
        await until(lambda: sink.texts() == ["a"])
        await agent.cancel()
        assert (await prompting).stop_reason == "cancelled"
        assert (await agent.prompt("hi", Notebook())).stop_reason == "end_turn"


async def test_late_words_belong_to_the_turn_where_the_agent_is_known_for_them(bench: Bench) -> None:
    async with bench.scripted("--late-updates", quirks={"late_ms": 300}) as agent:
        sink = await say(agent, "hello")
    assert sink.types() == [EventType.TEXT, EventType.TEXT, EventType.RESPONSE]
    assert sink.texts() == ["hello", "late"]


async def test_a_resume_that_replays_is_evidence(bench: Bench) -> None:
    async with bench.scripted("--no-load") as agent:
        await say(agent, "hello")
        name = agent.agent_session_id
    more: Json = {"quirks": {"replays_on_resume": True}, "agent_session_id": name}
    async with bench.scripted("--no-load", "--replay-on-resume", **more) as agent:
        assert (agent.how, agent.remembered) == ("resumed", ["hello"])
    async with bench.scripted("--no-load", agent_session_id=name) as agent:
        assert (agent.how, agent.remembered) == ("resumed", None)


def test_the_page_tells_every_quirk_and_every_key_of_an_entry() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "reference" / "agents.md").read_text()
    for name, field in Quirks.model_fields.items():
        default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
        assert f"| `{name}` | `{default}` | {field.description} |" in page
    example = page.partition("[agents.mine]")[2].partition("```")[0]
    assert {line.split(" = ")[0] for line in example.split("\n") if line} == set(AgentSettings.model_fields)


def test_the_example_of_an_entry_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "reference" / "agents.md").read_text()
    path = tmp_path / "clawdforge.toml"
    path.write_text("[agents.mine]" + page.partition("[agents.mine]")[2].partition("```")[0])
    found = load_settings({}, config=path).agents["mine"]
    assert found.command == ("my-agent", "--acp")
    assert found.version == ("--version",)
