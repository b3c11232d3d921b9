"""Odd but healthy: things that look like a cause and are measured to cost nothing."""

from __future__ import annotations

from injectors.decoys.devices import (
    BlindInstrument,
    IdlePcieGeneration,
    LowPowerWhileWaiting,
    SpinningCollectiveUtilization,
    UtilizationFallsWithSpeedup,
)
from injectors.decoys.hidden import CheapPeriodicCheckpoint, HiddenSlowRead, LowPriorityCompetitor
from injectors.decoys.moved_waits import CostMovesToNextSync
from injectors.decoys.serving import HealthySurface
from injectors.decoys.time_lines import (
    CoincidentVersionChange,
    ObserverEffect,
    SimultaneousGlobalDrop,
    SlowFirstStep,
    SteadyUndersupplyRhythm,
)
from injectors.decoys.waiting import BusyWaitingCpu, LastArriver, WaitingSyncHotspot
from injectors.faults.base import Decoy

DECOYS: dict[str, type[Decoy]] = {
    decoy.name: decoy
    for decoy in (
        SlowFirstStep,
        LowPriorityCompetitor,
        HiddenSlowRead,
        CheapPeriodicCheckpoint,
        CostMovesToNextSync,
        LastArriver,
        WaitingSyncHotspot,
        BusyWaitingCpu,
        SpinningCollectiveUtilization,
        LowPowerWhileWaiting,
        SimultaneousGlobalDrop,
        ObserverEffect,
        IdlePcieGeneration,
        CoincidentVersionChange,
        SteadyUndersupplyRhythm,
        BlindInstrument,
        UtilizationFallsWithSpeedup,
        HealthySurface,
    )
}

__all__ = ["DECOYS", "Decoy"]
