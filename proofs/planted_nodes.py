"""Planted bugs of several nodes: who holds a session, who takes over, and what comes too late."""

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
    _node(
        "what was sent before a node was given up is still taken",
        Change(
            f"{SRC}/stores/sqlite/tx.py",
            "        if fence is not None and fence != current:",
            "        if fence is not None and fence > current:",
        ),
        caught="prove nodes --only late --size 2",
    ),
    _node(
        "whoever ends a dead node's turn does not claim its session",
        Change(
            f"{SRC}/core/rules/interrupted.py",
            "    tx.claim(session_id, node)\n    end_interrupted_turn(",
            "    end_interrupted_turn(",
        ),
        caught="prove leases --short",
    ),
    _node(
        "a node that was given up keeps the agents that are between two turns",
        Change(
            f"{SRC}/core/running/pool.py",
            "        for session_id in list(self._seats):\n            self.retire_agent(session_id)\n",
            "        for session_id in [one for one, seat in self._seats.items() if not seat.busy]:\n"
            "            self.retire_agent(session_id)\n",
        ),
        caught="tests/cluster/test_nodes.py -k frozen_node",
    ),
)
