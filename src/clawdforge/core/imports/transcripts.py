"""Reads the session files of Claude Code and Codex as transcripts. Unknown lines are skipped."""

from dataclasses import dataclass, field
from typing import Any, Final

from clawdforge.core.rules.projection import shorten
from clawdforge.wire.base import Json
from clawdforge.wire.message import CALL_ID, CALL_INPUT, CALL_OUTPUT, Role

NOISE: Final = (
    *("<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-caveat>"),
    *(
        "<environment_context>",
        "<user_instructions>",
        "<permissions instructions>",
        "# AGENTS.md instructions",
    ),
)
"""How texts begin that a tool inserted in the user's name."""


@dataclass
class Line:
    """One message while it is assembled: an answer comes in many pieces."""

    role: Role
    parts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    tools: dict[str, Json] = field(default_factory=dict)
    at: Any = None
    is_summary: bool = False

    @property
    def text(self) -> str:
        return "\n\n".join(self.parts)

    @property
    def thinking(self) -> str:
        return "\n\n".join(self.thoughts)


@dataclass
class Transcript:
    lines: list[Line] = field(default_factory=list)
    title: str = ""
    model: str = ""
    skipped: int = 0

    def add_user(self, text: str, at: Any, *, is_summary: bool = False) -> None:
        if not text.strip() or text.lstrip().startswith(NOISE):
            self.skipped += 1
            return
        self.lines.append(Line(Role.USER, [text], at=at, is_summary=is_summary))

    def current_answer(self, at: Any) -> Line:
        """The answer in progress: everything until the user's next message belongs to one answer."""
        if not self.lines or self.lines[-1].role is not Role.ASSISTANT:
            self.lines.append(Line(Role.ASSISTANT, at=at))
        return self.lines[-1]

    def add_call(self, call_id: Any, name: Any, arguments: Any, at: Any) -> None:
        tool = {CALL_ID: str(call_id), "title": str(name or "tool"), CALL_INPUT: shorten(arguments)}
        self.current_answer(at).tools[str(call_id)] = tool

    def add_result(self, call_id: Any, output: Any) -> None:
        for line in reversed(self.lines):
            if str(call_id) in line.tools:
                line.tools[str(call_id)] |= {CALL_OUTPUT: shorten(output), "status": "completed"}
                return
        self.skipped += 1


def read_claude(lines: list[Json]) -> Transcript:
    """`~/.claude/projects/*/*.jsonl`."""
    transcript = Transcript()
    for line in lines:
        kind, message = line.get("type"), line.get("message")
        if kind in ("summary", "ai-title", "custom-title"):
            title = line.get("summary") or line.get("customTitle") or line.get("aiTitle")
            transcript.title = title[:500] if isinstance(title, str) else transcript.title
        elif not isinstance(message, dict) or _is_aside(line):
            transcript.skipped += 1
        elif kind == "user":
            _claude_user(transcript, line, message.get("content"))
        else:
            model = message.get("model")
            transcript.model = (
                model if isinstance(model, str) and not model.startswith("<") else transcript.model
            )
            _claude_answer(transcript, message.get("content"), line.get("timestamp"))
    return transcript


def _is_aside(line: Json) -> bool:
    """Whether the line is not part of the conversation: a tool's own remark, or a sub-agent's talk."""
    said = line.get("type") in ("user", "assistant")
    return not said or line.get("isSidechain") is True or line.get("isMeta") is True


def _claude_user(transcript: Transcript, line: Json, content: Any) -> None:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = []
    for block in _dicts(blocks):
        if block.get("type") == "tool_result":
            transcript.add_result(block.get("tool_use_id"), block.get("content"))
        elif isinstance(block.get("text"), str):
            texts.append(block["text"])
    if texts:
        summary = line.get("isCompactSummary") is True
        transcript.add_user("\n".join(texts), line.get("timestamp"), is_summary=summary)


def _claude_answer(transcript: Transcript, content: Any, at: Any) -> None:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in _dicts(blocks):
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            transcript.current_answer(at).parts.append(block["text"])
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            transcript.current_answer(at).thoughts.append(block["thinking"])
        elif kind == "tool_use":
            transcript.add_call(block.get("id"), block.get("name"), block.get("input"), at)


def read_codex(lines: list[Json]) -> Transcript:
    """`~/.codex/sessions/**/rollout-*.jsonl`; older ones have the items without an envelope."""
    transcript = Transcript()
    for line in lines:
        kind, payload = line.get("type"), line.get("payload")
        if kind == "turn_context" and isinstance(payload, dict) and isinstance(payload.get("model"), str):
            transcript.model = payload["model"]
        item = payload if kind == "response_item" else line if "payload" not in line else None
        if isinstance(item, dict):
            _codex_item(transcript, item, line.get("timestamp"))
    return transcript


def _codex_item(transcript: Transcript, item: Json, at: Any) -> None:
    kind, role = item.get("type"), item.get("role")
    if kind == "message":
        text = "\n".join(str(part["text"]) for part in _dicts(item.get("content")) if part.get("text"))
        if role == "user":
            transcript.add_user(text, at)
        elif role == "assistant" and text:
            transcript.current_answer(at).parts.append(text)
        else:
            transcript.skipped += 1
    elif kind == "reasoning":
        thoughts = [str(part["text"]) for part in _dicts(item.get("summary")) if part.get("text")]
        if thoughts:
            transcript.current_answer(at).thoughts += thoughts
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        arguments = item.get("arguments") or item.get("input") or item.get("action")
        transcript.add_call(item.get("call_id") or item.get("id"), item.get("name") or kind, arguments, at)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        transcript.add_result(item.get("call_id"), item.get("output"))
    else:
        transcript.skipped += 1


def _dicts(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
