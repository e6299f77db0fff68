"""Chromium without a window, for tests that open pages; those are skipped where it is missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="there is no chromium with chromium-driver"
)


@contextmanager
def opened_browser(profile: Path) -> Iterator[Any]:
    """A driver that keeps what the console says and what pages ask for."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(DRIVER)
    found = webdriver.Chrome(options=options, service=service)
    yield found
    found.quit()
    service.stop()


def asked_for(driver: Any) -> set[str]:
    """The addresses that were asked for since the last time."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }


def show(driver: Any, address: str, width: int, dark: bool) -> None:
    """Open a page in a window of a width, in the light or the dark colors of the system."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get("about:blank")  # and not the browser's own first page
    driver.get_log("performance")
    driver.get_log("browser")
    driver.get(address)
