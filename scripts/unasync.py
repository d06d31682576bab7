"""Makes the blocking client from the awaiting one: `python scripts/unasync.py [--check]`."""  # noqa: INP001 - a script, not a package

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[1] / "src" / "clawdforge" / "client"
SOURCE, TARGET = CLIENT / "_async", CLIENT / "_sync"

WORDS = {
    r"\basync (def|with|for)\b": r"\1",
    r"\bawait ": "",
    r"\bAsyncGenerator\[(\w+), None\]": r"Generator[\1, None, None]",
    r"\bAsync([A-Z]\w*)": r"\1",
    r"\b_async_waits\b": "_waits",
    r"\basynccontextmanager\b": "contextmanager",
    r"\b__a(enter|exit|iter)__\b": r"__\1__",
    r"\b__anext__\b": "__next__",
    r"\bStopAsyncIteration\b": "StopIteration",
    r"\ba(close|read)\(": r"\1(",
    r"\baiter_bytes\(": "iter_bytes(",
    r"\b_async\b": "_sync",
    r"\[(\w+) for \1 in rows\]": "list(rows)",
    r"by all its tasks": "by all its threads",
}

HEADING = '"""The client that blocks: made from `_async` by `scripts/unasync.py`; change that one."""\n'


def convert(text: str) -> str:
    """Blocking source from awaiting source, before formatting."""
    for pattern, replacement in WORDS.items():
        text = re.sub(pattern, replacement, text)
    return text


def tidy(text: str, path: Path) -> str:
    """Imports sorted and lines broken as the project does it."""
    ours = 'lint.isort.known-first-party=["clawdforge"]'
    fix = ["check", "--fix-only", "--unsafe-fixes", "-q", "--select", "I,F401,UP028,C419", "--config", ours]
    for command in (fix, ["format", "-q"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = ran.stdout
    return text


def made() -> dict[Path, str]:
    """Every file of the blocking client as it should be."""
    return {
        TARGET / source.name: tidy(convert(source.read_text()), TARGET / source.name)
        for source in sorted(SOURCE.glob("*.py"))
    } | {TARGET / "__init__.py": HEADING}


def stale() -> list[Path]:
    """Files that are not what they should be, or should not be there."""
    wanted = made()
    there = {path: path.read_text() for path in TARGET.glob("*.py")}
    return sorted(path for path in wanted.keys() | there.keys() if wanted.get(path) != there.get(path))


def main() -> int:
    if "--check" in sys.argv[1:]:
        for path in stale():
            sys.stderr.write(f"{path.name} does not follow from _async: run python scripts/unasync.py\n")
        return 1 if stale() else 0
    TARGET.mkdir(exist_ok=True)
    for path, text in made().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
