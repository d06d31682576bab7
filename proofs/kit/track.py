"""A server to race against: as which user it runs, which walls it has, and the secrets around it."""

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from clawdforge.scripted import path as agent_path
from proofs.kit.canaries import Canaries
from proofs.kit.server import Server, until

LEVELS = ("auto", "full", "landlock", "off")
PATIENCE = 180
"""Seconds. A pipe that takes the place of a file just when git opens it holds git up for a minute."""

NO_BWRAP = "#!/bin/sh\necho bwrap: No permissions to create new namespace >&2\nexit 1\n"


@dataclass(frozen=True)
class Track:
    """`agent` is the name of the agent at the level of the round."""

    server: Server
    user: int
    token: str
    canaries: Canaries
    level: str = "auto"
    answers: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @classmethod
    def start(cls, server: Server, user: int, source: Path, *, bubblewrap: bool) -> Self:
        program = find_python(user, source)
        assert program is not None, "the user has no Python of this version"
        agent = f"{program} -I -S {agent_path()}"
        config = server.folder / "clawdforge.toml"
        tables = [
            f'[agents.at-{level}]\ncommand = {json.dumps(agent)}\nsandbox = "{level}"\n'
            for level in ("auto", "full", "off")
        ]
        config.write_text("".join(tables))
        if not bubblewrap:
            fake = server.folder / "bin" / "bwrap"
            fake.parent.mkdir()
            fake.write_text(NO_BWRAP)
            fake.chmod(0o755)
            server.env["PATH"] = f"{fake.parent}:{server.env['PATH']}"
        server.env["CLAWDFORGE_SESSION_TTL_SECS"] = "3600"
        server.program = (*as_user(user), program)
        server.env["PYTHONPATH"] += f":{sysconfig.get_path('purelib')}"
        for path in (server.witness, config):
            os.chown(path, user, user)
        server.start(cold=True)
        until((server.data_dir / "local.token").exists, "the token of `local`")
        token = (server.data_dir / "local.token").read_text().strip()
        victim = server.call("POST", "/sessions", {"agent": "at-off"}, server.token("victim"))[1][
            "session_id"
        ]
        canaries = Canaries(
            {
                "the data folder": server.data_dir / "canary",
                "another session's home": server.data_dir / "homes" / victim / "secret",
                "the operator's home": server.folder / ".ssh",
            }
        )
        canaries.plant(user)
        return cls(server, user, token, canaries)

    def at(self, level: str) -> Self:
        return replace(self, level=level, answers=[])

    @property
    def agent(self) -> str:
        return "at-auto" if self.level == "landlock" else f"at-{self.level}"

    @property
    def data(self) -> Path:
        return self.server.data_dir

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A request of the app `local`; what is answered is kept, to be searched."""
        status, reply = self.server.call(method, path, body, self.token, PATIENCE)
        self.statuses[status] += 1
        self.answers.append(json.dumps(reply) if not isinstance(reply, bytes) else repr(reply))
        return status, reply

    def run(self, *words: str) -> int:
        """A command of the operator's on the data folder."""
        done = subprocess.run(
            [*self.server.program, "-m", "clawdforge", *words],
            env=self.server.env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.answers.append(done.stdout + done.stderr)
        return done.returncode


def as_user(user: int) -> Sequence[str]:
    if user == os.geteuid():
        return ()
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all")


@functools.cache
def find_python(user: int, source: Path) -> str | None:
    """One that this user may run on this source: ours, or the system's if it is of the same version."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    env = {**os.environ, "PYTHONPATH": f"{source / 'src'}:{sysconfig.get_path('purelib')}"}
    for program in (sys.executable, shutil.which(version, path=os.defpath)):
        if program is not None:
            command = [*as_user(user), "sh", "-c", 'exec "$0" -c "import clawdforge.server"', program]
            if not subprocess.run(command, capture_output=True, check=False, cwd="/", env=env).returncode:
                return program
    return None
