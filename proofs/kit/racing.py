"""One round of a race: a session, a swapper on its files, one deed of the server, and what is left after."""

import json
import random
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofs.kit import swapper
from proofs.kit.canaries import MANY
from proofs.kit.track import Track, as_user

PROGRAM: Final = Path(swapper.__file__)
FIRST: Final = "write b.txt first"
SECOND: Final = "write d/a.txt second\nwrite b.txt second\nwrite d/planted.txt second"
ASIDE: Final = "write c.txt second"
"""While files are swapped, the agent stays away from them: at `off` it would follow a link by itself."""

OWN: Final = ("d", "deep", "hop", "new")
"""Folders of the agent's, which have no business in the data folder."""

TIMES: Final = 8
Spot = tuple[str, str, str]


@dataclass
class Round:
    """`chance` decides what is swapped, for what, and where a link leads."""

    track: Track
    chance: random.Random
    deed: str
    short: bool = False
    swaps: int = 0
    violations: list[str] = field(default_factory=list)

    def play(self) -> None:
        self.aim = self.chance.choice(sorted(self.track.canaries.folders.values()))
        whole = self.deed in NAMED and self.chance.random() < 0.5
        self._make_session(named=whole)
        where = f"{self.deed} at {self.track.level}, user {self.track.user}"
        extra = DEEDS[self.deed](self) or []
        for folder in (self.workspace, self.home, self.track.data / "copies" / self.session):
            extra += self.track.canaries.find_in(folder)
        self._check(not extra, f"{where}: the secret is in {extra}")
        told = [answer[:300] for answer in self.track.answers if self.track.canaries.text in answer]
        self._check(not told, f"{where}: the secret was told: {told}")
        changes = self.track.canaries.find_changes()
        self._check(not changes, f"{where}: changed: {changes}")
        strays = [path for path in self.track.data.iterdir() if path.suffix == ".txt" or path.name in OWN]
        self._check(not strays, f"{where}: in the data folder: {[path.name for path in strays]}")
        for path in strays:
            subprocess.run(["rm", "-rf", str(path)], check=True)
        if changes:
            self.track.canaries.plant(self.track.user)
        self.track.call("POST", f"{self.path}/purge")

    def _check(self, good: bool, what: str) -> None:
        if not good:
            self.violations.append(what)

    @property
    def path(self) -> str:
        return f"/sessions/{self.session}"

    @property
    def home(self) -> Path:
        return self.track.data / "homes" / self.session

    def _make_session(self, *, named: bool) -> None:
        body = {"agent": self.track.agent, "retention": "keep"}
        self.named = named
        if named:
            base = self.track.server.folder / "projects" / str(self.chance.getrandbits(64))
            self._as_user("mkdir", "-p", str(base / "work" / ".git"))
            body["cwd"] = str(base / "work")
        status, reply = self.track.call("POST", "/sessions", body)
        assert status == 200, reply
        self.session = str(reply["session_id"])
        self.workspace = Path(self.track.call("GET", self.path)[1]["cwd"])
        assert self._turn(FIRST) == 200, self.track.answers[-1]
        self._as_user("mkdir", "-p", str(self.home / "uploads"))
        self._fill(self.home, "first")
        self._fill(self.workspace, "first")

    def _fill(self, folder: Path, text: str) -> None:
        """Many files, which the server will find changed."""
        line = (
            'mkdir -p "$0/d/deep"; for name in b d/a; do echo "$1" > "$0/$name.txt"; done;'
            ' for n in $(seq "$2"); do echo "$1" > "$0/d/f$n.txt"; done'
        )
        self._as_user("sh", "-c", line, str(folder), text, str(MANY))

    def _turn(self, prompt: str, **body: object) -> int:
        status, reply = self.track.call("POST", f"{self.path}/turn", {"prompt": prompt, **body})
        assert status, f"the server does not answer any more: {prompt!r}"
        assert status in (200, 409, 502), reply
        return status

    def _as_user(self, *words: str) -> None:
        subprocess.run([*as_user(self.track.user), *words], check=True, capture_output=True, timeout=30)

    def _spots(self, folder: Path) -> list[Spot]:
        """Some of the swaps that an agent could make there."""
        link = str(self.chance.choice([self.aim, self.aim, self.track.data]))
        secret = str(self.aim / "canary.txt")
        choices: list[list[Spot]] = [
            [(f"{folder}/d", "link", link)],
            [(f"{folder}/b.txt", "link", secret)],
            [(f"{folder}/d", "link", link), (f"{folder}/b.txt", "link", secret)],
            [(f"{folder}/d/deep", "link", link), (f"{folder}/d/a.txt", "link", secret)],
            [(f"{folder}/d", "link", "hop"), (f"{folder}/hop", "link", link)],
            [(f"{folder}/b.txt", self.chance.choice(["pipe", "socket", "folder"]), "")],
            [(f"{folder}/d", "file", ""), (f"{folder}/d/a.txt", "pipe", "")],
        ]
        chosen = self.chance.choice(choices)
        # A pipe may hold git up for a minute, which the short form does not have.
        return [
            (path, "socket" if self.short and kind == "pipe" else kind, aim) for path, kind, aim in chosen
        ]

    @contextmanager
    def _swapping(self, *spots: Spot) -> Iterator[None]:
        """As the server's own user, and nothing stops it: no agent could do as much."""
        order = json.dumps({"seed": self.chance.getrandbits(32), "spots": spots})
        command = [*self.track.server.program, "-I", "-S", str(PROGRAM), order]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        with child:
            assert child.stdout.readline() == "ready\n", "the swapper did not start"
            try:
                yield
            finally:
                child.terminate()
                self.swaps += int(child.stdout.read() or 0)

    def snapshot(self) -> None:
        # Without a sandbox an agent may write wherever its swapped workspace leads. It keeps still.
        alone = self.named and self.track.level == "off"
        with self._swapping(*self._choose_spots()):
            self._turn("echo x" if alone else ASIDE)
            self._turn("echo the next turn waits for the snapshot")
        self.track.call("POST", f"{self.path}/undo", {"files": True, "count": 1})
        self.track.call("POST", f"{self.path}/undo", {"files": True, "count": 1})

    def restore(self) -> None:
        self._turn(SECOND)
        self._fill(self.workspace, "second")
        self._turn("write d/deep/c.txt third\nwrite d/planted.txt third")
        with self._swapping(*self._choose_spots()):
            for what in ("undo", "redo", "undo"):
                status, _ = self.track.call("POST", f"{self.path}/{what}", {"files": True})
                assert status, "the server does not answer any more"

    def fork(self) -> None:
        spots = [*self._spots(self.workspace), *self._spots(self.home)]
        with self._swapping(*spots):
            _, reply = self.track.call("POST", f"{self.path}/fork")
            if "session_id" in reply:
                mine, self.session = self.session, reply["session_id"]
                self._turn(ASIDE)
                self.track.call("POST", f"{self.path}/purge")
                self.session = mine

    def attach(self) -> None:
        token = self._upload()
        spots = self.chance.choice(
            [
                [(f"{self.home}/uploads", "link", str(self.aim))],
                [(f"{self.home}/uploads/{token}", "link", str(self.aim))],
                [(f"{self.home}/uploads", self.chance.choice(["pipe", "file", "socket"]), "")],
            ]
        )
        with self._swapping(*spots):
            for _ in range(3):
                self._turn("echo x", files=[token])

    def home_copy(self) -> None:
        with self._swapping(*self._spots(self.home)):
            self._turn("echo x")
            self._turn("echo y")
        self.track.call("POST", f"{self.path}/undo")
        self._turn("echo z")

    def home_restore(self) -> None:
        self._turn("echo x")
        self._turn("echo y")
        with self._swapping(*self._spots(self.home)):
            self.track.call("POST", f"{self.path}/undo")
            self._turn("echo z")

    def terminal(self) -> None:
        """At `off` a command may read everything by itself, so there only the start is raced."""
        looks = "cat canary.txt; echo x > planted.txt" if self.track.level != "off" else "true"
        with self._swapping(*self._choose_spots()):
            self._turn("\n".join([f"terminal {looks}"] * 3))
            self._turn(f"terminal {looks}")

    def fs_read(self) -> None:
        if self.named:
            with self._swapping(self._whole()):
                self._turn("\n".join(["fs-read canary.txt", "fs-read d/canary.txt"] * TIMES))
            return
        with self._swapping(*self._spots(self.workspace)):
            names = ["d/canary.txt", "b.txt", "d/a.txt", "d/deep/canary.txt"]
            self._turn("\n".join(f"fs-read {name}" for name in names * TIMES))

    def fs_write(self) -> None:
        with self._swapping(*self._choose_spots()):
            names = [
                "planted.txt",
                "d/planted.txt",
                "b.txt",
                "d/a.txt",
                "d/deep/planted.txt",
                "d/new/planted.txt",
            ]
            self._turn("\n".join(f"fs-write {name} planted" for name in names * TIMES))

    def purge(self) -> None:
        with self._swapping(*self._spots(self.workspace), *self._spots(self.home)):
            self.track.call("POST", f"{self.path}/purge")
            self.track.server.call("POST", "/admin/sweep")

    def sweep(self) -> None:
        self.track.call("POST", f"{self.path}/purge")
        spots = [*self._spots(self.workspace), *self._spots(self.home)]
        if all(Path(path).parent.is_dir() for path, _, _ in spots):
            with self._swapping(*spots):
                self.track.server.call("POST", "/admin/sweep")

    def backup(self) -> list[str]:
        archive = self.track.server.folder / f"{self.session}.tar"
        with self._swapping(*self._spots(self.workspace), *self._spots(self.home)):
            self.track.run("backup", str(archive), "--data-dir", str(self.track.data))
        found = self.track.canaries.find_in_archive(archive, self.session) if archive.exists() else []
        archive.unlink(missing_ok=True)
        return found

    def put_back(self) -> list[str]:
        """Into a folder in which somebody swaps what is being unpacked."""
        base = self.track.server.folder
        archive, target = base / f"{self.session}.tar", base / f"{self.session}.new"
        self.track.run("backup", str(archive), "--data-dir", str(self.track.data))
        aim = str(self.aim)
        spots = [(f"{target}/workspaces", "link", aim), (f"{target}.partial/workspaces", "link", aim)]
        with self._swapping(*self._spots(self.workspace), *spots[self.chance.randrange(2) :][:1]):
            self.track.run("restore", str(archive), "--data-dir", str(target))
        archive.unlink(missing_ok=True)
        return self.track.canaries.find_in(target / "workspaces" / self.session)

    def import_(self) -> None:
        rows = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        body = {"messages": rows, "agent": self.track.agent}
        _, reply = self.track.call("POST", "/sessions/import", body)
        mine, self.session = self.session, str(reply["session_id"])
        self.workspace = Path(self.track.call("GET", self.path)[1]["cwd"])
        self._fill(self.workspace, "first")
        with self._swapping(*self._spots(self.workspace)):
            self._turn(ASIDE)
            self._turn("echo x")
            self.track.call("GET", f"{self.path}/export")
        self.track.call("POST", f"/sessions/{mine}/purge")

    def _choose_spots(self) -> list[Spot]:
        return [self._whole()] if self.named else self._spots(self.workspace)

    def _whole(self) -> Spot:
        return (str(self.workspace), "link", str(self.aim))

    def _upload(self) -> str:
        edge = "edge-of-a-form"
        head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="planted.txt"\r\n\r\n'
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.track.server.port}/files",
            f"{head}planted\r\n--{edge}--\r\n".encode(),
            {
                "Authorization": f"Bearer {self.track.token}",
                "Content-Type": f"multipart/form-data; boundary={edge}",
            },
        )
        with urllib.request.urlopen(asked, timeout=30) as reply:  # noqa: S310 - our own server
            return str(json.load(reply)["file_token"])


DEEDS: Final[dict[str, Callable[[Round], list[str] | None]]] = {
    "snapshot": Round.snapshot,
    "undo-files": Round.restore,
    "fork": Round.fork,
    "attach": Round.attach,
    "home-copy": Round.home_copy,
    "home-restore": Round.home_restore,
    "terminal": Round.terminal,
    "file-read": Round.fs_read,
    "file-write": Round.fs_write,
    "purge": Round.purge,
    "sweep": Round.sweep,
    "backup": Round.backup,
    "restore": Round.put_back,
    "import": Round.import_,
}
NAMED: Final = ("terminal", "file-read", "file-write", "snapshot", "undo-files")
"""In half of these the whole workspace is swapped, a folder that the caller named."""
