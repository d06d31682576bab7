"""Planted bugs of several nodes: who holds a session, and who takes over. Fences are in `planted.py`."""

from proofs.kit.source import Change
from proofs.planted import SRC, Bug

LEASES = f"{SRC}/core/rules/leases.py"


def _node(name: str, *changes: Change, caught: str) -> Bug:
    return Bug(f"nodes: {name}", caught, changes)


NODE_BUGS = (
    _node(
        "whoever is asked runs the turn",
        Change(LEASES, "    return session.holder not in (None, node) and view", "    return False and view"),
        Change(LEASES, "    return session.folder is not None and view", "    return False and view"),
        Change(
            f"{SRC}/core/running/membership.py",
            "            if node is not None and node != self.node and node in self._living:\n",
            "            if node is not None and node != self.node and node not in self._living:\n",
        ),
        caught="tests/cluster/test_nodes.py -k any_node_answers",
    ),
    _node(
        "nobody takes over what a dead node has left",
        Change(
            f"{SRC}/parts.py",
            "    taken = await recovery.end_interrupted_turns()\n    await recovery.settle",
            "    taken = 0\n    await recovery.settle",
        ),
        caught="tests/cluster/test_nodes.py -k killed_node",
    ),
)
