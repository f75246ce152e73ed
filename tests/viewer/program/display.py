"""An X server that draws into memory (Xvfb), with a mouse and a keyboard (xdotool)."""
import mmap
import os
import shutil
import struct
import subprocess

import pictures

WIDTH, HEIGHT = 1280, 720


def missing():
    """Why there can be no display; empty where there can."""
    if shutil.which("Xvfb") and shutil.which("xdotool"):
        return ""
    return "needs Xvfb and xdotool: scripts/install_packages.sh test"


class Display:
    """An X server of its own, and what its screen shows."""

    def __init__(self, folder):
        receive, send = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(send), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", folder,
             "-nolisten", "tcp", "-noreset"], pass_fds=[send], stderr=subprocess.DEVNULL)
        os.close(send)
        with os.fdopen(receive, encoding="ascii") as pipe:
            self.name = ":" + pipe.readline().strip()
        with open(os.path.join(folder, "Xvfb_screen0"), "rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def close(self):
        self.memory.close()
        self.server.terminate()
        self.server.wait(timeout=pictures.TIMEOUT_S)

    def run(self, *arguments):
        return subprocess.run([*map(str, arguments)], check=False, capture_output=True, text=True,
                              timeout=pictures.TIMEOUT_S, env=dict(os.environ, DISPLAY=self.name))

    def do(self, *arguments):
        """What the hand does: see xdotool."""
        return self.run("xdotool", *arguments)

    def pixels(self, box):
        """The bytes of a rectangle (left, top, right, bottom) of the screen: blue, green, red, 0."""
        return b"".join(self.lines(box))

    def lines(self, box):
        header = struct.unpack(">25I", self.memory[:100])
        start, line = header[0] + header[19] * 12, header[12]
        left, top, right, bottom = box
        return [self.memory[start + y * line + left * 4:start + y * line + right * 4]
                for y in range(top, bottom)]

    def rows(self, box):
        """As pictures.read_rows gives them."""
        rows = []
        for line in self.lines(box):
            row = bytearray(len(line) // 4 * 3)
            row[0::3], row[1::3], row[2::3] = line[2::4], line[1::4], line[0::4]
            rows.append(bytes(row))
        return rows
