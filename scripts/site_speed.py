"""Measure how fast the book builds and its pages show, against their limits: `make site-speed`.

The builds run in a copy of the repository. Pages are loaded from a web server on this machine that compresses as web
servers do, once as they are and once as on a mid-range phone: CPU four times slower, slow 4G. Times of a busy machine
say little, so the load is printed beside them.
"""

import argparse
import functools
import gzip
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COPIED = ("book", "labs", "mlsys", "LICENSE", "LICENSE-TEXT", "README.md", "CITATION.cff", "_config.yml", "_toc.yml")
COPIED += ("pyproject.toml", "requirements.txt")
BUILD = ["jupyter-book", "build", ".", "--warningiserror", "--nitpick", "--keep-going", "--quiet"]
BUILD_LIMITS_S = {"cold": 240, "unchanged": 15, "one chapter changed": 30}
PAINT_LIMITS_S = {"local": 1.5, "phone": 3.0}
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
"""Milliseconds and bytes per second, as Lighthouse takes them."""
PAINT = """() => new Promise((resolve) => {
  new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime / 1000))
    .observe({type: "largest-contentful-paint", buffered: true});
})"""
COMPRESSED = (".html", ".css", ".js", ".svg", ".json")


class Compressing(http.server.SimpleHTTPRequestHandler):
    """Serves files, those of text compressed."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with the file, or leave what cannot be compressed to the plain server."""
        path = Path(self.translate_path(self.path))
        if not path.is_file() or path.suffix not in COMPRESSED:
            super().do_GET()
            return
        body = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@functools.cache
def compressed(path: Path) -> bytes:
    """The file as it goes over the wire; compressed once, so that the server's work is not what is measured."""
    return gzip.compress(path.read_bytes())


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site on a free port of this machine."""
    for path in site.rglob("*"):
        if path.suffix in COMPRESSED and path.is_file():
            compressed(path)
    handler = functools.partial(Compressing, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def paint_s(browser: Any, address: str, phone: bool) -> float:
    """Seconds until the largest piece of a page's first screen is painted, with an empty cache."""
    size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 900}
    context = browser.new_context(viewport=size)
    page = context.new_page()
    if phone:
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", SLOW_4G)
        session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.goto(address, wait_until="load")
    painted = float(page.evaluate(PAINT))
    context.close()
    return painted


def paints(site: Path) -> Iterator[tuple[str, float, float]]:
    """What was measured, the median of three in seconds, and its limit, for every page in both ways."""
    from playwright.sync_api import sync_playwright

    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        paint_s(browser, f"{address}/book/index.html", phone=False)  # the browser's own start is not the page's
        for page in sorted(site.glob("book/**/*.html")):
            for way, limit in PAINT_LIMITS_S.items():
                runs = sorted(paint_s(browser, f"{address}/{page.relative_to(site)}", way == "phone") for _ in range(3))
                yield f"{page.stem}, {way}", runs[1], limit
        browser.close()


def builds(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Build a copy of the book from nothing, again, and with one chapter changed."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    release = [sys.executable, "-m", "mlsys.cli.main", "release"]
    subprocess.run(release, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    for name, limit in BUILD_LIMITS_S.items():
        if name == "one chapter changed":
            page = folder / "book" / "performance" / "tiling.md"
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace("## Pitfalls\n", "## Pitfalls\n\nOne more sentence.\n", 1), encoding="utf-8")
        start = time.perf_counter()
        subprocess.run(BUILD, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        yield f"build, {name}", time.perf_counter() - start, limit


def main() -> int:
    """Print each time beside its limit; the exit status is 1 if one is over it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--site", type=Path, help="measure the pages of this built site, and build nothing")
    args = parser.parse_args()
    over = 0
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first measurement")

    def report(measured: Iterator[tuple[str, float, float]]) -> int:
        too_slow = 0
        for name, seconds, limit in measured:
            too_slow += seconds > limit
            print(f"{name:42} {seconds:7.2f} s of {limit:5.1f}{'  OVER' if seconds > limit else ''}", flush=True)
        return too_slow

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.site is None:
            over += report(builds(folder))
        over += report(paints(args.site or folder / "_build" / "html"))
    print(f"{over} over their limits; load {os.getloadavg()[0]:.1f} at the end")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
