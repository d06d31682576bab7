"""What a token may do for its app."""

from enum import StrEnum
from typing import Literal, TypeAlias


class Scope(StrEnum):
    """None includes another: a token has each that it was given."""

    READ = "read"  # look at sessions, transcripts, events, files, agents and personas
    PROMPT = "prompt"  # make, change, prompt and close sessions, and upload files
    DECIDE = "decide"  # answer what agents ask permission for, and say how it is answered
    ADMIN = "admin"  # the app's own tokens, personas, budgets and webhooks, and deleting sessions for good


ScopeWord: TypeAlias = Literal["read", "prompt", "decide", "admin"]
