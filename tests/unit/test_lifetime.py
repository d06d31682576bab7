"""How long a stop may take when something does not end."""

import signal
import subprocess
import sys

from clawdforge.lifetime import AT_ONCE

STUCK = """
import asyncio, threading
from clawdforge.lifetime import Lifetime

async def main():
    lifetime = Lifetime(0.1)
    threading.Thread(target=threading.Event().wait).start()
    print("ready", flush=True)
    await lifetime.stopping.wait()

asyncio.run(main())
"""


def test_a_stop_that_a_thread_holds_up_ends_all_the_same() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            _, words = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == AT_ONCE
    assert "did not stop within 0.1 s" in words
