"""What an agent's program needs is found wherever people install programs, and nothing beside it is shown.

Each layout is planted in a home of the operator's and really run in the sandbox.
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.processes.runtimes import Finder, Needs
from clawdforge.drivers.processes.spawner import Spawner
from tests.needs import needs
from tests.unit.contained import SESSION

SECRET = "canary-of-the-operator"
SECRETS = (
    *(
        "notes.txt",
        ".ssh/id_rsa",
        ".config/gh/hosts.yml",
        ".local/share/keyrings/login",
        ".cargo/credentials",
    ),
    *(".local/bin/other", "code/unrelated.txt", ".npmrc"),
)
NODE = '#!/bin/sh\n. "$(readlink -f "$1")"\n'  # runs "JavaScript" that is a shell script
CLI = '#!/usr/bin/env node\ncat "$(dirname "$(readlink -f "$1")")/../share.txt"\n'


class Machine:
    """A data folder, and an operator's home with secrets in it and programs in the usual places."""

    def __init__(self, root: Path) -> None:
        self.op = root / "op"
        self.data = root / "data"
        self.path: list[Path] = []
        for name in SECRETS:
            self.put(self.op / name, SECRET)
        self.home, self.workspace = (self.data / kind / SESSION for kind in ("homes", "workspaces"))
        for folder in (self.home, self.workspace):
            folder.mkdir(parents=True)

    def put(self, path: Path, text: str, mode: int = 0o644) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def link(self, path: Path, target: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def env(self) -> dict[str, str]:
        path = os.pathsep.join([*map(str, self.path), "/usr/local/bin", "/usr/bin", "/bin"])
        return {"PATH": path, "HOME": str(self.home)}

    async def run(self, argv: list[str], wanted: Needs) -> str:
        spawner = Spawner(probe("full"), self.data, "boot")
        process = await spawner.spawn(
            argv, cwd=self.workspace, home=self.home, env=self.env(), tag=SESSION, needs=wanted
        )
        said = (await asyncio.wait_for(process.stdout.read(), 60)).decode()
        await process.close()
        return said + process.stderr_tail()

    def find(self, *command: str, readable: tuple[str, ...] = ()) -> Finder:
        finder = Finder(self.env(), data_dir=self.data, closed=(self.home, self.workspace))
        finder.add_needs(Needs((command,), readable), self.env())
        return finder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(machine.op))
    return machine


def nvm(m: Machine) -> list[str]:
    prefix = m.op / ".nvm" / "versions" / "node" / "v20.1.0"
    m.put(prefix / "bin" / "node", NODE, 0o755)
    m.put(prefix / "lib" / "node_modules" / "@some" / "agent" / "dist" / "cli.js", CLI, 0o755)
    m.put(prefix / "lib" / "node_modules" / "@some" / "agent" / "share.txt", "works")
    m.link(prefix / "bin" / "agent", "../lib/node_modules/@some/agent/dist/cli.js")
    m.path = [prefix / "bin"]
    return ["agent"]


def npm_prefix(m: Machine) -> list[str]:
    """`npm config set prefix ~/.npm-global`, with the Node of nvm."""
    nvm(m)
    prefix = m.op / ".npm-global"
    m.put(prefix / "lib" / "node_modules" / "mine" / "bin" / "cli.js", CLI, 0o755)
    m.put(prefix / "lib" / "node_modules" / "mine" / "share.txt", "works")
    m.link(prefix / "bin" / "mine", "../lib/node_modules/mine/bin/cli.js")
    m.path.insert(0, prefix / "bin")
    return ["mine"]


def fnm(m: Machine) -> list[str]:
    """The folder in PATH is a link that belongs to one shell."""
    nvm(m)
    real = m.op / ".local" / "share" / "fnm" / "node-versions" / "v20.1.0" / "installation"
    shutil.move(m.op / ".nvm" / "versions" / "node" / "v20.1.0", real)
    m.link(m.op / ".local" / "state" / "fnm_multishells" / "77", str(real))
    m.path = [m.op / ".local" / "state" / "fnm_multishells" / "77" / "bin"]
    return ["agent"]


def npm_link(m: Machine) -> list[str]:
    """`npm link` makes the global package a link to a checkout."""
    nvm(m)
    checkout = m.op / "code" / "agent"
    packages = m.op / ".nvm" / "versions" / "node" / "v20.1.0" / "lib" / "node_modules"
    m.put(checkout / "package.json", "{}")
    m.put(checkout / "dist" / "cli.js", CLI, 0o755)
    m.put(checkout / "share.txt", "works")
    shutil.rmtree(packages / "@some")
    m.link(packages / "@some" / "agent", str(checkout))
    return ["agent"]


def volta(m: Machine) -> list[str]:
    shim = '#!/bin/sh\nexec "${0%/bin/*}/tools/image/packages/agent/bin/agent"\n'
    m.put(m.op / ".volta" / "bin" / "volta-shim", shim, 0o755)
    m.link(m.op / ".volta" / "bin" / "agent", "volta-shim")
    m.put(m.op / ".volta/tools/image/packages/agent/bin/agent", "#!/bin/sh\necho works\n", 0o755)
    m.path = [m.op / ".volta" / "bin"]
    return ["agent"]


def bun(m: Machine) -> list[str]:
    nvm(m)
    m.put(m.op / ".bun/install/global/node_modules/agent2/dist/cli.js", CLI, 0o755)
    m.put(m.op / ".bun/install/global/node_modules/agent2/share.txt", "works")
    m.link(m.op / ".bun/bin/agent2", "../install/global/node_modules/agent2/dist/cli.js")
    m.path.insert(0, m.op / ".bun/bin")
    return ["agent2"]


def pnpm(m: Machine) -> list[str]:
    script = '#!/bin/sh\nexec cat "$(dirname "$0")/global/5/node_modules/agent/share.txt"\n'
    m.put(m.op / ".local/share/pnpm/agent", script, 0o755)
    m.put(m.op / ".local/share/pnpm/global/5/node_modules/agent/share.txt", "works")
    m.path = [m.op / ".local/share/pnpm"]
    return ["agent"]


def make_venv(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, capture_output=True)
    return folder


def site_packages(venv: Path) -> Path:
    return next(venv.glob("lib/python3*/site-packages"))


def pipx(m: Machine) -> list[str]:
    """A link in ~/.local/bin to a script in an environment, whose Python is a link to another."""
    venv = make_venv(m.op / ".local" / "share" / "pipx" / "venvs" / "agent")
    m.put(site_packages(venv) / "agent.py", "print('works')")
    m.put(venv / "bin" / "agent", f"#!{venv}/bin/python\nimport agent\n", 0o755)
    m.link(m.op / ".local" / "bin" / "agent", "../share/pipx/venvs/agent/bin/agent")
    m.path = [m.op / ".local" / "bin"]
    return ["agent"]


def editable(m: Machine) -> list[str]:
    venv = make_venv(m.op / "code" / "mine" / ".venv")
    m.put(site_packages(venv) / "_mine.pth", f"{m.op}/code/mine/src\n")
    m.put(m.op / "code/mine/src/mine/__main__.py", "import other; print(other.WORD)")
    finder = f"MAPPING = {{'other': '{m.op}/code/other/other.py'}}\n"
    m.put(site_packages(venv) / "__editable___other_finder.py", finder)
    line = "import __editable___other_finder\n"
    m.put(site_packages(venv) / "__editable__.other.pth", line)
    m.put(m.op / "code/other/other.py", "WORD = 'works'")
    m.put(site_packages(venv) / "zz.pth", f"import sys; sys.path.append('{m.op}/code/other')\n")
    return [str(venv / "bin" / "python"), "-m", "mine"]


def pyenv(m: Machine) -> list[str]:
    m.put(m.op / ".pyenv/shims/agent", f'#!/usr/bin/env bash\nexec "{m.op}/.pyenv/libexec/pyenv"\n', 0o755)
    m.put(m.op / ".pyenv/libexec/pyenv", f"#!/bin/sh\nexec {m.op}/.pyenv/versions/3.1/bin/agent\n", 0o755)
    m.put(m.op / ".pyenv/versions/3.1/bin/agent", "#!/bin/sh\necho works\n", 0o755)
    m.path = [m.op / ".pyenv" / "shims"]
    return ["agent"]


def one_binary(m: Machine) -> list[str]:
    (m.op / ".local" / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/echo", m.op / ".local" / "bin" / "agent")
    m.path = [m.op / ".local" / "bin"]
    return ["agent", "works"]


def versioned(m: Machine) -> list[str]:
    """As the command lines of Claude and Cursor install themselves."""
    folder = m.op / ".local/share/cursor-agent/versions/2026.01"
    m.put(folder / "agent", '#!/bin/bash\ncat "$(dirname "$(realpath "$0")")/index.js"\n', 0o755)
    m.put(folder / "index.js", "works")
    m.link(m.op / ".local/bin/agent", str(folder / "agent"))
    m.path = [m.op / ".local" / "bin"]
    return ["agent"]


def script_of_python(m: Machine) -> list[str]:
    """A graph is named like this: its file, and a name in it."""
    m.put(m.op / "graphs/helper.py", "import neighbour")
    m.put(m.op / "graphs/neighbour.py", "print('works')")
    code = "import sys; sys.path[0] = sys.argv[1].rpartition('/')[0]; import helper"
    return [sys.executable, "-c", code, f"{m.op}/graphs/helper.py:agent"]


def unpacked(m: Machine) -> list[str]:
    """An archive with bin and lib, unpacked somewhere."""
    m.put(m.op / "apps/tool-1.2/bin/agent", '#!/bin/sh\ncat "$(dirname "$0")/../lib/a"\n', 0o755)
    m.put(m.op / "apps/tool-1.2/lib/a", "works")
    return [f"{m.op}/apps/tool-1.2/bin/agent"]


def in_the_data_folder(m: Machine) -> list[str]:
    venv = make_venv(m.data / "venv")
    m.put(venv / "bin" / "agent", f"#!{venv}/bin/python\nprint('works')\n", 0o755)
    m.put(m.data / "admin.token", SECRET)
    return [str(venv / "bin" / "agent")]


def straight_in_the_home(m: Machine) -> list[str]:
    m.put(m.op / "agent.sh", "#!/bin/sh\necho works\n", 0o755)
    return [str(m.op / "agent.sh")]


def through_env(m: Machine) -> list[str]:
    """A command may begin with variables; those that name folders of code are looked at."""
    m.put(m.op / "libs/words.py", "WORD = 'works'")
    code = "import words; print(words.WORD)"
    return ["env", "-u", "NOTHING", f"PYTHONPATH={m.op}/libs", sys.executable, "-c", code]


def through_a_shell(m: Machine) -> list[str]:
    program = unpacked(m)[0]
    return ["sh", "-c", f"while false; do :; done; exec {program}"]


def through_a_login_shell(m: Machine) -> list[str]:
    return ["bash", "-lc", f"exec {unpacked(m)[0]}"]


LAYOUTS: list[Callable[[Machine], list[str]]] = [
    *(nvm, npm_prefix, npm_link, fnm, volta, bun, pnpm, pipx, editable, pyenv, one_binary, versioned),
    *(script_of_python, unpacked, in_the_data_folder, straight_in_the_home, through_env, through_a_shell),
    through_a_login_shell,
]


@needs("bwrap")
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
async def test_it_runs_and_sees_nothing_else(
    layout: Callable[[Machine], list[str]], machine: Machine
) -> None:
    command = layout(machine)
    wanted = Needs((tuple(command),))
    assert "works" in await machine.run(command, wanted)
    search = f"grep -rl {SECRET} {machine.op} {machine.data} 2>/dev/null; echo searched"
    assert await machine.run(["sh", "-c", search], wanted) == "searched\n"
    before = read_files(machine.op)
    write = f"find {machine.op} -type f -exec sh -c 'echo x >>\"$1\"' sh {{}} ';'; echo x >{machine.op}/new"
    await machine.run(["sh", "-c", write], wanted)
    assert read_files(machine.op) == before


def read_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@needs("bwrap")
async def test_without_its_needs_a_program_in_a_home_is_not_there(machine: Machine) -> None:
    """So the runs above do not pass because everything is visible, nor does an argument show it."""
    command = unpacked(machine)
    assert "works" not in await machine.run(["sh", "-c", command[0]], Needs())
    notes = str(machine.op / "notes.txt")
    assert SECRET not in await machine.run(["cat", notes], Needs((tuple(command),)))


@needs("bwrap")
async def test_readable_shows_what_cannot_be_found(machine: Machine) -> None:
    wanted = Needs((("cat",),), (str(machine.op / "notes.txt"), "~/.config/gh"))
    said = await machine.run(["cat", str(machine.op / "notes.txt")], wanted)
    assert said == SECRET
    assert await machine.run(["cat", str(machine.op / ".config/gh/hosts.yml")], wanted) == SECRET
    assert SECRET not in await machine.run(["cat", str(machine.op / ".npmrc")], wanted)


def test_certificates_that_the_environment_names_are_shown(machine: Machine) -> None:
    """They are how the machine reaches a model, and every agent is told their names."""
    file = machine.put(machine.op / "certificates" / "ours.pem", "x")
    finder = Finder({}, data_dir=machine.data)
    finder.add_needs(Needs(), {"NODE_EXTRA_CA_CERTS": str(file), "SSL_CERT_DIR": str(machine.op)})
    assert [mount.path for mount in finder.mounts] == [file]
    assert "(named by SSL_CERT_DIR) is not shown" in finder.doubts[0]


@pytest.mark.parametrize("name", ["", "homes", "admin.token", "../data"])
def test_readable_never_shows_the_data_folder(machine: Machine, name: str) -> None:
    machine.put(machine.data / "admin.token", SECRET)
    finder = machine.find("cat", readable=(str(machine.data / name), str(machine.data.parent)))
    assert not [mount for mount in finder.mounts if not mount.path.is_relative_to("/usr")]
    assert any("is not shown" in doubt for doubt in finder.doubts)


def test_a_program_in_a_hidden_place_is_said_so(machine: Machine) -> None:
    finder = machine.find(*straight_in_the_home(machine))
    assert [mount.path for mount in finder.mounts] == [machine.op / "agent.sh"]
    assert "which is hidden from agents" in finder.doubts[0]


def test_an_argument_that_cannot_be_looked_at_is_no_path(machine: Machine) -> None:
    """It may be too long for a name, or lie where the server's user may not look."""
    assert machine.find("cat", "/" + "a" * 5000, "/a\0b", f"{machine.op}/notes.txt/x", "/:").mounts == ()


@pytest.mark.parametrize("trick", ["link", "interpreter", "environment", "package"])
def test_nothing_is_followed_out_of_a_folder_that_an_agent_writes(machine: Machine, trick: str) -> None:
    """An operator's program may lie in the workspace. There the agent decides where it leads."""
    program = machine.workspace / "bin" / "agent"
    secret = machine.op / ".ssh" / "id_rsa"
    secret.chmod(0o755)
    if trick == "link":
        machine.link(program, str(secret))
    elif trick == "interpreter":
        machine.put(program, f"#!{secret}\n", 0o755)
    elif trick == "environment":
        machine.put(program, "", 0o755)
        machine.put(machine.workspace / "pyvenv.cfg", f"home = {secret.parent}\n")
        machine.put(machine.workspace / "lib/python3.1/site-packages/a.pth", f"{secret.parent}\n")
    else:
        machine.link(machine.workspace / "node_modules", str(secret.parent))
        program = machine.workspace / "node_modules" / "id_rsa"
    assert machine.find(str(program)).mounts == ()


@pytest.mark.parametrize("trick", ["link", "interpreter", "environment", "package", "readable", "none"])
@needs("bwrap")
async def test_nothing_is_followed_out_of_the_folder_of_another_session(machine: Machine, trick: str) -> None:
    """The operator's program lies in a checkout in which another agent works."""
    checkout = machine.op / "code" / "agent"
    program = machine.put(checkout / "bin" / "agent", "#!/bin/sh\necho works\n", 0o755)
    secret = machine.op / ".config" / "gh" / "hosts.yml"
    secret.chmod(0o755)
    wanted = Needs(((str(program),),), (str(checkout / "docs"),))
    if trick == "link":
        program.unlink()
        machine.link(program, str(secret))
    elif trick == "interpreter":
        machine.put(program, f"#!{secret}\n", 0o755)
    elif trick == "environment":
        packages = checkout / "lib/python3.1/site-packages"
        machine.put(checkout / "pyvenv.cfg", f"home = {secret.parent}\n")
        machine.put(packages / "a.pth", f"{secret.parent}\nimport __editable___b_finder\n")
        machine.put(packages / "__editable___b_finder.py", f"M = {{'b': '{secret}'}}")
    elif trick == "package":
        machine.link(checkout / "node_modules", str(secret.parent))
        wanted = Needs(((str(checkout / "node_modules" / secret.name),),))
    elif trick == "readable":
        machine.link(checkout / "docs", str(secret.parent))
    spawner = Spawner(probe("full"), machine.data, "boot")
    folders = {"home": machine.home, "env": machine.env(), "tag": SESSION, "needs": wanted}
    other = await spawner.spawn(["true"], cwd=checkout, **folders)  # type: ignore[arg-type]
    await other.close()
    line = f"grep -rl {SECRET} {machine.op}; {program}; echo searched"
    process = await spawner.spawn(["sh", "-c", line], cwd=machine.workspace, **folders)  # type: ignore[arg-type]
    said = (await asyncio.wait_for(process.stdout.read(), 60)).decode()
    await process.close()
    assert said == ("searched\n" if trick in ("link", "interpreter") else "works\nsearched\n")


def test_a_session_in_the_operators_home_hides_no_program(machine: Machine) -> None:
    """Who writes the home writes every program in it, and all other sessions would lose theirs."""
    finder = Finder(machine.env(), data_dir=machine.data, written={str(machine.op)})
    finder.add_command([*pipx(machine)])
    finder.add_command([str(machine.op / ".local" / "bin" / "agent")])
    assert machine.op / ".local/share/pipx/venvs/agent" in [mount.path for mount in finder.mounts]
    assert finder.list_written() == ()


def test_a_command_that_names_something_of_the_machine_itself_shows_nothing_of_it(machine: Machine) -> None:
    finder = Finder(machine.env(), data_dir=machine.data)
    finder.add_command(("cat", "/proc/self/status", "/dev/null", "/sys/kernel"))
    assert not [mount for mount in finder.mounts if mount.path.parts[1] in ("proc", "dev", "sys")]
