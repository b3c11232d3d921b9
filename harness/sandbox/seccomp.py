"""A filter for the system calls by which one case could leave something to the next.

System V memory, message queues and keys outlive the process that makes them, and no folder
is wiped of them. Looking into other processes is refused too.
Source: Linux `Documentation/userspace-api/seccomp_filter.rst`; numbers from the kernel's
`syscall_64.tbl` (x86_64) and `asm-generic/unistd.h` (aarch64).
"""

from __future__ import annotations

import errno
import platform
import struct

# shmget, semget, msgget, mq_open, add_key, request_key, keyctl, ptrace,
# process_vm_readv, process_vm_writev
REFUSED: dict[str, tuple[int, ...]] = {
    "x86_64": (29, 64, 68, 240, 248, 249, 250, 101, 310, 311),
    "aarch64": (194, 190, 186, 180, 217, 218, 219, 117, 270, 271),
}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000  # the x86_64 kernel's second table of numbers

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
NUMBER_AT, ARCHITECTURE_AT = 0, 4  # offsets in struct seccomp_data


def program(machine: str = platform.machine()) -> bytes | None:
    """Return the filter as bubblewrap takes it, None on machines without a table here.

    >>> len(program("x86_64")) % 8
    0
    """
    if machine not in REFUSED:
        return None
    numbers = REFUSED[machine]
    code = [
        _line(LOAD, ARCHITECTURE_AT),
        _line(EQUAL, ARCHITECTURE[machine], if_true=1),
        _line(RETURN, KILL),  # calls of another architecture would go by other numbers
        _line(LOAD, NUMBER_AT),
        _line(AT_LEAST, X32_BIT, if_true=len(numbers) + 1),
        *(
            _line(EQUAL, number, if_true=len(numbers) - index)
            for index, number in enumerate(numbers)
        ),
        _line(RETURN, ALLOW),
        _line(RETURN, FAIL),
    ]
    return b"".join(code)


def _line(code: int, value: int, if_true: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, 0, value)
