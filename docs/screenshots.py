"""Pictures of a page that `migrate --report` writes, for docs/report.md. `python docs/screenshots.py` makes them anew.

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
EXAMPLE = ROOT / "fixtures/plateau/before.py"
WIDTH, HEIGHT = 1180, 1080
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


def main() -> int:
    """Write one picture for each theme; 2 where there is no browser."""
    driver = shutil.which("chromedriver")
    if driver is None:
        print("screenshots: no chromedriver; apt-get install chromium chromium-driver")
        return 2
    with tempfile.TemporaryDirectory(prefix="migrate-report-") as name:
        page = Path(name) / "report.html"
        script = Path(name) / "train.py"
        shutil.copyfile(EXAMPLE, script)
        app([str(script), "--quiet", "--diff", "--report", str(page)], standalone_mode=False)
        page.write_text(page.read_text(encoding="utf-8").replace(f"{name}/", ""), encoding="utf-8")
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, f"--user-data-dir={name}/profile"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            for theme in ("light", "dark"):
                take(browser, page, theme)
        finally:
            browser.quit()
    return 0


def take(browser: webdriver.Chrome, page: Path, theme: str) -> None:
    """One picture, as a system with that theme shows the page."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    browser.save_screenshot(str(ROOT / f"docs/images/report-{theme}.png"))


if __name__ == "__main__":
    sys.exit(main())
