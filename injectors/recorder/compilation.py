"""What torch.compile does while a job runs, as its own callbacks and warnings tell."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

LIMIT_WARNING = "torch._dynamo hit config."
Report = Callable[[str, int, int | None, float, str], None]


class CompileWatch:
    """Reports every compilation with its length and reason, and functions that are given up.

    Args:
        report: Called with event, begin (monotonic ns), length in ns, value and detail.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._began_ns = self._graphs = self._told = 0
        self._failures: dict[Any, int] = {}
        self._given_up = GivenUp()
        logging.getLogger("torch._dynamo.convert_frame").addHandler(self._given_up)

    def start(self) -> None:
        """Begin to report; functions given up before are told again by the next call that asks."""
        self._told = 0
        self._count_failures()
        if handler := _callbacks():
            handler.register_start_callback(self._begin)
            handler.register_end_callback(self._end)

    def stop(self) -> None:
        """Stop reporting."""
        handler = _callbacks()
        if handler and self._begin in handler.start_callbacks:
            handler.remove_start_callback(self._begin)
            handler.remove_end_callback(self._end)

    def tell_given_up(self) -> None:
        """Report if functions were given up since the last call: how many there are, and which."""
        names = sorted(self._given_up.names)
        if len(names) > self._told:
            now = time.monotonic_ns()
            self._report("recompile_limit", now, None, len(names), ", ".join(names))
            self._told = len(names)

    def _begin(self, about: Any) -> None:
        self._began_ns, self._graphs = time.monotonic_ns(), compiled_graphs()

    def _end(self, about: Any) -> None:
        graphs = compiled_graphs() - self._graphs
        if graphs or about.callback_trigger.name == "LAZY_BACKWARD":
            length_ns = time.monotonic_ns() - self._began_ns
            self._report("recompile", self._began_ns, length_ns, graphs, self._reason())

    def _reason(self) -> str:
        """Return why the newest code did not fit, empty where there was none yet.

        Dynamo asks all code it has, the newest first, before it begins to compile.
        """
        known = self._failures
        new = [
            found[known.get(code, 0)]
            for code, found in guard_failures().items()
            if len(found) > known.get(code, 0)
        ]
        self._count_failures()
        return bare(new[0]) if new else ""

    def _count_failures(self) -> None:
        self._failures = {code: len(found) for code, found in guard_failures().items()}


class GivenUp(logging.Handler):
    """Remembers the functions of which the compiler's warning says that it left them for good."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.names: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the name that the warning carries."""
        if record.msg.startswith(LIMIT_WARNING) and isinstance(record.args, tuple):
            self.names.add(str(record.args[2]).split("'")[1])


def bare(reason: str) -> str:
    """Return a guard's failure without its number and the place in the source.

    >>> bare("0/3: L['stage'] == 2  # return x * stage  # model.py:44 in forward")
    "L['stage'] == 2"
    """
    return reason.partition(": ")[2].partition("  #")[0].strip()


def compiled_graphs() -> int:
    """Return how many graphs dynamo has compiled in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    return 0 if utils is None else int(utils.counters["stats"]["unique_graphs"])


def guard_failures() -> Mapping[Any, list[str]]:
    """Return why compiled code could not be used, by function; the newest code comes first."""
    utils = sys.modules.get("torch._dynamo.utils")
    found: Mapping[Any, list[str]] = {} if utils is None else utils.guard_failures
    return found


def _callbacks() -> Any:
    """Return dynamo's registry of callbacks, None where nothing was ever compiled."""
    module = sys.modules.get("torch._dynamo.callback")
    return module and module.callback_handler
