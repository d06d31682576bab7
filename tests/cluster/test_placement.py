"""A session runs where its agent, its folder and a place are; nobody waits for a node that lacks one."""

from pathlib import Path

from tests.api.harness import AGENT, until
from tests.cluster.kit import Cluster
from tests.needs import needs

pytestmark = needs("postgres")


def knows(cluster: Cluster, node: str, agent: str) -> None:
    """Its beat has come to another node, which then lets a session name the agent."""

    def look() -> bool:
        reply = cluster.http(node).post("/sessions", json={"agent": agent})
        return reply.status_code in (200, 201)

    until(look, f"{node} knows who has {agent}")


def name_elsewhere(cluster: Cluster, node: str, other: str, agent: str) -> None:
    """A persona and a pause name an agent at a node that has not got it itself."""
    http, admin = cluster.http(node), cluster.nodes[node].admin()
    made = http.put("/personas/specialist", json={"agent": agent})
    assert (made.status_code, made.json()["persona"]["agent"]) == (200, agent), made.text
    made = http.post("/sessions", json={"persona": "specialist"})
    assert str(cluster.folder(other)) in cluster.say(node, made.json()["session_id"], "home")
    made = admin.post("/admin/pause", json={"agent": agent})
    assert (made.status_code, made.json()["pause"]["agent"]) == (200, agent), made.text
    session = cluster.apps[other].session(agent=agent)
    refused = cluster.apps[other].turn(session, "echo no")
    assert (refused.status_code, refused.json()["code"]) == (503, "paused")
    assert admin.post("/admin/resume", json={"agent": agent}).json()["resumed"]
    assert cluster.say(other, session, "echo on") == "on"
    for reply in (
        http.put("/personas/nobody", json={"agent": "nobody"}),
        admin.post("/admin/pause", json={"agent": "nobody"}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (400, "unknown_agent"), reply.text


def check_lists(cluster: Cluster, agent: str) -> None:
    """Whoever is asked, the list has it; only the one that has it knows what it is."""
    found = {}
    for node in ("a", "b"):
        agents = {one["name"]: one for one in cluster.http(node).get("/agents").json()["agents"]}
        found[node] = (agents[agent]["installed"], agents[agent]["driver"])
    assert found == {"a": (True, "elsewhere"), "b": (True, "acp")}
    models = cluster.http("a").get("/v1/models").json()["data"]
    assert agent in [model["id"] for model in models]


def test_an_agent_that_one_node_has_is_run_there_for_all(cluster: Cluster) -> None:
    cluster.start("a", FACES="openai")
    cluster.start("b", AGENT_SPECIAL=AGENT)
    knows(cluster, "a", "special")
    session = cluster.apps["a"].session(agent="special")
    assert str(cluster.folder("b")) in cluster.say("a", session, "home")
    assert cluster.say("a", session, "count") == "turn=2"
    name_elsewhere(cluster, "a", "b", "special")
    check_lists(cluster, "special")
    cluster.nodes["b"].stop()
    ended = cluster.ended("a", session, cluster.submit("a", session, "echo on"))
    assert (ended["outcome"], ended["code"]) == ("failed", "nowhere_to_run")
    assert "can start the agent 'special'" in ended["error"]
    cluster.check_log("a", session)


def test_a_folder_that_one_node_offers_is_worked_in_there_until_none_does(
    cluster: Cluster, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    cluster.start("a")
    cluster.start("b", WORKSPACE_ROOTS=str(project), AGENT_IDLE_SECS="1")
    session = cluster.apps["b"].session(cwd=str(project))
    assert str(cluster.folder("b")) in cluster.say("a", session, "home")
    cluster.wait_free(session)
    assert str(cluster.folder("b")) in cluster.say("a", session, "home")
    cluster.wait_free(session)
    project.rename(tmp_path / "away")
    ended = cluster.ended("a", session, cluster.submit("a", session, "echo on"))
    assert (ended["outcome"], ended["code"]) == ("failed", "nowhere_to_run")
    assert f"offers the folder {project}" in ended["error"]
    (tmp_path / "away").rename(project)
    assert str(cluster.folder("b")) in cluster.say("a", session, "home")
    cluster.check_log("a", session)


def test_a_full_node_leaves_what_waits_to_one_with_room(cluster: Cluster) -> None:
    """The other node comes when the place is taken: else the one that takes it may be left to that, if the
    agent before it is slow to go."""
    cluster.start("a", MAX_LIVE_AGENTS="1")
    long, moved = cluster.apps["a"].session(), cluster.apps["a"].session()
    cluster.say("a", moved, "write plan.txt three steps")
    busy = cluster.submit("a", long, "echo begun\nhang")
    cluster.wait_for("a", long, "text")
    cluster.wait_free(moved)
    cluster.start("b")
    assert cluster.say("a", moved, "read plan.txt") == "three steps"
    where = cluster.say("a", moved, "cwd")
    assert cluster.turns("a", long)[busy - 1]["state"] == "running", "its place is still taken"
    assert str(cluster.folder("b")) in where
    cluster.check_log("b", moved)
