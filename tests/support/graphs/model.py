"""A chat model that does what the prompt says, in the words of the scripted agent; tools are called as tools.

A script is run line by line. A line that needs a tool (`tool`, `ask`, `call`) ends the model's message with a
tool call; when the model is called again, with the result, it goes on behind that line.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

LIFETIME: Final = 60
NAME: Final = "scripted-model"


class ScriptedFailure(Exception):
    """What the script's `error` raises."""


class ScriptedModel(BaseChatModel):
    """Streams what the last prompt's script says."""

    @property
    def _llm_type(self) -> str:
        return NAME

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:  # noqa: ARG002 - it knows them
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - part of the interface
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        whole = AIMessageChunk(content="")
        for part in Script(messages).play():
            whole = whole + (part if isinstance(part, AIMessageChunk) else AIMessageChunk(content=""))
        return ChatResult(generations=[ChatGeneration(message=whole)])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - part of the interface
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> AsyncIterator[ChatGenerationChunk]:
        for part in Script(messages).play():
            if isinstance(part, float):
                await asyncio.sleep(part)
                continue
            chunk = ChatGenerationChunk(message=part)
            if run_manager and part.content:
                await run_manager.on_llm_new_token(str(part.content), chunk=chunk)
            yield chunk


class Script:
    """One call of the model: the lines that are due now."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._check(messages)
        last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
        self._before = [m for m in messages[:last] if isinstance(m, HumanMessage)]
        self._context = _blocks(messages[last])[:-1]
        self._lines = _blocks(messages[last])[-1].split("\n")
        self._results = [m for m in messages[last:] if isinstance(m, ToolMessage)]
        self._number = last
        self._usage = (3, 2, 0)
        self._stop = "stop"
        self._plain: list[str] = []

    def _check(self, messages: Sequence[BaseMessage]) -> None:
        """As real models do: a call without a result is refused."""
        answered = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
        calls = [call["id"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
        if set(calls) - answered:
            raise ScriptedFailure("a tool call has no result")

    def play(self) -> Iterator[AIMessageChunk | float]:
        """Chunks to send, and seconds to wait."""
        skip = len(self._results)
        if skip and self._results[-1].name == "ask":
            yield _say(str(self._results[-1].content))
        for line in self._lines:
            word, _, rest = line.partition(" ")
            if word in ("tool", "ask", "call"):
                skip -= 1
                if skip < 0:
                    yield from self._flush()
                    yield self._call(word, rest)
                    break
                self._plain = []
            elif skip <= 0:
                yield from self._line(word, rest, line)
        else:
            yield from self._flush()
        yield self._end()

    def _line(self, word: str, rest: str, line: str) -> Iterator[AIMessageChunk | float]:
        known = getattr(self, f"_do_{word.replace('-', '_')}", None)
        if known is None:
            self._plain.append(line)
            return
        yield from self._flush()
        yield from known(rest)

    def _flush(self) -> Iterator[AIMessageChunk]:
        plain, self._plain = "\n".join(self._plain), []
        if plain.strip():
            yield _say(plain)

    def _call(self, word: str, rest: str) -> AIMessageChunk:
        name, _, tail = rest.partition(" ")
        if word == "call":
            word, arguments = name, json.loads(tail or "{}")
        elif word == "ask":
            arguments = {"title": rest}
        else:
            arguments = {"name": name, "delay_ms": int(tail or 0)}
        number = f"call_{self._number}_{len(self._results)}"
        return AIMessageChunk(
            content="",
            tool_call_chunks=[tool_call_chunk(name=word, args=json.dumps(arguments), id=number, index=0)],
        )

    def _end(self) -> AIMessageChunk:
        taken, given, cached = self._usage
        return AIMessageChunk(
            content="",
            usage_metadata={
                "input_tokens": taken + cached,
                "output_tokens": given,
                "total_tokens": taken + given + cached,
                "input_token_details": {"cache_read": cached},
            },
            response_metadata={"finish_reason": self._stop, "model_name": NAME},
            chunk_position="last",
        )

    def _do_echo(self, rest: str) -> Iterator[AIMessageChunk]:
        yield _say(rest)

    def _do_chunks(self, rest: str) -> Iterator[AIMessageChunk | float]:
        count, size, delay = ([int(word) for word in rest.split()] + [0, 0])[:3]
        for number in range(1, count + 1):
            yield _say(f"{number} ".ljust(size, "."))
            if delay:
                yield delay / 1000

    def _do_bytes(self, rest: str) -> Iterator[AIMessageChunk]:
        yield _say("x" * int(rest))

    def _do_sleep(self, rest: str) -> Iterator[float]:
        yield float(rest)

    def _do_hang(self, _rest: str) -> Iterator[float]:
        yield float(LIFETIME)

    def _do_usage(self, rest: str) -> Iterator[AIMessageChunk]:
        taken, given, cached = ([int(word) for word in rest.split()] + [0])[:3]
        self._usage = (taken, given, cached)
        yield from ()

    def _do_refuse(self, _rest: str) -> Iterator[AIMessageChunk]:
        self._stop = "refusal"
        yield from ()

    def _do_max_tokens(self, _rest: str) -> Iterator[AIMessageChunk]:
        self._stop = "length"
        yield from ()

    def _do_error(self, rest: str) -> Iterator[AIMessageChunk]:
        raise ScriptedFailure(rest)

    def _do_crash(self, rest: str) -> Iterator[AIMessageChunk]:
        os._exit(int(rest or 1))

    def _do_recall(self, rest: str) -> Iterator[AIMessageChunk]:
        found = [_blocks(message) for message in self._before]
        texts = [text for blocks in found for text in (blocks if rest == "all" else blocks[-1:])]
        yield _say(json.dumps(texts, ensure_ascii=False))

    def _do_cwd(self, _rest: str) -> Iterator[AIMessageChunk]:
        yield _say(str(Path.cwd()))

    def _do_home(self, _rest: str) -> Iterator[AIMessageChunk]:
        yield _say(os.environ["HOME"])

    def _do_env(self, _rest: str) -> Iterator[AIMessageChunk]:
        yield _say(json.dumps(sorted(os.environ)))

    def _do_stderr(self, rest: str) -> Iterator[AIMessageChunk]:
        sys.stderr.write("e" * int(rest) + "\n")
        yield from ()

    def _do_garbage(self, rest: str) -> Iterator[AIMessageChunk]:
        for number in range(int(rest)):
            print("this is no JSON {", number, flush=True)
        yield from ()

    def _do_children(self, rest: str) -> Iterator[AIMessageChunk]:
        yield _say(" ".join(str(_sleeper()) for _ in range(int(rest))))

    def _do_daemon(self, rest: str) -> Iterator[AIMessageChunk]:
        yield _say(str(_sleeper(Path(rest or "daemon.log"))))


def _say(text: str) -> AIMessageChunk:
    return AIMessageChunk(content=text)


def _blocks(message: BaseMessage) -> list[str]:
    content = message.content
    if isinstance(content, str):
        return [content]
    return [str(block["text"]) for block in content if isinstance(block, dict)]


def _sleeper(path: Path | None = None) -> int:
    """A process in a session of its own, which shows its life by a growing file."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    end = time.monotonic() + LIFETIME
    while time.monotonic() < end:
        if path is not None:
            with path.open("a") as file:
                file.write("x")
        time.sleep(0.05)
    os._exit(0)
