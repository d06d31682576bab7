"""What the site does while it is built: links out of docs/ lead to the repository, and diagrams are drawn."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from pymdownx.superfences import fence_code_format

LINK = re.compile(r"(?<=\]\()((?:\.\./)+)([^)#\s]+)")
DRAWER = "assets/javascripts/mermaid.min.js"


def find_drawer(config: Any) -> Path | None:
    """What draws diagrams, where `scripts/docs` has it. The theme by itself would ask another host for it."""
    found = Path(config.config_file_path).parent / ".cache" / "docs" / "mermaid.min.js"
    return found if found.is_file() else None


def on_config(config: Any, **_: Any) -> Any:
    if find_drawer(config):
        config.extra_javascript.append(DRAWER)
        fence = {"name": "mermaid", "class": "mermaid", "format": fence_code_format}
        config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def on_files(files: Any, config: Any, **_: Any) -> Any:
    drawer = find_drawer(config)
    if drawer:
        files.append(File.generated(config, DRAWER, abs_src_path=str(drawer)))
    return files


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
