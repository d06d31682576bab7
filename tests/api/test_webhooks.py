"""Webhooks of a real server: what is told, verified by the standard's own library, and what a kill leaves."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from standardwebhooks import Webhook

from clawdforge import Forge
from clawdforge.cli import main
from clawdforge.client.errors import InvalidRequest
from clawdforge.wire.local import TOKEN_FILE
from tests.api.harness import App, Server, until
from tests.support.receiver import Got, Receiver, answer, receiving


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture(scope="module")
def hooked(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    env = {"CLAWDFORGE_WEBHOOKS": "true", "CLAWDFORGE_WEBHOOK_HOSTS": receiver.host}
    found = Server(tmp_path_factory.mktemp("hooks") / "data", env)
    yield found
    found.stop()


def add(app: App, url: str, **body: Any) -> dict[str, Any]:
    reply = app.http.post("/webhooks", json={"url": url, **body})
    assert reply.status_code == 200, reply.text
    made: dict[str, Any] = reply.json()
    return made


def wait_for(receiver: Receiver, path: str, count: int = 1) -> list[Got]:
    until(lambda: len(receiver.of(path)) >= count, f"delivery {count} at {path}")
    return receiver.of(path)


def state_of(app: App, endpoint: str) -> list[tuple[str, int]]:
    page = app.http.get(f"/webhooks/{endpoint}/deliveries").json()["deliveries"]
    return [(one["state"], one["attempts"]) for one in page]


def test_what_happens_is_told_and_the_standards_library_verifies_it(
    hooked: Server, receiver: Receiver
) -> None:
    app = hooked.app()
    made = add(app, receiver.url("/all"))
    session_id = app.session(permission_mode="ask")
    asked = app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "ask Remove all"})
    assert asked.status_code == 202
    (first,) = wait_for(receiver, "/all")
    told = Webhook(made["secret"]).verify(first.body, first.headers)
    assert (told["type"], told["data"]["app"]) == ("permission.requested", app.name)
    permission = told["data"]["permission_id"]
    decided = app.http.post(
        f"/sessions/{session_id}/permissions/{permission}", json={"decision": "allow_once"}
    )
    assert decided.status_code == 200
    wait_for(receiver, "/all", 2)
    app.http.delete(f"/sessions/{session_id}")
    bodies = [Webhook(made["secret"]).verify(one.body, one.headers) for one in wait_for(receiver, "/all", 3)]
    assert [one["type"] for one in bodies] == ["permission.requested", "turn.ended", "session.closed"]
    assert all(one["data"]["session_id"] == session_id for one in bodies)
    endpoint = made["endpoint"]["endpoint_id"]
    until(lambda: state_of(app, endpoint) == [("delivered", 1)] * 3, "the notes of three deliveries")
    listed = app.http.get("/webhooks")
    assert made["secret"] not in listed.text
    log = (hooked.data_dir.parent / f"{hooked.data_dir.name}.log").read_text()
    assert made["secret"] not in log + hooked.admin().get("/admin/audit").text


def test_the_sdk_changes_rotates_resends_and_removes(hooked: Server, receiver: Receiver) -> None:
    app = hooked.app()
    with Forge(hooked.url, app.token) as forge:
        made = forge.add_webhook(receiver.url("/sdk"), events=["session.closed"])
        endpoint = made.endpoint.endpoint_id
        assert [one.events for one in forge.webhooks()] == [["session.closed"]]
        receiver.answers = [answer(410)]
        app.http.delete(f"/sessions/{app.session()}")
        until(lambda: not forge.webhooks()[0].enabled, "the end after 410")
        app.http.delete(f"/sessions/{app.session()}")
        (dead,) = forge.deliveries(endpoint, state="dead")
        assert (dead.status, dead.attempts) == (410, 1)
        assert forge.change_webhook(endpoint, enabled=True, url=receiver.url("/moved")).enabled
        rotated = forge.rotate_webhook(endpoint, overlap_secs=600)
        assert forge.resend(endpoint, dead.delivery_id).state == "waiting"
        (got,) = wait_for(receiver, "/moved")
        assert got.headers["webhook-id"] == dead.delivery_id
        for secret in (made.secret, rotated.secret):
            Webhook(secret).verify(got.body, got.headers)
        with pytest.raises(InvalidRequest, match="not a public address"):
            forge.add_webhook("https://169.254.169.254/latest/meta-data")
        forge.remove_webhook(endpoint)
        assert forge.webhooks() == []


def test_the_command_line_adds_changes_lists_resends_and_removes(
    hooked: Server, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*args: str, code: int = 0) -> str:
        env = {"CLAWDFORGE_DATA_DIR": str(hooked.data_dir), "HOME": str(tmp_path)}
        result = CliRunner(env=env).invoke(main, ["webhook", *args])
        assert result.exit_code == code, f"{args}: {result.output} {result.exception!r}"
        return result.stdout

    url = receiver.url("/terminal")
    endpoint, secret = run("add", url, "--event", "session.closed").split()
    assert run("list").split("\t") == [endpoint, url, "session.closed", "on\n"]
    receiver.answers = [answer(410)]
    local = hooked.client((hooked.data_dir / TOKEN_FILE).read_text().strip())
    local.delete(f"/sessions/{local.post('/sessions', json={}).json()['session_id']}")
    until(lambda: "\tdead\t" in run("deliveries", endpoint), "the end of a delivery")
    (dead,) = json.loads(run("deliveries", endpoint, "--state", "dead", "--json"))
    assert "off: it answered 410 Gone" in run("list")
    run("resend", endpoint, dead["delivery_id"], code=1)
    run("change", endpoint, "--on")
    run("resend", endpoint, dead["delivery_id"])
    first, second = wait_for(receiver, "/terminal", 2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    Webhook(secret).verify(second.body, second.headers)
    assert run("rotate", endpoint, "--overlap", "0").startswith("whsec_")
    run("change", endpoint, code=2)
    run("remove", endpoint)
    run("remove", endpoint, code=4)
    assert json.loads(run("list", "--json")) == []


def test_another_apps_webhook_is_an_unknown_one(hooked: Server, receiver: Receiver) -> None:
    app, other = hooked.app(), hooked.app()
    endpoint = add(app, receiver.url("/mine"))["endpoint"]["endpoint_id"]
    for method, path, body in (
        ("PATCH", "", {"enabled": False}),
        ("DELETE", "", None),
        ("POST", "/rotate", {}),
        ("GET", "/deliveries", None),
        ("POST", "/deliveries/msg/resend", {}),
    ):
        replies = [
            other.http.request(method, f"/webhooks/{one}{path}", json=body) for one in (endpoint, "0" * 36)
        ]
        assert [(one.status_code, one.json()["code"]) for one in replies] == [(404, "webhook_not_found")] * 2
    assert len(app.http.get("/webhooks").json()["endpoints"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": "file:///etc/passwd"},
        {"url": "https://u:p@example.com/"},
        {"url": "https://example.com/", "events": []},
        {"url": "https://example.com/", "events": ["turn.started"]},
        {"url": "https://example.com/" + "x" * 2048},
        {"url": "http://example.com/"},
        {"url": "https://[::ffff:10.0.0.1]/"},
    ],
)
def test_a_url_that_cannot_be_told_is_refused(hooked: Server, body: dict[str, Any]) -> None:
    assert hooked.app().http.post("/webhooks", json=body).status_code == 422


def test_off_until_the_operator_turns_them_on(app: App) -> None:
    refused = app.http.post("/webhooks", json={"url": "https://example.com/"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert app.http.get("/webhooks").json()["endpoints"] == []


def test_a_kill_between_event_and_delivery_and_between_answer_and_note(
    hooked: Server, receiver: Receiver
) -> None:
    """The second server delivers what the first did not, and again what the first could not note."""
    app = hooked.app()
    add(app, receiver.url("/killed"), events=["turn.ended"])
    session_id = app.session()
    receiver.before_answer = lambda: hooked.process.send_signal(signal.SIGKILL)
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo one"})
    wait_for(receiver, "/killed")
    receiver.before_answer = None
    hooked.stop(signal.SIGKILL)
    hooked.start()
    first, second, *_ = wait_for(receiver, "/killed", 2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
