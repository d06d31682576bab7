"""Builds an agent's environment from nothing, by an allow-list."""

from collections.abc import Mapping
from pathlib import Path

from clawdforge.core.models.agents import AgentSpec
from clawdforge.wire.quirks import Quirks

OURS = "CLAWDFORGE_"
PASSED = ("PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL")
NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
"""How this machine reaches a model: every agent needs these. Proxies count in upper and lower case."""

TEMPORARY = ".tmp"  # in the home, so that it goes with the session
DEFAULTS = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}


def agent_env(
    spec: AgentSpec, home: Path, operator_env: Mapping[str, str], containment: str = "tree"
) -> dict[str, str]:
    """`CLAWDFORGE_…` variables are never passed on, whatever is configured: they hold secrets.

    What an agent is given only inside bubblewrap holds where the operator says nothing else.
    """
    own = Quirks.model_validate(spec.quirks).contained_env if containment.startswith("bwrap") else {}
    env = DEFAULTS | {name: value for name, value in own.items() if not name.startswith(OURS)}
    for name, value in operator_env.items():
        network = name.upper() in NETWORK or name in CERTIFICATES
        allowed = name in PASSED or name.startswith("LC_") or network or name in spec.env
        if allowed and not name.startswith(OURS):
            env[name] = value
    env |= {"HOME": str(home), "TMPDIR": str(home / TEMPORARY), "TERM": "dumb"}
    env |= {name: value for name, value in spec.set_env.items() if not name.startswith(OURS)}
    return env
