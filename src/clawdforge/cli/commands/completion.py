"""`clawdforge completion`: what a shell needs to complete commands, options and session ids."""

import click
from click.shell_completion import get_completion_class

from clawdforge.cli.failures import Failure


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, /, shell: str) -> None:
    """Print the completion script of a shell.

    bash: eval "$(clawdforge completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc;
    fish: clawdforge completion fish > ~/.config/fish/completions/clawdforge.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise Failure(f"no completion for {shell}")
    program = ctx.find_root()
    click.echo(kind(program.command, {}, "clawdforge", "_CLAWDFORGE_COMPLETE").source())
