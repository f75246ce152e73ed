"""What the tests of the viewer's program share: environments without a display, facts of a PNG file."""
import os
import struct
import zlib

SOURCE = os.environ["TRAINPROF_SOURCE"]
TRAINPROF = os.environ["TRAINPROF"]
SAMPLE = os.path.join(SOURCE, "samples", "trainer_cpu_workers0", "recording")
GPU_SAMPLE = os.path.join(SOURCE, "samples", "virtual_gpu_habits", "recording")
TIMEOUT_S = 120
SAME_COLOUR = 20  # what a channel may differ by


def environment(home, **changes):
    """No display, and settings in a folder of the test's own."""
    kept = {k: v for k, v in os.environ.items()
            if k not in ("DISPLAY", "WAYLAND_DISPLAY", "XDG_CONFIG_HOME")}
    kept.update(HOME=home, XDG_CONFIG_HOME=os.path.join(home, "config"), **changes)
    return kept


def read_png(path):
    """(width, height, {colour: pixels}) of an RGBA or RGB file of 8 bits a channel."""
    width, height, rows = read_rows(path)
    colours = {}
    for row in rows:
        for x in range(0, len(row), 3):
            pixel = row[x:x + 3]
            colours[pixel] = colours.get(pixel, 0) + 1
    return width, height, colours


def difference(rows, others):
    """The share of pixels whose colour is another one in two pictures of the same size."""
    other = 0
    for row, beside in zip(rows, others, strict=True):
        if row == beside:
            continue
        for x in range(0, len(row), 3):
            if max(abs(row[x + i] - beside[x + i]) for i in range(3)) > SAME_COLOUR:
                other += 1
    return other / (len(rows) * len(rows[0]) / 3)


def read_rows(path):
    """(width, height, the rows' bytes, 3 a pixel) of an RGBA or RGB file of 8 bits a channel."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is no PNG"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    size = {2: 3, 6: 4}[colour]
    rows = []
    for row in unfiltered(zlib.decompress(packed), width * size, size):
        if size == 4:
            del row[3::4]
        rows.append(bytes(row))
    return width, height, rows


def unfiltered(raw, stride, size):
    """The rows as they were before PNG's filters."""
    above = bytearray(stride)
    for begin in range(0, len(raw), stride + 1):
        kind, row = raw[begin], bytearray(raw[begin + 1:begin + 1 + stride])
        for x in range(stride):
            left = row[x - size] if x >= size else 0
            corner = above[x - size] if x >= size else 0
            row[x] = (row[x] + (0, left, above[x], (left + above[x]) // 2,
                                paeth(left, above[x], corner))[kind]) & 0xff
        above = row
        yield bytearray(row)


def paeth(left, above, corner):
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))
