"""Fixtures of all tests: a browser, and the page of posenc explore in it. tap.py prints TAP for Meson to count."""

import shutil
from pathlib import Path
from typing import Any, Iterator

import pytest
from browser import Browser
from tap import pytest_configure, pytest_runtest_logreport, pytest_sessionfinish  # noqa: F401


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Starts one browser for all tests of a run."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="python3-selenium is missing")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("chromium or chromium-driver is missing")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(argument)
    # Browser.logged() reads both: messages, and requests.
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(service=Service(chromedriver), options=options)
    started.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    yield started
    started.quit()


@pytest.fixture(scope="session")
def explore_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes the page of posenc explore, and returns its path. Skips the test without the library as WebAssembly."""
    from posenc.command import CommandError
    from posenc.explore import main as explore

    try:
        wasm = explore.find_wasm()
    except CommandError as error:
        pytest.skip(str(error))
    path = tmp_path_factory.mktemp("explore") / "explore.html"
    path.write_text(explore.to_html(wasm.read_bytes()), encoding="utf-8")
    return path


@pytest.fixture()
def browser(driver: Any, explore_page: Path) -> Browser:
    """Returns a browser that opens the page of posenc explore. test_page.py overrides it for reports."""
    return Browser(driver, explore_page.parent)
