"""Which server to talk to: arguments, then the environment, then what a local server left on disk."""

from collections.abc import Mapping
from urllib.parse import urlsplit

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


def find_server(base_url: str | None, token: str | None, env: Mapping[str, str]) -> tuple[str, str]:
    """Address and token. The local token is only ever sent to this machine."""
    url = base_url or env.get(ENV_URL)
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
