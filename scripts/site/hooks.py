"""What the site does to pages while it is built: links that leave docs/ lead to the project's repository."""

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<=\]\()((?:\.\./)+)([^)#\s]+)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    folder = Path(page.file.abs_src_path).parent
    docs = Path(config.docs_dir)

    def lead(found: re.Match[str]) -> str:
        target = (folder / found[0]).resolve()
        if target.is_relative_to(docs) or not target.exists():  # what is nowhere is reported by the build
            return found[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{config.extra['source']}/{kind}/main/{target.relative_to(docs.parent)}"

    return LINK.sub(lead, markdown)
