"""Planted bugs of several nodes: fences, leases and what one node tells another."""

from proofs.kit.source import Change
from proofs.planted import SRC, Bug

CAUGHT = "prove nodes --size 10 --seed 7"
LEASES = f"{SRC}/core/rules/leases.py"


def _node(name: str, *changes: Change, caught: str = CAUGHT) -> Bug:
    return Bug(f"nodes: {name}", caught, changes)


NODE_BUGS = (
    _node(
        "whatever a node writes counts that was given up",
        Change(
            f"{SRC}/stores/sqlite/tx.py",
            "        if fence is not None and fence != current:\n",
            "        if fence is not None and fence < 0:\n",
        ),
    ),
    _node(
        "whoever is asked runs the turn",
        Change(LEASES, "    return session.holder not in (None, node) and view", "    return False and view"),
        Change(
            f"{SRC}/core/running/membership.py",
            "        return holder is not None and holder != self.node and holder in self._living\n",
            "        return False\n",
        ),
        caught="tests/cluster/test_nodes.py -k any_node_answers",
    ),
    _node(
        "nobody takes over what a dead node has left",
        Change(f"{SRC}/core/running/membership.py", "        return bool(dead)\n", "        return False\n"),
    ),
)
