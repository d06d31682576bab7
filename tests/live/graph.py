"""A deepagents agent as a person would write it: a real client of a model, and a shell that is reviewed."""

import os
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from langchain_google_genai import ChatGoogleGenerativeAI


def agent(checkpointer: Any) -> Any:
    """Its model is where GOOGLE_GEMINI_BASE_URL says."""
    return create_deep_agent(
        model=ChatGoogleGenerativeAI(
            model="gemini-3-flash", base_url=os.environ["GOOGLE_GEMINI_BASE_URL"], api_key="x"
        ),
        system_prompt="You help with this folder.",
        backend=LocalShellBackend(Path.cwd(), virtual_mode=False, env={"PATH": os.environ["PATH"]}),
        interrupt_on={"execute": True},
        checkpointer=checkpointer,
    )
