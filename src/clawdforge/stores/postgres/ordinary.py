"""What the ordinary jobs of a session read, asked for many sessions in one statement.

It is a function of the connection, made of the same statements that read one by one: it waits for the lock of
all writers first, and then sees what is committed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from clawdforge.stores.postgres.statements import MARKS
from clawdforge.stores.sqlite.event_pages import END
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.wire.disk import DiskForm

Key: TypeAlias = tuple[str, tuple[tuple[str, Any], ...]]
"""A statement and its parameters, in the order in which they are given."""
Found: TypeAlias = list[tuple[Any, ...]]

CONSTANTS: Final = {
    "app": "wanted.app",
    "session": "wanted.session",
    "holder": "wanted.session",
    "folder": "part0.folder",
    "policies": "NULL::text[]",
    "before": f"{END}::bigint",
}
FOLDER: Final = "folder"
SESSIONS_OWN: Final = frozenset({"session", "holder", FOLDER})
"""Parameters that differ from session to session."""

BOTH: Final = ("sessions", "session_heads")


@dataclass(frozen=True, slots=True)
class Part:
    """One of the statements, which finds a row or none, and the parameters by which it will be asked for."""

    sql: str
    width: int
    params: tuple[tuple[str, Any], ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Nothing:
    """One of the statements that mostly finds nothing; all is known then, and else it is asked by itself.

    By `names` of its parameters: of the others it finds nothing whatever they are.
    """

    sql: str
    names: tuple[str, ...]
    asked: str = ""

    @property
    def statement(self) -> str:
        """That shows whether there is nothing."""
        return self.asked or self.sql


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found for one session."""

    app: str
    session_id: str
    found: list[tuple[Part, tuple[Any, ...] | None]]
    """That of the session itself comes first."""
    nothing: list[Nothing]


class Bundle:
    """The statements that are asked together, under one name.

    What depends on nothing but the app is asked once for each app, however many of its sessions are meant.
    """

    def __init__(self, name: str, parts: Sequence[Part], nothings: Sequence[Nothing] = ()) -> None:
        self.name = name
        self._own = Group(
            [part for part in parts if _is_of_session(part.sql)],
            [one for one in nothings if _is_of_session(one.statement)],
        )
        self._shared = Group(
            [part for part in parts if not _is_of_session(part.sql)],
            [one for one in nothings if not _is_of_session(one.statement)],
            place=len(self._own.parts),
        )
        self.question = f"SELECT * FROM pg_temp.read_{name}($1, $2, $3)"  # noqa: S608 - our own names
        self.direct = self._select_one()

    @property
    def definition(self) -> str:
        """Statements that make the function: its rows have the types that the columns have."""
        columns = ", ".join(f"c{number}" for number in range(2 + self._own.width + self._shared.width))
        nobody = "unnest(ARRAY['']::text[], ARRAY['']::text[])"
        return (
            f"CREATE TEMP VIEW {self.name} ({columns}) AS {self._select(nobody)};\n"
            f"CREATE FUNCTION pg_temp.read_{self.name}(boolean, text[], text[])"
            f" RETURNS SETOF pg_temp.{self.name} LANGUAGE plpgsql AS $read$ BEGIN\n"
            "IF NOT $1 THEN PERFORM pg_temp.take_lock(); END IF;\n"
            f"RETURN QUERY {self._select('unnest($2, $3)')};\nEND $read$"
        )

    def read(self, row: tuple[Any, ...]) -> Answer:
        answer = Answer(row[0], row[1], [], [])
        self._own.read(row, 2, answer)
        self._shared.read(row, 2 + self._own.width, answer)
        return answer

    def _select_one(self) -> str:
        """For whoever only reads: of one session, so that nothing is asked twice."""
        columns = ", ".join(("wanted.app", "wanted.session", *self._own.columns, *self._shared.columns))
        wanted = "(SELECT $1::text, $2::text) AS wanted (app, session)"
        return f"SELECT {columns} FROM {wanted}{self._own.joins}{self._shared.joins}"  # noqa: S608

    def _select(self, wanted: str) -> str:
        own = ", ".join(("wanted.app", "wanted.session", *self._own.columns))
        if not self._shared.width:
            return f"SELECT {own} FROM {wanted} AS wanted (app, session){self._own.joins}"  # noqa: S608
        names = [f"a{number}" for number in range(self._shared.width)]
        apps = f"(SELECT DISTINCT app FROM {wanted} AS wanted (app, session)) AS wanted"  # noqa: S608
        return (
            f"WITH apps (app, {', '.join(names)}) AS MATERIALIZED (\n"
            f"SELECT wanted.app, {', '.join(self._shared.columns)} FROM {apps}{self._shared.joins})\n"
            f"SELECT {own}, {', '.join(f'apps.{name}' for name in names)}"
            f" FROM {wanted} AS wanted (app, session){self._own.joins}\nJOIN apps ON apps.app = wanted.app"
        )


class Group:
    """Statements of a bundle that are asked for the same thing; `place` is the number of the first."""

    def __init__(self, parts: Sequence[Part], nothings: Sequence[Nothing], place: int = 0) -> None:
        self.parts = parts
        self.nothings = nothings
        self.width = sum(1 + part.width for part in parts) + len(nothings)
        self.columns = [f"part{number}.*" for number, _ in enumerate(parts, place)]
        self.columns += [f"NOT EXISTS ({_ask(one.statement)})" for one in nothings]
        self.joins = "".join(_join(number, part.sql) for number, part in enumerate(parts, place))

    def read(self, row: tuple[Any, ...], place: int, answer: Answer) -> None:
        """Add what was found to the answer."""
        for part in self.parts:
            there, values = row[place], row[place + 1 : place + 1 + part.width]
            answer.found.append((part, values if there else None))
            place += 1 + part.width
        flags = zip(self.nothings, row[place : place + len(self.nothings)], strict=True)
        answer.nothing.extend(nothing for nothing, is_so in flags if is_so)


def _ask(sql: str) -> str:
    return MARKS.sub(lambda found: CONSTANTS[found[1]], sql)


def _join(number: int, sql: str) -> str:
    found = f"(SELECT 1, found.* FROM ({_ask(sql)}) AS found)"  # noqa: S608 - our own statements
    return f"\nLEFT JOIN LATERAL {found} AS part{number} ON true"


def _is_of_session(sql: str) -> bool:
    return not SESSIONS_OWN.isdisjoint(found[1] for found in MARKS.finditer(sql))


class Ordinary:
    """The bundles: for who only reads, for jobs that only append, for those that begin or end a turn."""

    def __init__(self, queries: Queries) -> None:
        view, tx, app, own = queries.view, queries.tx, ("app", None), ("session", None)
        self.state, self.whole = tx["state"], view["session"]
        application = Part(view["app"], len(queries.app.names), (app,))
        whole = Part(self.whole, len(queries.session.names), (app, own), BOTH)
        self.session = Bundle("whole", [whole, application])
        stored = Part(view["stored_bytes"], len(DiskForm), (app,), ("app_bytes",))
        state = Part(tx["state"], 2, (app, own), BOTH)
        self.light = Bundle("light", [state, application, stored])
        self.heavy = Bundle(
            "heavy",
            [
                whole,
                application,
                stored,
                state,
                Part(tx["next_seq"], 1, (app, own), ("sessions",)),
                Part(view["active_turn"], len(queries.turn.names), (app, own), ("turns",)),
                Part(view["turns_in_flight"], 1, (app,)),
                Part(view["count_queued"], 1, (app, own, ("policies", None)), ("turns",)),
                Part(view["pending_prompt"], 1, (app, own), ("messages",)),
                Part(view["last_spoken_turn"], 1, (app, own, ("before", END)), ("messages",)),
                Part(tx["last_message_id"], 1, (app,), ("messages",)),
                Part(queries.system["audit_head"], 2, (), ("session_events",)),
                Part(queries.nodes["node_with"], 1, ((FOLDER, None),)),
            ],
            [
                Nothing(view["pauses"], ("app",)),
                Nothing(view["endpoints"], ("app",)),
                Nothing(view["permissions_pending"], ("app", "session")),
                Nothing(view["budgets_for"], ("app",), view["budgets"]),
                Nothing(view["reservations"], ("app", "holder"), RESERVED),
            ],
        )


RESERVED: Final = "SELECT 1 FROM reservations WHERE app_name = :app AND holder_id = :holder"


def keys_of(answer: Answer, folder: str | None) -> Iterator[tuple[Key, Found, Part]]:
    """What is known from an answer, by the statements that would have asked for it."""
    values = {"app": answer.app, "session": answer.session_id, FOLDER: folder}
    for part, row in answer.found:
        params = tuple((name, values.get(name, value)) for name, value in part.params)
        yield (part.sql, params), [] if row is None else [row], part
