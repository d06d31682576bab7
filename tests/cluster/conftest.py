"""Real servers that share a real Postgres."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.kit import LEASE_SECS, Cluster
from tests.postgres import Postgres, run_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as running:
        yield running


@pytest.fixture
def cluster(postgres: Postgres, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(postgres.make_database(), tmp_path)
    yield made
    made.close()


@pytest.fixture
def mortal(cluster: Cluster) -> Cluster:
    """For tests in which nodes die."""
    cluster.lease_secs = LEASE_SECS
    return cluster
