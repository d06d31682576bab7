"""Workspaces in which git runs what an agent wrote: the server's git does not, and the operator's would.

The agent sets each trap by itself, in a command that the server runs for it. Then its files are recorded and
put back. The twin is plain git in a copy of the same folder: the trap must spring there, or it is none.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.api.harness import App, Server
from tests.api.talk import post, say
from tests.needs import needs
from tests.support.folders import everything_below

pytestmark = [needs("bwrap"), pytest.mark.slow]

EVIL: Final = """cat > evil.sh <<'END'
#!/bin/sh
touch sprung "${GIT_DIR:-.git}/sprung" 2> /dev/null
exec cat
END
chmod +x evil.sh; evil="$PWD/evil.sh"; echo text > b.txt; git init -q .
"""
COMMIT: Final = "git add b.txt && git -c user.name=x -c user.email=x@localhost commit -qm x"
STATUS: Final = "git status"
ADD: Final = "git add -A"


class Trap(NamedTuple):
    """How the agent sets it, and which command of the operator's springs it."""

    name: str
    set: str
    springs: str


TRAPS: Final = (
    Trap("fsmonitor", 'git config core.fsmonitor "$evil"', STATUS),
    Trap("a clean filter", 'git config filter.e.clean "$evil"; echo "* filter=e" > .gitattributes', ADD),
    Trap(
        "a smudge filter",
        'git config filter.e.smudge "$evil"; echo "* filter=e" > .gitattributes',
        "git add b.txt && rm b.txt && git checkout -- b.txt",
    ),
    Trap("a filter process", 'git config filter.e.process "$evil"; echo "* filter=e" > .gitattributes', ADD),
    Trap(
        "attributes in the repository",
        'git config filter.e.clean "$evil"; mkdir -p .git/info; echo "* filter=e" > .git/info/attributes',
        ADD,
    ),
    Trap(
        "a file of attributes that the settings name",
        'git config filter.e.clean "$evil"; echo "* filter=e" > rules;'
        ' git config core.attributesFile "$PWD/rules"',
        ADD,
    ),
    Trap("a hook", "mkdir -p .git/hooks; cp evil.sh .git/hooks/post-index-change", ADD),
    Trap(
        "a folder of hooks",
        'mkdir hooks; cp evil.sh hooks/post-index-change; git config core.hooksPath "$PWD/hooks"',
        ADD,
    ),
    Trap(
        "a hook after a checkout",
        f"{COMMIT}; mkdir -p .git/hooks; cp evil.sh .git/hooks/post-checkout",
        "git checkout -f HEAD",
    ),
    Trap(
        "settings that are included",
        'git config -f more core.fsmonitor "$evil"; git config include.path "$PWD/more"',
        STATUS,
    ),
    Trap(
        "settings of a worktree",
        "git config extensions.worktreeConfig true;"
        ' git config -f .git/config.worktree core.fsmonitor "$evil"',
        STATUS,
    ),
    Trap(
        "a repository elsewhere",
        'git config core.fsmonitor "$evil"; mv .git elsewhere; echo "gitdir: $PWD/elsewhere" > .git',
        STATUS,
    ),
    Trap(
        "a submodule",
        f"git init -q sub; (cd sub; cp ../b.txt .; {COMMIT}); git add sub 2> /dev/null;"
        ' git -C sub config core.fsmonitor "$evil"',
        STATUS,
    ),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("traps") / "data")
    yield server
    server.stop()


@pytest.fixture
def app(server: Server) -> App:
    return server.app()


def sprung(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in everything_below(folder, "sprung")]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_a_trap_springs_for_the_operator_and_not_for_the_server(
    server: Server, app: App, trap: Trap, tmp_path: Path
) -> None:
    sid = app.session()
    workspace = Path(app.http.get(f"/sessions/{sid}").json()["cwd"])
    (workspace / "set.sh").write_text(f"{EVIL}{trap.set}\n")
    say(app, sid, "terminal sh set.sh < /dev/null")
    assert (workspace / ".git").exists(), "the trap was not set"
    for path in sprung(workspace):  # what springs while the agent sets it is its own
        path.unlink()
    say(app, sid, "write b.txt second")
    say(app, sid, "write b.txt third")
    for what in ("undo", "undo", "redo"):
        reply = post(app, sid, what, files=True)
        assert reply.status_code == 200, reply.text
    assert (workspace / "b.txt").read_text().strip() == "second"
    assert sprung(workspace, server.data_dir / "shadows" / sid) == []

    copy = tmp_path / "copy"
    shutil.copytree(workspace, copy, symlinks=True)
    for path in everything_below(copy):  # they name their folder
        if path.is_file() and not path.is_symlink() and os.fsencode(workspace) in (text := path.read_bytes()):
            path.write_bytes(text.replace(os.fsencode(workspace), os.fsencode(copy)))
    subprocess.run(
        ["sh", "-c", trap.springs],
        cwd=copy,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert sprung(copy), "it is no trap: plain git does not run it either"


def test_a_pipe_as_a_file_of_excludes_holds_git_up_and_not_the_server(app: App) -> None:
    sid = app.session()
    pipe = "mkdir -p .git/info && rm -f .git/info/exclude && mkfifo .git/info/exclude"
    say(app, sid, f"terminal git init -q . && {pipe}")
    say(app, sid, "write b.txt first")
    say(app, sid, "write b.txt second")
    assert post(app, sid, "undo", files=True).status_code == 200
    workspace = Path(app.http.get(f"/sessions/{sid}").json()["cwd"])
    assert (workspace / "b.txt").read_text() == "first"
    git = ["git", "-c", "safe.directory=*", "status"]  # the folder belongs to the user of its app
    with pytest.raises(subprocess.TimeoutExpired):  # the twin: plain git waits for the other end
        subprocess.run(git, cwd=workspace, capture_output=True, check=False, timeout=2)
