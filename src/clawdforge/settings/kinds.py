"""The kinds of values that settings have: how each is read from text, and what it may be."""

import os
import re
import shlex
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

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


def _split_pairs(value: object) -> object:
    """`name=value,other=value`, as OpenTelemetry writes them; a value may have `=` in it, but no comma."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
    return {name.strip(): text.strip() for name, _, text in pairs}


def _check_endpoint(value: str) -> str:
    place = urlsplit(value)
    if place.scheme not in ("http", "https") or not place.hostname or place.username is not None:
        raise ValueError("give a URL without a user, such as http://127.0.0.1:4318")
    if place.query or place.fragment or place.port == 0:
        raise ValueError("give a URL that ends with its path, such as http://127.0.0.1:4318")
    return value


def _check_database(value: str) -> str:
    place = urlsplit(value)
    if place.scheme not in ("postgresql", "postgres") or not place.path.strip("/"):
        raise ValueError("give the address of a database, such as postgresql://forge:secret@db.lan/forge")
    return value


def _check_blobs(value: str) -> str:
    place = urlsplit(value)
    is_bucket = (
        place.scheme == "s3" and place.netloc and not (place.username or place.query or place.fragment)
    )
    if value == "database" or is_bucket or (value.startswith("/") and "\0" not in value):
        return value
    raise ValueError("give `database`, the absolute path of a folder, or a bucket such as s3://forge/files")


def _check_headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name) or not re.fullmatch(r"[ -~]{1,4096}", text):
            raise ValueError("give names and values such as authorization=Bearer abc,x-tenant=7")
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
Endpoint = Annotated[str, AfterValidator(_check_endpoint)]
Database = Annotated[str, AfterValidator(_check_database)]
Blobs = Annotated[str, AfterValidator(_check_blobs)]
Headers = Annotated[dict[str, str], BeforeValidator(_split_pairs), AfterValidator(_check_headers)]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{0,64}$")]
