"""What a newcomer meets first is true: README, lock, changelog, licence, commands."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped] # no stubs, and one call

import clawdforge

TOP = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())
COMMANDS = [
    "scripts/bootstrap",
    "scripts/serve",
    "scripts/test",
    "scripts/lock",
    "scripts/docs",
    "scripts/golden",
    "scripts/openapi",
    "scripts/fuzz",
    "scripts/live",
    "scripts/prove",
    "scripts/wheel",
    "scripts/pythons",
    "scripts/sign",
    "scripts/images",
    ".ci/run",
]


LOCKS = tuple(f"requirements{part}.lock" for part in ("", "-build", "-dev", "-docs", "-image"))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name: str) -> dict[str, str]:
    """Package → version of every entry that has hashes."""
    entry = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+)[^\n]*\n    --hash=sha256:", re.MULTILINE)
    return {normal(found[1]): found[2] for found in entry.finditer((TOP / name).read_text())}


def names(lines: list[str]) -> set[str]:
    return {normal(re.split(r"[<>=!~\[; ]", line, maxsplit=1)[0]) for line in lines}


def test_every_dependency_is_locked_with_hashes() -> None:
    serve, build, test, docs, image = (locked(name) for name in LOCKS)
    assert names(PROJECT["project"]["dependencies"]) - set(serve) == set(), "run scripts/lock"
    groups = PROJECT["dependency-groups"]
    assert names(groups["build"]) - set(build) == set(), "run scripts/lock"
    assert names([line for line in groups["dev"] if isinstance(line, str)]) - set(test) == set(), (
        "run scripts/lock"
    )
    assert names(groups["docs"]) - set(docs) == set(), "run scripts/lock"
    assert names(groups["image"]) - set(image) == set(), "run scripts/lock"
    assert serve.items() | build.items() | image.items() <= test.items()
    for name in LOCKS:
        text = (TOP / name).read_text()
        assert set(re.findall(r"^([^\s=]+)==", text, re.MULTILINE)) == set(locked(name))
        assert "://" not in text


def test_what_builds_the_package_is_compared_with_its_hashes() -> None:
    """Otherwise pip fetches the newest build backend, and whatever that needs, without a look at it."""
    assert names(PROJECT["build-system"]["requires"]) <= set(locked("requirements-build.lock"))
    for place in ("scripts/bootstrap", "Dockerfile"):
        installs = re.findall(r"^.*install .*--no-deps.*$", (TOP / place).read_text(), re.MULTILINE)
        assert installs, place
        assert all("--no-build-isolation" in line for line in installs), place
        assert "requirements-build.lock" in (TOP / place).read_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_command_can_be_run_and_parses(name: str) -> None:
    path = TOP / name
    assert os.access(path, os.X_OK)
    shell = "bash" if "bash" in path.read_text().splitlines()[0] else "sh"
    subprocess.run([shell, "-n", str(path)], check=True)


def test_readme_is_short_and_starts_with_a_command() -> None:
    lines = (TOP / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    first = next(number for number, line in enumerate(lines) if line.startswith("```"))
    assert first < 20
    assert any("./scripts/serve" in line for line in lines[:20])
    assert any("./scripts/test" in line for line in lines[:20])


@pytest.mark.parametrize("page", ["README.md", "docs/start/quickstart.md", "docs/guides/sdk.md"])
def test_where_a_session_is_first_made_its_defaults_are_said(page: str) -> None:
    """What is approved without asking, and when it is deleted."""
    text = (TOP / page).read_text()
    assert {
        word for word in ("permission_mode", "retention", "closes_at", "deletes_at") if word not in text
    } == set()


def test_ci_runs_the_command_of_the_readme() -> None:
    assert "./scripts/test" in (TOP / ".ci" / "run").read_text()


def test_the_changelog_begins_with_what_is_unreleased_or_with_this_version() -> None:
    sections = re.findall(r"^## (\S+)", (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [name for name in sections if name != "Unreleased"]
    assert sections in (released, ["Unreleased", *released])
    assert released[0] == clawdforge.__version__


def test_contributing_names_every_command() -> None:
    text = (TOP / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"scripts/[\w.-]+", text))
    commands = {f"scripts/{path.name}" for path in (TOP / "scripts").iterdir() if path.is_file()}
    assert named <= commands
    assert commands - named <= {"scripts/try_wheel.py", "scripts/try_built.py", "scripts/build_commit.py"}, (
        "the commands that no other command calls"
    )


def test_contributing_names_every_room() -> None:
    text = (TOP / "CONTRIBUTING.md").read_text()
    parts = {path.name for path in (TOP / "src" / "clawdforge").iterdir() if (path / "__init__.py").exists()}
    assert {name for name in parts if f"`{name}" not in text} == set()


def test_links_of_the_top_pages_lead_somewhere() -> None:
    for path in TOP.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (TOP / target).exists(), f"{path.name} links to {target}"


def test_the_addresses_are_those_of_the_project() -> None:
    urls = PROJECT["project"]["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues", "Source"}
    assert all(url.startswith(urls["Source"]) for url in urls.values())


def test_every_python_that_ci_runs_is_declared() -> None:
    versions = re.findall(
        r'"Programming Language :: Python :: (3\.\d+)"', (TOP / "pyproject.toml").read_text()
    )
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    workflow = yaml.safe_load((TOP / ".github" / "workflows" / "ci.yml").read_text())
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == versions


def test_the_licence_is_there() -> None:
    text = (TOP / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["project"]["license"] == "Apache-2.0"


def test_python_examples_compile() -> None:
    pages = [path for path in sorted((TOP / "docs").rglob("*.md")) if path.parent.name != "reference"]
    for path in [TOP / "README.md", *pages]:
        for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL):
            code = "async def example():\n" + "".join(f"    {line}\n" for line in block.splitlines())
            compile(code, str(path), "exec")
