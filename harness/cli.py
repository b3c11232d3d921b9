"""The `evalharness` command: a table of subcommands, each imported only when it is used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from cases.errors import EvalHarnessError, HarnessError

# name -> (module that holds `command`, one line for --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("harness.commands.run", "Run diagnosers on a suite, score and track them."),
    "score": ("harness.commands.score", "Judge recorded answers again without running."),
    "compare": ("harness.commands.compare", "Say which of two diagnosers is better, or tied."),
    "gate": ("harness.commands.gate", "Say whether a result passes a policy."),
    "ablate": ("harness.commands.ablate", "Say what of the accuracy each signal buys."),
    "stress": ("harness.commands.stress", "Say how answers change as recordings get worse."),
    "ask": ("harness.commands.ask", "Ask about single cases; say what was true and blamed."),
    "leaderboard": ("harness.commands.leaderboard", "Rank all tracked diagnosers of a suite."),
    "report": ("harness.commands.report", "Draw finished results as pages."),
    "track": ("harness.commands.track", "Send results to MLflow, now or later."),
    "record": ("harness.commands.record", "Break a job on purpose and record labelled cases."),
    "train": ("harness.commands.train", "Train the bundled forest on a suite's train split."),
    "cases": ("harness.commands.cases", "List, show, check and audit the cases of a suite."),
    "diagnosers": ("harness.commands.diagnosers", "List what can be asked; install tools."),
    "mcp": ("harness.commands.mcp", "Serve one case's tables to an agent that speaks MCP."),
    "taxonomy": ("harness.commands.taxonomy", "Show the tree of root causes, or one cause."),
    "doctor": ("harness.commands.doctor", "Say what can be injected, recorded, isolated here."),
}


class LazyGroup(click.Group):
    """A click group that imports a subcommand's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return one subcommand, None if the name is unknown."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="evalharness", prog_name="evalharness")
def cli() -> None:
    """Measure how often programs that diagnose slow GPU jobs are right, silent or misled.

    Results go to standard output, progress and logs to standard error. Exit status: 0 done,
    1 a gate or check said no, 2 wrong use or unreadable input, 3 the harness failed.

    Example: evalharness run -d rules --suite recorded_cpu
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; turns the project's own errors into exit status 2 or 3."""
    try:
        cli.main(args=arguments, prog_name="evalharness", standalone_mode=True)
    except EvalHarnessError as error:
        click.echo(f"evalharness: {error}", err=True)
        sys.exit(3 if isinstance(error, HarnessError) else 2)
