"""What a killed process left in the buffers that CUPTI was writing: the kinds of records in each, and which of them
have times. Reads the file that collectors/cupti/slot_file.h describes."""

import collections
import mmap
import pathlib
import struct

MAGIC = 0x31544F4C53505254
ELSEWHERE = struct.Struct("<Q128s")  # of buffers that lie in another folder
ELSEWHERE_MAGIC = 0x3145524557505254
KINDS = 64  # kActivityKinds
INCOMPLETE = 1 << 31  # kIncompleteMark
KEPT_NAMES = 8192
STATES = {1: "held", 2: "delivered", 3: "in work"}
KERNEL_KINDS = (3, 10)
API_KINDS = (4, 5)  # driver, runtime: start and end follow kind and cbid
HEADER = struct.Struct("<QIIQqII")
SLOT = struct.Struct("<IIIIqq")


class SlotFile:
    """`kinds`: the header's number of kinds, for a file of another build."""

    def __init__(self, path, kinds=KINDS):
        with open(_path_of_buffers(path), "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        magic, self.slot_bytes, _, _, _, self.slots, _ = HEADER.unpack_from(self.data)
        if magic != MAGIC:
            raise ValueError(f"{path}: no file of slots")
        at = HEADER.size
        self.sizes = struct.unpack_from(f"<{kinds}I", self.data, at)
        at += 4 * kinds
        at += -at % 8 + 16 * KEPT_NAMES
        self.table = at

    def states(self):
        """(number, state, valid bytes, bytes done) of those that are in use."""
        for number in range(self.slots):
            state, valid, done, _, _, _ = SLOT.unpack_from(self.data, self.table + SLOT.size * number)
            if state in STATES:
                yield number, STATES[state], valid, done

    def kinds(self, number, valid):
        """(kind, whether it has its times) -> count, up to the first record that is none. A held buffer has no
        valid bytes: all of it is looked at."""
        base = self.slot_bytes * (number + 1)
        counts, at = collections.Counter(), 0
        end = valid or self.slot_bytes
        while at + 4 <= end:
            (kind,) = struct.unpack_from("<I", self.data, base + at)
            marked, kind = kind & INCOMPLETE, kind & ~INCOMPLETE
            size = self.sizes[kind] if kind < len(self.sizes) else 0
            if size == 0 or at + size > end:
                break
            counts[kind, not marked and self._has_times(kind, base + at)] += 1
            at += size
        return counts

    def _has_times(self, kind, at):
        if kind in API_KINDS:
            return all(struct.unpack_from("<QQ", self.data, at + 8))
        if kind in KERNEL_KINDS:
            return all(struct.unpack_from("<QQ", self.data, at + 16))
        return True


def _path_of_buffers(path):
    path = pathlib.Path(path)
    with open(path, "rb") as file:
        data = file.read(ELSEWHERE.size + 1)
    if len(data) == ELSEWHERE.size:
        magic, folder = ELSEWHERE.unpack(data)
        if magic == ELSEWHERE_MAGIC:
            return pathlib.Path(folder.rstrip(b"\0").decode()) / f"trainprof-{path.name}"
    return path


def describe(path):
    """A line a slot: "slot 2 held: kind 10: 40 with times, 3 without; kind 5: 44 with times"."""
    slots = SlotFile(path)
    for number, state, valid, _ in slots.states():
        by_kind = collections.defaultdict(lambda: [0, 0])
        for (kind, timed), count in slots.kinds(number, valid).items():
            by_kind[kind][0 if timed else 1] += count
        parts = [f"kind {kind}: {timed} with times, {untimed} without"
                 for kind, (timed, untimed) in sorted(by_kind.items())]
        yield f"slot {number} {state}: {'; '.join(parts) or 'nothing whole'}"
