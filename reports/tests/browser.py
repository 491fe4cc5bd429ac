"""Chromium without a window, through Selenium: how tests open a page, use it and look at it.

conftest.py starts one browser for all tests of a run.

    open_view(browser, "table&dim=128")              the page of posenc explore, at a view
    browser.press(key("ARROW_RIGHT"))
    assert state_of(browser)["dim"] == 128           the values of the controls
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Set, Tuple

import pytest

HERE = Path(__file__).parent
SECONDS = 60  # until a state counts as never reached


class Browser:
    """A page in the browser."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder

    def open(self, name: str, width: int = 1280, height: int = 800, scheme: str = "light", media: str = "") -> None:
        """Opens a page at a size, in a colour scheme, on the screen or in print."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        self.driver.get((self.folder / f"{name}.html").as_uri())

    def js(self, script: str, *arguments: Any) -> Any:
        """Runs a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> List[Any]:
        """Returns the elements that a selector of CSS matches."""
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        """Returns the first element that a selector matches."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> List[str]:
        """Returns the texts of all elements that a selector matches."""
        return list(self.js("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector))

    def wait(self, state: Callable[[Any], Any]) -> Any:
        """Waits until a function of the driver returns something, and returns that."""
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, SECONDS, poll_frequency=0.05).until(state)

    def click(self, element: Any) -> None:
        """Clicks an element, in the middle of the screen: the links to sections cover its top."""
        self.js("arguments[0].scrollIntoView({ block: 'center' })", element)
        element.click()

    def choose(self, name: str, value: str) -> None:
        """Chooses a value of a list, by the name of the list."""
        from selenium.webdriver.support.select import Select

        chosen: Any = Select(self.one(f"select[name={name}]"))
        chosen.select_by_value(value)

    def press(self, *keys: str) -> None:
        """Presses keys where the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def logged(self) -> Tuple[List[str], Set[str]]:
        """Returns the messages since the last call, and the addresses that pages of the folder have loaded since."""
        messages = [entry["message"] for entry in self.driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        urls = {one["request"]["url"] for one in asked if one["documentURL"].startswith(self.folder.as_uri())}
        return messages, {url for url in urls if not url.startswith(("data:", "blob:"))}

    def violations(self, part: str = "document", only: str = "") -> List[Any]:
        """Returns the serious violations that axe finds in a part of the page; the page has run axe()."""
        self.driver.set_script_timeout(SECONDS)
        run = f"axe.run({part}, {{ resultTypes: ['violations']{only} }}).then(arguments[0])"
        report = self.driver.execute_async_script(run)
        assert report["passes"]
        return [(found["id"], found["impact"], [node["html"][:120] for node in found["nodes"][:3]])
                for found in report["violations"] if found["impact"] in ("serious", "critical")]  # fmt: skip


def key(name: str) -> str:
    """Returns a key by its name in Selenium: ARROW_RIGHT."""
    from selenium.webdriver.common.keys import Keys

    return str(getattr(Keys, name))


def axe() -> str:
    """Returns the source of axe, the checker of accessibility."""
    for package in ("axe_playwright_python", "axe_selenium_python"):
        found = importlib.util.find_spec(package)
        places = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
        builds = [HERE.parent.parent / "build", Path(os.environ.get("POSENC_PROGRAM", ".")).parent]
        places += [place for build in builds for place in build.glob(f"venv/lib/*/site-packages/{package}")]
        for path in [path for place in places for path in place.rglob("axe.min.js")]:
            return path.read_text(encoding="utf-8")
    pytest.skip("axe is missing: pip install axe-playwright-python")


def complaints_of_tidy(path: Path, younger: str) -> List[str]:
    """Returns what tidy finds in a page, without lines of a pattern: HTML that is younger than tidy."""
    if not shutil.which("tidy"):
        pytest.skip("tidy is missing")
    words = ["tidy", "-e", "-q", "--new-blocklevel-tags", "dialog", str(path)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    return [line for line in done.stderr.splitlines() if not re.search(younger, line)]


# ---- the page of posenc explore ----


def open_view(browser: Browser, address: str = "", **settings: Any) -> None:
    """Opens the page at an address, such as table&dim=128, and waits until the view is drawn."""
    browser.driver.set_script_timeout(SECONDS)
    browser.driver.get("about:blank")  # an address that differs in its hash alone loads nothing
    browser.open("explore", **settings)
    show_view(browser, address)


def show_view(browser: Browser, address: str) -> None:
    """Goes to an address on the open page, and waits until the view is drawn."""
    browser.js("location.hash = arguments[0]", address)
    wait_until_drawn(browser)


def wait_until_drawn(browser: Browser) -> None:
    """Waits until the view shows its state."""
    script = """const done = arguments[0], frame = requestAnimationFrame;
        explore.ready.then(() => frame(() => frame(() => frame(() => done()))))"""
    browser.driver.execute_async_script(script)


def state_of(browser: Browser) -> Dict[str, Any]:
    """Returns the values of the controls."""
    return dict(browser.js("return explore.current.state"))


def pointer_in(browser: Browser) -> Any:
    """Returns a pointer. Its moves are made by perform() at the end."""
    from selenium.webdriver.common.action_chains import ActionChains

    chains: Any = ActionChains
    return chains(browser.driver)


def picture_of(browser: Browser) -> str:
    """Returns all that the view shows: HTML, and pixels of canvases."""
    return str(browser.js("""const root = explore.current.root;
            return root.querySelector('.results').innerHTML +
                [...root.querySelectorAll('canvas')].map((canvas) => canvas.toDataURL()).join()"""))
