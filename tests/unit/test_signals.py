"""What nodes tell each other fits into notifications, of which Postgres takes 8,000 bytes."""

from collections.abc import Iterable

import orjson

from clawdforge.core.ids import new_id
from clawdforge.core.models.rows import Commit
from clawdforge.stores.postgres.signals import Signals


def hear(signals: Signals, texts: Iterable[bytes]) -> None:
    for text in texts:
        signals._on_notified(None, 0, "", text.decode())


async def test_what_does_not_fit_into_one_notification_is_told_in_several() -> None:
    told: list[Commit] = []
    calls: list[tuple[str, str]] = []
    words: list[str] = []
    sender = Signals("", lambda *_: None)
    receiver = Signals("", lambda commits, _: told.extend(commits))
    receiver._node = node = new_id()
    receiver.listen(lambda app, session: calls.append((app, session)))
    receiver.heed(words.append)
    wanted = [("a" * 64, new_id()) for _ in range(500)]
    sender._commits.update(dict.fromkeys(wanted))
    for app, session in wanted:
        sender.tell(node, app, session)
    sender.announce("tokens")
    found = sender._take()
    texts = [orjson.dumps({"n": new_id(), "k": 10**9, **parts}) for parts in found]
    assert len(texts) > 2
    assert max(map(len, texts)) < 8000
    hear(receiver, texts)
    assert [(one.app, one.session_id) for one in told] == wanted
    assert (calls, words) == (wanted, ["tokens"])
    assert sender._take() == [], "once"
