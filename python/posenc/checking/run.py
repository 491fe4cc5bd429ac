"""posenc.check(): runs `posenc verify` on a function of this process, and returns its verdict.

    result = posenc.check(rotate, "rope_half")    # True in a condition if rotate() passes; prints as a report

The program sends prompts through a socket, and client.py answers them by calling the function.
"""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

from ..command import CommandError
from ..engine import Engine
from .client import Client, Function, name_of
from .kernels import KERNELS
from .result import CheckResult, Record, Run

MODES = ("exact", "hf_f32", "ggml_f32", "torch_exp_f32")
TIME_LIMIT = "86400"  # seconds, the most: a function that hangs is interrupted by its caller, not by the program


@contextlib.contextmanager
def _config_file(config: Any) -> Iterator[List[str]]:
    """Yields the options that select a configuration: a path, a dict, or an object with to_dict()."""
    if config is None or isinstance(config, (str, os.PathLike)):
        yield [] if config is None else ["--config", os.fspath(config)]
        return
    members = config if isinstance(config, dict) else config.to_dict()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(members, default=str), encoding="utf-8")
        yield ["--config", str(path)]


def verify(client: Client, options: Sequence[str]) -> List[Record]:
    """Runs `posenc verify` on a client, and returns the records of its checks. Raises CommandError if it cannot."""
    ours, theirs = socket.socketpair()
    command = [str(Engine().program), "verify", "--exec", f"fd:{theirs.fileno()}", "--json", "--quiet", "-j", "1",
               "--limit", TIME_LIMIT, *options]  # fmt: skip
    with ours, theirs, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=[theirs.fileno()],
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise CommandError(f"the program cannot be run: {error.strerror} (got '{command[0]}').") from None
        theirs.close()
        try:
            with contextlib.suppress(EOFError, ConnectionError):  # the program ended within a message
                with ours.makefile("rb") as reader, ours.makefile("wb") as writer:
                    client.run(reader, writer)
            child.wait()
        finally:
            if child.poll() is None:  # after an interrupt; its workers end with it
                child.terminate()
                child.wait()
        out.seek(0)
        err.seek(0)
        records = [json.loads(line) for line in out]
        if not any(record["t"] == "footer" for record in records) or child.returncode not in (0, 1, 4, 77):
            reason = err.read().decode("utf-8", "replace").strip().removeprefix("posenc verify: ")
            raise CommandError(reason or f"{command[0]} ended with status {child.returncode}", child.returncode)
        for record in records:
            record.pop("command", None)  # the socket ends with the program
        checks = [record for record in records if record["t"] == "check"]
        # This failure of a kernel that declined every prompt gives none of the reasons, unlike its skipped cases.
        return [record for record in checks if not record["case"].endswith("/never-entered")]


def _is_of_mode(record: Record, mode: Optional[str]) -> bool:
    """Returns false for a case of another mode, which a run in one numerics mode skips."""
    return record["status"] != "skipped" or mode is None or record["numerics"] == mode


def _repeat(name: str, given: Dict[str, Any]) -> str:
    """Returns the call of check() without its closing parenthesis."""
    arguments = [f"{key}={value!r}" for key, value in given.items() if value is not None]
    return f"posenc.check({', '.join([name if name.isidentifier() else 'fn', *arguments])}"


def check(
    fn: Function, kernel: str = "rope_half", *, model: Optional[str] = None, config: Any = None, dtype: str = "f32",
    numerics: Optional[str] = None, max_position: Optional[int] = None,
    framework: Union[str, ModuleType, None] = None, device: Any = None, full: bool = False,
    problem: Optional[str] = None, case: Optional[str] = None, seed: Optional[int] = None,
) -> CheckResult:  # fmt: skip
    """Checks a function against posenc's golden vectors, oracle, properties and random problems.

    `fn` gets the arrays of the kernel as positional arguments, and further parameters by the names in its signature;
    docs/check.md lists them. It returns new arrays. NotImplementedError means that it does not offer a problem.

    `model` and `config` add the sizes of a preset or of a model file, dict or configuration of transformers. `dtype`
    is f32, f16 or bf16, or several with blanks between them. `framework` is numpy, torch, jax or a module with
    asarray() or from_dlpack(). Without `numerics`, a kernel with angles passes if it matches one mode. `max_position`
    limits positions. `problem`, `case` and `seed` are the options of `posenc verify`, which repeat a failure.
    """
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel (got '{kernel}'). Expected one of {', '.join(KERNELS)}.")
    options: List[str] = ["--full"] if full else []
    if problem is None:
        options += ["--kernel", kernel]
        for name in dtype.split():
            options += ["--dtype", name]
    for option, value in {"--problem": problem, "--model": model, "--case": case, "--seed": seed}.items():
        if value is not None:
            options += [option, str(value)]
    library = framework if isinstance(framework, str) else framework.__name__ if framework else "numpy"
    setting = ", ".join(map(str, filter(None, (library, device, dtype))))
    given = {"kernel": kernel, "dtype": dtype if dtype != "f32" else None, "numerics": numerics,
             "max_position": max_position, "framework": framework and library, "device": device}  # fmt: skip
    result = CheckResult(kernel, name_of(fn), setting, _repeat(name_of(fn), given))
    with _config_file(config) as config_options:
        for mode in [numerics] if numerics or not KERNELS[kernel].has_modes else MODES:
            client = Client({kernel: fn}, framework=framework, device=device, dtypes=dtype, numerics=mode,
                            max_position=max_position)  # fmt: skip
            records = [record for record in verify(client, [*options, *config_options]) if _is_of_mode(record, mode)]
            result.runs.append(Run(mode or "given", records))
            result.traces.update(client.traces)
    return result
