"""Completion in the line: slash commands of ours and of the agent, and files behind an @."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from clawdforge.cli.repl.commands import Commands
from clawdforge.cli.repl.conversation import Conversation

MOST_FILES: Final = 50


class WordCompleter(Completer):
    def __init__(self, conversation: Conversation, commands: Commands) -> None:
        self._conversation = conversation
        self._commands = commands

    def expects(self, document: Document) -> bool:
        """Whether what is typed may be completed. Otherwise no rows are kept free for a list."""
        text = document.text_before_cursor
        return text.startswith("/") or (text.split(" ")[-1].split("\n")[-1].startswith("@"))

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the library's signature
        text = document.text_before_cursor
        if text.startswith("/") and " " not in text and "\n" not in text:
            yield from self._complete_command(text)
        else:
            word = text.rsplit(maxsplit=1)[-1] if text and not text[-1].isspace() else ""
            if word.startswith("@"):
                yield from complete_files(Path(str(self._conversation.row["cwd"])), word[1:])

    def _complete_command(self, text: str) -> Iterable[Completion]:
        ours = self._commands.help()
        for name, about in ours.items():
            if name.startswith(text):
                yield Completion(name, start_position=-len(text), display_meta=about)
        for name in self._conversation.view.commands:
            if f"/{name}".startswith(text) and f"/{name}" not in ours:
                yield Completion(f"/{name}", start_position=-len(text), display_meta="of the agent")


def complete_files(folder: Path, typed: str) -> Iterable[Completion]:
    """Names in the folder that the typed path leads to; hidden ones only when asked for."""
    head, _, start = typed.rpartition("/")
    try:
        entries = sorted(os.scandir(folder / head), key=lambda entry: entry.name)
    except OSError:
        return
    shown = [entry for entry in entries if entry.name.startswith(start)]
    shown = [entry for entry in shown if start.startswith(".") or not entry.name.startswith(".")]
    for entry in shown[:MOST_FILES]:
        yield Completion(entry.name + ("/" if entry.is_dir() else ""), start_position=-len(start))
