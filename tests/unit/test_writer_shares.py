"""Who has had more than its share of the writer waits, if others are about and nobody has had more."""

from clawdforge.stores.sqlite.writer_shares import ABOUT_SECS, BURST_SECS, MOST_REST_SECS, SHARE, WriterShares


def beside(other: str = "quiet", now: float = 0.0) -> WriterShares:
    shares = WriterShares()
    shares.see(other, now)
    return shares


def test_alone_an_app_may_have_all_of_it() -> None:
    shares = WriterShares()
    shares.see("noisy", 0.0)
    shares.charge("noisy", 1.0, 1.0, 2.0)
    assert shares.rest_of("noisy", 2.0) == 0.0


def test_beside_others_it_waits_for_what_it_had_beyond_its_share() -> None:
    shares = beside()
    shares.charge("noisy", 0.0, BURST_SECS, 0.1)
    assert shares.rest_of("noisy", 0.1) == 0.0, "a little more at once is no harm"
    shares.charge("noisy", 0.0, 0.01, 0.1)
    assert abs(shares.rest_of("noisy", 0.1) - 0.01 / SHARE) < 1e-9
    assert shares.rest_of("noisy", 0.1 + 0.01 / SHARE) == 0.0


def test_time_gives_its_share_back() -> None:
    shares = beside()
    for tenth in range(1, 10):
        shares.see("quiet", tenth / 10)
        shares.charge("noisy", 0.0, SHARE / 10, tenth / 10)
        assert shares.rest_of("noisy", tenth / 10) == 0.0


def test_long_jobs_count_for_more_than_the_same_time_in_short_ones() -> None:
    long, short = beside(), beside()
    long.charge("noisy", 0.1, 0.0, 0.1)
    for _ in range(10):
        short.charge("noisy", 0.01, 0.0, 0.1)
    assert long.rest_of("noisy", 0.1) > 2 * short.rest_of("noisy", 0.1) > 0


def test_only_whoever_has_had_the_most_waits() -> None:
    """A small write takes long as well where somebody else keeps the disk busy."""
    shares = beside("noisy")
    shares.see("quiet", 0.0)
    shares.charge("noisy", 0.3, 0.3, 0.1)
    shares.charge("quiet", 0.0, 2 * BURST_SECS, 0.1)
    assert shares.rest_of("quiet", 0.1) == 0.0
    assert shares.rest_of("noisy", 0.1) > 0.0


def test_a_long_noise_is_forgotten_soon() -> None:
    shares = beside()
    for second in range(1, 60):
        shares.see("quiet", float(second))
        shares.charge("noisy", 0.3, 0.3, float(second))
    shares.see("quiet", 60.0)
    shares.charge("noisy", 0.0, 0.001, 60.1)
    assert shares.rest_of("noisy", 60.1) <= MOST_REST_SECS
    shares.see("quiet", 61.2)
    shares.charge("noisy", 0.0, 0.001, 61.3)
    assert shares.rest_of("noisy", 61.3) == 0.0


def test_two_who_have_had_as_much_wait_both() -> None:
    shares = beside("one")
    shares.see("two", 0.0)
    for app in ("one", "two"):
        shares.charge(app, 9.0, 9.0, 0.1)
    assert min(shares.rest_of("one", 0.1), shares.rest_of("two", 0.1)) > 0.0


def test_nobody_waits_for_long_and_nobody_at_all_once_the_others_are_gone() -> None:
    shares = beside()
    shares.charge("noisy", 100.0, 100.0, 0.1)
    assert abs(shares.rest_of("noisy", 0.1) - MOST_REST_SECS) < 1e-9
    shares.charge("noisy", 100.0, 100.0, 0.5)
    assert shares.rest_of("noisy", ABOUT_SECS + 0.01) == 0.0


def test_who_writes_megabytes_waits_for_the_disk_as_well() -> None:
    """However soon the disk says that it has them: others' syncs wait behind them."""
    large, small = beside(), beside()
    large.charge("noisy", 0.009, 0.02, 0.1, 8 << 20)
    assert large.rest_of("noisy", 0.1) > 0.5
    for _ in range(10):
        small.charge("noisy", 0.001, 0.001, 0.1, 60_000)
    assert small.rest_of("noisy", 0.1) == 0.0


def test_alone_it_may_write_as_much_as_the_disk_takes() -> None:
    shares = WriterShares()
    shares.see("noisy", 0.0)
    shares.charge("noisy", 0.009, 0.02, 0.1, 1 << 30)
    assert shares.rest_of("noisy", 0.1) == 0.0
