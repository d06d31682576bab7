"""Nodes, their duties and their wishes. Only one server uses a file, so these tables are empty there."""

from clawdforge.core.models.nodes import CodeRow, NodeRow, WishRow
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.nodes import NodeState


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

    def sessions_to_leave(self, node: str) -> list[tuple[str, str]]:
        rows = self._db.rows(self._q.nodes["sessions_to_leave"], {"node": node})
        return [(str(app), str(session_id)) for app, session_id in rows]

    def has_other_folders(self, folder: str) -> bool:
        return self._db.row(self._q.nodes["has_other_folders"], {"folder": folder}) is not None

    def sessions_to_run(self, node: str) -> list[tuple[str, str]]:
        rows = self._db.rows(self._q.nodes["sessions_to_run"], {"node": node})
        return [(str(app), str(session_id)) for app, session_id in rows]

    def held_counts(self) -> dict[str, int]:
        return {str(node): int(count) for node, count in self._db.rows(self._q.nodes["held_counts"], {})}

    def running_counts(self) -> dict[str, int]:
        return {str(node): int(count) for node, count in self._db.rows(self._q.nodes["running_counts"], {})}

    def who_does(self, duty: str) -> str | None:
        row = self._db.row(self._q.nodes["who_does"], {"name": duty})
        return None if row is None else str(row[0])

    def has_wishes(self, node: str) -> bool:
        return self._db.row(self._q.nodes["has_wishes"], {"node": node}) is not None

    def login_code(self, digest: bytes) -> CodeRow | None:
        row = self._db.row(self._q.nodes["login_code"], {"hash": digest})
        return None if row is None else self._q.code.read(row)

    def login_codes_of(self, token_id: str) -> list[bytes]:
        rows = self._db.rows(self._q.nodes["login_codes_of"], {"token": token_id})
        return [bytes(digest) for (digest,) in rows]


class NodeChanges(NodeRows):
    """What can be changed for everybody."""

    def add_node(self, row: NodeRow) -> None:
        self._run("bury_folder", folder=row.folder)
        self._db.run(self._q.node.insert, self._q.node.values(row))

    def beat(self, node: str, tells: Json | None = None) -> bool:
        text = None if tells is None else self._q.node.write({"tells": tells})["tells"]
        return self._run("beat", node=node, tells=text) > 0

    def declare_dead(self, node: str, beat: int) -> bool:
        is_new = self._run("declare_dead", node=node, beat=beat) > 0
        if is_new:
            self._run("forget_wishes", node=node)
        return is_new

    def drain(self, node: str, *, is_over: bool = False) -> bool:
        state = NodeState.UP if is_over else NodeState.DRAINING
        return self._run("drain", node=node, state=state.value) > 0

    def remove_node(self, node: str) -> None:
        self._run("forget_wishes", node=node)
        self._run("remove_node", node=node)

    def take_duty(self, name: str, node: str) -> bool:
        self._db.run(self._q.nodes["take_duty"], {"name": name, "node": node})
        return self.who_does(name) == node

    def add_wish(self, row: WishRow) -> None:
        self._db.run(self._q.wish.insert, self._q.wish.values(row))

    def take_wishes(self, node: str) -> list[WishRow]:
        found = [self._q.wish.read(row) for row in self._db.rows(self._q.nodes["wishes"], {"node": node})]
        if found:
            self._run("forget_wishes", node=node)
        return found

    def add_login_code(self, row: CodeRow) -> None:
        self._db.run(self._q.code.insert, self._q.code.values(row))

    def take_login_code(self, digest: bytes) -> CodeRow | None:
        found = self.login_code(digest)
        self._run("remove_login_code", hash=digest)
        return found

    def forget_login_codes(self, before: Micros) -> None:
        self._run("forget_login_codes", before=before)

    def _run(self, name: str, /, **params: Value) -> int:
        return self._db.run(self._q.nodes[name], params)
