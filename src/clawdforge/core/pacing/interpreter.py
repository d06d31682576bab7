"""Sets the interpreter up for short pauses, for as long as a server serves.

Measured on two cores with Python 3.11. A thread that computes (the writer, the parsing of a large body) gives
the interpreter up after 5 ms, and the event loop needs it several times for each request: a small exchange
took up to 29 ms beside such a thread, and 0.2 ms where threads change after 1 ms. And the collector looks
through all objects from time to time, while nothing else runs: 62 ms for the hundred thousand that a server
is made of, which never become garbage, and 20 to 50 ms again and again while somebody's answer of 20,000
messages is put together, since it looks at all of them whenever there are a quarter more.
"""

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SWITCH_SECS: Final = 0.001
COLLECTED: Final = (2000, 5, 1 << 30)
"""After how many new objects the youngest are looked through, after how many such looks those that survived
one, and all: by count never. The longest of these looks take 1 to 2 ms."""

COLLECT_SECS: Final = 20.0


@contextmanager
def short_pauses() -> Iterator[None]:
    before, collected = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_SECS)
    gc.set_threshold(*COLLECTED)
    gc.freeze()  # what is there now is no longer looked through
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*collected)
        sys.setswitchinterval(before)


async def collect_now_and_then(every: float = COLLECT_SECS) -> None:
    """Look through all objects now and then, if anything has come to be old since the last time."""
    while True:
        await asyncio.sleep(every)
        if gc.get_count()[2]:
            gc.collect()
