"""Agents that are known by name. Each is an installed program; nothing is fetched when it is started."""

import sys
from pathlib import Path
from typing import Final

from clawdforge.core.model import AgentSpec

DEMO: Final = "demo"
SCRIPT: Final = Path(__file__).parent.parent / "testing" / "agent" / "__main__.py"

BUILTIN: Final = (
    AgentSpec(
        name=DEMO,
        driver="acp",
        title="Demo: answers without any key",
        command=(sys.executable, "-I", "-S", str(SCRIPT), "--demo"),
    ),
    AgentSpec(
        name="claude",
        driver="acp",
        title="Claude Code",
        command=("claude-agent-acp",),
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        env=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
        set_env={"IS_SANDBOX": "1"},
        credentials=(".claude/.credentials.json",),
    ),
    AgentSpec(
        name="codex",
        driver="acp",
        title="Codex",
        command=("codex-acp",),
        install="npm install -g @agentclientprotocol/codex-acp",
        env=("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"),
        credentials=(".codex/auth.json",),
    ),
    AgentSpec(
        name="gemini",
        driver="acp",
        title="Gemini CLI",
        command=("gemini", "--acp"),
        install="npm install -g @google/gemini-cli",
        env=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    ),
    AgentSpec(
        name="goose",
        driver="acp",
        title="goose",
        command=("goose", "acp"),
        install="npm install -g @aaif/goose",
        env=("GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_API_KEY", "OPENAI_HOST", "ANTHROPIC_API_KEY"),
        set_env={"GOOSE_DISABLE_KEYRING": "1"},
    ),
    AgentSpec(
        name="opencode",
        driver="acp",
        title="opencode",
        command=("opencode", "acp"),
        install="npm install -g opencode-ai",
        env=("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    ),
)
