"""The recorded figures as tables for people, which `proofs/README.md` carries."""

import json
from typing import Any

from proofs.kit.report import RESULTS
from proofs.kit.server import ROOT

README = ROOT / "proofs" / "README.md"
HEAD = ("| command | violations | figures | when |", "|---|---|---|---|")
BUGS_HEAD = ("| planted bug | what catches it |", "|---|---|")


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


def bugs_table() -> str:
    found = json.loads((RESULTS / "teeth.json").read_text())["figures"]["caught_by"]
    pairs = (row.rpartition(": ") for row in found.split("; "))
    return "\n".join([*BUGS_HEAD, *(f"| {name} | `{how}` |" for name, _, how in pairs)])


def put_table(text: str, new: str) -> str:
    """The page with this table in place of the one that has the same head."""
    before, _, rest = text.partition(new.partition("\n")[0])
    _, _, after = rest.partition("\n\n")
    return f"{before}{new}\n\n{after}"


def with_tables(text: str) -> str:
    """The page with the tables as they are recorded now."""
    return put_table(put_table(text, table()), bugs_table())


def write_tables() -> None:
    README.write_text(with_tables(README.read_text()))
