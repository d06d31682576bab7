"""Servers of one database notice where their settings differ."""

from typing import Any

import pytest

from clawdforge.settings.model import Settings
from clawdforge.settings.shared import digest_shared


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("blobs", "/mnt/blobs"),
        ("publish_bytes", 1000),
        ("graphs_database_url", "postgresql://graph:secret@db/graphs"),
        ("default_agent", "another"),
    ],
)
def test_what_all_servers_should_share_is_compared(name: str, value: Any) -> None:
    settings = Settings()
    one = digest_shared(settings, "token")
    other = digest_shared(settings.model_copy(update={name: value}), "token")
    assert {key for key in one if one[key] != other[key]} == {name}
    assert "secret" not in str(other)
