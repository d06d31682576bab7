"""Nodes, their duties and their wishes. Only one server uses a file, so these tables are empty there."""

from clawdforge.core.node_model import NodeRow, WishRow
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import Statements


class LeaseRows(OwnRows):
    """What one app can ask."""

    def is_alive(self, node: str) -> bool:
        return self._db.row(self._q.nodes["is_alive"], {"node": node}) is not None

    def node_with(self, folder: str) -> str | None:
        row = self._db.row(self._q.nodes["node_with"], {"folder": folder})
        return None if row is None else str(row[0])

    def folder_of(self, node: str) -> str | None:
        row = self._db.row(self._q.nodes["folder_of"], {"node": node})
        return None if row is None else str(row[0])


class NodeRows:
    """What can be read for everybody."""

    def __init__(self, db: Statements) -> None:
        self._db = db
        self._q = db.queries

    def nodes(self) -> list[NodeRow]:
        return [self._q.node.read(row) for row in self._db.rows(self._q.nodes["nodes"], {})]

    def cut_off_sessions(self) -> list[tuple[str, str]]:
        rows = self._db.rows(self._q.system["cut_off_sessions"], {})
        return [(str(app), str(session_id)) for app, session_id in rows]

    def held_sessions(self, node: str) -> list[tuple[str, str]]:
        rows = self._db.rows(self._q.nodes["held_sessions"], {"node": node})
        return [(str(app), str(session_id)) for app, session_id in rows]

    def has_other_folders(self, folder: str) -> bool:
        return self._db.row(self._q.nodes["has_other_folders"], {"folder": folder}) is not None

    def sessions_to_run(self, node: str) -> list[tuple[str, str]]:
        rows = self._db.rows(self._q.nodes["sessions_to_run"], {"node": node})
        return [(str(app), str(session_id)) for app, session_id in rows]

    def held_counts(self) -> dict[str, int]:
        return {str(node): int(count) for node, count in self._db.rows(self._q.nodes["held_counts"], {})}

    def who_does(self, duty: str) -> str | None:
        row = self._db.row(self._q.nodes["who_does"], {"name": duty})
        return None if row is None else str(row[0])

    def has_wishes(self, node: str) -> bool:
        return self._db.row(self._q.nodes["has_wishes"], {"node": node}) is not None


class NodeChanges(NodeRows):
    """What can be changed for everybody."""

    def add_node(self, row: NodeRow) -> None:
        self._run("bury_folder", folder=row.folder)
        self._db.run(self._q.node.insert, self._q.node.values(row))

    def beat(self, node: str) -> bool:
        return self._run("beat", node=node) > 0

    def declare_dead(self, node: str, beat: int) -> bool:
        is_new = self._run("declare_dead", node=node, beat=beat) > 0
        if is_new:
            self._run("forget_wishes", node=node)
        return is_new

    def remove_node(self, node: str) -> None:
        self._run("forget_wishes", node=node)
        self._run("remove_node", node=node)

    def take_duty(self, name: str, node: str) -> bool:
        self._db.run(self._q.nodes["take_duty"], {"name": name, "node": node})
        return self.who_does(name) == node

    def take_wishes(self, node: str) -> list[WishRow]:
        found = [self._q.wish.read(row) for row in self._db.rows(self._q.nodes["wishes"], {"node": node})]
        if found:
            self._run("forget_wishes", node=node)
        return found

    def _run(self, name: str, /, **params: Value) -> int:
        return self._db.run(self._q.nodes[name], params)
