"""Ways of a body: many values, much depth, many parts, many bytes."""

from proofs.noise.way import Noisy, Way

MIB = 1 << 20
BOUNDARY = "noise"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def part(name: str, data: bytes, file: str = "") -> bytes:
    kind = f'; filename="{file}"' if file else ""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{kind}\r\n\r\n'
    return head.encode() + data + b"\r\n"


async def empty_objects(noisy: Noisy) -> None:
    """A body of nothing but `{}`, which is refused before it is parsed."""
    data = b'{"meta":[' + b"{}," * (noisy.size(10, 2) * MIB) + b"{}]}"
    await noisy.expect(413, "POST", "/sessions", data=data)


async def many_values(noisy: Noisy) -> None:
    """As many values as a body may just hold."""
    data = b'{"meta":{"a":[' + b"0," * 450_000 + b"0]}}"
    reply = await noisy.call("POST", "/sessions", data=data)
    noisy.bite(reply is None or 400 <= reply.status < 500)


async def deep_json(noisy: Noisy) -> None:
    data = b'{"meta":' + b'{"a":' * 500_000 + b"1" + b"}" * 500_000 + b"}"
    reply = await noisy.call("POST", "/sessions", data=data)
    noisy.bite(reply is None or 400 <= reply.status < 500)


async def tiny_parts(noisy: Noisy) -> None:
    data = part("x", b"") * noisy.size(100_000, 20_000) + f"--{BOUNDARY}--\r\n".encode()
    reply = await noisy.call("POST", "/files", data=data, headers=FORM)
    noisy.bite(reply is None or 400 <= reply.status < 500)


async def uploads(noisy: Noisy) -> None:
    data = part("file", b"x" * (noisy.size(24, 4) * MIB), "noise.bin") + f"--{BOUNDARY}--\r\n".encode()
    await noisy.expect(200, "POST", "/files", data=data, headers=FORM)


async def large_prompts(noisy: Noisy) -> None:
    """Bodies of many MiB that are good: they are stored, heard and answered."""
    session = await noisy.once("session", noisy.session)
    prompt = "x" * (noisy.size(2, 1) * MIB)
    await noisy.expect(202, "POST", f"/sessions/{session}/turns", {"prompt": prompt})


BODIES = (
    Way("empty objects", "a body of 10 million `{}`", empty_objects, hands=2),
    Way("many values", "bodies of 450,000 values", many_values),
    Way("deep JSON", "bodies 500,000 levels deep", deep_json),
    Way("tiny parts", "forms of 100,000 parts", tiny_parts),
    Way("uploads", "files of 24 MiB, four at a time", uploads),
    Way("large prompts", "prompts of 2 MiB", large_prompts, hands=2),
)
