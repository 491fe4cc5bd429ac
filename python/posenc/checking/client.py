"""Answers prompts by calling functions: the other side of `posenc verify --exec` (docs/protocol.md).

A prompt is a message with a problem: kernel, parameters and arrays. The answer has the results, an error, or the reason
why the function does not offer the problem. posenc.check() has a client for its function.
"""

import inspect
import json
import os
import sys
import traceback
from types import ModuleType
from typing import IO, Any, Callable, Dict, Mapping, Optional, Union

import numpy as np

from .arrays import SMALLEST, Message, Tensor, converter, describe, has_tiny, read_message, restore_nans, tensor_of
from .arrays import write_message
from .kernels import KERNELS

Function = Callable[..., Any]
FRAMES = 3  # that are kept of a traceback
FACTORS = ("x_scale", "scale", "attention_factor")  # a function without them is only called if they are 1
HERE = os.path.dirname(__file__)


class WrongCall(Exception):
    """A result of the wrong type or shape, or an argument that the function changed."""


class UnknownParameter(ValueError):
    """A parameter of the function that no problem of the kernel has."""


def name_of(function: Function) -> str:
    """Returns the name of a function, or of the class of another callable."""
    return getattr(function, "__name__", "") or type(function).__name__


def _last_frames(error: BaseException) -> str:
    """Returns the end of a traceback, without the frames of this package."""
    trace = traceback.TracebackException.from_exception(error)
    own = [frame for frame in trace.stack if not frame.filename.startswith(HERE)]
    trace.stack = traceback.StackSummary.from_list((own or list(trace.stack))[-FRAMES:])
    return "".join(trace.format(chain=False)).rstrip()


class Call:
    """A function that implements a kernel. Its signature names the parameters that it takes beside the arrays."""

    def __init__(self, function: Function, kernel: str) -> None:
        self.function, self.kernel = function, kernel
        self.named: Dict[str, inspect.Parameter] = {}
        self.takes_all = False  # **parameters
        try:
            signature = inspect.signature(getattr(function, "forward", function))
        except (TypeError, ValueError):  # a function of an extension, which has none
            return
        parameters = signature.parameters.values()
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        further = positional[len(KERNELS[kernel].arrays) :] + keywords  # the first ones are the arrays
        self.named = {p.name: p for p in further}
        self.takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)

    def _decline(self, named_inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        """Raises NotImplementedError for a problem with a feature for which the function has no parameter."""
        needed = list(named_inputs)
        needed += [name for name in KERNELS[self.kernel].features.split() if parameters.get(name)]
        needed += [name for name in FACTORS if parameters.get(name, 1) != 1]
        for name in needed:
            if name not in self.named and not self.takes_all:
                raise NotImplementedError(f"the function has no parameter {name}")

    def __call__(self, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
        """Calls the function. `inputs` are arrays; `parameters` are numbers, texts and flags."""
        kernel = KERNELS[self.kernel]
        named_inputs = {name: value for name, value in inputs.items() if name not in kernel.arrays}
        self._decline(named_inputs, parameters)
        offered = {**dict.fromkeys(kernel.named), **parameters, **named_inputs}
        for name, parameter in self.named.items():
            if name not in offered and parameter.default is parameter.empty:
                raise UnknownParameter(
                    f"{name_of(self.function)}() has the parameter {name}, which no problem of {self.kernel} has. "
                    f"Its arrays: {', '.join(kernel.arrays)}; further arguments: {', '.join(sorted(offered))}."
                )
        keywords = {name: value for name, value in offered.items() if self.takes_all or name in self.named}
        return self.function(*(inputs[name] for name in kernel.arrays), **keywords)


def _results(value: Any, expected: Mapping[str, Mapping[str, Any]]) -> Dict[str, Tensor]:
    """Returns the results of a call as tensors. Raises WrongCall if their number, type or shape is wrong.

    `expected` has the dtype and the shape of each output, by its name.
    """
    want = {name: describe(output["dtype"], tuple(output["shape"])) for name, output in expected.items()}
    is_list = isinstance(value, (tuple, list))
    values = list(value) if is_list else [value]
    if value is None or len(values) != len(want) or is_list != (len(want) > 1):
        returned = "nothing" if value is None else f"a {type(value).__name__}"
        all_wanted = " and ".join(f"{name} {text}" for name, text in want.items())
        raise WrongCall(f"returned {returned}; expected {all_wanted}")
    results = {}
    for (name, text), result in zip(want.items(), values):
        try:
            tensor = tensor_of(result)
        except TypeError as error:
            raise WrongCall(f"returned as {name} {error}; expected {text}") from None
        got = describe(tensor.dtype, tensor.shape)
        if got != text:
            raise WrongCall(f"returned {name} as {got}; expected {text}")
        results[name] = tensor
    return results


class Client:
    """Answers prompts by functions, one for each kernel."""

    def __init__(
        self, functions: Mapping[str, Function], *, framework: Union[str, ModuleType, None] = None, device: Any = None,
        dtypes: str = "f32", numerics: Optional[str] = None, max_position: Optional[int] = None, name: str = "python",
    ) -> None:  # fmt: skip
        unknown = [kernel for kernel in functions if kernel not in KERNELS]
        if unknown:
            raise ValueError(f"unknown kernel (got '{unknown[0]}'). Expected one of {', '.join(KERNELS)}.")
        self.calls = {kernel: Call(function, kernel) for kernel, function in functions.items()}
        self.convert = converter(framework, device)
        self.flushes_subnormals = not any(tensor_of(self.convert(SMALLEST) * 0.5).data)
        self.hello = {
            "hello": "1", "name": name, "description": "functions of Python", "kernels": " ".join(functions),
            "dtypes": dtypes,
        }  # fmt: skip
        if numerics:
            self.hello["numerics"] = numerics
        if max_position is not None:
            self.hello["max_position"] = str(max_position)
        self.traces: Dict[str, str] = {}  # ends of tracebacks, by the text of the answer

    def _call(self, message: Message) -> Dict[str, Tensor]:
        """Calls the function of a prompt. Returns its results by name."""
        about = message.metadata
        outputs = json.loads(about["outputs"])
        parameters = {**json.loads(about["parameters"]), "dtype": about["dtype"], "numerics": about["numerics"],
                      "shape": tuple(next(iter(outputs.values()))["shape"])}  # fmt: skip
        if self.flushes_subnormals and any(map(has_tiny, message.tensors.values())):
            raise NotImplementedError("the framework flushes subnormal numbers to zero")
        inputs = {name: self.convert(tensor) for name, tensor in message.tensors.items()}
        with np.errstate(all="ignore"):  # edge values overflow
            value = self.calls[about["kernel"]](inputs, parameters)
            results = _results(value, outputs)
        for name, tensor in message.tensors.items():
            after = tensor_of(inputs[name])
            if after.dtype == tensor.dtype and after.data != tensor.data:  # JAX may hold 64 bits in 32
                raise WrongCall(f"changed its argument {name}; it must return a new array")
        x = message.tensors.get("x")
        return {name: restore_nans(result, x) if x else result for name, result in results.items()}

    def answer(self, message: Message) -> Message:
        """Returns the answer to a message. An UnknownParameter ends the client: it is a mistake of the caller."""
        if "hello" in message.metadata:
            return Message(self.hello)
        prompt = {"prompt": message.metadata["prompt"]}  # its number
        try:
            return Message(prompt, self._call(message))
        except NotImplementedError as error:
            return Message({**prompt, "declined": str(error) or "NotImplementedError"})
        except WrongCall as error:
            return Message({**prompt, "error": str(error)})
        except UnknownParameter:
            raise
        except Exception as error:  # pylint: disable=broad-except  # any error of the function is a result
            text = " ".join(f"{type(error).__name__}: {error}".split())[:150]
            self.traces.setdefault(text, _last_frames(error))
            return Message({**prompt, "error": text})

    def run(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        """Answers messages until the stream ends."""
        while (message := read_message(reader)) is not None:
            write_message(writer, self.answer(message))


def serve(
    functions: Mapping[str, Function], *, framework: Union[str, ModuleType, None] = None, device: Any = None,
    dtypes: str = "f32", numerics: Optional[str] = None, max_position: Optional[int] = None, name: str = "python",
) -> None:  # fmt: skip
    """Answers prompts on standard input and output, for `posenc verify --exec COMMAND`.

    `functions` are by kernel; docs/check.md lists their arguments. `dtypes` and `numerics` are names with blanks
    between them; other problems are not asked. The functions may print, which goes to standard error.
    """
    client = Client(functions, framework=framework, device=device, dtypes=dtypes, numerics=numerics,
                    max_position=max_position, name=name)  # fmt: skip
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "wb") as writer:
        os.dup2(2, 1)
        try:
            client.run(sys.stdin.buffer, writer)
        except BrokenPipeError:
            pass
