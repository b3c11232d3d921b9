"""A program that tries network shaping in namespaces of its own; run by path, never imported.

    python -I namespace_probe.py tbf|netem|statistic

It enters a fresh network namespace (and, without root, a fresh user namespace), connects it
to a second one by a veth pair, and sets one rule on it. The kernel removes all of it when the
two processes end, so nothing is left behind however the probe is stopped. Prints nothing and
exits 0 where everything worked; else prints the step that failed and exits 1.
"""

import ctypes
import os
import subprocess
import sys

CLONE_NEWNET = 0x40000000
CLONE_NEWUSER = 0x10000000

# As injectors.recorder.network.tools: administrators' tools are not on every user's path.
TOOLS = {
    **os.environ,
    "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]),
    "XTABLES_LOCKFILE": "/dev/null",
}
RULES = {
    "tbf": "tc qdisc add dev probe0 root tbf rate 100mbit burst 64kb latency 50ms",
    "netem": "tc qdisc add dev probe0 root netem delay 1ms",
    "statistic": "iptables -A OUTPUT -m statistic --mode random --probability 0.01 -j DROP",
}


def enter_namespace() -> None:
    """Move this process into a new network namespace in which it may administer."""
    user, group, as_root = os.getuid(), os.getgid(), os.geteuid() == 0
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET if as_root else CLONE_NEWNET | CLONE_NEWUSER) != 0:
        fail("unshare", os.strerror(ctypes.get_errno()))
    if not as_root:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"0 {user} 1")
        write("/proc/self/gid_map", f"0 {group} 1")


def write(path: str, text: str) -> None:
    """Write one of /proc's control files."""
    try:
        with open(path, "w") as file:  # noqa: PTH123 - nothing but the bare interpreter here
            file.write(text)
    except OSError as error:
        fail(path, str(error))


def run(command: str) -> None:
    """Run one command; the first that fails ends the probe."""
    try:
        done = subprocess.run(command.split(), capture_output=True, text=True, env=TOOLS)
    except FileNotFoundError:
        fail(command, f"{command.split()[0]} is not installed")
    if done.returncode != 0:
        fail(command, done.stderr.strip() or f"exit status {done.returncode}")


def fail(step: str, why: str) -> None:
    """Say which step failed and stop."""
    print(f"`{step}`: {why.splitlines()[0]}")
    sys.exit(1)


def hold_second_namespace() -> int:
    """Fork a process that sits in a second network namespace; returns its process id."""
    ready, tell = os.pipe()
    stay, leave = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(leave)
        failed = ctypes.CDLL(None).unshare(CLONE_NEWNET)
        os.write(tell, b"n" if failed else b"y")
        os.read(stay, 1)  # returns when the probe ends, however it ends
        os._exit(0)
    os.close(stay)
    if os.read(ready, 1) != b"y":
        fail("unshare", "a second network namespace is refused")
    return child


if __name__ == "__main__":
    enter_namespace()
    peer = hold_second_namespace()
    run(f"ip link add probe0 type veth peer name probe1 netns {peer}")
    run("ip link set probe0 up")
    run(RULES[sys.argv[1]])
