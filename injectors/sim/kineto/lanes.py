"""Which numbers processes, threads and streams have in a trace."""

from __future__ import annotations

from injectors.sim.kineto.events import PROCESS, Lane
from injectors.sim.program import Stream, Thread

CPU_PROCESS = 1  # where there are no devices
STREAMS = {
    Stream.COMPUTE: 7,
    Stream.DATA_PARALLEL: 20,
    Stream.COPY: 24,
    Stream.TENSOR_PARALLEL: 28,
    Stream.EXPERT_PARALLEL: 32,
    Stream.SEND: 36,
    Stream.RECV: 40,
}
GLOO_FIRST = 2  # gloo's threads, one for each stream
GLOO_NAME = "pt_gloo_runloop"


def thread(thread: Thread, on_gpu: bool) -> Lane:
    """Return a host thread's lane; without GPUs autograd runs on the calling thread."""
    if not on_gpu:
        return Lane(CPU_PROCESS, CPU_PROCESS)
    return Lane(PROCESS, PROCESS + int(thread))


def stream(stream: Stream) -> Lane:
    """Return a stream's lane on the rank's own device."""
    return Lane(None, STREAMS[stream])


def gloo(stream: Stream) -> Lane:
    """Return the lane of the thread that does a stream's collectives on CPUs."""
    return Lane(CPU_PROCESS, GLOO_FIRST + int(stream))
