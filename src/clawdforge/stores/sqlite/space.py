"""Gives the space of deleted rows back to the file system, a few pages at a time."""

import logging
from typing import Final

import apsw

from clawdforge.stores.sqlite.connection import DISK_ERRORS

log = logging.getLogger(__name__)
BYTES_AT_ONCE: Final = 128 << 10
SPARE_BYTES: Final = 8 << 20  # stay: what comes next takes them without growing the file
SPARE_PART: Final = 10  # and a tenth of the file
INCREMENTAL: Final = 2
REWRITTEN_BYTES: Final = 64 << 20  # rewriting a larger file would hold up the start


def give_back(connection: apsw.Connection) -> bool:
    """Cut some free pages off the end of the file. True when there are few, or the file cannot shrink."""
    if connection.pragma("auto_vacuum") != INCREMENTAL or not _has_spare(connection):
        return True
    pages = BYTES_AT_ONCE // int(connection.pragma("page_size"))
    connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
    return not _has_spare(connection)


def allow_shrinking(connection: apsw.Connection) -> None:
    """Rewrite a database that was made before files could shrink, unless that takes long or fails."""
    if connection.pragma("auto_vacuum") == INCREMENTAL or _bytes(connection, "page_count") > REWRITTEN_BYTES:
        return
    connection.pragma("auto_vacuum", "incremental")
    try:
        connection.execute("VACUUM")
    except DISK_ERRORS as error:
        log.warning("the database cannot give space back: %s; the next start tries again", error)


def _has_spare(connection: apsw.Connection) -> bool:
    free = _bytes(connection, "freelist_count")
    return free > SPARE_BYTES and free * SPARE_PART > _bytes(connection, "page_count")


def _bytes(connection: apsw.Connection, pages: str) -> int:
    return int(connection.pragma(pages)) * int(connection.pragma("page_size"))
