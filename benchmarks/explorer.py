"""Pages of the explorer in a headless Chromium: their size, and how long they take to open and to answer a click."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import pgcc
from benchmarks.common import DATA, Table

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
# Clicks on rows, one after another; each with the time of the script, and until the frame after it is there.
CLICKS = """
const done = arguments[0], rows = [...document.querySelectorAll(".row .bar")].slice(0, 20), times = [];
const next = (i) => {
  if (i === rows.length) return done(times);
  const begin = performance.now();
  rows[i].click();
  const script = performance.now() - begin;
  requestAnimationFrame(() => setTimeout(() => {
    times.push([script, performance.now() - begin]);
    setTimeout(() => next(i + 1), 200);
  }, 0));
};
next(0);
"""


def run() -> Iterator[Table]:
    try:
        from selenium import webdriver
    except ImportError:
        return
    program, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if program is None or driver is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            yield _clicks(browser, Path(folder))
        finally:
            browser.quit()


def _models() -> Iterator[tuple[str, Any]]:
    for name in ("nltcs", "plants"):
        if (DATA / "circuits" / f"{name}.psdd").exists():
            yield f"{name}.psdd", pgcc.load(DATA / "circuits" / f"{name}.psdd")
    rng = np.random.default_rng(0)
    for n in (50, 200):
        B = rng.normal(size=(n, n)) / np.sqrt(n)
        yield f"DPP of {n} items", pgcc.dpp(L=B @ B.T)
    yield "spanning tree of a karate club", pgcc.spanning_tree(nx.karate_club_graph())


def _clicks(browser: Any, folder: Path) -> Table:
    columns = ["model", "kB", "open, s", "first click, ms", "click, ms", "to the next frame, ms"]
    table = Table("A click in a page of the explorer", columns)
    for name, circuit in _models():
        path = pgcc.compile(circuit).explore(title=name).save(folder / "page.html")
        begin = time.perf_counter()
        browser.get(path.as_uri())
        while not browser.execute_script("return document.documentElement.dataset.ready !== undefined"):
            time.sleep(0.01)
        opened = time.perf_counter() - begin
        time.sleep(1.0)  # the distribution of the size is computed meanwhile
        times = np.array(browser.execute_async_script(CLICKS))
        script, frame = np.median(times, axis=0).tolist()
        table.add(name, path.stat().st_size / 1000, opened, float(times[0, 0]), script, frame)
    table.notes.append("medians of 20 clicks; required: a page of plants.psdd below 3,000 kB, a click below 100 ms")
    return table
