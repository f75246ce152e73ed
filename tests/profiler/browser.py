"""A headless Chromium, spoken to by its DevTools protocol over two pipes. Python's standard library alone."""
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TIMEOUT_S = 60
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe")


class Browser:
    """One tab. `events` holds what the page said and asked for since it was opened."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="trainprof-browser-")
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()
        # Chromium reads descriptor 3 and writes 4: the shell puts them there, whatever numbers they have here.
        command = f"exec \"$@\" 3<&{to_browser} 4>&{from_browser}"
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", PROGRAM, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last, self.session, self.events = b"", 0, None, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.out)
            os.close(self.inp)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise AssertionError("the browser says nothing")
            part = os.read(self.inp, 1 << 16)
            if not part:
                raise AssertionError("the browser has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        until = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1440, height=900, theme="light", scripts=True):
        """Shows the file, or the address, as a window of that size would; returns when it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=path if "://" in path else "file://" + path)
        until = time.monotonic() + TIMEOUT_S
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive(until))

    def run(self, script):
        """The value of a JavaScript expression, in the page; a promise's where it is one."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def said(self, *methods):
        return [event["params"] for event in self.events if event.get("method") in methods]

    def complaints(self):
        """What a person would see in the console, errors or not."""
        return self.said("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")

    def requests(self):
        """Addresses asked for, the page's own among them."""
        return [event["request"]["url"] for event in self.said("Network.requestWillBeSent")]
