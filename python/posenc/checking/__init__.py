"""Checks functions of Python, and modules of PyTorch, with the program `posenc verify`."""

from .client import serve
from .module import check_module
from .result import CheckResult
from .run import check

__all__ = ["CheckResult", "check", "check_module", "serve"]
