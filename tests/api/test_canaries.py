"""Twelve planted secrets are found nowhere but with their owner: logs, database, events, errors, agents."""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import psutil
import pytest

from tests.api.harness import ADMIN_TOKEN, AGENT, App, Server
from tests.needs import needs
from tests.support.folders import files_below

HUNT = "grep -a -h -o -E '(cfa?|ff)_[A-Za-z0-9_-]{10,}|CANAR[Y]-[0-9a-f]{16}'"
"""Prints every secret that somebody would see in some files."""
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "CLAWDFORGE_TEST_SECRET")


def mark() -> str:
    return f"CANARY-{secrets.token_hex(8)}"


@dataclass
class Scene:
    """A server with secrets in its environment, a victim with tokens and data, and an app that is curious."""

    server: Server
    victim: App
    curious: App
    tokens: dict[str, str]
    keys: dict[str, str]
    data: dict[str, str]
    session_id: str
    file_token: str

    def found(self, text: str, *, but: tuple[str, ...] = ()) -> list[str]:
        everything = {**self.tokens, **self.keys, **self.data, "file token": self.file_token}
        return [name for name, secret in everything.items() if name not in but and secret in text]

    def hear(self, session_id: str) -> str:
        """All that the curious app can read of a session of its own."""
        params = {"limit": 1000}
        paths = ("", "/events", "/messages", "/turns", "/permissions", "/usage")
        replies = [self.curious.http.get(f"/sessions/{session_id}{path}", params=params) for path in paths]
        return "".join(reply.text for reply in replies)


@pytest.fixture
def scene(start: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> Scene:
    keys = {name: mark() for name in KEYS}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    server = start(
        cold=True, AGENT_PLAIN=AGENT, AGENT_DIES=f"{AGENT} --exit-at-start", TEST_SECRET=keys[KEYS[3]]
    )
    victim, curious, revoked = server.app("victim"), server.app("curious"), server.app("victim")
    server.admin().delete(f"/admin/tokens/{revoked.token_id}")
    tokens = {
        "admin": ADMIN_TOKEN,
        "local": (server.data_dir / "local.token").read_text().strip(),
        "victim": victim.token,
        "revoked": revoked.token,
    }
    data = {name: mark() for name in ("prompt", "meta", "file", "key")}
    assert len({*tokens.values(), *keys.values(), *data.values()}) == 12
    upload = victim.http.post("/files", files={"file": ("a.txt", data["file"].encode())})
    file_token = str(upload.json()["file_token"])
    session_id = victim.session(agent="plain", meta={"secret": data["meta"]}, title="theirs")
    reply = victim.http.post(
        f"/sessions/{session_id}/turn",
        json={"prompt": f"echo {data['prompt']}", "files": [file_token]},
        headers={"Idempotency-Key": data["key"]},
    )
    assert reply.status_code == 200, reply.text
    return Scene(server, victim, curious, tokens, keys, data, session_id, file_token)


def test_errors_tell_nothing(scene: Scene) -> None:
    """Whatever the curious app tries with what it has guessed or stolen half of."""
    http, session = scene.curious.http, f"/sessions/{scene.session_id}"
    mine = scene.curious.session(agent="plain")
    replies = [
        http.request(method, f"{session}{path}", json=body)
        for method, path, body in (
            ("GET", "", None),
            ("PATCH", "", {"title": "x"}),
            ("DELETE", "", None),
            ("GET", "/events", None),
            ("GET", "/messages", None),
            ("GET", "/usage", None),
            ("POST", "/turn", {"prompt": "echo x"}),
            ("POST", "/purge", {}),
            ("POST", "/reopen", {}),
        )
    ]
    replies += [
        http.get(f"/files/{scene.file_token}"),
        http.delete(f"/files/{scene.file_token}"),
        http.post(f"/sessions/{mine}/turn", json={"prompt": "echo x", "files": [scene.file_token]}),
        http.post("/sessions", json={"parent_session_id": scene.session_id}),
        http.post("/sessions", json={"cwd": str(scene.server.data_dir)}),
        http.post("/sessions", json={"agent": "nobody"}),
        http.post("/sessions", json={"meta": scene.tokens["victim"]}),
        http.post("/admin/sweep", headers={"Authorization": f"Bearer {scene.tokens['victim']}x"}),
        scene.server.client(scene.tokens["revoked"]).get("/sessions"),
        http.get(f"/{scene.tokens['local']}"),
    ]
    for reply in replies:
        assert 400 <= reply.status_code < 500, reply.text
        assert scene.found(reply.text + json.dumps(dict(reply.headers))) == [], reply.text
    failed = scene.curious.session(agent="dies")
    assert scene.found(scene.curious.turn(failed, "echo x").text) == []
    lists = [
        http.get(path).text for path in ("/sessions", "/personas", "/agents", "/healthz", "/openapi.json")
    ]
    assert scene.found("".join(lists)) == []
    assert scene.victim.http.get(f"/files/{scene.file_token}").text == scene.data["file"]


def test_an_agent_has_the_keys_of_its_own_kind_only(scene: Scene) -> None:
    plain, claude = scene.curious.session(agent="plain"), scene.curious.session(agent="claude")
    ask = "\n".join(["env", *(f"env {name}" for name in KEYS), "env CLAWDFORGE_ADMIN_TOKEN", "terminal env"])
    for session_id in (plain, claude):
        assert scene.curious.turn(session_id, ask).status_code == 200
    assert scene.found(scene.hear(plain)) == []
    assert scene.found(scene.hear(claude)) == ["ANTHROPIC_API_KEY"], "the key that claude is for"
    server = psutil.Process(scene.server.process.pid)
    agents = server.children(recursive=True)
    assert agents
    for process in agents:
        if process.status() == psutil.STATUS_ZOMBIE:
            continue
        seen = json.dumps(process.environ()) + " ".join(process.cmdline())
        assert scene.found(seen, but=("ANTHROPIC_API_KEY",)) == [], process


@needs("bwrap")
def test_an_agent_that_hunts_finds_nothing(scene: Scene) -> None:
    """In /proc, in the data folder, in the homes and workspaces of others, in shared places."""
    session_id = scene.curious.session(agent="plain")
    data = scene.server.data_dir
    prompts = [
        f"terminal {HUNT} /proc/[0-9]*/environ /proc/[0-9]*/cmdline",
        f"terminal {HUNT} /proc/{scene.server.process.pid}/environ /proc/1/environ",
        f"terminal {HUNT} -r {data}",
        f"terminal {HUNT} -r /proc/1/root{data}",
        f"terminal {HUNT} -r /proc/self/root{data} /dev/shm",
        f"read /proc/{scene.server.process.pid}/environ",
        f"read {data}/local.token",
        f"read {data}/forge.db",
        f"fs-read {data}/local.token",
        f"fs-read {data}/server.lock",
        f"fs-read /proc/{scene.server.process.pid}/environ",
        f"fs-read {scene.victim.http.get(f'/sessions/{scene.session_id}').json()['cwd']}/a.txt",
    ]
    for prompt in prompts:
        reply = scene.curious.turn(session_id, prompt)
        assert reply.status_code == 200, reply.text
        assert scene.found(reply.text) == [], prompt
    assert scene.found(scene.hear(session_id)) == []


def test_what_is_kept_holds_no_secret_but_its_owners(scene: Scene) -> None:
    """The log, the database with its write-ahead log, and every other file in the data folder."""
    mine = scene.curious.session(agent="claude")
    scene.curious.turn(mine, "env ANTHROPIC_BASE_URL\necho hi")
    scene.server.client(scene.tokens["revoked"]).get("/sessions")
    scene.server.client("x").get(f"/sessions/{scene.tokens['victim']}")
    server, theirs = scene.server, (*scene.data, "file token")
    files = files_below(server.data_dir)
    assert any(path.name == "forge.db-wal" for path in files) or server.store == "postgres"
    server.stop()
    assert scene.found(server.log_text) == []
    for path in files_below(server.data_dir):
        text = path.read_bytes().decode("latin-1")
        name = str(path.relative_to(server.data_dir))
        owner: tuple[str, ...] = ("local",) if name == "local.token" else ()
        if name.startswith("forge.db") or scene.session_id in name or scene.file_token in name:
            owner = theirs
        assert scene.found(text, but=owner) == [], name


def test_the_search_and_the_lists_of_another_app_show_nothing(scene: Scene) -> None:
    for prefix in (scene.session_id[:8], scene.session_id):
        assert scene.curious.http.get("/sessions", params={"prefix": prefix}).json()["count"] == 0
    assert scene.curious.http.get("/sessions", params={"q": "theirs"}).json()["count"] == 0
    tokens = scene.server.admin().get("/admin/tokens").text + scene.server.admin().get("/admin/audit").text
    assert scene.found(tokens + scene.server.admin().get("/metrics").text) == []
