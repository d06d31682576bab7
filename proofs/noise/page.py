"""The recorded figures as the table of `docs/explain/neighbours.md`."""

import json
from typing import Any

from proofs.kit.report import RESULTS
from proofs.kit.server import ROOT
from proofs.kit.table import put_table
from proofs.noise.quiet import KINDS

PAGE = ROOT / "docs" / "explain" / "neighbours.md"
HEAD = (
    "| noise | what it is | GET, ms | turn, ms | stream, ms | memory, MiB | stolen, % |",
    "|---|---|---|---|---|---|---|",
)
NOT_YET = "| not recorded yet | `./scripts/prove noise --record` | | | | | |"


def table() -> str:
    path = RESULTS / "noise.json"
    if not path.exists():
        return "\n".join([*HEAD, NOT_YET])
    found: dict[str, Any] = json.loads(path.read_text())
    rows = [_row(row) for row in found["figures"]["rows"]]
    return "\n".join([*HEAD, *rows])


def _row(row: dict[str, Any]) -> str:
    times = (f"{row[kind]['alone']:g} → {row[kind]['beside']:g}" if kind in row else "" for kind in KINDS)
    return f"| {row['way']} | {row['story']} | {' | '.join(times)} | +{row['mib']} | {row['stolen']:g} |"


def write_page() -> None:
    PAGE.write_text(put_table(PAGE.read_text(), table()))
