"""Networks of agents: none at all, or the server's proxy as the only way out."""

import asyncio
import contextlib
import json
import logging
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge.drivers.processes.network import PORT, Networks
from clawdforge.drivers.processes.policy import Network, Policy
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.wire.errors import AgentStartFailed, WorkspaceChanged
from tests.needs import needs
from tests.support.model.endpoint import Endpoint, running
from tests.unit.contained import BOOT, SESSION, Bench, bench_on, containment

FETCH = """
import json, sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(json.dumps([answer.status, answer.read().decode()]))
    except urllib.error.HTTPError as error:
        print(json.dumps([error.code, error.read().decode()]))
    except OSError as error:
        print(json.dumps([0, str(error)]))
"""
DIRECT = """
import json, socket, sys
def tried(kind, place):
    try:
        with socket.socket(socket.AF_INET, kind) as one:
            one.settimeout(5)
            one.connect(place)
            one.send(b"x")
    except OSError:
        return False
    return True
port = int(sys.argv[1])
print(json.dumps({
    "tcp to loopback": tried(socket.SOCK_STREAM, ("127.0.0.1", port)),
    "udp out": tried(socket.SOCK_DGRAM, ("192.0.2.1", 53)),
    "interfaces": [name for _, name in socket.if_nameindex()] != ["lo"],
}))
"""
RAW = """
import socket, sys
with socket.create_connection(("127.0.0.1", 3128)) as proxy:
    proxy.sendall(sys.argv[1].encode("latin-1"))
    out = b""
    while piece := proxy.recv(65536):
        out += piece
sys.stdout.buffer.write(out)
"""


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, "bwrap") as bench:
        yield bench


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with running(0) as endpoint:
        yield endpoint


def place_of(endpoint: Endpoint) -> str:
    return endpoint.url.removeprefix("http://")


async def run(bench: Bench, code: str, *words: str, network: Network, hosts: tuple[str, ...] = ()) -> str:
    process = await bench.spawner.spawn(
        [sys.executable, "-I", "-S", "-c", code, *words],
        cwd=bench.workspace,
        home=bench.home,
        env=bench.env(http_proxy="http://192.0.2.7:1"),  # the machine's own, which it could not reach
        tag=SESSION,
        needs=Needs(((sys.executable,),)),
        policy=Policy(agent="mine", network=network, hosts=hosts),
    )
    try:
        said = await asyncio.wait_for(process.stdout.read(), 60)
    finally:
        await process.close()
    assert said, process.stderr_tail()
    return said.decode()


async def fetch(bench: Bench, *urls: str, hosts: tuple[str, ...] = ()) -> list[tuple[int, str]]:
    said = await run(bench, FETCH, *urls, network="proxy", hosts=hosts)
    return [tuple(json.loads(line)) for line in said.splitlines()]


@needs("bwrap")
@pytest.mark.parametrize("network", ["none", "proxy", "open"])
async def test_an_agents_own_network_has_nothing_but_loopback(bench: Bench, network: Network) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = json.loads(await run(bench, DIRECT, str(listener.getsockname()[1]), network=network))
    assert found["tcp to loopback"] is (network == "open")
    if network != "open":
        assert not any(found.values())


@needs("bwrap")
async def test_a_listed_model_is_reached_through_the_proxy_and_nothing_else(
    bench: Bench, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    place = place_of(endpoint)
    with running(0) as other, caplog.at_level(logging.WARNING):
        good, bad, again = await fetch(
            bench,
            f"{endpoint.url}/v1/messages",
            f"{other.url}/v1/messages",
            f"{other.url}/v1/messages",
            hosts=(place,),
        )
        assert other.requests() == []
    assert good[0] == 200
    assert len(endpoint.requests()) == 1
    wanted = place_of(other)
    words = f'mine may not reach {wanted}; to allow it, add "{wanted}" to `hosts` of [agents.mine]'
    assert bad == again == (403, f"{words}\n")
    assert [row.message for row in caplog.records if "may not reach" in row.message] == [words]


@needs("bwrap")
async def test_a_name_of_a_private_address_needs_the_address_listed(bench: Bench, endpoint: Endpoint) -> None:
    port = place_of(endpoint).rpartition(":")[2]
    url, name = f"http://localhost:{port}/v1/messages", f"localhost:{port}"
    ((status, words),) = await fetch(bench, url, hosts=(name,))
    assert (status, endpoint.requests()) == (403, [])
    assert "that is not a public address; to allow it, add " in words
    ((status, words),) = await fetch(bench, url, hosts=(name, f"127.0.0.1:{port}", f"[::1]:{port}"))
    assert status == 200, words


@needs("bwrap")
async def test_its_own_loopback_is_not_asked_of_the_proxy_unless_it_is_listed(bench: Bench) -> None:
    code = "import os; print(os.environ['NO_PROXY'], os.environ['no_proxy'], os.environ['http_proxy'])"
    own = await run(bench, code, network="proxy", hosts=("127.0.0.1:9",))
    assert own.split() == ["localhost,::1", "localhost,::1", f"http://127.0.0.1:{PORT}"]
    none = "import os; print([name for name in os.environ if name.upper().endswith('_PROXY')])"
    assert await run(bench, none, network="none") == "[]\n"


@needs("bwrap")
async def test_a_tunnel_carries_bytes_both_ways_until_both_ends_are_done(bench: Bench) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            (await reader.read()).upper()
        )  # to the end of the input: a half-closed tunnel must go on
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    code = RAW.replace(
        'proxy.sendall(sys.argv[1].encode("latin-1"))',
        'proxy.sendall(sys.argv[1].encode()); proxy.recv(39); proxy.sendall(b"a" * 300_000);'
        " proxy.shutdown(socket.SHUT_WR)",
    )
    said = await run(bench, code, f"CONNECT {place} HTTP/1.1\r\n\r\n", network="proxy", hosts=(place,))
    server.close()
    assert said == "A" * 300_000


@needs("bwrap")
@pytest.mark.parametrize(
    ("ask", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("CONNECT example.com HTTP/1.1\r\n\r\n", 400),
        ("CONNECT example.com:x HTTP/1.1\r\n\r\n", 400),
        ("GET ftp://example.com/ HTTP/1.1\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("GET http://[::1/ HTTP/1.1\r\n\r\n", 400),
        ("CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n", 403),
        ("CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\n\r\n", 403),
        ("CONNECT 127.1:443 HTTP/1.1\r\n\r\n", 403),
        ("GET http://listed.example@evil.example/ HTTP/1.1\r\n\r\n", 403),
        ("CONNECT no-such-name.invalid:443 HTTP/1.1\r\n\r\n", 502),
        (f"GET http://listed.example/ HTTP/1.1\r\nX: {'a' * 40_000}\r\n\r\n", 431),
    ],
)
async def test_what_the_proxy_does_not_do(bench: Bench, ask: str, status: int) -> None:
    said = await run(bench, RAW, ask, network="proxy", hosts=("listed.example", "no-such-name.invalid"))
    assert said.startswith(f"HTTP/1.1 {status} "), said[:200]


@needs("bwrap")
async def test_a_host_gets_its_own_name_and_a_plain_path(bench: Bench) -> None:
    heard = bytearray()

    def serve(listener: socket.socket) -> None:
        with listener.accept()[0] as peer:
            while b"\r\n\r\nbody" not in heard:
                heard.extend(peer.recv(65536))
            peer.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        ask = (
            f"POST http://user@{place}/a/b?c=d#e HTTP/1.1\r\nHost: elsewhere\r\n"
            "Proxy-Authorization: secret\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody"
        )
        said = await run(bench, RAW, ask, network="proxy", hosts=(place,))
        await asyncio.to_thread(thread.join)
    assert said == "HTTP/1.1 204 No Content\r\n\r\n"
    assert heard.decode() == (
        f"POST /a/b?c=d HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
    )


@needs("bwrap")
async def test_a_name_is_resolved_once_and_that_address_is_connected_to(
    bench: Bench, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name whose second answer is another address gains nothing by it."""
    port = int(place_of(endpoint).rpartition(":")[2])
    asked: list[str] = []
    real = socket.getaddrinfo

    def lie(host: Any, *rest: Any, **more: Any) -> Any:
        if host != "rebinding.example":
            return real(host, *rest, **more)
        asked.append(host)
        address = "127.0.0.2" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", lie)
    hosts = (f"rebinding.example:{port}", f"127.0.0.2:{port}")
    ((status, words),) = await fetch(bench, f"http://rebinding.example:{port}/v1/messages", hosts=hosts)
    assert asked == ["rebinding.example"]
    assert status == 502
    assert "cannot be reached" in words
    assert endpoint.requests() == []


@needs("bwrap")
async def test_the_servers_own_port_is_refused_even_if_listed(bench: Bench, endpoint: Endpoint) -> None:
    place = place_of(endpoint)
    port = int(place.rpartition(":")[2])
    found = bench.spawner.containment
    bench.spawner = Spawner(found, bench.data, BOOT, networks=Networks(own_port=port))
    ((status, words),) = await fetch(bench, f"{endpoint.url}/v1/messages", hosts=(place,))
    assert (status, words) == (403, "that is the server's own port, which agents do not reach\n")


@needs("bwrap")
async def test_the_servers_setting_counts_where_an_agent_has_none(bench: Bench, endpoint: Endpoint) -> None:
    found = bench.spawner.containment
    networks = Networks("proxy", (place_of(endpoint),))
    bench.spawner = Spawner(found, bench.data, BOOT, networks=networks)
    process = await bench.spawn(sys.executable, "-I", "-S", "-c", FETCH, f"{endpoint.url}/v1/messages")
    assert json.loads(await asyncio.wait_for(process.stdout.readline(), 60))[0] == 200


@pytest.mark.parametrize("kind", ["tree", pytest.param("landlock", marks=needs("landlock"))])
@pytest.mark.parametrize("network", ["none", "proxy"])
async def test_without_bubblewrap_such_an_agent_does_not_start(
    tmp_path: Path, kind: str, network: Network
) -> None:
    async with bench_on(tmp_path, kind) as bench:
        with pytest.raises(AgentStartFailed, match=f"network {network} needs bubblewrap"):
            await run(bench, "print(1)", network=network)


@needs("bwrap")
async def test_the_way_out_ends_with_the_agent(bench: Bench) -> None:
    process = await bench.spawner.spawn(
        ["cat"],
        cwd=bench.workspace,
        home=bench.home,
        env=bench.env(),
        tag=SESSION,
        policy=Policy(agent="mine", network="proxy"),
    )
    before = {task.get_name() for task in asyncio.all_tasks()}
    assert process.egress is not None
    await process.close()
    assert not process.egress.is_open
    assert {task.get_name() for task in asyncio.all_tasks()} <= before


def test_no_descriptor_of_a_failed_start_is_left(tmp_path: Path) -> None:
    async def attempt() -> None:
        for name in ("data", "home", "work"):
            (tmp_path / name).mkdir(exist_ok=True)
        spawner = Spawner(containment("bwrap"), tmp_path / "data", BOOT)
        with contextlib.suppress(AgentStartFailed, WorkspaceChanged):
            await spawner.spawn(
                ["/etc/hostname"],
                cwd=tmp_path / "gone",
                home=tmp_path / "home",
                env={"PATH": "/bin"},
                tag=SESSION,
                policy=Policy(network="proxy"),
            )

    asyncio.run(attempt())
    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(attempt())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
