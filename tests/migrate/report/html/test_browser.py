"""The page in a browser: keys, themes, links into what is folded, and that nothing of it runs or loads."""

import shutil

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium (of the dev extra) drives the browser")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,900",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def addresses(pages, tmp_path_factory):
    """Each page on the disk."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for number, (name, source) in enumerate(pages.items()):
        file = folder / f"{number}.html"
        file.write_text(source, encoding="utf-8")
        found[name] = file.as_uri()
    return found


def opened(browser, address, scheme="light", width=1400):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)


def press(browser, *keys):
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def test_nothing_runs_and_nothing_is_loaded(browser, addresses):
    for address in addresses.values():
        opened(browser, address)
        assert browser.get_log("browser") == []  # a violation of the policy, and an error of the script, would be here
        asked = [entry for entry in browser.get_log("performance") if '"Network.requestWillBeSent"' in entry["message"]]
        assert len(asked) == 1  # the page itself
        assert browser.execute_script("return document.querySelectorAll('img, script').length") == 1


def test_the_page_is_not_wider_than_its_window(browser, addresses):
    for name in ("gan/before.py", "hostile"):
        for width in (1400, 800, 420):
            opened(browser, addresses[name], width=width)
            wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide <= shown


def test_keys_go_from_change_to_change(browser, addresses):
    opened(browser, addresses["gan/before.py"])
    stops = browser.execute_script("return document.querySelectorAll('[data-stop]').length")
    at = "return [...document.querySelectorAll('[data-stop]')].indexOf(document.activeElement)"
    press(browser, "j")
    assert browser.execute_script(at) == 0
    press(browser, "j", "j", "k")
    assert browser.execute_script(at) == 1
    press(browser, *"j" * (stops + 2))
    assert browser.execute_script(at) == stops - 1  # and stays there
    box = browser.execute_script("const r = document.activeElement.getBoundingClientRect(); return [r.top, r.bottom]")
    assert 0 < box[0] < box[1] < 900


def test_skip_links_are_first_and_seen_when_focused(browser, addresses):
    from selenium.webdriver.common.keys import Keys

    opened(browser, addresses["gan/before.py"])
    hidden = "return document.querySelector('.skip').getBoundingClientRect().bottom"
    assert browser.execute_script(hidden) <= 0
    press(browser, Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to programs"
    assert browser.execute_script(hidden) > 0
    press(browser, Keys.TAB, Keys.TAB, Keys.ENTER)
    assert browser.execute_script("return document.activeElement.id") == "changes"


def test_theme_follows_the_system_until_it_is_chosen_and_is_kept(browser, addresses):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(13, 17, 23)"
    address = addresses["gan/before.py"]
    opened(browser, address)
    assert browser.execute_script(ground) == light
    opened(browser, address, "dark")
    assert browser.execute_script(ground) == dark
    browser.find_element("id", "theme").click()
    assert browser.execute_script(ground) == light
    assert browser.find_element("id", "theme").text == "Dark theme"
    opened(browser, address, "dark")
    assert browser.execute_script(ground) == light  # kept
    press(browser, "t")
    assert browser.execute_script(ground) == dark
    browser.execute_script("localStorage.clear()")


def test_a_link_into_folded_code_unfolds_it(browser, addresses):
    opened(browser, addresses["gan/before.py"])
    folded = "return document.querySelector('.gap').open"
    line = browser.execute_script("return document.querySelector('.gap tr').id")
    assert browser.execute_script(folded) is False
    browser.execute_script("location.hash = arguments[0]", line)
    assert browser.execute_async_script("setTimeout(() => arguments[0](document.querySelector('.gap').open), 200)")
    press(browser, "e")
    assert browser.execute_script("return [...document.querySelectorAll('.gap')].every((each) => each.open)")


def test_a_box_of_the_map_leads_to_its_line(browser, addresses):
    opened(browser, addresses["gan/before.py"])
    box = browser.find_element("css selector", ".thing.model")
    browser.execute_script("arguments[0].focus()", box)
    from selenium.webdriver.common.keys import Keys

    press(browser, Keys.ENTER)
    assert browser.execute_script("return location.hash") == "#f0L45"
    top = browser.execute_script("return document.getElementById('f0L45').getBoundingClientRect().top")
    assert 0 < top < 900


def test_marks_of_direction_do_not_turn_a_line(browser, addresses):
    opened(browser, addresses["hostile"])
    shown = browser.execute_script("return [...document.querySelectorAll('.odd')].map((each) => each.textContent)")
    assert {"U+202E", "U+2066", "U+200B", "U+0007", "\\xfe"} <= set(shown)
    assert browser.execute_script("return document.documentElement.textContent").count("\u202e") == 0
