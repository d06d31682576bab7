"""Settings of graphs that keep their checkpoints in a database: what does not fit together is refused."""

from typing import Any

import pytest

from clawdforge.settings import Settings

MAIN = "postgresql://forge:hush@db.lan/forge"
GIVEN = "postgresql://forge_graph:hush%2Fhush@db.lan/forge_graphs"
FITTING: dict[str, Any] = {
    "database_url": MAIN,
    "graphs_database_url": GIVEN,
    "agents": {"mine": {"command": "x", "checkpoints": "database"}},
}


def test_what_fits_together_is_taken() -> None:
    settings = Settings.model_validate(FITTING)
    assert settings.graphs_host == "db.lan:5432"
    assert {"hush", "hush/hush"} <= set(settings.database_secrets)
    assert "hush" not in repr(settings)
    six = GIVEN.replace("db.lan", "[fd00::7]:6543")
    assert Settings.model_validate({**FITTING, "graphs_database_url": six}).graphs_host == "[fd00::7]:6543"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"graphs_database_url": None}, "name that database in CLAWDFORGE_GRAPHS_DATABASE_URL"),
        ({"database_url": None}, "needs a database_url"),
        ({"agent_network": "none"}, 'needs network = "open" or "proxy", not none'),
        ({"graphs_database_url": GIVEN.replace("forge_graphs", "forge")}, "the server's own database"),
        ({"graphs_database_url": "postgresql://forge_graph@/x?host=/run"}, "not a socket"),
        ({"graphs_database_url": "postgresql://db.lan/forge_graphs"}, "a role, and a host"),
        ({"graphs_database_url": GIVEN.replace("db.lan", "db.lan:hush")}, "its port as a number"),
    ],
)
def test_what_does_not_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match="validation error") as refused:
        Settings.model_validate({**FITTING, **changes})
    (error,) = refused.value.errors()  # type: ignore[attr-defined] # pydantic's
    assert words in error["msg"]
    assert "hush" not in error["msg"]
