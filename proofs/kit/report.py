"""What a proof found: figures, violations, and where, when and with which seed it ran."""

import json
import os
import platform
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proofs.kit.server import ROOT

RESULTS = ROOT / "proofs" / "results"
SHOWN = 20


@dataclass
class Run:
    """One run of one proof."""

    name: str
    seed: int
    size: int
    short: bool
    folder: Path
    source: Path
    only: tuple[str, ...] = ()
    """Words that choose a part of a proof by name, where it has named parts."""
    workers: int = 1
    """Processes that share the work, where it can be shared; the result is the same."""
    began: float = field(default_factory=time.monotonic)
    figures: dict[str, Any] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    _said: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def check(self, good: bool, what: str) -> bool:
        if not good:
            self.violate(what)
        return good

    def violate(self, what: str) -> None:
        self.violations.append(what)
        if len(self.violations) <= SHOWN:
            print(f"  RED {what}", flush=True)

    def progress(self, what: str, every: float = 10.0) -> None:
        now = time.monotonic()
        if now - self._said >= every:
            self._said = now
            print(f"  {now - self.began:6.0f} s  {what}", flush=True)

    def figure(self, **figures: Any) -> None:
        self.figures |= figures

    def summary(self) -> dict[str, Any]:
        return {
            "proof": self.name,
            "form": "short" if self.short else "full",
            "size": self.size,
            "seed": self.seed,
            "command": self._command(),
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "commit": commit(self.source),
            "machine": machine(),
            "seconds": round(time.monotonic() - self.began),
            "violations": len(self.violations),
            "figures": self.figures,
        }

    def _command(self) -> str:
        parts = "".join(f' --only "{word}"' for word in self.only)
        return f"./scripts/prove {self.name} --seed {self.seed} --size {self.size}{parts}"

    def print_summary(self) -> None:
        for name, value in self.figures.items():
            if isinstance(value, list):  # a table of its own
                continue
            print(f"  {name.replace('_', ' '):44} {value}")
        verdict = "holds" if not self.violations else f"BROKEN, {len(self.violations)} violations"
        spent = time.monotonic() - self.began
        print(f"{self.name}: {verdict}  (seed {self.seed}, size {self.size}, {spent:.0f} s)", flush=True)

    def record(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        path.write_text(json.dumps(self.summary(), indent=1) + "\n")


def commit(source: Path) -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=source, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def machine() -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") / 2**30
    return (
        f"{os.cpu_count()} cores {platform.machine()}, {memory:.0f} GiB, "
        f"Linux {platform.release().split('-')[0]}, Python {sys.version.split()[0]}"
    )
