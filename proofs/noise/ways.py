"""All ways to be noisy, family by family."""

from typing import Final

from proofs.noise.agents import AGENTS
from proofs.noise.bodies import BODIES
from proofs.noise.crowds import CROWDS
from proofs.noise.histories import HISTORIES
from proofs.noise.pools import POOLS
from proofs.noise.readers import READERS
from proofs.noise.way import Way

WAYS: Final[tuple[Way, ...]] = (*CROWDS, *BODIES, *READERS, *HISTORIES, *POOLS, *AGENTS)
