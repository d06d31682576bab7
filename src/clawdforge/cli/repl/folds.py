"""What was pasted: many lines stand in the line as one word, and are sent whole."""

from typing import Final

from prompt_toolkit.history import FileHistory, InMemoryHistory

MOST_LINES: Final = 8
MOST_CHARS: Final = 2000
"""So much is shown as it is."""


class Folds:
    """The pastes of one conversation, each by the word that stands for it."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def fold(self, pasted: str) -> str:
        """What to put into the line for this."""
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= MOST_LINES and len(text) <= MOST_CHARS:
            return text
        size = f"{lines} lines" if lines > MOST_LINES else f"{len(text)} characters"
        word = f"[pasted #{len(self._kept) + 1}: {size}]"
        self._kept[word] = text
        return word

    def unfold(self, line: str) -> str:
        """The line with all that was pasted. A word that was changed by hand stands for nothing."""
        parts, at = [], 0
        while (begin := line.find("[pasted #", at)) >= 0:
            end = line.find("]", begin) + 1
            word = line[begin:end]
            parts += [line[at:begin], self._kept.get(word, word) if end else line[begin:]]
            at = end or len(line)
        return "".join([*parts, line[at:]])


class WholeFileHistory(FileHistory):
    """Keeps lines with what was pasted: the next conversation does not know the words."""

    def __init__(self, filename: str, folds: Folds) -> None:
        super().__init__(filename)
        self._folds = folds

    def append_string(self, string: str) -> None:
        super().append_string(self._folds.unfold(string))


class WholeMemoryHistory(InMemoryHistory):
    """The same where no file can be written."""

    def __init__(self, folds: Folds) -> None:
        super().__init__()
        self._folds = folds

    def append_string(self, string: str) -> None:
        super().append_string(self._folds.unfold(string))
