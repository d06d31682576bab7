"""Three nodes, their Postgres and their proxy: what the files of `deploy/nodes` promise together."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped] # no stubs, and one call

from clawdforge.lifetime import LAST_SECS
from clawdforge.settings import load_settings
from clawdforge.stores.postgres.migrations import OLDEST

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "nodes"
NODES: Final = ("node1", "node2", "node3")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yml").read_text())
    found: dict[str, Any] = content["services"]
    assert set(found) == {"postgres", "proxy", *NODES}
    return found


def settings_of(service: dict[str, Any]) -> dict[str, str]:
    """With what compose puts in the place of its own variables."""
    values = {name: re.sub(r"\$\{\w+(?::-([^}]*)|[^}]*)\}", r"\1", value) for name, value in service.items()}
    return {name: value for name, value in values.items() if name.startswith("CLAWDFORGE_")}


def test_it_follows_the_schema_of_its_format() -> None:
    check = Path(sys.executable).parent / "check-jsonschema"
    command = [str(check), "--builtin-schema", "vendor.compose-spec", str(FOLDER / "compose.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_node_has_settings_time_and_a_folder_of_its_own(services: dict[str, Any]) -> None:
    folders = set()
    for name in NODES:
        settings = load_settings(settings_of(services[name]["environment"]))
        assert settings.database_url is not None
        assert set(NODES) <= set(settings.allowed_hosts)
        assert int(services[name]["stop_grace_period"][:-1]) > settings.stop_grace_secs + LAST_SECS
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["depends_on"]["postgres"]["condition"] == "service_healthy"
        assert "ports" not in services[name]
        folders |= {volume.partition(":")[0] for volume in services[name]["volumes"]}
    assert len(folders) == 2 * len(NODES)


def test_the_proxy_knows_the_nodes_and_only_they_know_postgres(services: dict[str, Any]) -> None:
    proxied = re.findall(r"\{\$CLAWDFORGE_NODES:([^}]*)\}", (FOLDER / "Caddyfile").read_text())
    assert proxied == [" ".join(f"{name}:8800" for name in NODES)]
    assert services["proxy"]["networks"] == ["callers"]
    assert services["postgres"]["networks"] == ["rows"]
    assert all(port.startswith("127.0.0.1:") for port in services["proxy"]["ports"])
    assert int(services["postgres"]["image"].partition(":")[2]) >= OLDEST


def test_no_secret_has_a_default(services: dict[str, Any]) -> None:
    for name in ("POSTGRES_PASSWORD", "CLAWDFORGE_ADMIN_TOKEN"):
        uses = re.findall(rf"\$\{{{name}([^}}]*)\}}", str(services))
        assert uses
        assert all(use.startswith(":?") for use in uses)
