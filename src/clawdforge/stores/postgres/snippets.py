"""Shows where a message has the words of a search: some words around them, and marks at each."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

TOKEN: Final = re.compile(r"(?:[^\W_][\u0300-\u036f]*)+")
ACCENTS: Final = re.compile(r"[\u0300-\u036f]+")
LENGTH: Final = 24  # words


def make_snippet(content: str, words: Sequence[str], *, is_prefix: bool) -> str:
    found = list(TOKEN.finditer(content))
    tokens = [_fold(one[0]) for one in found]
    phrases = [[_fold(one[0]) for one in TOKEN.finditer(word)] for word in words]
    spans: list[tuple[int, int]] = []
    for number, phrase in enumerate(phrases, 1):
        spans += _find(tokens, phrase, is_prefix=is_prefix and number == len(phrases))
    spans.sort()
    first, last = _choose(spans, len(tokens))
    if not tokens:
        return content
    begin = 0 if first == 0 else found[first].start()
    end = len(content) if last == len(tokens) else found[last - 1].end()
    parts = ["…" if first else ""]
    place = begin
    for left, right in spans:
        if left < first or right > last or found[left].start() < place:
            continue
        parts += [content[place : found[left].start()], "«"]
        place = found[right - 1].end()
        parts += [content[found[left].start() : place], "»"]
    parts += [content[place:end], "…" if last < len(tokens) else ""]
    return "".join(parts)


def _find(tokens: Sequence[str], phrase: Sequence[str], *, is_prefix: bool) -> list[tuple[int, int]]:
    size = len(phrase)
    spans = []
    for start in range(len(tokens) - size + 1 if size else 0):
        *whole, tail = tokens[start : start + size]
        is_tail = tail.startswith(phrase[-1]) if is_prefix else tail == phrase[-1]
        if is_tail and whole == list(phrase[:-1]):
            spans.append((start, start + size))
    return spans


def _choose(spans: Sequence[tuple[int, int]], count: int) -> tuple[int, int]:
    """The words from the first one on that show as many hits as possible, with those in the middle."""
    if count <= LENGTH or not spans:
        return 0, min(count, LENGTH)

    def seen_from(start: int) -> list[tuple[int, int]]:
        return [span for span in spans if start <= span[0] and span[1] <= start + LENGTH]

    best = max((left for left, _ in spans), key=lambda left: (len(seen_from(left)), -left))
    seen = seen_from(best)
    width = (seen[-1][1] if seen else best + 1) - best
    start = max(0, min(best - (LENGTH - width) // 2, count - LENGTH))
    return start, start + LENGTH


def _fold(word: str) -> str:
    return ACCENTS.sub("", unicodedata.normalize("NFD", word)).lower()
