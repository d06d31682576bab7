"""A group that imports a command's module when the command is called, and the end of every command."""

import difflib
import gc
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from clawdforge.by_name import load
from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.text import ensure_utf8

PACKAGE: Final = "clawdforge.cli.commands"
DEFAULT: Final = "chat"
"""The command that is meant when none is named."""


class LazyCommand(NamedTuple):
    """A command that is imported when called: `module:attribute` in this package, and its short help."""

    where: str
    about: str

    def load(self) -> click.Command:
        found: click.Command = load(f"{PACKAGE}.{self.where}")
        return found


class LazyGroup(click.Group):
    """A list of commands, as for help or the shell's completion, imports none of them."""

    def __init__(self, *args: Any, lazy: Mapping[str, LazyCommand], **options: Any) -> None:
        super().__init__(*args, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self.lazy:
            self.add_command(self.lazy[cmd_name].load(), cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self._command_or_stand_in(name).get_short_help_str(room)) for name in names]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [
            CompletionItem(name, help=self._command_or_stand_in(name).get_short_help_str()) for name in names
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def _command_or_stand_in(self, name: str) -> click.Command:
        """The command, or what stands for it until it is called."""
        return self.commands.get(name) or click.Command(name, help=self.lazy[name].about)


class Program(LazyGroup):
    """The whole command line: without a command's name it is a conversation."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        position = self._find_default_position(ctx, args)
        if position is not None:
            args = [*args[:position], DEFAULT, *args[position:]]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The options of a conversation too: `clawdforge -p` is `clawdforge chat -p`."""
        found = super().shell_complete(ctx, incomplete)
        chat = self.get_command(ctx, DEFAULT) if incomplete.startswith("-") else None
        if chat is not None:
            named = {item.value for item in found}
            more = chat.shell_complete(click.Context(chat, parent=ctx), incomplete)
            found += [item for item in more if item.value not in named]
        return found

    def _find_default_position(self, ctx: click.Context, args: list[str]) -> int | None:
        """Where `chat` is to be put in; None where a command is named, or only help is asked for."""
        own = {name: option for option in self.get_params(ctx) for name in option.opts}
        position = 0
        while position < len(args):
            word, _, value = args[position].partition("=")
            option = own.get(word)
            if option is None:
                break
            if word in ("-h", "--help", "-V", "--version"):
                return None
            position += 1 if value or (isinstance(option, click.Option) and option.is_flag) else 2
        if position >= len(args):
            # A shell that completes asks for the words before the one that is being typed: a command's name.
            return None if ctx.resilient_parsing else len(args)
        known = self.list_commands(ctx)
        if args[position] in known:
            return None
        flag = args[position].startswith("-")
        near = [] if flag else difflib.get_close_matches(args[position], known, n=1, cutoff=0.8)
        if near:
            ctx.fail(
                f"no such command: {args[position]}. Did you mean {near[0]}? "
                f"To send the words as a prompt: clawdforge -- {' '.join(args[position:])}"
            )
        return position

    def main(self, *args: Any, **options: Any) -> Any:
        """At the end, the interpreter would look through all that was imported, which takes 80 ms."""
        ensure_utf8()
        try:
            return super().main(*args, **options)
        finally:
            gc.freeze()

    def invoke(self, ctx: click.Context) -> Any:
        """The one place where whatever is left over becomes a message and an exit code."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            raise Failure("stopped", Exit.INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read our output has seen enough. The interpreter must not complain about it at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(Exit.ERROR) from None
        except Exception as error:  # noqa: BLE001 - the top of the program: no traceback for a person
            if getattr(ctx.obj, "verbose", False) or ctx.invoked_subcommand == "serve":
                traceback.print_exc()  # a server's log has no use for a hint
            raise Failure(
                f"the command line failed ({type(error).__name__}: {error}); "
                "run it again with --verbose to see where. The server is not affected"
            ) from None
