"""A server that shares its store with nobody: what it says about the others."""

from tests.api.harness import Server
from tests.databases import USUAL


def test_a_server_that_is_alone_says_that_nobody_could_take_over(server: Server) -> None:
    admin = server.admin()
    (node,) = admin.get("/admin/nodes").json()["nodes"]
    assert (node["state"], node["is_this"], node["is_drained"]) == ("up", True, False)
    refused = admin.post(f"/admin/nodes/{node['node']}/drain")
    assert refused.status_code == (501 if USUAL == "sqlite" else 409), refused.text
    assert "take over; st" in refused.json()["error"], "what to do instead"
    assert admin.get("/readyz").status_code == 200
