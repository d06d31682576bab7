"""The kinds of values that settings have: how each is read from text, and what it may be."""

import os
import shlex
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field

from clawdforge.wire.hosts import Entry

MAX_UID: Final = 0x7FFFFFFF


def _split_command(value: object) -> object:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def _split_words(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _split_paths(value: object) -> object:
    parts = value.split(os.pathsep) if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return parts
    return tuple(Path(str(part)).expanduser().absolute() for part in parts if str(part))


def _expand_path(value: object) -> object:
    return Path(value).expanduser().absolute() if isinstance(value, str | Path) and str(value) else value


def _check_file_name(value: str) -> str:
    if not value or "\0" in value or {"", ".", ".."} & set(value.split("/")):
        raise ValueError("give a file's path below the home, such as .mine/config.toml")
    return value


def _check_path(value: str) -> str:
    path = Path(value).expanduser()
    if not path.is_absolute() or "\0" in value:
        raise ValueError("give an absolute path, or one that begins with ~/")
    return str(path)


def _check_uids(value: str) -> str:
    if value in ("auto", "off"):
        return value
    first, _, last = value.partition("-")
    if not (first.isascii() and last.isascii() and first.isdecimal() and last.isdecimal()):
        raise ValueError("give auto, off, or a range of user numbers such as 200000-200999")
    if not 0 < int(first) <= int(last) <= MAX_UID:
        raise ValueError(f"give the lower number first; they lie between 1 and {MAX_UID}")
    return value


def _check_host(value: str) -> str:
    Entry.read(value)
    return value


Command = Annotated[tuple[str, ...], BeforeValidator(_split_command), Field(min_length=1)]
Words = Annotated[tuple[str, ...], BeforeValidator(_split_words)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_split_paths)]
Folder = Annotated[Path, BeforeValidator(_expand_path)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Age = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Size = Annotated[ByteSize, Field(gt=0)]
FileName = Annotated[str, AfterValidator(_check_file_name)]
PlainPath = Annotated[str, AfterValidator(_check_path)]
UrlPath = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)*$")]
Sandbox = Literal["auto", "full", "off"]
Allowance = Literal["namespaces", "tracing"]
Network = Literal["open", "none", "proxy"]
Uids = Annotated[str, AfterValidator(_check_uids)]
Host = Annotated[str, AfterValidator(_check_host)]
Hosts = Annotated[tuple[Host, ...], BeforeValidator(_split_words)]
Face = Literal["openai", "mcp", "agui", "vercel", "acp"]
Faces = Annotated[tuple[Face, ...], BeforeValidator(_split_words)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{0,64}$")]
