"""The readers behind the screens, run where they run: diffs, trees, spans, sums, measures."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.needs import needs
from tests.page.kit import Tabs

pytestmark = needs("chromium")
Run = Callable[..., Any]


@pytest.fixture
def run(tabs: Tabs) -> Run:
    """`run("changes/patch.js", "readPatch", "@@ …")`: a function of one of the page's modules."""
    page = tabs.tab(None, "apart").page

    def call(module: str, name: str, *arguments: Any) -> Any:
        script = """async ([module, name, given]) => {
            const base = document.querySelector('script[type=module]').src;
            const found = await import(new URL(`screens/${module}`, base).href);
            return found[name](...given);
        }"""
        return page.evaluate(script, [module, name, list(arguments)])

    return call


def test_a_patch_becomes_lines_with_the_numbers_of_both_sides(run: Run) -> None:
    head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
    patch = f"{head}@@ -3,3 +3,3 @@ def f\n a\n-b\n+c\n d\n\\ No newline at end of file\n"
    lines = run("changes/patch.js", "readPatch", patch)["lines"]
    assert [(line["kind"], line["old"], line["new"], line["text"]) for line in lines] == [
        ("hunk", None, None, "@@ -3,3 +3,3 @@ def f"),
        ("same", 3, 3, "a"),
        ("del", 4, None, "b"),
        ("add", None, 4, "c"),
        ("same", 5, 5, "d"),
        ("note", None, None, "\\ No newline at end of file"),
    ]


def test_a_line_that_looks_like_a_header_stays_a_line_inside_its_hunk(run: Run) -> None:
    """Content is never structure: the counts of the hunk say how far it goes."""
    patch = "@@ -1,2 +1,2 @@\n--- a/evil\n-@@ -9,9 +9,9 @@\n+++ b/evil\n+@@ -1 +1 @@\n"
    lines = run("changes/patch.js", "readPatch", patch)["lines"]
    assert [line["kind"] for line in lines] == ["hunk", "del", "del", "add", "add"]
    assert [line["text"] for line in lines[1:]] == [
        "-- a/evil",
        "@@ -9,9 +9,9 @@",
        "++ b/evil",
        "@@ -1 +1 @@",
    ]


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "\n\n\n",
        "@@ -1,999999999 +1,999999999 @@\n+only one",
        "@@ -a +b @@\n+x",
        "@@ -99999999999999999999 +1 @@",
        "\x00\x01\ud800\n+x",
        "+" * 100_000,
    ],
)
def test_a_broken_patch_is_read_without_an_error(run: Run, patch: str) -> None:
    lines = run(
        "changes/patch.js", "readPatch", patch.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    assert isinstance(lines["lines"], list)


def test_a_long_patch_is_read_up_to_a_bound_and_the_rest_is_counted(run: Run) -> None:
    patch = "@@ -0,0 +1,5000 @@\n" + "+x\n" * 5000
    found = run("changes/patch.js", "readPatch", patch, 100)
    assert (len(found["lines"]), found["left"]) == (100, 4901)


def turn(index: int, parent: int | None, *, cut: bool = False) -> dict[str, Any]:
    return {
        "turn_index": index,
        "parent": parent,
        "cut": cut,
        "state": "ended",
        "outcome": "completed",
        "forks": [],
    }


def lanes(run: Run, *turns: dict[str, Any]) -> dict[int, int]:
    nodes = run("tree/lanes.js", "placeTurns", list(turns))["nodes"]
    return {node["turn"]["turn_index"]: node["lane"] for node in nodes}


def test_the_present_line_is_straight_and_what_was_cut_stands_beside_it(run: Run) -> None:
    found = lanes(run, turn(1, None), turn(2, 1, cut=True), turn(3, 2, cut=True), turn(4, 1), turn(5, 4))
    assert found == {1: 0, 2: 1, 3: 1, 4: 0, 5: 0}


def test_two_cuts_from_one_turn_do_not_share_a_lane_while_both_run(run: Run) -> None:
    found = lanes(run, turn(1, None), turn(2, 1, cut=True), turn(3, 1, cut=True), turn(4, 1))
    assert (found[1], found[4]) == (0, 0)
    assert found[2] == 1
    assert found[3] in (1, 2)


def test_a_tree_of_ten_thousand_turns_is_placed(run: Run) -> None:
    turns = [turn(index, index - 1 or None, cut=index % 7 == 0) for index in range(1, 10_001)]
    assert len(lanes(run, *turns)) == 10_000


def test_a_tree_with_parents_that_do_not_exist_is_placed(run: Run) -> None:
    assert lanes(run, turn(5, 99), turn(6, 6), turn(7, None, cut=True)) is not None


def event(kind: str, ms: int, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "seq": ms,
        "ts": f"2026-11-15T09:30:{ms // 1000:02}.{ms % 1000:03}000Z",
        "turn": 1,
        **fields,
    }


def spans(run: Run, *events: dict[str, Any], now: int = 0) -> list[tuple[str, int, int]]:
    read = run("timeline/spans.js", "readSpans", list(events), now)
    return [
        (one["kind"], int(one["from"] - read["from"]), int(one["to"] - read["from"])) for one in read["spans"]
    ]


def test_a_turn_becomes_bars(run: Run) -> None:
    found = spans(
        run,
        event("turn.started", 0),
        event("thinking", 100, content="a"),
        event("thinking", 300, content="b"),
        event("tool_call", 400, name="read", update={"toolCallId": "t1", "status": "pending"}),
        event("text", 450, content="x"),
        event("tool_update", 900, update={"toolCallId": "t1", "status": "completed"}),
        event("permission.requested", 950, permission_id="p", tool="run"),
        event("permission.decided", 1950, permission_id="p", decision="allow_once"),
        event("turn.ended", 2000, outcome="completed"),
    )
    assert found == [
        ("starting", 0, 100),
        ("thinking", 100, 300),
        ("tool", 400, 900),
        ("text", 450, 450),
        ("permission", 950, 1950),
    ]


def test_updates_without_a_call_unknown_events_and_broken_clocks_draw_nothing_wrong(run: Run) -> None:
    found = spans(
        run,
        event("turn.started", 500),
        event("tool_update", 600, update={"toolCallId": "nobody", "status": "completed"}),
        event("tool_update", 610),
        event("from.the.future", 620),
        {"type": "text", "seq": 9, "ts": "not a time", "content": "x"},
        event("permission.decided", 630, permission_id="never asked"),
        event("turn.ended", 100, outcome="failed"),
    )
    assert all(end >= begin >= 0 for _, begin, end in found)


def usage(day: str, agent: str, reported: int, estimated: int) -> dict[str, Any]:
    def amount(tokens: int) -> dict[str, Any]:
        return {
            "input_tokens": tokens,
            "output_tokens": 0,
            "cached_tokens": 0,
            "total_tokens": tokens,
            "cost_usd": None,
        }

    return {
        "day": day,
        "agent": agent,
        "model": None,
        "turns": 1,
        "reported": amount(reported),
        "estimated": amount(estimated),
    }


def test_reported_and_estimated_are_never_added(run: Run) -> None:
    rows = [
        usage("2026-11-01", "a", 10, 1000),
        usage("2026-11-01", "b", 5, 0),
        usage("2026-11-03", "a", 1, 0),
    ]
    found = run(
        "usage/sums.js", "sumDays", rows, "agent", "reported", "total_tokens", "2026-11-01", "2026-11-03"
    )
    assert [day["total"] for day in found["days"]] == [15, 0, 1]
    lines = run("usage/sums.js", "sumNames", rows, "agent")
    assert [
        (line["name"], line["reported"]["total_tokens"], line["estimated"]["total_tokens"]) for line in lines
    ] == [
        ("a", 11, 1000),
        ("b", 5, 0),
    ]


def test_a_spreadsheet_runs_nothing_of_our_csv(run: Run) -> None:
    rows = [{**usage("2026-11-01", "=cmd|' /C calc'!A0", 1, 0), "model": 'a"b,c\nd'}]
    text = run("usage/csv.js", "writeCsv", rows)
    assert "'=cmd" in text
    assert '"a""b,c\nd"' in text


def test_measures_are_read_with_their_labels(run: Run) -> None:
    text = '# HELP x\nx{a="1",b="q\\"}"} 2\nx{a="2"} 3e2\ny NaN\nbroken line\nz +Inf\n'
    found = run("admin/measures.js", "readMeasures", text)
    assert [(one["name"], one["labels"]) for one in found] == [
        ("x", {"a": "1", "b": 'q"}'}),
        ("x", {"a": "2"}),
        ("y", {}),
        ("z", {}),
    ]


def test_nothing_hides_in_what_a_person_allows(run: Run) -> None:
    assert run("words.js", "showHidden", "rm \u202efdp.sh\u2066 \x1b[8m\u200b\x00a\n\tb") == (
        "rm ⟨U+202E⟩fdp.sh⟨U+2066⟩ ⟨U+001B⟩[8m⟨U+200B⟩⟨U+0000⟩a\n\tb"
    )
