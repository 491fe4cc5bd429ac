"""What the modules of transformers themselves compute of positions.

A model is built without memory for its weights (device meta), with the arguments of every module's
constructor kept, and the modules that encode positions are built again on the CPU and run.
"""
import importlib
import inspect
import logging
import os
import re
import signal
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import torch
import transformers
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

transformers.logging.set_verbosity(50)
logging.disable(logging.CRITICAL)
torch.set_num_threads(1)


def keep_arguments(cls, *args, **kwargs):
    made = object.__new__(cls)
    object.__setattr__(made, "made_of", (args, kwargs))
    return made


nn.Module.__new__ = keep_arguments


def config_classes():
    """The configuration classes by model_type; of several classes of a type the first."""
    types = {}
    root = os.path.join(os.path.dirname(transformers.__file__), "models")
    for folder in sorted(os.listdir(root)):
        path = os.path.join(root, folder)
        names = sorted(os.listdir(path)) if os.path.isdir(path) else []
        for name in names:
            if not re.fullmatch(r"configuration_\w+\.py", name):
                continue
            try:
                module = importlib.import_module(f"transformers.models.{folder}.{name[:-3]}")
            except Exception:
                continue
            for cls in vars(module).values():
                if (inspect.isclass(cls) and issubclass(cls, PretrainedConfig) and cls.model_type
                        and cls.__module__ == module.__name__ and "deprecated" not in (cls.__doc__ or "")[:60]):
                    types.setdefault(cls.model_type, cls)
    return types


def model_classes(cls):
    """Classes of models that take such a configuration, those of the plainest name first."""
    folder = cls.__module__.rsplit(".", 1)[0]
    found = []
    path = os.path.dirname(sys.modules[cls.__module__].__file__)
    for name in sorted(os.listdir(path)):
        if not re.fullmatch(r"modeling_(?!tf_|flax_)\w+\.py", name):
            continue
        try:
            module = importlib.import_module(f"{folder}.{name[:-3]}")
        except Exception:
            continue
        for model in vars(module).values():
            if (inspect.isclass(model) and issubclass(model, PreTrainedModel) and model.__module__ == module.__name__
                    and getattr(model, "config_class", None) is cls and "PreTrained" not in model.__name__):
                found.append(model)
    return sorted(found, key=lambda m: (not m.__name__.endswith("Model"), "For" in m.__name__, len(m.__name__)))


class TooLong(BaseException):
    pass


def in_time(seconds, call):
    def stop(*_):
        raise TooLong(f"more than {seconds} s")
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return call()
    finally:
        signal.alarm(0)


NO_MODEL = "no model class takes this configuration"


def build(cls, config, seconds=20):
    """The model of a configuration on the meta device, or the last reason why there is none."""
    why = NO_MODEL
    for model in model_classes(cls)[:4]:
        try:
            with torch.device("meta"):
                return in_time(seconds, lambda: model(config)), None
        except (Exception, TooLong) as e:
            why = f"{type(e).__name__}: {str(e)[:160]}"
    return None, why


def again(module):
    """The same module on the CPU."""
    args, kwargs = module.made_of
    return type(module)(*args, **kwargs)


def numbers(tensor):
    return [float(x) for x in tensor.detach().to(torch.float64).flatten().tolist()]


def frequencies(module):
    """{layers: (frequencies, factor)} of a rotary module that holds inv_freq; layers "" of all."""
    found = {}
    for name, buffer in list(module.named_buffers(recurse=False)) + [
            (k, v) for k, v in vars(module).items() if isinstance(v, torch.Tensor)]:
        if name.endswith("inv_freq") and not name.endswith("original_inv_freq"):
            layers = name[:-len("inv_freq")].rstrip("_")
            factor = getattr(module, f"{layers}_attention_scaling" if layers else "attention_scaling", 1.0)
            found[layers] = (numbers(buffer), float(factor), list(buffer.shape))
    return found
