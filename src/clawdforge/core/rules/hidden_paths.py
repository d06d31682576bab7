"""Takes the path of a workspace out of what is shown to strangers."""

import re
from typing import Any, Final

HIDDEN: Final = "…"


class PathHider:
    """Replaces a folder's path in texts, and in all texts of a JSON value, its keys too.

    What only begins like the path, as `/srv/project` does like `/srv/p`, is left.
    """

    def __init__(self, path: str) -> None:
        whole = path.rstrip("/")
        self._path = re.compile(re.escape(whole) + r"(?![\w-])") if whole else None

    def hide(self, value: Any) -> Any:
        if self._path is None:  # the workspace is the whole disk: every path is in it
            return value
        if isinstance(value, str):
            return self._path.sub(HIDDEN, value)
        if isinstance(value, dict):
            return {self.hide(key): self.hide(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.hide(item) for item in value]
        return value
