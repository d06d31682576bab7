"""What every failure has: a code, a status, a text, and whether it passes by itself."""

from typing import Any, ClassVar

from clawdforge.wire.error_codes import ErrorCode


class ForgeError(Exception):
    """Anything that this package raises on its own account."""


class ForgeAPIError(ForgeError):
    """the server refused or failed"""

    code: str = ErrorCode.INTERNAL
    status: ClassVar[int] = 500
    is_passing: ClassVar[bool] = False
    """Whether the same request, sent again later with the same key, may succeed by itself."""

    def __init__(
        self,
        message: str | None = None,
        *,
        retry_after: float | None = None,
        status_code: int | None = None,
        code: str = "",
        body: Any = None,
        request_id: str | None = None,
        **extra: Any,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.retry_after = retry_after
        self.extra = extra
        self.status_code = status_code or type(self).status
        self._is_answer = status_code is not None
        self.code = code or type(self).code
        self.body = body
        self.request_id = request_id
        super().__init__(self.message)

    def __str__(self) -> str:
        """The message alone where it is raised; with status, code and request where it was answered with."""
        if not self._is_answer:
            return self.message
        suffix = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.status_code} {self.code}: {self.message}{suffix}"
