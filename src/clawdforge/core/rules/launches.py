"""What a driver is told to start a session's agent."""

from pathlib import Path

from clawdforge.core.models.agents import AgentSpec, Launch
from clawdforge.core.models.mcp import McpLaunch
from clawdforge.core.models.rows import SessionRow


def plan_launch(session: SessionRow, spec: AgentSpec, home: Path, servers: tuple[McpLaunch, ...]) -> Launch:
    """An agent without any memory; what it is to remember is the caller's to add."""
    return Launch(
        app=session.app_name,
        session_id=session.session_id,
        agent=spec,
        cwd=Path(session.cwd),
        home=home,
        workspace_identity=session.workspace_identity,
        model=session.model,
        plan_mode=session.plan_mode,
        mcp=servers,
    )
