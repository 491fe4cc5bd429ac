"""Puts the package before the folder reports, and offers the frameworks that are installed.

The package is the installed one, or that of the build tree: PYTHONPATH=build/python:python.
"""

import importlib
import re
import sys
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple

import numpy
import pytest
from tap import pytest_configure, pytest_runtest_logreport, pytest_sessionfinish  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
REPORTS = str(ROOT / "reports")
# pyproject.toml puts the folder reports first; its package posenc would hide the one under test.
sys.path.remove(REPORTS)
sys.path.append(REPORTS)
pytest.importorskip("posenc._core", reason="the extension is not built: it takes the headers of Python 3.11")


def python_blocks(page: str) -> List[str]:
    """Returns the blocks of Python of a page of the repository, such as docs/python.md."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)


class Framework(NamedTuple):
    """Arrays of one framework and element type."""

    name: str
    dtype: str

    def array(self, values: Any, dtype: str = "") -> Any:
        """Returns an array of the framework."""
        dtype = dtype or self.dtype
        if self.name == "torch":
            import torch

            return torch.tensor(numpy.array(values), dtype=getattr(torch, dtype))
        if self.name == "jax":
            import jax.numpy

            return jax.numpy.asarray(numpy.asarray(values).astype(numpy_dtype(dtype)))
        return numpy.array(values).astype(numpy_dtype(dtype))

    def numbers(self, array: Any) -> Any:
        """Returns the values of an array as float64, and checks that it is one of the framework."""
        assert self.name in type(array).__module__, type(array)
        if self.name == "torch":
            array = array.double()
        return numpy.asarray(array).astype("float64")

    @property
    def ulp(self) -> float:
        """Distance of neighbours from 1 on."""
        return {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[self.dtype]


def numpy_dtype(name: str) -> Any:
    """Returns a dtype of NumPy. Skips the test if that takes ml_dtypes, which is missing."""
    if name != "bfloat16":
        return name
    return pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing").bfloat16


@pytest.fixture(params=["numpy", "torch", "jax"])
def framework_name(request: pytest.FixtureRequest) -> Iterator[str]:
    """Names a framework that is installed."""
    try:
        importlib.import_module(request.param)
    except ImportError:
        pytest.skip(f"{request.param} is missing")
    yield request.param


@pytest.fixture(params=["float32", "float16", "bfloat16"])
def framework(framework_name: str, request: pytest.FixtureRequest) -> Framework:
    """Returns a framework and an element type."""
    if framework_name != "torch":
        numpy_dtype(request.param)
    return Framework(framework_name, request.param)
