"""A headless Chromium for tests of pages; they skip where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1300,1000",
)  # fmt: skip
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def start_browser(folder: Path) -> Iterator[Any]:
    """A browser with a profile of its own in the folder; closed at the end."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="pgcc[browser] is not installed: selenium drives it")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no Chromium with its chromedriver here: the explorer's pages are not tried in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    found.set_script_timeout(30)
    try:
        yield found
    finally:
        found.quit()
