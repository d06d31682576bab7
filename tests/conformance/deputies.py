"""The part of the hostile agent that has the server do what it may not do itself.

Standard library only, as `hostile.py`. `data` and `up` in the facts say where to; where they lead to files of
its own, the same requests are granted.
"""

import json
import os
import socket
from pathlib import Path
from typing import Any


class Deputies:
    """Each method is one attempt; what it returns is the loot. `client` is the other end of the pipes."""

    client: Any
    data: Path
    facts: dict[str, Any]

    def client_reads_a_token(self) -> str:
        return self._read(self.data / "local.token")

    def client_reads_a_link(self) -> str:
        return self._read(self._link("innocent.txt", self.data / "local.token"))

    def client_reads_up(self) -> str:
        return self._read(f"{Path.cwd()}/{self.facts['up']}/local.token")

    def client_reads_a_linked_folder(self) -> str:
        return self._read(self._link("innocent", self.data) / "local.token")

    def client_reads_a_chain(self) -> str:
        self._link("second", self.data)
        return self._read(self._link("first", "second") / "local.token")

    def client_reads_by_a_process(self) -> str:
        """`/proc/self` is the server, when the server looks."""
        return self._read(f"/proc/self/root{self.data}/local.token")

    def client_reads_its_own_environment(self) -> str:
        return self._read(self.facts.get("environment", "/proc/self/environ"))

    def client_reads_its_own_descriptor(self) -> str:
        found = ""
        for name in self.facts.get("descriptors", [f"/proc/self/fd/{n}" for n in range(3, 40)]):
            try:
                found += self._read(name)
            except PermissionError:
                continue
        return found

    def client_reads_a_pipe(self) -> str:
        """Whoever opens one waits for the other end, for ever."""
        path = Path.cwd() / "pipe"
        path.unlink(missing_ok=True)
        self._plant(path, os.mkfifo)
        return self._read(path)

    def client_reads_without_end(self) -> str:
        path = Path.cwd() / "endless"
        path.unlink(missing_ok=True)
        self._plant(path, lambda path: path.symlink_to("/dev/zero"))
        return self._read(path)[:100]

    def client_writes_outside(self) -> str:
        return self._write(self.data / "evil2")

    def client_writes_up(self) -> str:
        return self._write(f"{Path.cwd()}/{self.facts['up']}/evil3")

    def client_writes_through_a_link(self) -> str:
        return self._write(self._link("out.txt", self.data / "evil4"))

    def client_writes_through_a_linked_folder(self) -> str:
        return self._write(self._link("out", self.data) / "evil5")

    def client_writes_by_a_process(self) -> str:
        return self._write(f"/proc/self/root{self.data}/evil6")

    def terminal_reads_a_token(self) -> str:
        return self._run(f"cat '{self.data}/local.token'")

    def terminal_in_the_data_folder(self) -> str:
        return self._run("cat local.token", cwd=str(self.data))

    def terminal_in_a_linked_folder(self) -> str:
        return self._run("cat local.token", cwd=str(self._link("work", self.data)))

    def terminal_finds_secrets(self) -> str:
        return self._run(f"printenv {self.facts.get('variable', 'SECRET_OF_THE_OPERATOR')}")

    def terminal_preloads_a_library(self) -> str:
        """Into what wraps the command, which has more rights. `true` is no Python and loads none itself."""
        loaded = Path.cwd() / "loaded"
        (Path.cwd() / "sitecustomize.py").write_text(f"open({str(loaded)!r}, 'w').write('loaded')")
        env = [{"name": "PYTHONPATH", "value": str(Path.cwd())}]
        self._run(self.facts.get("command", "true"), env=env)
        return loaded.read_text()

    def terminal_signals_the_server(self) -> str:
        return self._run(f"kill -0 {self.facts['server']} && echo can")

    def terminal_reads_anothers_home(self) -> str:
        return self._run(f"cat '{self.facts['other_secret']}'")

    def operators_socket(self) -> str:
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(str(self.data / "operator.sock"))
            end.sendall(b"GET /admin/tokens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = end.makefile("rb").read().decode()
        return answer if answer.split()[1] == "200" else ""

    def _read(self, path: Path | str) -> str:
        return str(self.client.ask("fs/read_text_file", path=str(path)))

    def _write(self, path: Path | str) -> str:
        self.client.ask("fs/write_text_file", path=str(path), content="x")
        return "written"

    def _run(self, command: str, **more: Any) -> str:
        """What a command prints that the server runs, unless it fails."""
        name = self.client.request("terminal/create", command=command, **more)["terminalId"]
        try:
            end = self.client.request("terminal/wait_for_exit", terminalId=name)
            said = str(self.client.request("terminal/output", terminalId=name)["output"])
        finally:
            self.client.request("terminal/release", terminalId=name)
        if end.get("exitCode") != 0:
            raise PermissionError(said or json.dumps(end))
        return said.strip()

    def _link(self, name: str, aim: Path | str) -> Path:
        link = Path.cwd() / name
        link.unlink(missing_ok=True)
        link.symlink_to(aim)
        return link

    def _plant(self, path: Path, trap: Any) -> None:
        """The trap, or a plain file where the facts say so."""
        if self.facts.get("plain"):
            path.write_text("plain")
        else:
            trap(path)
