"""The friendly face: small talk that shows what a durable conversation is, without a key or a model."""

from __future__ import annotations

import posix as os

from clawdforge.scripted.looking import ask
from clawdforge.scripted.script import Command, Step, parse_line
from clawdforge.scripted.talking import show_plan, tool
from clawdforge.scripted.turn import Turn

WORD_DELAY = 0.02
ANSWER_TIME = 1.0  # seconds that the words of one answer take together, at most
QUICK_TIME = 0.01  # the same, of the very first answer that somebody waits for: `clawdforge -p "Say hello."`

HELLO = (
    "Hello! I am the demo agent: a small program on your own machine. I need no key, no model, no network. "
    "Every word you read here was on disk before you saw it. So reload the page, open a second window, "
    "or stop the server in the middle of a sentence: when you come back, all of this is still here, "
    "and I remember it too. "
    'Try "what did I say?", "tool", "plan", "permission" or "help".'
)
HELP = (
    'I understand a few things. "What did I say?" shows that I remember. "tool" shows a tool call, '
    '"plan" a plan, "permission" asks you a question first. "status" tells where we are. '
    "A line that begins with a slash is a command for testers, such as /chunks 20 or /sleep 3. "
    "Everything else I keep, and answer politely. When you are ready, start a session with a real agent: "
    "it will be kept in the same way."
)


def speak(turn: Turn, text: str, secs: float = ANSWER_TIME) -> None:
    """Say a text word by word."""
    words = text.split(" ")
    delay = min(WORD_DELAY, secs / len(words))
    for number, word in enumerate(words, 1):
        turn.say(word if number == len(words) else word + " ")
        turn.sleep(delay)


def answer(turn: Turn, text: str) -> None:
    words = {word.strip(".,;:!?\"'").lower() for word in text.split()}
    if {"did", "say"} <= words or words & {"recall", "remember"}:
        _remember(turn)
    elif words & {"tool", "tools"}:
        _use_tool(turn)
    elif words & {"plan", "plans"}:
        _make_plan(turn)
    elif words & {"permission", "permissions"}:
        ask(turn, "Wave at you")
        speak(turn, " (so you decided; that is on record as well)")
    elif words & {"status", "where"}:
        speak(turn, _status(turn))
    elif words & {"help", "commands"} or text.strip() == "?":
        speak(turn, HELP)
    elif words & {"hello", "hi", "hey", "hallo"} or not words:
        speak(turn, HELLO, QUICK_TIME if "say" in words else ANSWER_TIME)
    else:
        _reply(turn, text)


def steps(text: str, commands: dict[str, Command]) -> list[Step]:
    """Read a prompt: all lines are slash commands, or it is talk."""
    lines = [line for line in text.split("\n") if line.strip()]
    found = [parse_line(line[1:], commands) if line.startswith("/") else None for line in lines]
    known = [step for step in found if step is not None]
    return known if known and len(known) == len(lines) else [Step(answer, [text])]


def _remember(turn: Turn) -> None:
    said = turn.session.memory.texts("user")[:-1]
    if not said:
        speak(turn, "Nothing yet: this was your first message. Say something, and ask me again.")
        return
    shown = said[-12:]
    first = len(said) - len(shown) + 1
    rows = "\n".join(f"{number}. {_short(text)}" for number, text in enumerate(shown, first))
    things = "one thing" if len(said) == 1 else f"{len(said)} things"
    speak(turn, f"Before this you said {things}. I kept them in my own home:\n\n{rows}")


def _use_tool(turn: Turn) -> None:
    names = sorted(os.listdir(turn.session.cwd))[:20]
    tool(turn, "search", 300, "\n".join(names) or "(empty)")
    things = {0: "It is empty", 1: "There is one thing in it"}.get(
        len(names), f"There are {len(names)} things in it"
    )
    speak(turn, f"I looked into our workspace with a tool. {things}. The call and its result are in the log.")


def _make_plan(turn: Turn) -> None:
    entries = ["Read your message", "Make a plan", "Tell you about it"]
    for done in range(len(entries) + 1):
        status = ["completed"] * done + ["in_progress"] + ["pending"] * len(entries)
        show_plan(turn, list(zip(entries, status, strict=False)))
        turn.sleep(0.15)
    speak(turn, "That was a plan with three steps, and each step was an event of its own.")


def _status(turn: Turn) -> str:
    return (
        f"This is message {turn.number} of our conversation. I know it as {turn.session.name}, "
        f"I work in {turn.session.cwd}, and I am process {os.getpid()}. If I am stopped, another process "
        "picks up my memory and goes on."
    )


def _reply(turn: Turn, text: str) -> None:
    start = "Hello! " if turn.number == 1 else ""
    speak(
        turn,
        f"{start}You said: “{_short(text)}” I am only the demo agent, so I cannot think about it, "
        f"but I will not lose it: it is message {turn.number} here, on disk, with this answer. "
        'Ask me "what did I say?" whenever you like, or say "help".',
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"
