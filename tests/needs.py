"""What a test needs from the machine: without it the test is skipped, or fails where it is required.

`CLAWDFORGE_TEST_REQUIRE="bwrap strace"` names what must be there. It is looked for when the first test that
needs it is about to run, and once for all the workers of a run: some looks take a second of processor time.
"""

import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

REQUIRE: Final = "CLAWDFORGE_TEST_REQUIRE"
PROBE_SECS: Final = 90
"""Less than a test may take, and more than a Postgres takes that is made while everything else runs too."""

ANSWERS: Final = Path(__file__).parent.parent / ".cache" / "needs"
ACPX: Final = Path(__file__).parent.parent / ".cache" / "acpx" / "node_modules" / ".bin"
"""Where `npm install --prefix .cache/acpx node@24 acpx@0.19.1` puts programs; one in PATH does as well."""

MCP: Final = Path(__file__).parent.parent / ".cache" / "live" / "py" / "mcp" / "bin" / "python"
"""Where `python3 -m tests.live.installing mcp` puts it."""

MOTO: Final = Path(__file__).parent.parent / ".cache" / "live" / "py" / "moto" / "bin" / "moto_server"
"""Where `python3 -m tests.live.installing moto` puts it."""

CHART: Final = Path(__file__).parent.parent / ".cache" / "live" / "py" / "chart" / "bin"
"""Where `python3 -m tests.live.installing chart` puts helm, and what knows the shapes of Kubernetes."""

DOCS: Final = Path(__file__).parent.parent / ".cache" / "docs" / "bin" / "python"
"""Where `./scripts/docs` puts what builds the site."""

LIVE: Final = Path(__file__).parent.parent / ".cache" / "live" / "npm"
CLAUDE: Final = f"{LIVE / 'claude' / 'node_modules' / '.bin'}:{LIVE / 'node' / 'node_modules' / '.bin'}"
"""Where `python3 -m tests.live.installing claude` puts programs, and a Node that is new enough."""

CODEX: Final = f"{LIVE / 'codex' / 'node_modules' / '.bin'}:{LIVE / 'node' / 'node_modules' / '.bin'}"
OPENCODE: Final = f"{LIVE / 'opencode' / 'node_modules' / '.bin'}:{LIVE / 'node' / 'node_modules' / '.bin'}"
"""The same for `codex` and `opencode`."""

NODE: Final = LIVE / "node" / "node_modules" / ".bin" / "node"
CLIENTS: Final = LIVE / "clients" / "node_modules"
"""Where `python3 -m tests.live.installing clients` puts libraries."""

PYRIGHT: Final = f"{LIVE / 'pyright' / 'node_modules' / '.bin'}:{LIVE / 'node' / 'node_modules' / '.bin'}"
"""Where `python3 -m tests.live.installing pyright` puts programs; one in PATH does as well."""

AS_AN_AGENT: Final = """
hide_tmp="bwrap --dev-bind / / --tmpfs /tmp"
$hide_tmp true 2>/dev/null || hide_tmp=
$hide_tmp test -e "$0" || { echo "its agents have a /tmp of their own and do not see $0" >&2; exit 1; }
exec $hide_tmp acpx --version
"""
"""The driver gives acpx a /tmp of its own: what lies below /tmp can be run here and not there."""

CGROUPS: Final = """
import os, pathlib, sys
from clawdforge.drivers.processes.cgroups import Ceilings, find_cgroups
found = find_cgroups(pathlib.Path("/"), f"needs{os.getpid()}", Ceilings(processes=99, memory=0))
sys.exit(found.reason if None in (found.processes, found.memory) else 0)
"""

CHOSEN_PID: Final = """
echo 41 > /proc/sys/kernel/ns_last_pid || exit 1
true & test $! = 42 || { echo "the next process got the number $!" >&2; exit 1; }
"""
"""In a namespace of its own, root can choose which number the next process gets."""

LANDLOCK: Final = """
import sys
from clawdforge.drivers.processes.walls import find_walls
found = find_walls()
sys.exit(None if found.files and found.scopes else "; ".join(found.reasons))
"""

USERS: Final = """
import sys
from pathlib import Path
from clawdforge.drivers.processes.containment import find_containment
from clawdforge.drivers.processes.user_wall import try_users
found = try_users(find_containment("auto"), "auto", Path("/"))
sys.exit(None if found.uid else found.why_no_users or "it needs root and bubblewrap")
"""

PROBES: Final[Mapping[str, tuple[str, ...]]] = {
    "bwrap": ("bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"),
    "strace": ("strace", "-o", "/dev/null", "true"),
    "chromium": ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "about:blank"),
    "ssh-keygen": (
        "sh",
        "-c",
        "command -v ssh-keygen || { echo 'not installed' >&2; exit 1; }",
    ),
    "curl": ("curl", "--version"),
    "openssl": ("openssl", "version"),
    "node": ("node", "--version"),
    "java": ("/usr/bin/keytool", "-help"),
    "acpx": ("env", f"PATH={ACPX}:{os.environ.get('PATH', os.defpath)}", "sh", "-c", AS_AN_AGENT, __file__),
    "claude": ("env", f"PATH={CLAUDE}:{os.environ.get('PATH', os.defpath)}", "claude", "--version"),
    "codex": ("env", f"PATH={CODEX}:{os.environ.get('PATH', os.defpath)}", "codex-acp", "--version"),
    "opencode": ("env", f"PATH={OPENCODE}:{os.environ.get('PATH', os.defpath)}", "opencode", "--version"),
    "pyright": ("env", f"PATH={PYRIGHT}:{os.environ.get('PATH', os.defpath)}", "pyright", "--version"),
    "mcp": (str(MCP), "-c", "import mcp.server.fastmcp"),
    "moto": (str(MOTO), "--help"),
    "npm-clients": (str(NODE), "-e", f"require({str(CLIENTS / 'openai')!r})"),
    "docs": (str(DOCS), "-c", "import material, mkdocs"),
    "langgraph": (sys.executable, "-c", "import langgraph, langgraph.checkpoint.sqlite.aio"),
    "langgraph-postgres": (sys.executable, "-c", "import psycopg_pool, langgraph.checkpoint.postgres.aio"),
    "deepagents": (sys.executable, "-c", "import deepagents"),
    "cgroups": (sys.executable, "-c", CGROUPS),
    "landlock": (sys.executable, "-c", LANDLOCK),
    "chosen-pid": ("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", CHOSEN_PID),
    "hidepid": (
        *("unshare", "--mount", "--pid", "--fork"),
        *("mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"),
    ),
    "users": (sys.executable, "-c", USERS),
    "postgres": (sys.executable, "-m", "tests.postgres"),
    "pgbouncer": ("env", f"PATH={os.environ.get('PATH', os.defpath)}:/usr/sbin", "pgbouncer", "--version"),
    "caddy": ("caddy", "version"),
    "nginx": ("env", f"PATH={os.environ.get('PATH', os.defpath)}:/usr/sbin", "nginx", "-v"),
    "helm": (str(CHART / "helm"), "version"),
    "tmpfs": ("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"),
}
"""A run that shows that the thing works here, not only that a file of its name lies about."""


@functools.cache
def missing(name: str) -> str | None:
    """Why `name` cannot be used here, or None."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return _probe(name)
    ANSWERS.mkdir(parents=True, exist_ok=True)
    with (ANSWERS / f"{run}-{name}").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if answer := file.read():
            return json.loads(answer)["missing"]  # type: ignore[no-any-return]
        reason = _probe(name)
        file.write(json.dumps({"missing": reason}))
        return reason


def forget_answers() -> None:
    """Remove what earlier runs have left."""
    for file in ANSWERS.glob("*"):
        file.unlink(missing_ok=True)


def needs(name: str) -> pytest.MarkDecorator:
    """Mark for a test, a class or a module (`pytestmark`) that needs `name`."""
    assert name in PROBES, f"say in PROBES how it is found out whether {name!r} is here"
    return pytest.mark.needs(name)


def skip_without(item: pytest.Item) -> None:
    """Skip a test whose needs are not met, or fail it where they are required."""
    for mark in item.iter_markers("needs"):
        [name] = mark.args
        reason = missing(name)
        if reason is not None and name in os.environ.get(REQUIRE, "").split():
            pytest.fail(f"{reason}, but {REQUIRE} names it", pytrace=False)
        if reason is not None:
            pytest.skip(reason)


def _probe(name: str) -> str | None:
    probe = PROBES[name]
    if shutil.which(probe[0]) is None:
        return f"{name} is not installed"
    done = subprocess.run(probe, capture_output=True, text=True, timeout=PROBE_SECS, check=False)
    if done.returncode == 0:
        return None
    return f"{name} does not work here: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
