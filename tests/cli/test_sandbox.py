"""`clawdforge sandbox` and what `doctor` says about it: without a server, with and without bubblewrap."""

from collections.abc import Callable
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.settings import AgentSettings, Settings
from clawdforge.upkeep.doctor import Finding, examine
from tests.cli.kit import Cli
from tests.needs import needs

CANARY = "canary-of-the-operator"


@pytest.fixture
def cli(make: Callable[..., Cli], tmp_path: Path) -> Cli:
    """No server has ever run on its data folder."""
    return make(tmp_path / "data")


@pytest.fixture
def broken(make: Callable[..., Cli], tmp_path: Path) -> Cli:
    """As on a kernel that allows no user namespaces."""
    return make(tmp_path / "data", PATH=f"{plant_broken_bwrap(tmp_path)}:/usr/bin:/bin")


def plant_broken_bwrap(folder: Path) -> Path:
    fake = folder / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho bwrap: No permissions to create new namespace >&2\nexit 1\n")
    fake.chmod(0o755)
    return fake.parent


@needs("bwrap")
def test_show_lists_places_with_their_reasons(cli: Cli) -> None:
    view = cli.json("sandbox", "show", "demo", "--json")
    assert (view["agent"], view["active"], view["network"]) == ("demo", "bwrap", "open")
    mounts = {mount["path"]: mount for mount in view["mounts"]}
    assert mounts["/usr"]["how"] == "read-only"
    assert mounts[f"{cli.data_dir}/homes/SESSION"]["how"] == "writable"
    assert all(mount["why"] for mount in view["mounts"])
    assert "PATH" in view["env"]
    assert set(view["limits"]) == {"processes", "memory_bytes", "open_files"}
    text = cli("sandbox", "show", "demo").stdout
    assert "these places and no others" in text
    assert "writable" in text
    assert not cli.data_dir.exists()


@needs("bwrap")
def test_a_command_in_the_sandbox_sees_no_more_than_an_agent(cli: Cli, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    done = cli("sandbox", "shell", "demo", "--", "sh", "-c", f"pwd; cat {secret}; exit 3", code=3)
    assert CANARY not in done.stdout
    assert not Path(done.stdout.strip()).exists()  # the workspace is gone
    assert cli("sandbox", "shell", "demo", stdin="echo $((6 * 7))\n").stdout == "42\n"


@needs("bwrap")
def test_a_shell_has_the_network_of_its_agent(make: Callable[..., Cli], tmp_path: Path) -> None:
    script = "cat /proc/net/dev | tail -n +3 | cut -d: -f1"
    for network in ("open", "none", "proxy"):
        cli = make(tmp_path / "data", CLAWDFORGE_AGENT_NETWORK=network)
        seen = cli("sandbox", "shell", "demo", "--", "sh", "-c", script).stdout.split()
        assert network == "open" or seen == ["lo"]
        assert f"network    {network}" in cli("sandbox", "show", "demo").stdout


@needs("bwrap")
@pytest.mark.parametrize(
    ("network", "proxy"), [("open", "http://operators"), ("none", ""), ("proxy", "http://127.0.0.1:3128")]
)
def test_show_and_shell_have_the_proxies_of_that_network(
    make: Callable[..., Cli], tmp_path: Path, network: str, proxy: str
) -> None:
    cli = make(tmp_path / "data", CLAWDFORGE_AGENT_NETWORK=network, HTTPS_PROXY="http://operators")
    assert ("HTTPS_PROXY" in cli.json("sandbox", "show", "demo", "--json")["env"]) == bool(proxy)
    assert cli("sandbox", "shell", "demo", "--", "sh", "-c", "echo $HTTPS_PROXY").stdout.strip() == proxy


@needs("bwrap")
def test_a_shell_has_what_switches_off_a_sandbox_of_the_agents_own(cli: Cli) -> None:
    (cli.project / "clawdforge.toml").write_text(
        '[agents.mine]\ncommand = "sh"\n[agents.mine.quirks]\ncontained_env = { OWN_WALLS = "off" }\n'
        'contained_etc = { "mine/walls.toml" = "own = false" }\n'
    )
    script = 'echo "$OWN_WALLS"; cat /etc/mine/walls.toml'
    assert cli("sandbox", "shell", "mine", "--", "sh", "-c", script).stdout == "off\nown = false"
    view = cli.json("sandbox", "show", "mine", "--json")
    assert "/etc/mine/walls.toml" in {mount["path"] for mount in view["mounts"]}


@pytest.mark.parametrize("network", ["none", "proxy"])
def test_a_network_of_its_own_needs_a_sandbox_as_in_a_turn(
    make: Callable[..., Cli], tmp_path: Path, network: str
) -> None:
    cli = make(tmp_path / "data", CLAWDFORGE_AGENT_NETWORK=network, CLAWDFORGE_SANDBOX="off")
    said = f"network {network} needs bubblewrap"
    assert said in cli("sandbox", "show", "demo", code=1).stderr
    assert said in cli("sandbox", "shell", "demo", "--", "true", code=1).stderr
    assert f"demo cannot be started: {said}" in cli("doctor", code=1).stdout


@needs("bwrap")
def test_a_shell_on_a_terminal(cli: Cli) -> None:
    terminal = cli.terminal("sandbox", "shell", "demo")
    terminal.type("echo $((6 * 7))\n")
    terminal.expect("42")
    terminal.type("exit\n")
    assert terminal.wait() == 0


def test_an_unknown_agent(cli: Cli) -> None:
    assert "no agent is called 'nobody'" in cli("sandbox", "show", "nobody", code=1).stderr


@needs("landlock")
def test_where_bubblewrap_does_not_work_it_says_that_landlock_holds(broken: Cli) -> None:
    text = broken("sandbox", "show", "demo").stdout
    assert "landlock (bwrap does not work here: bwrap: No permissions" in text
    assert "it sees the names of all files, and can use these alone" in text
    doctor = broken("doctor").stdout
    assert "containment landlock (bwrap does not work here" in doctor
    assert "install bubblewrap to hide processes" in doctor


def test_switched_off_it_says_that_nothing_is_hidden(make: Callable[..., Cli], tmp_path: Path) -> None:
    cli = make(tmp_path / "data", CLAWDFORGE_SANDBOX="off")
    assert "nothing is hidden from it" in cli("sandbox", "show", "demo").stdout


def test_full_without_a_sandbox_is_refused(make: Callable[..., Cli], tmp_path: Path) -> None:
    path = f"{plant_broken_bwrap(tmp_path)}:/usr/bin:/bin"
    cli = make(tmp_path / "data", PATH=path, CLAWDFORGE_SANDBOX="full")
    assert "sandbox full needs bwrap" in cli("sandbox", "show", "demo", code=1).stderr
    assert "sandbox full needs bwrap" in cli("sandbox", "shell", "demo", "--", "true", code=1).stderr
    assert "no agent starts" in cli("doctor", code=1).stdout


@needs("bwrap")
def test_the_doctor_tells_of_a_program_in_a_hidden_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / "agent").write_text("#!/bin/sh\n")
    (home / "agent").chmod(0o755)
    found = [one for one in look(tmp_path, str(home / "agent")) if one.text.startswith("mine")]
    assert [one.level for one in found] == ["ok", "warn"]
    assert found[0].text == f"mine sees the system, its own folders, and {home / 'agent'}"
    assert f"{home / 'agent'} lies in {home}, which is hidden from agents" in found[1].text
    assert found[1].advice == "clawdforge sandbox show mine"


def look(tmp_path: Path, command: str) -> list[Finding]:
    agents = {"mine": AgentSettings(command=command)}
    settings = Settings(data_dir=tmp_path / "data", agents=agents)
    return [found for found in examine(settings, SystemClock()) if found.about == "agents"]
