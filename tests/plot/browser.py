"""A headless Chromium, driven by chromedriver over plain HTTP: nothing to install for Python."""

from __future__ import annotations

import base64
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-unsafe-swiftshader", "--window-size=1000,840", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",
)  # fmt: skip
"""The last one answers every name as unknown: pages must need nothing from anywhere."""

PATIENCE = 120.0
"""Seconds for a page to be drawn, on a machine that others use too."""


def missing() -> str:
    """Which program is not there, "" if both are."""
    absent = [x for x in ("chromium", "chromedriver") if shutil.which(x) is None]
    return f"{' and '.join(absent)} not found (Debian packages chromium, chromium-driver)" if absent else ""


class Browser:
    """One window."""

    def __init__(self, driver: str, folder: pathlib.Path) -> None:
        options = {"args": [*SWITCHES, f"--user-data-dir={folder}"], "binary": shutil.which("chromium")}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.driver, self.session = driver, ""
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.driver + self.session + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())["value"]

    def open(self, page: pathlib.Path) -> None:
        """Waits until the page is drawn."""
        self._ask("POST", "/url", {"url": page.as_uri()})
        self.wait("return document.body.dataset.ready === 'yes'")

    def run(self, script: str) -> Any:
        """What a script returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def wait(self, condition: str) -> None:
        """Until a script returns true."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.1)

    def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self._ask("GET", "/screenshot"))

    def console(self) -> list[str]:
        """Errors of the page."""
        said = self._ask("POST", "/se/log", {"type": "browser"})
        return [x["message"] for x in said if x["level"] == "SEVERE"]

    def close(self) -> None:
        """Ends the window."""
        self._ask("DELETE", "")


@contextlib.contextmanager
def browser(folder: pathlib.Path) -> Iterator[Browser]:
    """A browser whose data live in a new folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}"
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{address}/status", timeout=5.0).close()
                break
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < end, "chromedriver does not answer"
                time.sleep(0.1)
        window = Browser(address, folder)
        try:
            yield window
        finally:
            window.close()
    finally:
        process.terminate()
        process.wait(30)
