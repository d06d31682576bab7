"""The recorded figures as a table for people."""

import json
from typing import Any

from proofs.kit.report import RESULTS


def table() -> str:
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        found: dict[str, Any] = json.loads(path.read_text())
        figures = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["figures"].items())
        held = "0" if not found["violations"] else f"**{found['violations']}**"
        rows.append(
            f"| `{found['command']}` | {held} | {figures} | {found['date']}, `{found['commit']}`, "
            f"{found['seconds']} s |"
        )
    return "\n".join(["| command | violations | figures | when |", "|---|---|---|---|", *rows])
