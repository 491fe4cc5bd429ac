"""Prints TAP where pytest's own reporter is off (-p no:terminal), for Meson to count; starts the browser of tests."""

import shutil
from pathlib import Path
from typing import Any, Iterator, List

import pytest
from browser import Browser

LINES: List[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Sets an option of that reporter, which pytest 7 reads to explain a failed assertion."""
    if not hasattr(config.option, "verbose"):
        config.option.verbose = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.outcome == "passed":
        return
    number, name = len(LINES) + 1, report.nodeid.rpartition("::")[2].replace("#", "")
    if report.outcome == "skipped":
        LINES.append(f"ok {number} - {name} # SKIP")
    else:
        LINES.append(f"{'ok' if report.outcome == 'passed' else 'not ok'} {number} - {name}")
        LINES[-1] += "".join(f"\n# {line}" for line in report.longreprtext.splitlines())


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not session.config.pluginmanager.hasplugin("terminalreporter"):
        print(*LINES, f"1..{len(LINES)}", sep="\n")


# ---- a browser ----


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Starts one browser for all tests of a run."""
    selenium = pytest.importorskip("selenium.webdriver", reason="python3-selenium is missing")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("chromium or chromium-driver is missing")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = selenium.Chrome(service=Service(chromedriver), options=options)
    made.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    yield made
    made.quit()


@pytest.fixture(scope="session")
def explore_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the file with the page of posenc explore. Without the library as WebAssembly its tests are skipped."""
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
    """Returns a browser that opens the page of posenc explore. test_page.py has another one of this name."""
    return Browser(driver, explore_page.parent)
