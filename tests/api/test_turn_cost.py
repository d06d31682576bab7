"""What a turn may take, in exact numbers: they are the same on every machine, and grow only on purpose."""

import json
from pathlib import Path

from bench.beside import count_cheapest_turn
from tests.needs import needs
from tests.postgres import Postgres

TOP = Path(__file__).resolve().parents[2]
BUDGET = TOP / "bench" / "budget.json"
POSTGRES_BUDGET = TOP / "bench" / "budget_postgres.json"
TURNS = 6


def test_a_turn_takes_no_more_than_its_budget(tmp_path: Path) -> None:
    check_budget(tmp_path, BUDGET)


@needs("postgres")
def test_a_turn_on_postgres_takes_no_more_than_its_budget(tmp_path: Path, postgres: Postgres) -> None:
    """Each statement is a round trip there."""
    check_budget(tmp_path, POSTGRES_BUDGET, CLAWDFORGE_DATABASE_URL=postgres.make_database())


def check_budget(tmp_path: Path, budget: Path, **env: str) -> None:
    least = count_cheapest_turn(tmp_path, TURNS, **env)
    allowed: dict[str, int] = json.loads(budget.read_text())
    dear = {name: (least[name], most) for name, most in allowed.items() if least[name] > most}
    assert not dear, f"more than bench/{budget.name} allows, as (now, allowed): {dear}"
    assert least["commits"] == 2, "one records the prompt and starts the turn, the other ends it"
