"""What agents say when a prompt fails: the kinds that are told apart, and when another try is made."""

import pytest

from clawdforge.core.running.retries import LONGEST_WAIT_SECS, Retries
from clawdforge.drivers.acp.failures import CLASSES, MAX_WAIT_SECS, Failures, find_wait
from clawdforge.wire.errors import AgentFailed, AgentLost, ModelNoCredit, ModelOverloaded, ModelRateLimited

NOW = 1_794_800_000.0
INTERNAL = -32603


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Resource not found", "lost"),
        ("Session not found: 5b8f", "lost"),
        ("Internal error: The Claude Agent process exited unexpectedly. Please start a new session.", "lost"),
        (
            'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            "overloaded",
        ),
        ("unexpected status 503 Service Unavailable", "overloaded"),
        ('API Error: 429 {"error":{"type":"rate_limit_error"}}', "rate_limited"),
        ("Claude AI usage limit reached|1794800600", "rate_limited"),
        (
            "[429] You exceeded your current quota, please check your plan. Please retry in 34.2s",
            "rate_limited",
        ),
        ("API Error: 400 Your credit balance is too low to access the API", "no_credit"),
        ("429 You exceeded your current quota (insufficient_quota)", "no_credit"),
        ("API Error: 400 prompt is too long: 214000 tokens > 200000 maximum", "too_long"),
        ("This model's  maximum\ncontext length is 8192 tokens", "too_long"),
        ("ContextOverflowError: Model input still does not fit after recovery", "too_long"),
        ("API Error: 401 invalid x-api-key", "login"),
        ("Invalid API key · Please run /login", "login"),
        ("HTTP 403 Forbidden", "refused"),
        ("TypeError: cannot read properties of undefined", None),
        ("panic at line 429 of main.rs", None),
        ("", None),
    ],
)
def test_words_of_agents_are_told_apart(words: str, kind: str | None) -> None:
    failure = Failures.read().judge(INTERNAL, words, NOW)
    assert failure.kind == kind
    assert failure.is_broken == (kind in (None, "lost", "login"))


def test_the_protocols_own_codes_count_whatever_is_said_with_them() -> None:
    table = Failures.read()
    assert table.judge(-32002, "gone", NOW).kind == "lost"
    assert table.judge(-32000, "Authentication required", NOW).kind == "login"
    assert table.judge(-32000, "out of luck", NOW).kind is None


def test_an_agents_own_words_come_first_and_are_its_alone() -> None:
    table = Failures.read()
    own = table.with_words({"refused": ["No  Parking"]})
    assert own.judge(INTERNAL, "sorry, no parking here", NOW).kind == "refused"
    assert table.judge(INTERNAL, "sorry, no parking here", NOW).kind is None
    assert table.with_words({}) is table


@pytest.mark.parametrize(
    ("words", "secs"),
    [
        ("retry-after: 12", 12.0),
        ("Please retry in 34.5s", 34.5),
        ('"retryDelay": "7s"', 7.0),
        ("try again in 2 minutes", 120.0),
        ("try again in 250ms", 0.25),
        ("try again in 250 milliseconds", 0.25),
        ("usage limit reached|1794800060", 60.0),
        ("your limit resets at 2026-11-16T03:33:20Z", 0.0),
        (f"retry after {MAX_WAIT_SECS}", float(MAX_WAIT_SECS)),
        (f"retry after {MAX_WAIT_SECS + 1}", None),
        ("resets at 2026-02-30T00:00:00", None),
        ("usage limit reached|1000000000", None),
        ("later", None),
    ],
)
def test_the_time_until_it_passes_is_read_from_the_words(words: str, secs: float | None) -> None:
    found = find_wait(words, NOW)
    assert found == secs if secs is None else found is not None and found == pytest.approx(secs)


def test_each_kind_has_an_error_that_says_what_to_do() -> None:
    for kind, found in CLASSES.items():
        failure = Failures.read().with_words({kind: ["xyzzy"]}).judge(INTERNAL, "xyzzy", NOW)
        fresh = failure.make_error("claude: xyzzy", begun=False, stderr="")
        assert type(fresh) is found
        assert fresh.message.startswith("claude: xyzzy; ")
        assert fresh.extra["heard"] is False
        assert "heard" not in failure.make_error("claude: xyzzy", begun=True, stderr="").extra
    unknown = Failures.read().judge(INTERNAL, "boom", NOW).make_error("claude: boom", begun=False, stderr="")
    assert (type(unknown), unknown.message) == (AgentFailed, "claude: boom")
    assert "heard" not in unknown.extra, "nobody knows whether it was"


def test_only_what_nobody_heard_is_said_again_and_only_where_waiting_helps() -> None:
    assert Retries(9).find_wait(ModelOverloaded()) is None
    assert Retries(9).find_wait(ModelNoCredit(heard=False)) is None
    assert Retries(0).find_wait(ModelOverloaded(heard=False)) is None
    retries = Retries(2)
    assert [retries.find_wait(ModelOverloaded(heard=False)) for _ in range(3)] == [2.0, 4.0, None]
    assert (
        Retries(1).find_wait(ModelRateLimited(heard=False, retry_after=LONGEST_WAIT_SECS))
        == LONGEST_WAIT_SECS
    )
    assert Retries(1).find_wait(ModelRateLimited(heard=False, retry_after=LONGEST_WAIT_SECS + 1)) is None


def test_an_agent_that_lost_its_session_is_replaced_once_without_a_wait() -> None:
    retries = Retries(0)
    assert retries.find_wait(AgentLost()) is None
    assert retries.find_wait(AgentLost(heard=False)) == 0.0
    assert retries.find_wait(AgentLost(heard=False)) is None
