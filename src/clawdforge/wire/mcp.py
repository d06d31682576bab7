"""MCP servers whose tools an agent is given: programs that it starts, or addresses. Secrets are named."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from clawdforge.wire.base import StrictRequest

MAX_SERVERS: Final = 16
MAX_BYTES: Final = 16 * 1024
"""Of all servers of one session or app together: they are part of a row that lists read."""

MAX_SECRETS: Final = 64
SECRET_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]{0,127}"  # noqa: S105 - what a name looks like
REFERENCE: Final = re.compile(rf"\$\$\{{|\$\{{({SECRET_NAME})\}}")
"""A secret's name, or an escape, which has none."""

CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def _check_plain(value: str) -> str:
    if CONTROL.search(value):
        raise ValueError("it has a character that does not print")
    return value


def _check_url(value: str) -> str:
    parts = urlsplit(_check_plain(value))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("give an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("leave a password out of the address; give it as a header")
    return value


def _check_word(value: str) -> str:
    if "\0" in value:
        raise ValueError("it has a character that no command can have")
    return value


Word = Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_check_word)]
Url = Annotated[str, StringConstraints(max_length=2048), AfterValidator(_check_url)]
Value = Annotated[str, StringConstraints(max_length=8192), AfterValidator(_check_word)]
HeaderValue = Annotated[str, StringConstraints(max_length=8192), AfterValidator(_check_plain)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Header = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")]
McpName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
SecretName = Annotated[str, StringConstraints(pattern=f"^{SECRET_NAME}$")]


class McpServer(StrictRequest):
    """Give either `command`, with `env`, or `url`, with `headers`.

    In the values of `env` and `headers`, `${NAME}` stands for the secret of that name, and `$${` for `${`.
    """

    command: list[Word] | None = Field(default=None, min_length=1, max_length=64)
    url: Url | None = None
    env: dict[Variable, Value] = Field(default_factory=dict, max_length=64, repr=False)
    headers: dict[Header, HeaderValue] = Field(default_factory=dict, max_length=64, repr=False)

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command or url")
        if self.command is None and self.env:
            raise ValueError("env is for a server with a command; give headers")
        if self.url is None and self.headers:
            raise ValueError("headers are for a server with a url; give env")
        return self

    def list_secrets(self) -> list[str]:
        """The names of the secrets that it needs."""
        values = (*self.env.values(), *self.headers.values())
        return sorted({name for value in values for name in REFERENCE.findall(value) if name})


def fill_value(value: str, secrets: Mapping[str, str]) -> str:
    """With its secrets in place, all of which must be there."""
    return REFERENCE.sub(lambda found: secrets[found[1]] if found[1] else "${", value)


def escape_value(value: str) -> str:
    """What `fill_value` turns into this value again, so that nothing in it names a secret."""
    return value.replace("${", "$${")


def _check_size(servers: dict[str, McpServer]) -> dict[str, McpServer]:
    size = sum(len(name) + len(server.model_dump_json()) for name, server in servers.items())
    if size > MAX_BYTES:
        raise ValueError(f"they take {size} bytes as JSON; {MAX_BYTES} are allowed")
    return servers


McpServers: TypeAlias = Annotated[
    dict[McpName, McpServer], Field(max_length=MAX_SERVERS), AfterValidator(_check_size)
]
