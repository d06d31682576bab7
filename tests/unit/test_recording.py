"""The picture of README: terminal screens as an SVG that plays, and what the one in the docs shows."""

import re
import socket
from pathlib import Path
from xml.etree import ElementTree as ET

import pyte

from bench.recording import PICTURE, TITLE
from bench.svg import Frame, draw

TOP = Path(__file__).parents[2]
SAID = (
    "lost the server; waiting for it to come back",
    "the server is back",
    "The answer so far is kept; /retry sends the prompt again",
    "Ctrl-C stops it",
    "Reconnecting (",
    "in the background",
)
SVG = "{http://www.w3.org/2000/svg}"


def frame(text: str, secs: float) -> Frame:
    screen = pyte.Screen(20, 3)
    pyte.Stream(screen).feed(text)
    rows = tuple(tuple(screen.buffer[y][x] for x in range(20)) for y in range(3))
    return Frame(rows, (screen.cursor.x, screen.cursor.y), secs)


def rows_of(picture: ET.Element) -> dict[str, str]:
    return {
        f"#{row.get('id')}": " ".join(text.text or "" for text in row)
        for row in picture.iterfind(f"{SVG}defs/{SVG}g")
    }


def screens(picture: ET.Element) -> list[str]:
    """The words of each screen, in the order in which they are shown."""
    rows = rows_of(picture)
    film = picture.find(f"{SVG}g[@class='film']")
    assert film is not None
    return [" ".join(rows[use.get("href", "")] for use in shown.iter(f"{SVG}use")) for shown in film]


def test_each_screen_is_shown_for_its_time_and_the_last_one_without_motion() -> None:
    text = draw([frame("one", 1), frame("one\r\ntwo", 2), frame("<three> & \x1b[1;31mred", 1)], "A & B")
    picture = ET.fromstring(text)  # noqa: S314 - ours
    assert screens(picture) == ["one", "one two", "<three> & red"]
    high = 3 * 18 + 2 * 12
    steps = re.findall(r"([\d.]+)%\{transform:translateY\((-?\d+)px\)\}", text)
    assert [(float(at), int(to)) for at, to in steps] == [(0, 0), (25, -high), (75, -2 * high)]
    assert f".film{{transform:translateY({-2 * high}px);animation:play 4.0s step-end infinite}}" in text
    assert text.count(">one<") == 1, "a row that two screens have is written once"
    assert 'style="fill:#e06c75;font-weight:bold">red<' in text
    assert picture.findtext(f"{SVG}title") == "A & B"


def test_the_picture_shows_an_answer_a_kill_and_how_it_goes_on() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    picture = ET.fromstring(text)  # noqa: S314 - ours
    assert picture.findtext(f"{SVG}title") == TITLE
    shown = screens(picture)
    told = iter(shown)
    for words in (
        "hello",
        "I need no key",
        "kill -9",
        "the server is back",
        "The answer so far is kept",
        "/retry",
    ):
        assert any(words in screen for screen in told), f"{words!r} does not come, or not in its turn"
    assert "what did I say?" in shown[-1]
    assert len(shown) > 20, "words come one after the other"
    assert len(text) < 200_000


def test_the_picture_shows_what_the_terminal_shows_today() -> None:
    """Whoever changes the words or the commands records it anew: `python -m bench.recording`."""
    picture = ET.fromstring(PICTURE.read_text(encoding="utf-8"))  # noqa: S314 - ours
    shown = " ".join(screens(picture))
    sources = [path.read_text() for path in (TOP / "src" / "clawdforge").rglob("*.py")]
    for words in SAID:
        assert words in shown
        assert any(words in source for source in sources), f"nothing says {words!r} any more"
    today = " ".join((TOP / "tests" / "golden" / "screens" / "200x50.txt").read_text().split())
    rows = [" ".join(row.split()) for row in rows_of(picture).values()]
    menu = {row for row in rows if re.match(r"/[a-z]+ [A-Z]", row)}
    assert len(menu) >= 8
    assert {row for row in menu if row not in today} == set()


def test_the_picture_tells_nothing_of_the_machine_and_asks_nobody() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://([^/:\"<) ]+)", text)) == {"www.w3.org", "127.0.0.1"}
    assert not re.search(r"<script|<image|<foreignObject|@import|url\(|href=\"[^#]", text)
    assert not re.search(rf"\b{re.escape(socket.gethostname())}\b|/root|/home", text)


def test_readme_shows_it_right_below_its_first_command() -> None:
    text = (TOP / "README.md").read_text()
    block, _, after = text.partition("```sh\n")[2].partition("```\n")
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["pip install .", "clawdforge"]
    assert re.match(r"\n!\[[^]]+\]\(docs/pictures/kill\.svg\)\n", after)
