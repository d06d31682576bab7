"""Settings: where they come from, which source wins, and what is said about bad ones."""

import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from clawdforge.settings import (
    BadSettings,
    Settings,
    is_loopback,
    keep_secret,
    list_settings,
    load_settings,
    unknown_variables,
)

HOME: Mapping[str, str] = {"HOME": "/home/nobody"}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clawdforge.toml in the working directory is read, so each test has its own directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "clawdforge.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults() -> None:
    """S0-28, S0-81, S0-84."""
    settings = load_settings(HOME)
    assert (settings.host, settings.port) == ("127.0.0.1", 8800)
    assert settings.data_dir == Path("/home/nobody/.local/share/clawdforge")
    assert (settings.session_ttl_secs, settings.session_hard_ttl_secs) == (3600, 86_400)
    assert settings.max_live_sessions == 1000
    assert settings.max_line_bytes == 32 * 1024 * 1024
    assert settings.admin_token is None
    assert not settings.trust_loopback


def test_each_source_wins_over_the_one_below(empty_folder: Path) -> None:
    write(empty_folder, 'port = 1001\nhost = "127.0.0.2"\nsweep_secs = 5\n')
    assert load_settings(HOME).port == 1001
    env = {**HOME, "CLAWDFORGE_PORT": "1002", "CLAWDFORGE_SWEEP_SECS": "6"}
    settings = load_settings(env, flags={"port": 1003, "host": None})
    assert (settings.port, settings.host, settings.sweep_secs) == (1003, "127.0.0.2", 6)


def test_a_named_file_is_read_instead_of_the_default_one(empty_folder: Path) -> None:
    write(empty_folder, "port = 1001\n")
    other = empty_folder / "other.toml"
    other.write_text("port = 1002\n")
    assert load_settings(HOME, config=other).port == 1002


def test_agents_from_file_and_environment(empty_folder: Path) -> None:
    write(
        empty_folder,
        '[agents.mine]\ncommand = ["mine", "acp"]\ntitle = "Mine"\nenv = ["MINE_KEY"]\n'
        '[agents.claude]\ntitle = "Claude here"\n',
    )
    env = {
        **HOME,
        "CLAWDFORGE_AGENT_CLAUDE": "claude-acp --flag 'two words'",
        "CLAWDFORGE_AGENT_MY_OTHER": "other",
        "CLAWDFORGE_AGENT_IDLE_SECS": "7",
    }
    settings = load_settings(env)
    assert settings.agents["mine"].command == ("mine", "acp")
    assert settings.agents["mine"].env == ("MINE_KEY",)
    assert settings.agents["claude"].command == ("claude-acp", "--flag", "two words")
    assert settings.agents["claude"].title == "Claude here"
    assert settings.agents["my-other"].command == ("other",)
    assert set(settings.agents) == {"mine", "claude", "my-other"}
    assert settings.agent_idle_secs == 7


def test_lists_paths_and_sizes_from_text(tmp_path: Path) -> None:
    env = {
        **HOME,
        "CLAWDFORGE_ALLOWED_HOSTS": "forge.example, forge",
        "CLAWDFORGE_WORKSPACE_ROOTS": f"/srv:{tmp_path}",
        "CLAWDFORGE_MAX_BODY_BYTES": "2MiB",
        "CLAWDFORGE_MAX_FILE_BYTES": "1000",
        "CLAWDFORGE_TRUST_LOOPBACK": "1",
        "CLAWDFORGE_DATA_DIR": "relative",
    }
    settings = load_settings(env)
    assert settings.allowed_hosts == ("forge.example", "forge")
    assert settings.workspace_roots == (Path("/srv"), tmp_path)
    assert (settings.max_body_bytes, settings.max_file_bytes) == (2 * 1024 * 1024, 1000)
    assert settings.trust_loopback
    assert settings.data_dir == tmp_path / "relative"


def test_an_empty_variable_is_none() -> None:
    assert load_settings({**HOME, "CLAWDFORGE_PORT": "", "CLAWDFORGE_AGENT_CLAUDE": ""}) == load_settings(
        HOME
    )


BAD_VARIABLES = [
    ("CLAWDFORGE_PORT", "many"),
    ("CLAWDFORGE_PORT", "70000"),
    ("CLAWDFORGE_SWEEP_SECS", "0"),
    ("CLAWDFORGE_TURN_TIMEOUT_SECS", "nan"),
    ("CLAWDFORGE_TURN_TIMEOUT_SECS", "inf"),
    ("CLAWDFORGE_SESSION_TTL_SECS", "-1"),
    ("CLAWDFORGE_MAX_BODY_BYTES", "lots"),
    ("CLAWDFORGE_MAX_LIVE_AGENTS", "0"),
    ("CLAWDFORGE_SANDBOX", "maybe"),
    ("CLAWDFORGE_TRUST_LOOPBACK", "perhaps"),
    ("CLAWDFORGE_AGENT_MINE", "'open quote"),
    ("CLAWDFORGE_ADMIN_TOKEN", "short"),
]


@pytest.mark.parametrize(("name", "value"), BAD_VARIABLES)
def test_a_bad_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(BadSettings, match=name):
        load_settings({**HOME, name: value})


def test_a_bad_admin_token_is_not_shown() -> None:
    with pytest.raises(BadSettings) as caught:
        load_settings({**HOME, "CLAWDFORGE_ADMIN_TOKEN": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_the_admin_token_is_not_printed() -> None:
    settings = load_settings({**HOME, "CLAWDFORGE_ADMIN_TOKEN": "a-long-secret-of-mine"})
    assert "a-long-secret" not in repr(settings)


BAD_FILES = [
    ("prot = 1\n", "unknown setting 'prot'; did you mean port"),
    ("port = [1]\n", "port in .*clawdforge.toml"),
    ("port = \n", "not valid TOML"),
    ('agents = "claude"\n', "write agents as tables"),
    ('[agents.mine]\ncomand = "x"\n', "agents.mine.comand in .*clawdforge.toml"),
    ('[agents."Big Name"]\ncommand = "x"\n', "cannot be an agent's name"),
]


@pytest.mark.parametrize(("text", "words"), BAD_FILES)
def test_a_bad_file_is_refused_with_a_reason(empty_folder: Path, text: str, words: str) -> None:
    write(empty_folder, text)
    with pytest.raises(BadSettings, match=words):
        load_settings(HOME)


def test_a_named_file_must_exist(empty_folder: Path) -> None:
    with pytest.raises(BadSettings, match="cannot read the settings file"):
        load_settings(HOME, config=empty_folder / "nowhere.toml")


def test_a_bad_flag_is_named() -> None:
    with pytest.raises(BadSettings, match="--idle-exit"):
        load_settings(HOME, flags={"idle_exit": -3.0})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_may_be_trusted(host: str) -> None:
    assert is_loopback(host)
    assert load_settings({**HOME, "CLAWDFORGE_HOST": host}, flags={"trust_loopback": True}).trust_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "forge.example"])  # noqa: S104
def test_nothing_but_loopback_may_be_trusted(host: str) -> None:
    with pytest.raises(BadSettings, match="trust_loopback needs a loopback address"):
        load_settings({**HOME, "CLAWDFORGE_HOST": host}, flags={"trust_loopback": True})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        load_settings(HOME).port = 1  # type: ignore[misc]


def test_an_agent_whose_name_looks_like_a_limit_is_reported() -> None:
    """Else the limit would stay as it is, and nobody would know."""
    env = {"CLAWDFORGE_AGENT_MAX_PROCESES": "5", "CLAWDFORGE_AGENT_MINE": "x", "CLAWDFORGE_AGENT_IDLE": "y"}
    assert unknown_variables(env) == [
        "CLAWDFORGE_AGENT_MAX_PROCESES adds an agent; did you mean CLAWDFORGE_AGENT_MAX_PROCESSES?"
    ]


def test_unknown_variables_are_reported_with_a_guess() -> None:
    env = {"CLAWDFORGE_PROT": "1", "CLAWDFORGE_PORT": "1", "CLAWDFORGE_TOKEN": "x", "PATH": "/bin"}
    env |= {"CLAWDFORGE_AGENT_X": "x", "CLAWDFORGE_TEST_REQUIRE": "bwrap", "CLAWDFORGE_URL": "x"}
    assert unknown_variables(env) == [
        "CLAWDFORGE_PROT is not a setting and has no effect; did you mean CLAWDFORGE_PORT?"
    ]


def test_the_table_has_every_setting() -> None:
    rows = list(list_settings())
    assert {row.key for row in rows} == set(Settings.model_fields) - {"agents", "mcp_servers"}
    assert all(row.about and row.default and row.type for row in rows)


def test_a_secret_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "admin.token"
    assert keep_secret(path, "first") == "first"
    assert keep_secret(path, "second") == "first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["admin.token"]


@pytest.mark.parametrize("network", ["none", "proxy"])
def test_an_agent_that_may_call_back_needs_the_open_network(network: str) -> None:
    agents = {"mine": {"command": "x", "callback": True}}
    Settings.model_validate({"agents": agents})
    with pytest.raises(ValueError, match='agent mine has callback = true, which needs network = "open"'):
        Settings.model_validate({"agents": agents, "agent_network": network})
    agents["mine"]["network"] = "open"
    Settings.model_validate({"agents": agents, "agent_network": network})


@pytest.mark.parametrize("host", ["http://example.com", "*", "a b", "example.com:99999"])
def test_a_host_without_a_meaning_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="is not a host"):
        Settings.model_validate({"agents": {"mine": {"command": "x", "hosts": [host]}}})
    assert Settings.model_validate({"agent_hosts": "a.example, *.b.example:1"}).agent_hosts == (
        "a.example",
        "*.b.example:1",
    )


@pytest.mark.parametrize(
    "text", ["on", "5", "5-", "-5", "0-9", "9-5", "1-4294967296", "1-2-3", "a-b", "\u0661-\u0662"]
)
def test_users_of_agents_are_a_range(text: str) -> None:
    with pytest.raises(ValidationError, match=r"give auto, off, or a range|give the lower number first"):
        Settings.model_validate({"agent_uids": text})
    for good in ("auto", "off", "5-5", "200000-200999"):
        assert Settings.model_validate({"agent_uids": good}).agent_uids == good
