"""Adds entries to the audit: each has the next number and a hash over the one before it.

It runs inside a transaction, so entries are added one at a time.
"""

from clawdforge.core.models.rows import AuditBase, AuditRow
from clawdforge.core.rules.audit_chain import entry_hash
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.base import Json, Micros


def read_base(db: Statements) -> AuditBase:
    """The last entry that was archived."""
    row = db.row(db.queries.system["audit_base"], {})
    return AuditBase() if row is None else AuditBase(*row)


def read_head(db: Statements) -> AuditBase:
    """The last entry."""
    row = db.row(db.queries.system["audit_head"], {})
    return read_base(db) if row is None else AuditBase(*row)


def add_entry(
    db: Statements,
    head: AuditBase,
    app: str,
    session_id: str | None,
    event: str,
    at: Micros,
    details: Json,
) -> AuditBase:
    """Add an entry after the last one; then it is the last."""
    number, prev = head
    digest = entry_hash(
        prev, number=number + 1, app_name=app, session_id=session_id, event=event, at=at, details=details
    )
    row = AuditRow(
        number=number + 1,
        app_name=app,
        session_id=session_id,
        event=event,
        at=at,
        details=details,
        hash=digest,
    )
    db.run(db.queries.audit.insert, db.queries.audit.values(row))
    return AuditBase(row.number, digest)
