"""The recorded figures as a table for people, which `proofs/README.md` carries."""

import json
from typing import Any

from proofs.kit.report import RESULTS
from proofs.kit.server import ROOT

README = ROOT / "proofs" / "README.md"
HEAD = ("| command | violations | figures | when |", "|---|---|---|---|")


def table() -> str:
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        found: dict[str, Any] = json.loads(path.read_text())
        shown = {
            name: value
            for name, value in found["figures"].items()
            if name != "caught_by" and not isinstance(value, list)
        }
        figures = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
        held = "0" if not found["violations"] else f"**{found['violations']}**"
        when = f"{found['date']}, `{found['commit']}`, {found['seconds']} s"
        rows.append(f"| `{found['command']}` | {held} | {figures} | {when} |")
    return "\n".join([*HEAD, *rows])


def with_table(text: str) -> str:
    """The page with the table as it is recorded now."""
    before, _, rest = text.partition(HEAD[0])
    _, _, after = rest.partition("\n\n")
    return f"{before}{table()}\n\n{after}"


def write_table() -> None:
    README.write_text(with_table(README.read_text()))
