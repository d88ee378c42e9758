"""Pictures of the pages of `migrate --report`, for README.md and docs. `python docs/screenshots.py` makes them anew.

It needs Debian's `chromium` and `chromium-driver`, and selenium of the dev extra.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from migrate.cli import app

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1180, 1080
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


def main() -> int:
    """Write one picture of the page for each theme, and one of its curves; 2 where there is no browser."""
    driver = shutil.which("chromedriver")
    if driver is None:
        print("screenshots: no chromedriver; apt-get install chromium chromium-driver")
        return 2
    with tempfile.TemporaryDirectory(prefix="migrate-report-") as name:
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, f"--user-data-dir={name}/profile"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            page = reported(Path(name, "plateau"), "plateau", "--diff")
            for theme in ("light", "dark"):
                show(browser, page, theme)
                browser.save_screenshot(str(IMAGES / f"report-{theme}.png"))
            show(browser, reported(Path(name, "classifier"), "classifier", "--verify"), "light")
            browser.find_element("css selector", ".verification .curves").screenshot(str(IMAGES / "curves.png"))
        finally:
            browser.quit()
    return 0


def reported(folder: Path, fixture: str, *flags: str) -> Path:
    """The page about a fixture, with paths as if it were the current folder."""
    folder.mkdir()
    script, page = folder / "train.py", folder / "report.html"
    shutil.copyfile(ROOT / "fixtures" / fixture / "before.py", script)
    app([str(script), "--quiet", *flags, "--report", str(page)], standalone_mode=False)
    page.write_text(page.read_text(encoding="utf-8").replace(f"{folder}/", ""), encoding="utf-8")
    return page


def show(browser: webdriver.Chrome, page: Path, theme: str) -> None:
    """Open a page as a system with that theme shows it."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())


if __name__ == "__main__":
    sys.exit(main())
