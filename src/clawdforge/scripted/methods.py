"""The ACP methods of the agent: what each request does, and the worker that runs a session's turns."""

from __future__ import annotations

import posix as os
import time
from _thread import start_new_thread

from clawdforge.scripted import demo
from clawdforge.scripted.connection import Connection, RpcError
from clawdforge.scripted.memory import Home, append
from clawdforge.scripted.options import Options
from clawdforge.scripted.script import Command, Step, parse
from clawdforge.scripted.talking import echo, usage
from clawdforge.scripted.turn import Cancelled, Refused, Session, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:  # at a start this would be a tenth of what is imported
    from collections.abc import Callable

MODES = (("default", "Default"), ("plan", "Plan"))
MODELS = (("scripted-1", "Scripted 1"), ("scripted-2", "Scripted 2"))
ANNOUNCED = ("recall", "count", "summary")
REPLAYED = {"user": "user_message_chunk", "context": "user_message_chunk", "assistant": "agent_message_chunk"}

Params = dict[str, object]


class Methods:
    """Answers requests in the reading thread; prompts run in a thread for each session."""

    def __init__(self, connection: Connection, options: Options, commands: dict[str, Command]) -> None:
        self._connection = connection
        self._options = options
        self._commands = commands
        self._home = Home(late="--lose-last" in options, sync="--fsync" in options)
        self._sessions: dict[str, Session] = {}
        self._known = "--auth-required" not in options
        self._handlers: dict[str, Callable[[Params], dict[str, object]]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/list": self._list,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_config,
        }
        if "--no-load" not in options:
            self._handlers["session/load"] = self._load
        if "--no-resume" not in options:
            self._handlers["session/resume"] = self._resume

    def handle(self, message: dict[str, object]) -> None:
        method, params = str(message["method"]), message.get("params")
        fields: Params = params if isinstance(params, dict) else {}
        if method == "session/cancel":
            self._cancel(fields)
            return
        if "id" not in message:
            return
        request = message["id"]
        try:
            if method == "session/prompt":
                self._prompt(request, fields)
                return
            result = self._handler(method)(fields)
        except RpcError as error:
            self._connection.refuse(request, error)
            return
        except OSError as problem:
            self._connection.refuse(request, RpcError(-32603, str(problem)))
            return
        self._connection.answer(request, result)
        if method == "session/new":
            self._announce(str(result["sessionId"]))

    def _handler(self, method: str) -> Callable[[Params], dict[str, object]]:
        if method not in self._handlers:
            raise RpcError(-32601, f"Method not found: {method}")
        return self._handlers[method]

    def flush(self) -> None:
        """Write what memory still holds back."""
        for session in self._sessions.values():
            session.memory.flush()

    def _initialize(self, _params: Params) -> dict[str, object]:
        abilities: dict[str, object] = {"close": {}, "list": {}}
        if "--no-resume" not in self._options:
            abilities["resume"] = {}
        title = "Demo" if "--demo" in self._options else "Scripted agent"
        methods = (
            [] if self._known else [{"id": "scripted", "name": "Log in", "description": "Any login will do."}]
        )
        return {
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": "--no-load" not in self._options,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": "--no-mcp-http" not in self._options, "sse": False},
                "sessionCapabilities": abilities,
            },
            "agentInfo": {"name": "clawdforge-scripted", "title": title, "version": "1"},
            "authMethods": methods,
        }

    def _authenticate(self, _params: Params) -> dict[str, object]:
        self._known = True
        return {}

    def _new(self, params: Params) -> dict[str, object]:
        self._admit()
        digits = os.urandom(16).hex()
        name = "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:]))
        session = Session(name, str(params.get("cwd") or os.getcwd()), self._home.memory(name))
        session.servers = params.get("mcpServers")
        self._home.save(name, session.head())
        self._start(session)
        return {"sessionId": name, **self._settings(session)}

    def _load(self, params: Params) -> dict[str, object]:
        session = self._open(params)
        self._replay(session)
        return self._settings(session)

    def _resume(self, params: Params) -> dict[str, object]:
        session = self._open(params)
        if "--replay-on-resume" in self._options:
            self._replay(session)
        return self._settings(session)

    def _open(self, params: Params) -> Session:
        self._admit()
        name = str(params.get("sessionId"))
        head = self._home.head(name)
        if head is None:
            raise RpcError(-32002, f"Session not found: {name}")
        self._end(name)
        session = Session(name, str(params.get("cwd") or head.get("cwd")), self._home.memory(name))
        session.servers = params.get("mcpServers")
        session.mode = str(head.get("mode", session.mode))
        session.model = str(head.get("model", session.model))
        self._start(session)
        return session

    def _list(self, params: Params) -> dict[str, object]:
        cwd = params.get("cwd")
        return {"sessions": [row for row in self._home.sessions() if cwd in (None, row["cwd"])]}

    def _close(self, params: Params) -> dict[str, object]:
        self._end(self._session(params).name)
        return {}

    def _set_mode(self, params: Params) -> dict[str, object]:
        session, mode = self._session(params), str(params.get("modeId"))
        if mode not in dict(MODES):
            raise RpcError(-32602, f"Unknown mode: {mode}")
        session.mode = mode
        self._home.save(session.name, session.head())
        return {}

    def _set_config(self, params: Params) -> dict[str, object]:
        session, value = self._session(params), str(params.get("value"))
        if params.get("configId") != "model":
            raise RpcError(-32602, f"Unknown option: {params.get('configId')}")
        session.model = value  # any name will do, as with an agent that asks its provider
        self._home.save(session.name, session.head())
        return {"configOptions": self._settings(session)["configOptions"]}

    def _cancel(self, params: Params) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None and "--ignore-cancel" not in self._options:
            for turn in list(session.turns):
                turn.cancel()

    def _prompt(self, request: object, params: Params) -> None:
        session = self._session(params)
        if session.forgotten:
            raise RpcError(-32002, "Resource not found")
        prompt = params.get("prompt")
        blocks = [
            str(block.get("text", ""))
            for block in (prompt if isinstance(prompt, list) else [])
            if isinstance(block, dict) and block.get("type") == "text"
        ]
        turn = Turn(self._connection, session, request, blocks or [""])
        turn.meta = params.get("_meta")
        if self._options.witness:
            seen = {"session": session.name, "prompt": turn.text, "pid": os.getpid(), "at": time.time()}
            append(self._options.witness, seen)
        session.turns.append(turn)
        session.inbox.put(turn)

    def _work(self, session: Session) -> None:
        while (turn := session.inbox.get()) is not None:
            try:
                self._run(turn)
            except Exception as problem:  # noqa: BLE001 - the top of the task: a defect here must not look like a hang
                turn.error = RpcError(-32603, f"scripted agent: {problem!r}")
            self._finish(turn)

    def _run(self, turn: Turn) -> None:
        memory = turn.session.memory
        memory.flush()
        for text in turn.context:
            memory.add("context", text)
        memory.add("user", turn.text)
        turn.number = memory.prompts
        try:
            for step in self._steps(turn.text):
                turn.check()
                step.run(turn, *step.arguments)
        except Cancelled:
            turn.stop = "end_turn" if "--end-turn-on-cancel" in self._options else "cancelled"
            turn.error = None
        except Refused as refused:
            turn.error = refused

    def _steps(self, text: str) -> list[Step]:
        if "--demo" in self._options:
            return demo.steps(text, self._commands)
        return parse(text, self._commands, echo)

    def _finish(self, turn: Turn) -> None:
        """Remember the answer, then give it: a kill right after the answer loses nothing."""
        if turn.usage is None:
            heard = sum(len(text.encode("utf-8", "surrogatepass")) for text in (*turn.context, turn.text))
            usage(turn, (heard + 3) // 4, (turn.said_bytes + 3) // 4)
        memory = turn.session.memory
        memory.add("assistant", turn.answer_text(), usage=turn.usage)
        turn.session.turns.remove(turn)
        result: dict[str, object] = {"stopReason": turn.stop}
        if "--no-usage" not in self._options:
            result["usage"] = dict(memory.usage) if "--usage-cumulative" in self._options else turn.usage
        for _ in range(turn.answers):
            if turn.error is None:
                self._connection.answer(turn.request, result)
            else:
                self._connection.refuse(turn.request, turn.error)
        if "--late-updates" in self._options:
            turn.say("late")

    def _admit(self) -> None:
        if not self._known:
            raise RpcError(-32000, "Authentication required")

    def _session(self, params: Params) -> Session:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is None:
            raise RpcError(-32002, f"Session not found: {params.get('sessionId')}")
        return session

    def _start(self, session: Session) -> None:
        self._sessions[session.name] = session
        start_new_thread(self._work, (session,))

    def _end(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session is not None:
            for turn in list(session.turns):
                turn.cancel()
            session.inbox.put(None)
            session.memory.flush()

    def _replay(self, session: Session) -> None:
        for line in session.memory.lines:
            kind = REPLAYED.get(str(line["role"]))
            if kind is not None and line["text"]:
                content = {"type": "text", "text": line["text"]}
                self._connection.update(session.name, {"sessionUpdate": kind, "content": content})

    def _announce(self, name: str) -> None:
        shown = [{"name": word, "description": self._commands[word].help} for word in ANNOUNCED]
        self._connection.update(
            name, {"sessionUpdate": "available_commands_update", "availableCommands": shown}
        )

    def _settings(self, session: Session) -> dict[str, object]:
        modes = [{"id": mode, "name": name} for mode, name in MODES]
        models = dict(MODELS)
        models.setdefault(session.model, session.model)
        model = {
            "id": "model",
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": session.model,
            "options": [{"value": value, "name": name} for value, name in models.items()],
        }
        return {"modes": {"currentModeId": session.mode, "availableModes": modes}, "configOptions": [model]}
