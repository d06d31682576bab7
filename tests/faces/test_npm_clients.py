"""Our faces as libraries and programs of others use them: the official clients, as they are published.

Left out where they are not installed: `python3 -m tests.live.installing clients` and `… llm` do that.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import App, Server
from tests.live.installing import CACHE, folder, node_folder, present
from tests.live.programs import LLM
from tests.needs import needs

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).with_name("clients")
SECONDS = 60
NUMBERS = "".join(f"{number} " for number in range(1, 21))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    faces = {"CLAWDFORGE_FACES": "acp,openai,agui,vercel"}
    found = Server(tmp_path_factory.mktemp("npm") / "data", faces)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Beside the packages: Node looks for them from where a script lies."""
    place = tmp_path_factory.mktemp("scripts")
    for script in SCRIPTS.glob("*.mjs"):
        shutil.copy(script, place)
    (place / "node_modules").symlink_to(CACHE / "npm" / "clients" / "node_modules")
    return place


@pytest.fixture
def mine(server: Server) -> App:
    return server.app()


def run(scripts: Path, name: str, env: dict[str, str] | None = None, **given: Any) -> Any:
    node = shutil.which("node", path=str(node_folder()))
    assert node is not None
    done = subprocess.run(
        [node, str(scripts / f"{name}.mjs"), json.dumps(given)],
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@needs("npm-clients")
@pytest.mark.parametrize("way", ["pipes", "websocket"])
def test_the_typescript_client_of_acp(server: Server, scripts: Path, mine: App, way: str) -> None:
    given: Any = {"url": f"{server.url.replace('http', 'ws')}/acp?own_folders=true&agent=claude"}
    if way == "pipes":
        words = ("acp", "--server", server.url, "--own-folders", "--agent", "claude")
        given = {"command": [sys.executable, "-m", "clawdforge", *words]}
    env = {**os.environ, "CLAWDFORGE_TOKEN": mine.token}
    prompt = "echo hello\nask to go on"
    found = run(scripts, "acp", env, token=mine.token, cwd="/", prompt=prompt, **given)
    assert found["first"]["stopReason"] == "end_turn"
    assert found["first"]["heard"]["asked"] == ["to go on"]
    assert found["first"]["heard"]["text"] == "hellopermission: allow_once"
    assert found["loaded"]["heard"]["text"] == "hellopermission: allow_once"
    assert found["loaded"]["heard"]["prompts"] == prompt


@needs("npm-clients")
def test_openais_sdk_for_javascript(server: Server, scripts: Path, mine: App) -> None:
    found = run(scripts, "openai", url=server.url, token=mine.token, model="claude")
    assert "claude" in found["models"]
    assert (found["whole"], found["response"], found["refusal"]) == ("whole", "response", 401)
    assert found["streamed"] == found["events"] == NUMBERS
    assert "echo response" in found["next"], "another session answered"


@needs("npm-clients")
def test_the_client_of_agui(server: Server, scripts: Path, mine: App) -> None:
    prompt = "think hm\necho one\ntool read\necho two"
    found = run(scripts, "agui", url=server.url, token=mine.token, session=mine.session(), prompt=prompt)
    assert found["text"] == "onetwo"
    assert (found["kinds"][0], found["kinds"][-1]) == ("RUN_STARTED", "RUN_FINISHED")


@needs("npm-clients")
def test_the_chat_transport_of_vercels_ai_sdk(server: Server, scripts: Path, mine: App) -> None:
    prompt = "think hm\necho one\ntool read\necho two"
    found = run(scripts, "vercel", url=server.url, token=mine.token, session=mine.session(), prompt=prompt)
    assert found["text"] == "onetwo"
    assert "reasoning" in found["kinds"]
    assert found["resumed"] is None


@pytest.mark.skipif(not present(LLM), reason="llm is not installed")
def test_the_program_llm(server: Server, mine: App, tmp_path: Path) -> None:
    models = f"- model_id: agent\n  model_name: claude\n  api_base: {server.url}/v1\n  api_key_name: forge\n"
    (tmp_path / "extra-openai-models.yaml").write_text(models)
    (tmp_path / "keys.json").write_text(json.dumps({"forge": mine.token}))
    env = {**os.environ, "LLM_USER_PATH": str(tmp_path)}
    for flags in ((), ("--no-stream",)):
        done = subprocess.run(
            [str(folder(LLM) / "llm"), "-m", "agent", *flags, "echo hello"],
            env=env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert (done.returncode, done.stdout.strip()) == (0, "hello"), done.stderr
