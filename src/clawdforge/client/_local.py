"""Which server to talk to: arguments, then the environment, then what a local server left on disk."""

import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

from clawdforge.client import _lazy as lazy
from clawdforge.client._folder import is_loopback, local_token, lock_url
from clawdforge.client.errors import NoServerKnown
from clawdforge.wire.local import (
    ENV_TOKEN,
    ENV_URL,
    LOCK_FILE,
    TOKEN_FILE,
    data_dir_default,
    default_url,
)

log = logging.getLogger(__name__)


def is_left_to_us(base_url: str | None, token: str | None, env: Mapping[str, str]) -> bool:
    """Whether nobody names a server: then it is the one on the data folder, and may be started."""
    return not (base_url or env.get(ENV_URL)) and token is None and env.get(ENV_TOKEN) is None


def ensure_local(env: Mapping[str, str]) -> str:
    """The address of the data folder's server, which is started when there is none."""
    return lazy.background.ensure_server(
        data_dir_default(env).absolute(), log.info, lazy.import_for_an_answer
    )


def find_server(
    base_url: str | None, token: str | None, env: Mapping[str, str], *, start: bool = False
) -> tuple[str, str]:
    """Address and token. The local token is only ever sent to this machine."""
    url = base_url or env.get(ENV_URL)
    if start and is_left_to_us(base_url, token, env):
        url = ensure_local(env)
    token = token if token is not None else env.get(ENV_TOKEN)
    folder = data_dir_default(env)
    if not url:
        url = lock_url(folder) or (default_url() if token is not None else None)
    if not url:
        raise NoServerKnown(
            f"no server is known: start one with `clawdforge serve`, or set {ENV_URL} and {ENV_TOKEN}"
            f" (looked for {folder / LOCK_FILE})"
        )
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise NoServerKnown(f"{url!r} is not the address of a server: it begins with http:// or https://")
    if token is None:
        token = local_token(folder) if is_loopback(url) else None
    if token is None:
        raise NoServerKnown(
            f"no token for {url}: pass token=…, or set {ENV_TOKEN}"
            f" (the one in {folder / TOKEN_FILE} is for a server on this machine only)"
        )
    return url.rstrip("/"), token
