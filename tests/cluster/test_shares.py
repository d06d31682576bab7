"""What nodes tell each other of themselves: what runs there, and settings that are not the same."""

from clawdforge.stores.postgres.examination import examine_database
from tests.api.harness import until
from tests.cluster.kit import Cluster
from tests.needs import needs

pytestmark = needs("postgres")


def test_settings_that_differ_are_named_by_nodes_and_doctor(cluster: Cluster) -> None:
    cluster.start("a")
    cluster.start("b", TURN_RETRIES="7", APP_AGENTS="3")
    admin = cluster.nodes["a"].admin()

    def differences() -> list[list[str]]:
        return [node["differs"] for node in admin.get("/admin/nodes").json()["nodes"]]

    until(lambda: differences() == [[], ["app_agents", "turn_retries"]], "the other one has told")
    text = cluster.query("SELECT tells FROM members ORDER BY started_at")[1][0]
    assert "cf_admin_token" not in text
    assert '"turn_retries": 7' not in text, "digests, since some settings are secrets"
    remarks = [remark.text for remark in examine_database(cluster.url) if remark.level == "warn"]
    assert len(remarks) == 1
    assert remarks[0].endswith("have different settings: app_agents, turn_retries")


def test_live_agents_are_shown_and_limits_say_how_many_servers_count(cluster: Cluster) -> None:
    cluster.start("a", "b")
    session = cluster.apps["a"].session()
    assert cluster.say("a", session, "count") == "turn=1"
    admin = cluster.nodes["b"].admin()

    def agents() -> list[int]:
        return [node["agents"] for node in admin.get("/admin/nodes").json()["nodes"]]

    until(lambda: agents() == [1, 0], "it was told with a beat")
    assert all(node["differs"] == [] for node in admin.get("/admin/nodes").json()["nodes"])
    until(lambda: cluster.http("a").get("/limits").json()["servers"] == 2, "both are counted")
