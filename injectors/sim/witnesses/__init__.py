"""Witnesses of simulated cases by cause: queries over the signals that GPU jobs have.

Recorded jobs ran on a few CPU cores, so many witnesses of theirs ask for what a GPU job does not
show. A cause that is not listed here has the witness of its recorded cases.
"""

from injectors.sim.witnesses.compiler import COMPILER
from injectors.sim.witnesses.data import DATA
from injectors.sim.witnesses.devices import DEVICES
from injectors.sim.witnesses.framework import FRAMEWORK
from injectors.sim.witnesses.hosts import HOSTS
from injectors.sim.witnesses.transport import TRANSPORT

WITNESSES: dict[str, tuple[str, str]] = {
    **FRAMEWORK,
    **DATA,
    **COMPILER,
    **TRANSPORT,
    **HOSTS,
    **DEVICES,
}
