"""The server on a data folder: found by its lock, or started in the background when nobody holds it."""

import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from clawdforge.client._environment import find_changes, remember
from clawdforge.client._fetch import fetch
from clawdforge.client.errors import NoServerKnown, ServerNotStarted
from clawdforge.wire.local import ENV_DATA_DIR, ENV_TOKEN, ENV_URL, LOCK_FILE

IDLE_EXIT_SECS: Final = 600
START_SECS: Final = 30.0
LOOK_SECS: Final = 0.02
LOG_FILE: Final = "server.log"
LOG_BYTES: Final = 8 * 1024 * 1024
ENV_PORT: Final = "CLAWDFORGE_PORT"
ENV_LOG: Final = "CLAWDFORGE_LOG_FILE"


def ensure_server(
    folder: Path, say: Callable[[str], None], meanwhile: Callable[[], None] = lambda: None
) -> str:
    """The address of the folder's server. One is started when there is none; `say` is told so.

    It takes a second to start. `meanwhile` is called then.
    """
    holder = read_holder(folder)
    if holder is not None:
        url = _wait_for_holder(folder)
        if url:
            _tell_changes(folder, say)
            return url
    return start_server(folder, say, meanwhile)


def _tell_changes(folder: Path, say: Callable[[str], None]) -> None:
    """To a person, whose new key or newly installed agent the server does not have."""
    changed = find_changes(folder, (read_holder(folder) or {}).get("pid"), os.environ)
    if changed and sys.stderr.isatty():
        say(
            f"the server in the background was started before this changed: {', '.join(changed)};"
            " renew it with `clawdforge server restart`"
        )


def read_holder(folder: Path) -> dict[str, object] | None:
    """What the lock says of the server that holds the folder now; None when nobody does."""
    try:
        handle = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            noted = json.loads(os.pread(handle, 4096, 0))
        except ValueError:
            noted = None
        return noted if isinstance(noted, dict) else {}
    finally:
        os.close(handle)
    return None


def _wait_for_holder(folder: Path) -> str | None:
    """Its address once it listens: it may be about to start. None when it has let go of the folder."""
    end = time.monotonic() + START_SECS
    while time.monotonic() < end:
        holder = read_holder(folder)
        if holder is None:
            return None
        url = holder.get("url")
        if isinstance(url, str) and url and _is_listening(url):
            return url
        time.sleep(LOOK_SECS)
    raise ServerNotStarted(
        f"a server holds {folder} but does not answer; read its log, or stop it and try again",
    )


def _is_listening(url: str) -> bool:
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), timeout=2).close()
    except OSError:
        return False
    return True


def start_server(
    folder: Path, say: Callable[[str], None], meanwhile: Callable[[], None] = lambda: None
) -> str:
    """Start one, and wait for whoever wins: two commands at once end with one server."""
    command = [sys.executable, "-P", "-m", "clawdforge", "serve", "--idle-exit", str(IDLE_EXIT_SECS)]
    command += ["--data-dir", str(folder)]
    # Any port will do, as long as nobody has asked for one: clients read it in the lock.
    command += [] if os.environ.get(ENV_PORT) else ["--port", "0"]
    env = {name: value for name, value in os.environ.items() if name not in (ENV_URL, ENV_TOKEN)}
    env.setdefault(ENV_LOG, str(folder / LOG_FILE))  # so that it is renamed when it is full
    log = _open_log(folder)
    try:
        began = os.fstat(log).st_size
        process = subprocess.Popen(
            command,
            env=env,
            cwd=folder,  # not the project: a folder that somebody cloned must not set up our server
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError as error:  # an interpreter inside another program may not know its own file
        raise ServerNotStarted(
            f"cannot start a server with {sys.executable!r} ({error.strerror}); "
            "start one yourself with `clawdforge serve`"
        ) from None
    finally:
        os.close(log)
    meanwhile()
    end = time.monotonic() + START_SECS
    while time.monotonic() < end:
        has_ended = process.poll() is not None  # first: whoever made it give up holds the folder by now
        holder = read_holder(folder)
        url = holder.get("url") if holder else None
        if holder and isinstance(url, str) and url and _is_ready(url):
            if holder.get("pid") == process.pid:
                remember(folder, process.pid, os.environ)
                # Whoever started it reaps it, if it lives longer than its server does.
                threading.Thread(target=process.wait, daemon=True).start()
                say(f"started a server on {folder} in the background ({url}); it stops by itself when idle")
            return url
        if has_ended and holder is None:
            raise ServerNotStarted(
                f"the server did not start: {_read_tail(folder / LOG_FILE, began)}\n"
                f"The whole log is in {folder / LOG_FILE}.",
            )
        time.sleep(LOOK_SECS)
    raise ServerNotStarted(
        f"the server did not become ready within {START_SECS:g} s; its log is in {folder / LOG_FILE}",
    )


def _open_log(folder: Path) -> int:
    path = folder / LOG_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(folder / f"{LOG_FILE}.1")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(handle, 0o600)
    except OSError as error:
        raise NoServerKnown(
            f"cannot write in the data folder {folder} ({error.strerror}); "
            f"name another one with --data-dir or {ENV_DATA_DIR}"
        ) from None
    return handle


def _is_ready(url: str) -> bool:
    try:
        return fetch(url, "", "/readyz", timeout=2)[0] == 200
    except (OSError, HTTPException):
        return False


def _read_tail(path: Path, began: int) -> str:
    with path.open("rb") as file:
        file.seek(began)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-5:]).removeprefix("clawdforge: ") or "it said nothing"
