"""The chart: what it renders follows the schemas of Kubernetes, and fits the server and the image."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped] # no stubs, and two calls

from clawdforge.lifetime import LAST_SECS
from clawdforge.settings import load_settings
from tests.needs import CHART, needs

TOP: Final = Path(__file__).parents[2]
FOLDER: Final = TOP / "deploy" / "chart"
OLDEST: Final = "1.27"
NEWEST: Final = "1.34"
FULL: Final = (
    *("--set", "existingSecret=mine", "--set", "agentsSecret=keys", "--set", "ingress.enabled=true"),
    *(
        "--set",
        "ingress.className=nginx",
        "--set",
        "ingress.tlsSecret=cert",
        "--set",
        "storage.className=fast",
    ),
    *("--set", "settings.MAX_LIVE_AGENTS=7", "--set", "allowedHosts[0]=forge.lan"),
)
BARE: Final = (
    *("--set", "databaseUrl=postgresql://forge:hush@db/forge", "--set", "adminToken=quiet-words"),
    *("--set", "networkPolicy.enabled=false"),
)
pytestmark = needs("helm")
Found = dict[str, dict[str, Any]]


def helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CHART / "helm", *words], capture_output=True, text=True, check=False)


def render(*options: str, release: str = "forge") -> Found:
    done = helm("template", release, FOLDER, "--namespace", "agents", *options)
    assert done.returncode == 0, done.stderr
    return {f"{one['kind']} {one['metadata']['name']}": one for one in yaml.safe_load_all(done.stdout) if one}


def pod(found: Found) -> Any:
    return found["StatefulSet forge-clawdforge"]["spec"]["template"]["spec"]


def environment(found: Found) -> dict[str, Any]:
    (container,) = pod(found)["containers"]
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


@pytest.fixture(scope="module")
def full() -> Found:
    return render(*FULL)


def test_helm_has_nothing_to_say() -> None:
    done = helm("lint", "--strict", FOLDER, *FULL)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("options", [FULL, BARE], ids=["full", "bare"])
def test_it_follows_the_schemas_of_kubernetes(options: tuple[str, ...], version: str, tmp_path: Path) -> None:
    (rendered := tmp_path / "all.yaml").write_text(helm("template", "forge", FOLDER, *options).stdout)
    check = [str(CHART / "kubernetes-validate"), "--strict", "-k", version, str(rendered)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rendered.write_text(rendered.read_text().replace("terminationGracePeriodSeconds", "terminationGrace"))
    assert subprocess.run(check, capture_output=True, check=False).returncode != 0


def test_without_a_database_it_says_what_is_missing() -> None:
    done = helm("template", "forge", FOLDER)
    assert done.returncode != 0
    assert "name a Secret in existingSecret, or give databaseUrl" in done.stderr


def test_its_variables_are_settings(full: Found) -> None:
    env = environment(full)
    given = {name: str(value) for name, value in env.items() if isinstance(value, str)}
    settings = load_settings(given)
    assert settings.max_live_agents == 7
    assert {"forge-clawdforge.agents.svc", "forge.example.com", "forge.lan"} <= set(settings.allowed_hosts)
    assert {name for name, value in env.items() if isinstance(value, dict)} == {
        "CLAWDFORGE_DATABASE_URL",
        "CLAWDFORGE_ADMIN_TOKEN",
    }


def test_no_secret_stands_in_a_pod() -> None:
    found = render(*BARE)
    assert found["Secret forge-clawdforge"]["stringData"]["admin-token"] == "quiet-words"
    rest = {name: one for name, one in found.items() if not name.startswith("Secret")}
    assert "quiet-words" not in str(rest)
    assert "hush" not in str(rest)
    keys = environment(found)["CLAWDFORGE_DATABASE_URL"]["secretKeyRef"]
    assert keys == {"name": "forge-clawdforge", "key": "database-url"}


def test_a_node_has_time_to_drain(full: Found) -> None:
    env, spec = environment(full), pod(full)
    (container,) = spec["containers"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    grace = float(env["CLAWDFORGE_STOP_GRACE_SECS"])
    assert spec["terminationGracePeriodSeconds"] >= pause + grace + LAST_SECS


def test_only_readiness_depends_on_the_database(full: Found) -> None:
    (container,) = pod(full)["containers"]
    asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: one["path"] for name, one in asked.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    # The kubelet asks by the pod's address, which the server does not know as a name.
    assert all(one["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for one in asked.values())


def test_it_fits_the_image(full: Found) -> None:
    image = (TOP / "Dockerfile").read_text()
    spec = pod(full)
    (container,) = spec["containers"]
    assert [one["containerPort"] for one in container["ports"]] == [
        int(re.findall(r"EXPOSE (\d+)", image)[0])
    ]
    assert spec["securityContext"]["runAsUser"] == int(re.findall(r"^USER (\d+)", image, re.MULTILINE)[0])
    volumes = re.findall(r'"(/[^"]+)"', re.findall(r"^VOLUME (.*)$", image, re.MULTILINE)[0])
    assert [one["mountPath"] for one in container["volumeMounts"]] == volumes
    assert "requirements-image.lock" in image


def test_agents_in_it_cannot_speak_to_the_cluster(full: Found) -> None:
    spec = pod(full)
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    policy = full["NetworkPolicy forge-clawdforge"]["spec"]
    (outside,) = [one for rule in policy["egress"] for one in rule.get("to", ())]
    assert "169.254.0.0/16" in outside["ipBlock"]["except"]


def test_all_select_the_same_pods(full: Found) -> None:
    nodes = full["StatefulSet forge-clawdforge"]["spec"]
    wanted = nodes["selector"]["matchLabels"]
    assert wanted.items() <= nodes["template"]["metadata"]["labels"].items()
    assert full["PodDisruptionBudget forge-clawdforge"]["spec"]["selector"]["matchLabels"] == wanted
    assert full["NetworkPolicy forge-clawdforge"]["spec"]["podSelector"]["matchLabels"] == wanted
    for name in ("forge-clawdforge", "forge-clawdforge-nodes"):
        assert full[f"Service {name}"]["spec"]["selector"] == wanted
    assert nodes["serviceName"] == "forge-clawdforge-nodes"
    backend = full["Ingress forge-clawdforge"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": "forge-clawdforge", "port": {"name": "http"}}


def test_a_release_of_its_own_name_is_not_named_twice() -> None:
    assert "StatefulSet clawdforge" in render(*BARE, release="clawdforge")
