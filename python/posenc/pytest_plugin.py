"""Plug-in of pytest: a test for each case of posenc.check().

    @pytest.mark.posenc("rope_half")
    def test_rotation():  # becomes test_rotation[rope_half/f32/given/hd64-t1] and others
        return rotate

A test with the marker `posenc` returns the function to check. The fixture `posenc_check` is posenc.check() that fails
the test. pytest loads this module in every run where the package is installed, so NumPy is imported only for a check.
"""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

import pytest

if TYPE_CHECKING:
    from .checking import CheckResult

CASE = "posenc_case"
CASES: Dict[str, List[str]] = {}  # ids of cases by the options of a marker, so that equal markers ask once
RESULTS: Dict[str, "CheckResult"] = {}  # by the id of a test without its case: one check for all its cases


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "posenc(kernel='rope_half', ...): check the function that the test returns, as posenc.check() does"
    )


def _offer_nothing(*_: Any) -> None:
    raise NotImplementedError


def _cases(options: Dict[str, Any]) -> List[str]:
    """Returns the ids of all cases that a check would run, in their order."""
    from .checking import check

    result = check(_offer_nothing, **options)
    return list(dict.fromkeys(record["case"] for run in result.runs for record in run.records))


def _options(marker: pytest.Mark) -> Dict[str, Any]:
    """Returns the options of a check. A positional argument is the kernel."""
    return {**dict(zip(("kernel",), marker.args)), **marker.kwargs}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("posenc")
    if marker:
        options = _options(marker)
        if repr(options) not in CASES:
            CASES[repr(options)] = _cases(options)
        metafunc.fixturenames.append(CASE)
        metafunc.parametrize(CASE, CASES[repr(options)])


def _judge(result: "CheckResult", case: str) -> None:
    """Fails or skips the current test according to the record of its case."""
    record = next((record for record in result.records if record["case"] == case), None)
    if record is None:
        pytest.skip(f"the case is of another numerics mode than {result.best.numerics}")
    if record["status"] in ("fail", "crash"):
        pytest.fail(result.explain(record), pytrace=False)
    if record["status"] != "pass":
        pytest.skip(record.get("reason", record["status"]))


@pytest.hookimpl(tryfirst=True)  # type: ignore[misc]
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Optional[bool]:
    """Calls a marked test for its function, which is checked once, and judges one case."""
    marker = pyfuncitem.get_closest_marker("posenc")
    if marker is None:
        return None
    case = str(pyfuncitem.callspec.params[CASE])
    key = pyfuncitem.nodeid.replace(case, "")
    if key not in RESULTS:
        from .checking import check

        arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        function = pyfuncitem.obj(**arguments)
        if not callable(function):
            pytest.fail("a test with the marker posenc must return the function to check", pytrace=False)
        RESULTS[key] = check(function, **_options(marker))
    _judge(RESULTS[key], case)
    return True


@pytest.fixture()
def posenc_check() -> Callable[..., "CheckResult"]:
    """Returns posenc.check(), which fails the test if the function does not pass."""
    from .checking import check

    def checked(*arguments: Any, **options: Any) -> "CheckResult":
        result = check(*arguments, **options)
        if not result:
            pytest.fail(str(result), pytrace=False)
        return result

    return checked
