"""The files of a session follow it: uploads, its agent's home and its workspace are had at any node."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from clawdforge.stores.postgres.link import Link
from tests.api.harness import until
from tests.cluster.kit import Cluster
from tests.needs import needs
from tests.support.folders import everything_below

pytestmark = [needs("postgres"), pytest.mark.usefixtures("mortal")]
HOLD_BACK: Final = """
CREATE FUNCTION hold_back() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER hold_back BEFORE INSERT ON publications FOR EACH ROW
WHEN (NEW.turn_index > 0 OR NEW.workspace <> '[]') EXECUTE FUNCTION hold_back();
"""


def ask(cluster: Cluster, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with contextlib.closing(Link(cluster.url)) as link:
        return link.fetch(sql, values)


@contextlib.contextmanager
def nothing_published(cluster: Cluster) -> Iterator[None]:
    """What is published behind an answer does not come, however late the kill is: only what the end of a
    turn says itself is written."""
    with contextlib.closing(Link(cluster.url)) as link:
        link.run(HOLD_BACK)
        yield
        link.run("DROP TRIGGER hold_back ON publications")


def lose(cluster: Cluster, node: str) -> Path:
    """Its machine is gone, with all that it had."""
    cluster.nodes[node].stop(signal.SIGKILL)
    folder = cluster.folder(node)
    return folder.rename(folder.with_name(f"{node}-gone"))


def how_it_began(cluster: Cluster, node: str, session: str) -> list[str]:
    return [one["how"] for one in cluster.events(node, session) if one["type"] == "context.started"]


@pytest.fixture(params=["database", "folder"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    return {"BLOBS": "database" if request.param == "database" else str(tmp_path / "blobs")}


def test_memory_and_workspace_of_a_machine_that_is_gone_are_there_at_the_next(
    cluster: Cluster, blobs: dict[str, str]
) -> None:
    cluster.start("a", "b", **blobs)
    session = cluster.apps["a"].session()
    cluster.say("a", session, "write plan.txt three steps")
    cluster.say("a", session, "remember blue")
    cluster.wait_published(session, 2)
    lose(cluster, "a")
    assert cluster.say("b", session, "count") == "turn=3", "of the agent's own memory, which came along"
    assert how_it_began(cluster, "b", session) == ["new", "restored"]
    assert cluster.say("b", session, "read plan.txt") == "three steps"
    assert str(cluster.folder("b")) in cluster.say("b", session, "cwd")
    cluster.check_log("b", session)


def test_what_was_said_after_the_last_publication_is_told(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "echo the first")
    cluster.wait_published(session, 1)
    cluster.submit("a", session, "echo half an answer\nsleep 60")
    cluster.wait_for("b", session, "text", 2)
    lose(cluster, "a")
    cluster.say("b", session, "echo on")
    told = cluster.say("b", session, "recall all")
    assert "echo the first" in told, "it is remembered"
    assert "half an answer" in told, "it is told"
    assert how_it_began(cluster, "b", session) == ["new", "restored"]


def test_the_home_that_a_node_had_before_is_never_used_again(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "remember red")
    cluster.wait_published(session, 1)
    kept = lose(cluster, "a")
    cluster.say("b", session, "remember green")
    cluster.wait_published(session, 2)
    kept.rename(cluster.folder("a"))
    cluster.start("a")
    lose(cluster, "b")
    remembered = cluster.say("a", session, "recall")
    assert "remember green" in remembered
    assert how_it_began(cluster, "a", session) == ["new", "restored", "restored"]
    assert cluster.say("a", session, "count") == "turn=4"


def test_an_upload_is_read_and_used_at_any_node(cluster: Cluster, blobs: dict[str, str]) -> None:
    cluster.start("a", "b", **blobs)
    content = b"\x00of node a\xff" * 300_000
    sent = cluster.http("a").post("/files", files={"file": ("data.bin", content)})
    assert sent.status_code == 200, sent.text
    token = sent.json()["file_token"]
    assert cluster.http("b").get(f"/files/{token}").content == content
    session = cluster.apps["b"].session()
    cluster.submit("b", session, "echo got it", files=[token])
    assert cluster.ended("b", session, 1)["outcome"] == "completed"
    homes = cluster.folder("b") / "homes" / session / "uploads"
    assert [path.read_bytes() for path in everything_below(homes, "data.bin")] == [content]
    assert not everything_below(cluster.folder("b") / "files", "tmp_*"), "what was fetched is gone again"
    assert cluster.http("b").delete(f"/files/{token}").status_code == 200
    assert cluster.http("a").get(f"/files/{token}").status_code == 404
    until(lambda: not everything_below(cluster.folder("a") / "files", "ff_*"), "the file at a is gone")


def test_a_damaged_piece_is_noticed_and_the_transcript_is_told_instead(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "remember blue")
    cluster.wait_published(session, 1)
    (home,) = ask(cluster, "SELECT home FROM publications WHERE session_id = $1", session)
    ask(
        cluster,
        "UPDATE blob_data SET data = '\\x00' FROM blobs WHERE blobs.place = blob_data.place"
        " AND $1 LIKE '%' || blobs.digest || '%' RETURNING 1",
        home[0],
    )
    cluster.nodes["a"].stop(signal.SIGKILL)
    cluster.say("b", session, "echo on")
    assert "remember blue" in cluster.say("b", session, "recall all")
    assert how_it_began(cluster, "b", session) == ["new", "transcript"]


def test_a_workspace_that_was_never_published_is_missed_with_a_sentence(cluster: Cluster) -> None:
    cluster.start("a", "b", PUBLISH_BYTES="1000")
    session = cluster.apps["a"].session()
    cluster.say("a", session, f"write large.txt {'x' * 2000}")
    cluster.wait_published(session, 1)
    lose(cluster, "a")
    turn = cluster.submit("b", session, "read large.txt")
    ended = cluster.ended("b", session, turn)
    assert ended["outcome"] == "failed"
    assert "was not published" in ended["error"]


def test_what_a_node_that_stops_has_not_published_yet_is_published_then(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "write here.txt at once")
    cluster.nodes["a"].stop()
    folder = cluster.folder("a")
    folder.rename(folder.with_name("a-gone"))
    assert cluster.say("b", session, "read here.txt") == "at once"


def test_a_session_in_a_folder_of_its_caller_takes_its_memory_along(cluster: Cluster, tmp_path: Path) -> None:
    """Any node has the folder, so any may run it once its agent has left; the home is where it last ran."""
    project = tmp_path / "project"
    project.mkdir()
    cluster.start("a", "b", WORKSPACE_ROOTS=str(project), AGENT_IDLE_SECS="1")
    session = cluster.apps["a"].session(cwd=str(project))
    cluster.say("a", session, "remember blue")
    cluster.wait_free(session)
    said = cluster.say("b", session, "home\ncount")  # in one turn: between two its agent may fall asleep
    assert said.startswith(str(cluster.folder("b")))
    assert said.endswith("turn=2")
    assert how_it_began(cluster, "b", session) == ["new", "restored"]


def test_files_of_a_turn_whose_agent_died_are_published_too(cluster: Cluster) -> None:
    """Of the home there is no copy after such a turn, and the files were held to be of the one before."""
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "write one.txt first")
    cluster.wait_published(session, 1)
    cluster.ended("a", session, cluster.submit("a", session, "write two.txt second\ncrash"))
    cluster.nodes["a"].stop()
    folder = cluster.folder("a")
    folder.rename(folder.with_name("a-gone"))
    assert cluster.say("b", session, "read two.txt") == "second"


def test_what_a_killed_server_did_not_publish_is_published_when_it_is_back(cluster: Cluster) -> None:
    cluster.start("a")
    session = cluster.apps["a"].session()
    with nothing_published(cluster):
        cluster.say("a", session, "write one.txt first")
        cluster.nodes["a"].stop(signal.SIGKILL)
    assert ask(cluster, "SELECT 1 FROM publications") == []
    cluster.start("a")
    sql = "SELECT 1 FROM publications WHERE session_id = $1 AND workspace IS NOT NULL"
    until(lambda: ask(cluster, sql, session), "its workspace is published")


def test_a_session_in_which_nothing_was_done_yet_begins_elsewhere_with_an_empty_workspace(
    cluster: Cluster,
) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    lose(cluster, "a")
    assert str(cluster.folder("b")) in cluster.say("b", session, "cwd")
    assert cluster.say("b", session, "count") == "turn=2"


def test_a_chat_goes_on_when_its_server_was_killed_right_after_the_first_answer(cluster: Cluster) -> None:
    """Its files were published a second later: until then it was refused, though there were none."""
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    with nothing_published(cluster):
        cluster.say("a", session, "remember blue")
        lose(cluster, "a")
        assert ask(cluster, "SELECT turn_index, home FROM publications") == [(0, "[]")]
        assert cluster.say("b", session, "echo on") == "on"
        assert "remember blue" in cluster.say("b", session, "recall all"), "it is told"
        assert str(cluster.folder("b")) in cluster.say("b", session, "cwd")
    assert how_it_began(cluster, "b", session) == ["new", "transcript"]
    cluster.check_log("b", session)


def test_a_workspace_that_comes_back_leaves_the_one_of_a_fork_alone(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    cluster.say("a", session, "write one.txt first")
    fork = cluster.http("a").post(f"/sessions/{session}/fork", json={}).json()["session_id"]
    cluster.say("a", fork, "write of_fork.txt mine")
    cluster.wait_published(session, 1)
    kept = lose(cluster, "a")
    cluster.say("b", session, "write two.txt second")
    cluster.wait_published(session, 2)
    kept.rename(cluster.folder("a"))
    cluster.start("a")
    lose(cluster, "b")
    assert cluster.say("a", session, "read two.txt") == "second"
    assert cluster.say("a", fork, "read of_fork.txt") == "mine"


def test_pieces_that_nobody_uses_are_removed(cluster: Cluster, blobs: dict[str, str], tmp_path: Path) -> None:
    cluster.start("a", **blobs)
    session = cluster.apps["a"].session()
    cluster.say("a", session, "write one.txt first")
    cluster.wait_published(session, 1)
    count: Callable[[], int] = lambda: int(ask(cluster, "SELECT count(*) FROM blobs")[0][0])  # noqa: E731
    assert count() > 0
    assert cluster.http("a").post(f"/sessions/{session}/purge").status_code == 200
    ask(cluster, "UPDATE blobs SET touched_at = 1 RETURNING 1")
    admin = cluster.nodes["a"].admin()

    def sweep() -> bool:
        assert admin.post("/admin/sweep").status_code == 200
        ask(cluster, "UPDATE blobs SET touched_at = 1 RETURNING 1")
        return count() == 0

    until(sweep, "nothing is kept")
    assert ask(cluster, "SELECT count(*) FROM blob_data") == [(0,)]
    assert not everything_below(tmp_path / "blobs", "*-*")
