"""Failures of agents, and of the models behind them: each kind says whether waiting helps, and what to do."""

from typing import ClassVar

from clawdforge.wire.error_base import ForgeAPIError
from clawdforge.wire.error_codes import ErrorCode


class AgentError(ForgeAPIError):
    """the agent failed, not the server"""

    status = 502
    waiting_helps: ClassVar[bool] = False
    """Whether the same prompt may be answered some time later, without anybody's doing."""


class AgentNotInstalled(AgentError):
    """the agent's program is not installed"""

    code = ErrorCode.AGENT_NOT_INSTALLED


class AgentStartFailed(AgentError):
    """the agent did not start"""

    code = ErrorCode.AGENT_START_FAILED


class AgentAuthRequired(AgentError):
    """the agent is not signed in; log in with its own program, or set its key in the server's environment"""

    code = ErrorCode.AGENT_AUTH_REQUIRED


class AgentFailed(AgentError):
    """the agent failed; the session stays usable"""

    code = ErrorCode.AGENT_FAILED


class AgentLost(AgentFailed):
    """the agent no longer knows its session, and is started again"""


class ModelOverloaded(AgentFailed):
    """the provider of the model is overloaded; try again in a minute"""

    code = ErrorCode.MODEL_OVERLOADED
    waiting_helps = True


class ModelRateLimited(AgentFailed):
    """the provider of the model allows no more for now; try again after the seconds in Retry-After"""

    code = ErrorCode.MODEL_RATE_LIMITED
    waiting_helps = True


class ModelNoCredit(AgentFailed):
    """the account at the provider of the model has no credit left; top it up, or use another one"""

    code = ErrorCode.MODEL_NO_CREDIT


class ModelRefused(AgentFailed):
    """the provider of the model refuses this; say it in other words, or choose another model"""

    code = ErrorCode.MODEL_REFUSED


class ContextTooLong(AgentFailed):
    """the conversation is longer than the model can take; compact or clear it, or begin a new session"""

    code = ErrorCode.CONTEXT_TOO_LONG


class TurnTimedOut(AgentError):
    """the turn took longer than its time limit and was ended; the session stays usable"""

    code = ErrorCode.TURN_TIMED_OUT
    status = 504


class TurnInterrupted(AgentError):
    """the turn was cut off; the answer so far is kept"""

    code = ErrorCode.TURN_INTERRUPTED
    status = 503


class RunFailed(AgentError):
    """the run failed"""

    code = ErrorCode.RUN_FAILED
