"""What the operator sees of the disk: by app, by form, by session, page by page, and nobody else sees it."""

from clawdforge import Forge
from tests.api.harness import ADMIN_TOKEN, App, Server


def upload(app: App, size: int) -> None:
    app.http.post("/files", files={"file": ("a", b"x" * size)}).raise_for_status()


def test_apps_are_shown_with_what_they_store(server: Server, app: App, other: App) -> None:
    upload(app, 500_000)
    upload(other, 700_000)
    with Forge(server.url, ADMIN_TOKEN) as forge:
        found = forge.admin.disk()
        own = next(one.bytes_stored for one in forge.admin.apps() if one.app_name == app.name)
    names = [one.app_name for one in found.apps]
    assert names.index(other.name) < names.index(app.name)
    (mine,) = [one for one in found.apps if one.app_name == app.name]
    assert (mine.bytes, mine.max_bytes, mine.forms["uploads"]) == (500_000, 20 * 2**30, 500_000)
    assert own == 500_000
    assert found.bytes == sum(one.bytes for one in found.apps)
    assert found.sessions is None


def test_sessions_of_an_app_are_shown_page_by_page(server: Server, app: App, other: App) -> None:
    sizes = [3000, 1000, 2000, 1000, 5000]
    for size in sizes:
        messages = [{"role": "user", "content": "x" * size}]
        app.http.post("/sessions/import", json={"messages": messages}).raise_for_status()
    other.session()
    seen, cursor = [], None
    with Forge(server.url, ADMIN_TOKEN) as forge:
        while True:
            page = forge.admin.disk(app.name, limit=2, cursor=cursor)
            assert [one.app_name for one in page.apps] == [app.name]
            seen += page.sessions or []
            cursor = page.next
            if cursor is None:
                break
            assert len(page.sessions or []) == 2
        assert forge.admin.disk("nobody-at-all").sessions == []
    assert [one.forms["messages"] // 1000 for one in seen] == sorted((n // 1000 for n in sizes), reverse=True)
    assert len({one.session_id for one in seen}) == len(sizes)
    assert all(one.bytes == sum(one.forms.values()) for one in seen)


def test_only_the_operator_sees_it(server: Server, app: App) -> None:
    assert app.http.get("/admin/disk").status_code in (401, 403)
    for bad in ("no cursor", "W10"):
        reply = server.admin().get("/admin/disk", params={"app_name": app.name, "cursor": bad})
        assert reply.status_code in (400, 422), bad
    for limit in (0, 1001):
        reply = server.admin().get("/admin/disk", params={"app_name": app.name, "limit": limit})
        assert reply.status_code == 422


def test_it_is_a_metric(server: Server, app: App) -> None:
    upload(app, 123_456)
    text = server.admin().get("/metrics").text
    (line,) = [one for one in text.splitlines() if one.startswith('clawdforge_stored_bytes{form="uploads"}')]
    assert float(line.split()[-1]) >= 123_456
