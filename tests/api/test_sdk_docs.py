"""The SDK's examples in the pages run as they stand."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.harness import ADMIN_TOKEN, App, Server
from tests.needs import needs

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs" / "guides" / name for name in ("sdk.md", "recipes.md"))]
BROWSER = """
import asyncio
import httpx2

async def browse():
    transport = httpx2.ASGITransport(app)
    async with lifespan(app), httpx2.AsyncClient(transport=transport, base_url="http://bot") as browser:
        chat = (await browser.post("/chats")).json()["chat"]
        turn = (await browser.post(f"/chats/{chat}/ask", params={"prompt": "Say hello."})).json()
        answer = await browser.get(f"/chats/{chat}/turns/{turn['turn']}", params={"after": turn["after"]})
        assert "event: text" in answer.text and "event: turn.ended" in answer.text, answer.text
        print(answer.text)

asyncio.run(browse())
"""
"""What is put behind an example that is a web server."""


def examples() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
        mine = [block for block in blocks if re.search(r"^from clawdforge import", block, re.MULTILINE)]
        mine = [block + BROWSER if "FastAPI(" in block else block for block in mine]
        mine = [block.replace("range(50)", "range(6)") for block in mine]  # as true, and ten times as fast
        found += [(f"{page.name}-{number}", block) for number, block in enumerate(mine, 1)]
    return found


def blocks_of(page: str) -> list[str]:
    text = (ROOT / "docs" / "guides" / page).read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def environment(server: Server, app: App) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CLAWDFORGE_")}
    return {**clean, "CLAWDFORGE_URL": server.url, "CLAWDFORGE_TOKEN": app.token}


def run(python: str | Path, code: str, env: dict[str, str], cwd: Path) -> str:
    ran = subprocess.run(
        [python, "-W", "error", "-c", code],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_there_are_examples() -> None:
    assert len(examples()) >= 5


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in examples()])
def test_an_example_runs(server: Server, app: App, tmp_path: Path, code: str) -> None:
    assert run(sys.executable, code, environment(server, app), tmp_path).strip()


def test_the_steps_of_the_page_on_history_run_one_after_another(
    server: Server, app: App, tmp_path: Path
) -> None:
    (steps,) = blocks_of("history.md")
    code = (
        "import asyncio\nfrom clawdforge import AsyncForge\n\n"
        "async def main():\n    async with AsyncForge() as forge:\n"
        + textwrap.indent(steps.replace('agent="claude"', 'agent="demo"'), " " * 8)
        + "        print(answer.text())\n\nasyncio.run(main())\n"
    )
    assert "About snow" in run(sys.executable, code, environment(server, app), tmp_path)


def test_the_steps_of_the_page_on_mcp_run(server: Server, app: App, tmp_path: Path) -> None:
    create, keep_secret = blocks_of("mcp.md")
    code = (
        "from clawdforge import Forge\n"
        f"with Forge() as forge, Forge(forge.base_url, {ADMIN_TOKEN!r}) as operator:\n"
        "    admin = operator.admin\n"
        + textwrap.indent(keep_secret.replace('"support"', repr(app.name)), "    ")
        + textwrap.indent(create.replace('agent="claude"', 'agent="demo"'), "    ")
        + "    (made,) = forge.list_sessions()\n    print(made.session_id)\n"
    )
    made = run(sys.executable, code, environment(server, app), tmp_path).strip()
    assert app.http.get(f"/sessions/{made}").json()["agent"] == "demo"


def test_the_steps_of_the_page_on_webhooks_run(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(WEBHOOKS="true")
    add, _, send_again = blocks_of("webhooks.md")
    code = f"{add}\nendpoint_id = made.endpoint.endpoint_id\n{send_again}\nforge.close()\n"
    assert "whsec_" in run(sys.executable, code, environment(server, server.app()), tmp_path)


def test_the_steps_of_the_page_on_schedules_run(server: Server, app: App, tmp_path: Path) -> None:
    make, look = blocks_of("schedules.md")
    said = run(sys.executable, f"{make}\n{look}\nforge.close()\n", environment(server, app), tmp_path)
    assert " submitted " in said


def test_the_lines_of_the_page_on_openai_run(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(FACES="openai")
    app = server.app()
    (lines,) = blocks_of("openai.md")
    lines = lines.replace("http://127.0.0.1:8800", server.url).replace(
        "What is in this folder?", "echo a file"
    )
    made = run(
        sys.executable, f"token = {app.token!r}\n{lines}\nprint(session)", environment(server, app), tmp_path
    )
    found = app.http.get(f"/sessions/{made.strip()}/messages").json()["messages"]
    assert [message["content"] for message in found] == ["echo a file", "a file"]


@needs("deepagents")
def test_the_graph_of_the_page_on_graphs_is_one() -> None:
    """With a model that asks nobody."""
    (graph,) = blocks_of("graphs.md")
    model = 'FakeListChatModel(responses=["hi"])'
    code = (
        "from langchain_core.language_models import FakeListChatModel\n"
        "from langgraph.checkpoint.memory import InMemorySaver\n"
        + graph.replace('"anthropic:claude-sonnet-5"', model)
        + "print(agent(InMemorySaver()).get_graph().nodes.keys())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "model" in ran.stdout, ran.stderr


def test_a_client_without_arguments_finds_the_server_of_the_data_folder(
    server: Server, tmp_path: Path
) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CLAWDFORGE_")}
    env = {**clean, "CLAWDFORGE_DATA_DIR": str(server.data_dir)}
    code = "from clawdforge import Forge\nwith Forge() as forge: print(forge.base_url, forge.list_sessions())"
    assert run(sys.executable, code, env, tmp_path).startswith(server.url)
