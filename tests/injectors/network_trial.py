"""A program that tries injectors.recorder.network in namespaces of its own.

Run by tests/injectors/test_network.py in a fresh network namespace; prints one JSON object.
Four ranks on three hosts: 0 and 1 share an interface, 2 and 3 have their own.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from injectors.recorder.network import (
    INTERFACE,
    Network,
    enter_namespace_of,
    enter_own_namespace,
    tools,
)

MEGABYTE = bytes(2**20)


def hold_namespace(network, pids, rank):
    """Fork a process that sits in the rank's namespace."""
    pid = os.fork()
    if pid:
        return pid
    if network.leader(rank) == rank:
        enter_own_namespace()
    else:
        enter_namespace_of(pids[network.leader(rank)])
    time.sleep(60)
    os._exit(0)


def namespace(pid):
    """Return the name of a process's network namespace."""
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def seconds(network, pids, source, target, megabytes=1):
    """Send from one rank's namespace to another's; returns how long it took."""
    ready, tell = os.pipe()
    receiver = os.fork()
    if not receiver:
        enter_namespace_of(pids[target])
        with socket.create_server(("", 6000)) as server:
            os.write(tell, b"x")
            connection, _ = server.accept()
            while connection.recv(2**18):
                pass
            connection.sendall(b"done")
        os._exit(0)
    os.read(ready, 1)
    sender_says, say = os.pipe()
    sender = os.fork()
    if not sender:
        enter_namespace_of(pids[source])
        begin = time.monotonic()
        address = network.address(network.place(target)), 6000
        with socket.create_connection(address) as connection:
            connection.sendall(MEGABYTE * megabytes)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(4)
        os.write(say, str(time.monotonic() - begin).encode())
        os._exit(0)
    took = float(os.read(sender_says, 100))
    for pid in (receiver, sender):
        os.waitpid(pid, 0)
    return took


def shown(network, pids, place, what=("tc", "qdisc", "show", "dev", INTERFACE)):
    """Return what a tool says in a namespace."""
    command = ["nsenter", "--net", f"--target={network.pid(place)}", *what]
    return subprocess.run(command, capture_output=True, text=True, env=tools(), check=True).stdout


def main(rate, loss):
    network = Network([0, 0, 1, 2], float(rate) or None)
    pids = {}
    for rank in range(4):
        pids[rank] = hold_namespace(network, pids, rank)
    for rank in range(4):
        while namespace(pids[rank]) == namespace("self"):
            time.sleep(0.01)
    network.join(pids)
    found = {"namespaces": [namespace(pids[rank]) for rank in range(4)]}
    found["before"] = shown(network, pids, 1)
    with network.shaped_interface(1, 40):
        found["interface"] = {
            "from": seconds(network, pids, 2, 3),
            "to": seconds(network, pids, 3, 2),
            "others": seconds(network, pids, 0, 3),
        }
    with network.shaped_path(1, 2, 40):
        found["path"] = {
            "there": seconds(network, pids, 2, 3),
            "back": seconds(network, pids, 3, 2),
            "others": seconds(network, pids, 2, 0),
        }
    if loss == "loss":
        with network.lossy(2, 0.1):
            seconds(network, pids, 2, 0)
            seconds(network, pids, 0, 2)
            found["lossy"] = [shown(network, pids, place, LOSSES) for place in (0, 1)]
        found["lifted"] = [shown(network, pids, place, LOSSES) for place in (0, 1)]
    found["after"] = shown(network, pids, 1)
    with network.shaped(2, 40):  # its rank dies within: lifting must not raise
        os.kill(pids[2], signal.SIGKILL)
        os.waitpid(pids[2], 0)
    for rank in (0, 1, 3):
        os.kill(pids[rank], signal.SIGKILL)
        os.waitpid(pids[rank], 0)
    print(json.dumps(found))


LOSSES = ("iptables", "-L", "INPUT", "-v", "-n", "-x")

if __name__ == "__main__":
    main(*sys.argv[1:])
