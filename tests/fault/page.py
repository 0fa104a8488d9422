# SPDX-License-Identifier: Apache-2.0
"""The page that tests share with a server under libfault (fault.c): which call is to fail, and what
was counted."""
import mmap
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "service"))
from service import Server

FIELDS = ("armed", "calls", "fail_at", "always", "how", "failed")
HOWS = ("ENOSPC", "EIO", "EMFILE", "EINTR", "SHORT", "ENOMEM")
BYTES = 4096


class Class:
    """One class of calls, "files" or "memory"."""

    def __init__(self, memory, offset):
        self.memory, self.offset = memory, offset

    def get(self, field):
        return struct.unpack_from("<Q", self.memory, self.offset + 8 * FIELDS.index(field))[0]

    def set(self, **values):
        for field, value in values.items():
            struct.pack_into("<Q", self.memory, self.offset + 8 * FIELDS.index(field), int(value))

    def arm(self, fail_at, how="ENOMEM", always=False):
        """From here on calls are counted; number `fail_at` (0: none) fails."""
        self.set(armed=0, calls=0, failed=0, fail_at=fail_at, always=always, how=HOWS.index(how))
        self.set(armed=1)

    def disarm(self):
        """Calls counted since arm, and how many of them failed."""
        self.set(armed=0)
        return self.get("calls"), self.get("failed")


class Page:
    def __init__(self, folder):
        self.path = os.path.join(folder, "fault.page")
        with open(self.path, "wb") as file:
            file.truncate(BYTES)
        self.file = open(self.path, "r+b")  # pylint: disable=consider-using-with
        self.memory = mmap.mmap(self.file.fileno(), BYTES)
        self.files, self.heap = Class(self.memory, 0), Class(self.memory, 8 * len(FIELDS))

    def live_blocks(self):
        return struct.unpack_from("<q", self.memory, 16 * len(FIELDS))[0]

    def live_bytes(self):
        return struct.unpack_from("<q", self.memory, 16 * len(FIELDS) + 8)[0]

    def forget_heap(self):
        """A new process starts with nothing live."""
        struct.pack_into("<qq", self.memory, 16 * len(FIELDS), 0, 0)

    def last(self):
        """Name of the call that failed last."""
        return self.memory[16 * len(FIELDS) + 16:16 * len(FIELDS) + 80].split(b"\0")[0].decode()

    def server(self, binary, library, flags, folder, trace=False, spare=""):
        self.forget_heap()
        more = {"LD_PRELOAD": os.path.abspath(library), "FAULT_PAGE": self.path, "FAULT_SPARE": spare}
        if trace:
            more["FAULT_TRACE"] = "1"
        return Server(binary, flags, folder=folder, extra_environment=more)


def quick_folder():
    """Where syncing costs nothing: these tests are about what fails, not about disks."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
