"""How a server starts: its folder and port first, then a look at its machine, beside all other imports."""

import asyncio
import contextlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from clawdforge import logs
from clawdforge.by_name import load
from clawdforge.drivers.processes.containment import harden_self
from clawdforge.folder_lock import FolderLock
from clawdforge.lacks import explain_lack
from clawdforge.lifetime import LAST_SECS, Lifetime
from clawdforge.listeners import bind_port, url_of
from clawdforge.machine import find_machine
from clawdforge.settings import Settings
from clawdforge.wire.errors import ForgeAPIError

PARTS: Final = "clawdforge.parts:open_parts"
SERVER: Final = "clawdforge.server:serve_parts"
"""Most of what a server is. To import it takes as long as the look at the machine, which mostly waits."""


def run(settings: Settings) -> int:
    """`serve` in an event loop of its own: Python's, which closes every descriptor once."""
    with asyncio.Runner() as runner:
        return runner.run(serve(settings))


async def serve(settings: Settings) -> int:
    """Run until a signal comes; the exit code."""
    os.umask(0o077)
    harden_self()
    try:
        _start_log(settings)
    except OSError as error:
        return _refuse(f"the log file {settings.log_file} cannot be written ({error.strerror}); name another")
    lifetime = Lifetime(settings.stop_grace_secs + LAST_SECS)
    async with contextlib.AsyncExitStack() as ends:
        try:
            lock = FolderLock.acquire(settings.data_dir, "", os.getpid())
            ends.callback(lock.release)
            listener = bind_port(settings)
            ends.callback(listener.close)
            url = url_of(settings, listener)
            looker = ends.enter_context(ThreadPoolExecutor(1, thread_name_prefix="looking at the machine"))
            machine = asyncio.wrap_future(looker.submit(find_machine, settings))
            looker.shutdown(wait=False)  # there is nothing else to look at
            serve_parts, open_parts = load(SERVER), load(PARTS)
            port = listener.getsockname()[1]
            parts = await ends.enter_async_context(open_parts(settings, url, port, machine))
        except ForgeAPIError as error:
            return _refuse(error.message)
        except OSError as error:
            return _refuse(explain_lack(error, settings.data_dir))
        await serve_parts(settings, parts, listener, lock, url, lifetime)
    return 0


def _start_log(settings: Settings) -> None:
    file = logs.open_file(settings.log_file, settings.log_file_bytes) if settings.log_file else None
    secrets = [settings.admin_token or "", *settings.database_secrets]
    logs.start(settings.log_level, secrets, handler=file)


def _refuse(message: str) -> int:
    """Say why there will be no server; the exit code."""
    sys.stderr.write(f"clawdforge: {message}\n")
    return 1
