"""The container recipe: what its files promise, since not every machine has an engine to build them."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml  # type: ignore[import-untyped] # no stubs, and one call
from pydantic import BaseModel, ConfigDict, StringConstraints

from clawdforge.lifetime import LAST_SECS
from clawdforge.settings import load_settings

TOP = Path(__file__).parent.parent.parent
Bind = Annotated[str, StringConstraints(pattern=r"^/[\w./-]+:/[\w./-]+(:ro)?$")]
Port = Annotated[str, StringConstraints(pattern=r"^127\.0\.0\.1:\d+:\d+$")]
Length = Annotated[str, StringConstraints(pattern=r"^\d+(ms|s|m|h)$")]


class Service(BaseModel):
    """The part of the compose format that we use, and no more."""

    model_config = ConfigDict(extra="forbid")

    build: str
    image: str
    restart: str
    ports: list[Port]
    environment: dict[str, str]
    volumes: list[Bind]
    stop_grace_period: Length
    security_opt: list[str]
    cap_drop: list[str]
    pids_limit: int


class Compose(BaseModel):
    model_config = ConfigDict(extra="forbid")

    services: dict[str, Service]


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (TOP / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines if line.strip()]


def all_of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


@pytest.fixture
def service() -> Service:
    document: Any = yaml.safe_load((TOP / "compose.yml").read_text())
    return Compose.model_validate(document).services["clawdforge"]


def test_the_image_has_acpx_and_claude_code() -> None:
    """S0-02."""
    installed = next(run for run in all_of("RUN") if "npm install -g" in run)
    assert "acpx@latest" in installed
    assert "@anthropic-ai/claude-code" in installed
    assert "@agentclientprotocol/claude-agent-acp" in installed


def test_the_server_is_not_root_and_is_watched() -> None:
    names = [name for name, _ in instructions()]
    assert all_of("USER")[-1] == "10001"
    assert names.index("USER") < names.index("CMD")
    assert not [name for name, _ in instructions()[names.index("USER") :] if name == "RUN"]
    (check,) = all_of("HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    assert command[0] == "python"
    compile(command[2], "healthcheck", "exec")
    assert "/readyz" in command[2]


def test_what_is_copied_is_there_and_nothing_else_is_sent() -> None:
    sent = {line[1:] for line in (TOP / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [shlex.split(rest)[:-1] for rest in all_of("COPY") if not rest.startswith("--from")]
    sources = {source for words in copied for source in words}
    assert sources == sent
    assert all((TOP / source).exists() for source in sources)


def test_its_variables_are_settings_and_it_starts_by_its_own_command() -> None:
    env = dict(re.findall(r"(\w+)=(\S+)", all_of("ENV")[0]))
    settings = load_settings({name: value for name, value in env.items() if name.startswith("CLAWDFORGE_")})
    assert (settings.host, settings.port, str(settings.data_dir)) == ("0.0.0.0", 8800, "/data")  # noqa: S104 - in a container
    assert json.loads(all_of("CMD")[0]) == ["clawdforge", "serve"]
    assert all_of("EXPOSE") == ["8800"]


def test_data_and_acpx_records_outlive_the_container(service: Service) -> None:
    """S0-03."""
    assert "/mnt/user/appdata/clawdforge/acpx-sessions:/root/.acpx/sessions" in service.volumes
    targets = [volume.split(":")[1] for volume in service.volumes]
    assert targets == json.loads(all_of("VOLUME")[0])
    home = re.search(r"--home-dir (\S+)", "".join(all_of("RUN")))
    assert home is not None
    assert f"{home[1]}/.acpx/sessions" in targets


def test_compose_gives_it_time_to_settle_and_no_port_to_strangers(service: Service) -> None:
    assert int(service.stop_grace_period[:-1]) > load_settings({}).stop_grace_secs + LAST_SECS
    assert service.ports == ["127.0.0.1:8800:8800"]
    unknown = [name for name in service.environment if name.startswith("CLAWDFORGE_")]
    load_settings(dict.fromkeys(unknown, ""))
    assert service.cap_drop == ["ALL"]


def test_no_program_in_it_gains_rights_and_system_calls_are_filtered(service: Service) -> None:
    assert "no-new-privileges:true" in service.security_opt
    assert "seccomp:./seccomp.json" in service.security_opt
    profile = json.loads((TOP / "seccomp.json").read_text())
    refused = {name for rule in profile["syscalls"] for name in rule["names"] if not rule.get("args")}
    assert refused >= {"bpf", "kexec_load", "init_module", "open_by_handle_at", "ptrace", "setns", "keyctl"}
    needed_by_bubblewrap = {"clone", "unshare", "mount", "umount2", "pivot_root", "prctl"}
    assert not refused & needed_by_bubblewrap


def test_the_digests_of_the_images_are_written_by_a_command(tmp_path: Path) -> None:
    """An engine is not on every machine, so a program that prints a digest stands for it."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(TOP / "scripts" / "images", tmp_path / "scripts")
    shutil.copy(TOP / "Dockerfile", tmp_path)
    digest = f"sha256:{'0123456789abcdef' * 4}"
    engine = tmp_path / "docker"
    engine.write_text(f"#!/bin/sh\necho {digest}\n")
    engine.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    for _ in range(2):  # the second run finds the digests of the first
        subprocess.run([tmp_path / "scripts" / "images"], env=env, check=True, capture_output=True)
        named = re.findall(r"^FROM (\S+)", (tmp_path / "Dockerfile").read_text(), re.MULTILINE)
        assert [image.partition("@")[2] for image in named] == [digest, digest]
    engine.write_text("#!/bin/sh\necho an error page\n")
    done = subprocess.run(
        [tmp_path / "scripts" / "images"], env=env, check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "gave no digest" in done.stderr


def lint(program: str, *words: str | Path, place: Path = TOP) -> subprocess.CompletedProcess[str]:
    """A linter of the environment that the tests run in."""
    command = [Path(sys.executable).parent / program, *words]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)


def test_hadolint_has_nothing_to_say(tmp_path: Path) -> None:
    done = lint("hadolint", "Dockerfile")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    recipe = (TOP / "Dockerfile").read_text().replace(":3.13-slim-bookworm", ":latest")
    (tmp_path / "Dockerfile").write_text(recipe)
    assert "DL3007" in lint("hadolint", "Dockerfile", place=tmp_path).stdout


def test_compose_follows_the_schema_of_its_format(tmp_path: Path) -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    done = lint("check-jsonschema", *schema, "compose.yml")
    assert done.returncode == 0, done.stdout
    (tmp_path / "compose.yml").write_text((TOP / "compose.yml").read_text().replace("restart:", "restarts:"))
    assert "restarts" in lint("check-jsonschema", *schema, "compose.yml", place=tmp_path).stdout
