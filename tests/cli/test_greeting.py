"""What a server says when it has started is enough to go on with."""

import subprocess
from pathlib import Path

from tests.api.harness import Server, until
from tests.needs import needs


@needs("curl")
def test_the_lines_that_it_shows_work_as_they_are(tmp_path: Path) -> None:
    server = Server(tmp_path / "a folder's data")
    try:
        shown = until(lambda: server.log_text.partition("in another terminal:\n")[2], "the greeting")
        lines = [line for line in shown.splitlines() if line.startswith("  ")]
        done = subprocess.run(
            ["sh", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=60, check=True
        )
    finally:
        server.stop()
    assert "event: text" in done.stdout, done
    assert "event: turn.ended" in done.stdout
    assert '"outcome":"completed"' in done.stdout
