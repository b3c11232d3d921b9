"""Diagnosers that misbehave, for real, in both kinds of isolation."""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.child.canary import start_time
from harness.child.process import descendants
from harness.sandbox.level import why_no_bubblewrap
from harness.sandbox.limits import MIB, Limits
from harness.sandbox.worker import CaseRun, Place, Task, Worker, public_code

LIMITS = Limits(timeout_s=1.0, memory_bytes=400 * MIB, scratch_bytes=64 * MIB)
BEHAVIOURS = """
import os, signal, socket, sys, time
from pathlib import Path

SEEN = []

def fine(case, what): return {"verdict": "healthy"}
def raises(case, what): raise RuntimeError("no idea")
def sleeps(case, what): time.sleep(60)
def hides_in_a_child(case, what):
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
    os.wait()
def eats(case, what):
    held = []
    while True:
        held.append(b"x" * 2**24)
        time.sleep(0.005)
def lets_children_eat(case, what):
    for _ in range(3):
        if os.fork() == 0:
            held = [b"x" * 2**24 for _ in range(12)]
            time.sleep(60)
    os.wait()
def overflows_memory(case, what): raise MemoryError("too much")
def orphans(case, what):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.5)
            Path(what).write_text("alive")
            time.sleep(60)
        os._exit(0)
    return {"verdict": "healthy"}
def both_return(case, what):
    os.fork()
    return {"verdict": "healthy"}
def prints(case, what):
    sys.stdout.write('{"verdict": "faulty"}' * 500_000)
    os.write(2, b"\\xff\\x00rubbish")
    return {"verdict": "healthy"}
def returns_rubbish(case, what): return 42
def returns_set(case, what): return {"verdict": {1, 2}}
def returns_much(case, what): return {"verdict": "healthy", "x": "y" * 2**21}
def leaves(case, what): os._exit(0)
def exits(case, what): sys.exit(3)
def kills_parent(case, what):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
def stops_parent(case, what):
    os.kill(os.getppid(), signal.SIGSTOP)
    return {"verdict": "healthy"}
def litters(case, what):
    SEEN.append("global")
    Path.cwd().joinpath("locked", "deep").mkdir(parents=True)
    Path.cwd().joinpath("locked", "deep", "file").write_text("x")
    Path.cwd().joinpath("locked").chmod(0)
    Path.cwd().joinpath("left.txt").write_text("x")
    if os.path.isdir("/dev/shm") and what == "sealed":
        Path("/dev/shm/left").write_text("x")
    os.utime(Path.cwd(), (7, 7))
    Path.cwd().chmod(0o755)
    os.environ["LEFT"] = "x"
    return {"verdict": "healthy"}
def looks_around(case, what):
    left = [*SEEN, *os.listdir("."), *([os.environ["LEFT"]] if "LEFT" in os.environ else [])]
    if what == "sealed":
        left += os.listdir("/dev/shm")
    status = os.stat(".")
    print(left, oct(status.st_mode & 0o777), int(status.st_mtime), sorted(p.name for p in
        Path("/case").iterdir()) if what == "sealed" else "")
    return {"verdict": "healthy"}
def reads(case, what):
    Path(what).read_bytes()
    return {"verdict": "healthy"}
def lists(case, what):
    print(sorted(os.listdir(what)))
    return {"verdict": "healthy"}
def writes(case, what):
    Path(what).write_text("x")
    return {"verdict": "healthy"}
def writes_much(case, what):
    with open("big", "wb") as file:
        for _ in range(100):
            file.write(b"x" * 2**20)
    return {"verdict": "healthy"}
def connects(case, what):
    socket.create_connection(("127.0.0.1", int(what)), timeout=1).close()
    return {"verdict": "healthy"}
def shares_memory(case, what):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.shmget(0x1234, 4096, 0o1666) < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    return {"verdict": "healthy"}
def imports_private(case, what):
    __import__(what)
    return {"verdict": "healthy"}
def shows_environment(case, what):
    import json
    print(json.dumps(dict(os.environ)))
    return {"verdict": "healthy"}

def diagnose(case):
    return globals()[case.info.title](case, case.info.objective)
"""
needs_bwrap = pytest.mark.skipif(why_no_bubblewrap() is not None, reason="no bubblewrap here")
Run = Callable[..., CaseRun]


@pytest.fixture(scope="module")
def code() -> Iterator[Path]:
    with public_code() as folder:
        yield folder


@pytest.fixture(scope="module")
def secret(tiny_suite: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Labels, cases and a result that nothing may reach."""
    results = tmp_path_factory.mktemp("results")
    (results / "answers.jsonl").write_text("{}\n")
    labels = tiny_suite.parents[1] / "labels" / "tiny"
    return {"labels": [labels], "other cases": [tiny_suite], "earlier results": [results]}


@pytest.fixture(scope="module", params=[pytest.param("bwrap", marks=needs_bwrap), "process"])
def worker(
    request: pytest.FixtureRequest,
    code: Path,
    secret: dict[str, list[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Worker]:
    file = tmp_path_factory.mktemp("diagnoser") / "behaves.py"
    file.write_text(BEHAVIOURS)
    target = {"name": "behaves", "file": str(file), "function": "diagnose", "search": []}
    place = Place(request.param, LIMITS, code, secret)
    with Worker(Task(target, shown=(file,)), place) as worker:
        yield worker


@pytest.fixture
def sealed(worker: Worker) -> bool:
    return worker.reached == []


@pytest.fixture
def run(worker: Worker, tiny_suite: Path, tiny_ids: dict[str, str], tmp_path: Path) -> Run:
    """Run the diagnoser on a case that asks it to behave in a certain way."""

    def run(behaviour: str, what: object = "") -> CaseRun:
        folder = tmp_path / "asked"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tiny_suite / tiny_ids["loader_dev"], folder)
        info = json.loads((folder / "case.json").read_text())
        info |= {"title": behaviour, "objective": str(what)}
        (folder / "case.json").write_text(json.dumps(info))
        return worker.run(folder)

    return run


def test_canary_tells_what_is_within_reach(worker: Worker, request: pytest.FixtureRequest) -> None:
    unsealed = {"labels", "other cases", "earlier results", "harness", "network"}
    assert worker.reached is not None
    if "bwrap" in request.node.name:
        assert worker.reached == []
    else:
        assert unsealed <= set(worker.reached)


def test_answer_comes_back(run: Run) -> None:
    found = run("fine")
    assert (found.outcome, json.loads(found.answer)) == ("ok", {"verdict": "healthy"})
    assert 0 < found.seconds < LIMITS.timeout_s
    assert 0 < found.cpu_s < LIMITS.timeout_s
    assert found.peak_memory_bytes > MIB


@pytest.mark.parametrize(
    ("behaviour", "outcome", "error"),
    [
        ("raises", "error", "RuntimeError: no idea"),
        ("overflows_memory", "out_of_memory", "too much"),
        ("returns_rubbish", "invalid", "found int"),
        ("returns_set", "invalid", "set is not a JSON value"),
        ("returns_much", "invalid", "at most"),
        ("leaves", "error", "without an answer"),
        ("exits", "error", "SystemExit: 3"),
        ("kills_parent", "error", "supervisor"),
        ("writes_much", "error", "File too large"),
    ],
)
def test_failure_has_its_outcome_and_cause(
    run: Run, behaviour: str, outcome: str, error: str
) -> None:
    found = run(behaviour)
    assert found.outcome == outcome
    assert error in found.error
    assert run("fine").outcome == "ok"


@pytest.mark.parametrize("behaviour", ["sleeps", "hides_in_a_child", "stops_parent"])
def test_time_runs_out_for_the_whole_tree(run: Run, behaviour: str) -> None:
    before = descendants(os.getpid())
    found = run(behaviour)
    assert found.outcome == "timeout"
    assert LIMITS.timeout_s <= found.seconds < LIMITS.timeout_s + 1
    assert not set(descendants(os.getpid())) - set(before)


@pytest.mark.parametrize("behaviour", ["eats", "lets_children_eat"])
def test_memory_runs_out_for_the_whole_tree(run: Run, behaviour: str) -> None:
    found = run(behaviour)
    assert found.outcome == "out_of_memory"
    assert LIMITS.memory_bytes < found.peak_memory_bytes < 4 * LIMITS.memory_bytes


def test_what_outlives_a_case_is_killed(run: Run, tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    before = descendants(os.getpid())
    assert run("orphans", mark).outcome == "ok"
    grown = set(descendants(os.getpid())) - set(before)
    assert len(grown) <= 3  # a zygote and what holds it, if it had to be started anew
    time.sleep(0.7)
    assert not mark.exists()


def test_a_process_that_ends_while_it_is_listed_has_no_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(_: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "iterdir", gone)
    assert descendants(os.getpid()) == []


def test_fork_that_returns_twice_answers_once(run: Run) -> None:
    assert json.loads(run("both_return").answer) == {"verdict": "healthy"}


def test_printing_is_kept_apart_and_bounded(run: Run) -> None:
    found = run("prints")
    assert json.loads(found.answer) == {"verdict": "healthy"}
    assert found.output.startswith('{"verdict": "faulty"}')
    assert len(found.output) <= 2**16


def test_nothing_is_left_for_the_next_case(run: Run, sealed: bool) -> None:
    what = "sealed" if sealed else ""
    untouched = run("looks_around", what).output
    assert run("litters", what).outcome == "ok"
    assert run("looks_around", what).output == untouched
    assert untouched.startswith("[] 0o700 0 ")


def test_labels_results_and_other_cases_are_out_of_reach(
    run: Run, sealed: bool, secret: dict[str, list[Path]]
) -> None:
    """In plain processes they are within reach, which shows that the attempt is a true one."""
    label = next(secret["labels"][0].iterdir())
    case = next(path for path in secret["other cases"][0].iterdir() if path.is_dir())
    for path in (label, case / "case.json", secret["earlier results"][0] / "answers.jsonl"):
        assert run("reads", path).outcome == ("error" if sealed else "ok"), path


def test_harness_memory_and_zygote_are_out_of_reach(run: Run, sealed: bool) -> None:
    if sealed:
        assert run("reads", f"/proc/{os.getpid()}/environ").outcome == "error"
        assert "PermissionError" in run("reads", "/proc/2/environ").error  # the zygote


def test_network_is_out_of_reach(run: Run, sealed: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert run("connects", port).outcome == ("error" if sealed else "ok")


def test_memory_that_outlives_processes_is_refused(run: Run, sealed: bool) -> None:
    if sealed:
        assert "PermissionError: [Errno 1] shmget" in run("shares_memory").error


def test_sealed_file_system_is_an_allow_list(run: Run, sealed: bool) -> None:
    if not sealed:
        pytest.skip("plain processes see all there is")
    assert not {"home", "var", "opt", "mnt"} & set(ast.literal_eval(run("lists", "/").output))
    case = ["case.json", "reference", "signals", "traces"]
    assert ast.literal_eval(run("lists", "/case").output) == case
    for path in ("/new", "/case/new", "/code/new", "/dev/new", "/usr/lib/new"):
        assert run("writes", path).outcome == "error", path


@pytest.mark.parametrize("module", ["cases.truth", "injectors", "scorers", "harness.judge"])
def test_private_code_is_not_there(run: Run, sealed: bool, module: str) -> None:
    if sealed:
        assert "ModuleNotFoundError" in run("imports_private", module).error


def test_environment_is_not_handed_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    found = json.loads(run("shows_environment").output)
    assert "SECRET_TOKEN" not in found
    assert found["OMP_NUM_THREADS"] == "1"


def test_process_is_told_from_another_of_its_number() -> None:
    assert start_time(os.getpid()) == start_time(os.getpid())
    assert start_time(2**22 + 1) is None
