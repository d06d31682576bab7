"""The rules of the source tree, as functions over parsed modules; `test_layout.py` holds the tree to them."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.parsing import parse_alone
from tests.walls import (
    CLOCK,
    FENCES,
    LAYERS,
    LAZY,
    MAX_LINES,
    NO_CLIENTS,
    OUTSIDE,
    PROTOCOL,
    PURE,
    PURE_PORTS,
    ROOMS,
    ROOT,
    SPAWNING,
    TASK_TOPS,
)

STATEFUL: Final = frozenset(
    {"Lock", "RLock", "Semaphore", "Event", "Condition", "Queue", "ContextVar", "local", "deque"}
    | {"defaultdict", "Counter", "OrderedDict", "WeakValueDictionary", "WeakKeyDictionary", "WeakSet"}
)
TYPING: Final = frozenset({"TypeVar", "ParamSpec", "NewType", "TypeAliasType", "getLogger"})
CONSTANT: Final = re.compile(r"_?[A-Z][A-Z0-9_]*|__\w+__")


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: `name` is dotted, `tree` its syntax."""

    name: str
    source: str
    tree: ast.Module

    @classmethod
    def parse(cls, name: str, source: str) -> "Module":
        return cls(name, source, parse_alone(source))

    @classmethod
    def read(cls, path: Path, top: Path) -> "Module":
        parts = path.relative_to(top).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return cls.parse(name, path.read_text(encoding="utf-8"))

    @property
    def part(self) -> str:
        return part_of(self.name)


@dataclass(frozen=True, slots=True)
class Import:
    target: str
    names: tuple[str, ...]
    line: int
    level: int
    in_function: bool


def part_of(name: str) -> str:
    """`core` of `clawdforge.core.log`, nothing of `clawdforge` itself."""
    return name.split(".")[1] if "." in name else ""


def imports(module: Module) -> Iterator[Import]:
    yield from _imports(module.tree, in_function=False)


def _imports(node: ast.AST, *, in_function: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, (), child.lineno, 0, in_function)
        elif isinstance(child, ast.ImportFrom):
            names = tuple(alias.name for alias in child.names)
            yield Import(child.module or "", names, child.lineno, child.level, in_function)
        else:
            inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(child, in_function=inside)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def check(module: Module) -> list[str]:
    """Every rule that can be seen in one file; each finding starts with the module and the line."""
    rules = (_layers, _rooms, _purity, _protocol, _fences, _shape, _state, _excepts, _time)
    return [f"{module.name}:{line}: {text}" for rule in rules for line, text in rule(module)]


Findings = Iterator[tuple[int, str]]


def _layers(module: Module) -> Findings:
    for found in imports(module):
        if found.level:
            yield found.line, "relative import"
        if found.in_function:
            yield found.line, f"import of {found.target} inside a function"
        if found.target.split(".")[0] != ROOT or (module.name, found.target) in NO_CLIENTS:
            continue
        for target in _targets(found):
            if part_of(target) not in LAYERS.get(module.part, frozenset()):
                yield found.line, f"{module.part or ROOT} imports {target}"
            elif _other_dialect(module.name, target):
                yield found.line, f"a dialect imports another: {target}"
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or module.name in LAZY:
            continue
        if _last_name(node.func) in ("import_module", "__import__"):
            yield node.lineno, "import by name"


def _rooms(module: Module) -> Findings:
    here = room_of(module.name)
    for found in imports(module):
        inner = [f"{found.target}.{name}" for name in found.names]
        for target in {room_of(name) for name in (found.target, *inner)} - {here}:
            part, _, room = target.partition(".")
            if room and part == module.part and room not in ROOMS.get(here, frozenset()):
                yield found.line, f"{here} looks into {target}"


def room_of(name: str) -> str:
    """`core.rules` of `clawdforge.core.rules.turns`; the part alone where a module stands in its hall."""
    part, _, rest = name.removeprefix(f"{ROOT}.").partition(".")
    room = f"{part}.{rest.partition('.')[0]}"
    return room if room in ROOMS else part


def _purity(module: Module) -> Findings:
    if room_of(module.name) != room_of(PURE):
        return
    for found in imports(module):
        if found.target.split(".")[0] in ("asyncio", "threading", "concurrent"):
            yield found.line, f"{found.target} is not for rules"
        if found.target.startswith(f"{ROOT}.core.ports"):
            for name in sorted(set(found.names) - PURE_PORTS):
                yield found.line, f"the port {name} is not for rules"


def _protocol(module: Module) -> Findings:
    if module.part != "core":
        return
    for number, line in enumerate(module.source.splitlines(), 1):
        for word in PROTOCOL.findall(line):
            yield number, f"{word} is a word of the agents' protocol"


def _targets(found: Import) -> Iterator[str]:
    if found.target != ROOT or not found.names:
        yield found.target
        return
    for name in found.names:
        if name != "__version__":
            yield f"{ROOT}.{name}"


def _other_dialect(name: str, target: str) -> bool:
    home = f"{ROOT}.http.dialects."
    if not (name.startswith(home) and target.startswith(home)):
        return False
    return name.removeprefix(home).split(".")[0] != target.removeprefix(home).split(".")[0]


def _fences(module: Module) -> Findings:
    for found in imports(module):
        package = found.target.split(".")[0]
        if package in FENCES and module.part not in FENCES[package]:
            yield found.line, f"{package} is not for {module.part or ROOT}"
    if module.part in FENCES["subprocess"]:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in SPAWNING.get(_last_name(node.value), ()):
            yield node.lineno, f"{node.attr} is not for {module.part or ROOT}"


def _shape(module: Module) -> Findings:
    lines = module.source.count("\n") + 1
    if lines > MAX_LINES + 1:
        yield lines, f"more than {MAX_LINES} lines"
    if not module.source.startswith('"""') or not ast.get_docstring(module.tree):
        yield 1, "no docstring on the first line"


def _state(module: Module) -> Findings:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global):
            yield node.lineno, "global statement"
    for node in module.tree.body:
        names: list[ast.expr]
        if isinstance(node, ast.AnnAssign):
            final = _last_name(getattr(node.annotation, "value", node.annotation)) == "Final"
            names, value = [node.target], node.value
        elif isinstance(node, ast.Assign):
            final, names, value = False, node.targets, node.value
        else:
            continue
        constant = final or all(CONSTANT.fullmatch(_last_name(name)) for name in names)
        if value is not None and _is_state(value, constant=constant):
            yield node.lineno, "state at module level"


def _is_state(value: ast.expr, *, constant: bool) -> bool:
    if isinstance(value, ast.Call):
        name = _last_name(value.func)
        return name in STATEFUL or not (constant or name in TYPING)
    literal = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    return isinstance(value, literal) and not constant


def _excepts(module: Module) -> Findings:
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ExceptHandler) or module.name in TASK_TOPS:
            continue
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        broad = any(kind is None or _last_name(kind) in ("Exception", "BaseException") for kind in kinds)
        last = node.body[-1]
        if broad and not (isinstance(last, ast.Raise) and last.exc is None):
            yield node.lineno, "broad except below the top of a task"


def _time(module: Module) -> Findings:
    if module.name == CLOCK or module.part in OUTSIDE:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            owner = _last_name(node.value)
            wall = owner == "time" and node.attr in ("time", "time_ns")
            if wall or (owner in ("datetime", "date") and node.attr in ("now", "utcnow", "today")):
                yield node.lineno, f"{owner}.{node.attr} outside the clock"
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (
                (node.lineno, "import time, not from it") for name in node.names if name.name == "time"
            )


def cycles(modules: Mapping[str, Module]) -> list[str]:
    """Import cycles between modules, each told once; what is imported for its types alone counts as well."""
    graph = {name: sorted(_edges(module, modules)) for name, module in modules.items()}
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            found.append(" → ".join([*path[path.index(name) :], name]))
        elif name not in done:
            for target in graph[name]:
                visit(target, [*path, name])
            done.add(name)

    for name in graph:
        visit(name, [])
    return found


def _edges(module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    for found in imports(module):
        if found.in_function or (found.target, found.names) == (ROOT, ("__version__",)):
            continue  # the version is a constant that stands before every import
        inner = [f"{found.target}.{name}" for name in found.names]
        hits = [name for name in inner if name in modules]
        yield from hits
        if found.target in modules and len(hits) < max(len(inner), 1):
            yield found.target
