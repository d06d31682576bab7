"""The recorded figures as a table for people."""

import json
from typing import Any

from proofs.kit.report import RESULTS


def table() -> str:
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        found: dict[str, Any] = json.loads(path.read_text())
        shown = {name: value for name, value in found["figures"].items() if name != "caught_by"}
        figures = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
        held = "0" if not found["violations"] else f"**{found['violations']}**"
        when = f"{found['date']}, `{found['commit']}`, {found['seconds']} s"
        rows.append(f"| `{found['command']}` | {held} | {figures} | {when} |")
    return "\n".join(["| command | violations | figures | when |", "|---|---|---|---|", *rows])
