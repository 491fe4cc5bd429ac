"""Builds models of transformers without memory for weights (device meta), and single modules of them on the CPU.

Importing this module changes torch and transformers for the process: each module keeps the arguments of its constructor
in `made_of`, so that rebuild() can make it again, and models of the library timm become placeholders.
"""
import copy
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
import transformers.modeling_rope_utils
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto

transformers.logging.set_verbosity(50)
logging.disable(logging.CRITICAL)
torch.set_num_threads(1)


def new_module(cls, *args, **kwargs):
    module = object.__new__(cls)
    object.__setattr__(module, "made_of", (args, kwargs))
    return module


nn.Module.__new__ = new_module


def without_timm(from_config):
    """Wraps from_config() so that models of timm, which may not be installed, become placeholders."""
    return lambda config, **more: nn.Identity() if config.model_type == "timm_wrapper" else from_config(config, **more)


for auto in (transformers.AutoModel, transformers.AutoModelForImageClassification):
    auto.from_config = without_timm(auto.from_config)


# Releases before 5 have rope_scaling alone: one object for all layers, without rope_theta or partial_rotary_factor.
HAS_ROPE_PARAMETERS = hasattr(transformers.modeling_rope_utils, "RopeParameters")
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}
BY_LAYERS = {k: {"rope_type": "default", "rope_theta": 10000.0} for k in ("full_attention", "sliding_attention")}
# Members by type that have no usable default: without them no model can be built, or it cannot run.
REQUIRED_MEMBERS = {
    **dict.fromkeys(["autoformer", "informer", "time_series_transformer"], {"prediction_length": 24}),
    **dict.fromkeys(["hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text"], {"head_dim": 128}),
    **dict.fromkeys(["t5gemma2_text", "t5gemma2_decoder"], {"dropout_rate": 0.0}),
    "glm4v_text": {"rope_parameters": MROPE}, "glm_image_text": {"rope_parameters": MROPE},
    "glm4v_moe_text": {"rope_parameters": MROPE, "head_dim": 128}, "timesfm": {"use_positional_embedding": True},
    "cohere_compass_text": {"rope_parameters": BY_LAYERS},
    "chameleon": {"vocabulary_map": {"<image>": 8711, "IMGIMGA": 4}},
    "esm": {"vocab_size": 33, "position_embedding_type": "rotary"}, "moonshine_streaming": {"num_key_value_heads": 8},
    "gemma4_assistant": {"text_config": {
        "model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense"] * 40},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    "diffusion_gemma_text": {"num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 64},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 768},
    "qwen4_exp_text": {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 2048,
                       "indexer_compress_ratio": 4},
}
if not HAS_ROPE_PARAMETERS:
    for required in REQUIRED_MEMBERS.values():
        required.pop("rope_parameters", None)


def set_defaults(cls, members):
    """Makes these members the defaults of a configuration class."""
    original = cls.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **{**copy.deepcopy(members), **kwargs})
    cls.__init__ = init


def import_modules(package, folder, pattern):
    """Yields the modules of a package whose file names match; failures of imports are printed."""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if re.fullmatch(pattern, name):
            try:
                yield importlib.import_module(f"{package}.{name[:-3]}")
            except Exception as error:
                print(f"survey: {package}.{name}: {error}", file=sys.stderr)


def config_classes():
    """Returns the configuration classes by model_type; the first one if a type has several."""
    types, root = {}, os.path.join(os.path.dirname(transformers.__file__), "models")
    for name in sorted(os.listdir(root)):
        folder = os.path.join(root, name)
        for module in import_modules(f"transformers.models.{name}", folder, r"configuration_\w+\.py"):
            for cls in vars(module).values():
                if (inspect.isclass(cls) and issubclass(cls, PretrainedConfig) and cls.model_type
                        and cls.__module__ == module.__name__ and "deprecated" not in (cls.__doc__ or "")[:60]):
                    types.setdefault(cls.model_type, cls)
    for name in set(REQUIRED_MEMBERS) & set(types):
        set_defaults(types[name], REQUIRED_MEMBERS[name])
    return types


def model_classes(cls):
    """Returns the classes of models that take such a configuration, bare models before those with a head.

    This imports their modules, by whose names inspect_type() refers to rotary classes.
    """
    package, folder = cls.__module__.rsplit(".", 1)[0], os.path.dirname(sys.modules[cls.__module__].__file__)
    found = [model for module in import_modules(package, folder, r"modeling_(?!tf_|flax_)\w+\.py")
             for model in vars(module).values()
             if inspect.isclass(model) and issubclass(model, PreTrainedModel) and model.__module__ == module.__name__
             and getattr(model, "config_class", None) is cls and "PreTrained" not in model.__name__]
    if not found:  # the model class of another type may take it, too
        name = modeling_auto.MODEL_MAPPING_NAMES.get(cls.model_type)
        return [getattr(transformers, name)] if isinstance(name, str) else []
    return sorted(found, key=lambda m: (not m.__name__.endswith("Model"), not m.__name__.endswith("Backbone"),
                                        "For" in m.__name__, len(m.__name__)))


class TooLong(BaseException):
    """A call that exceeded its time limit. It is no Exception, which models may handle."""


def limit_time(seconds, call):
    """Returns the result of a call, or raises TooLong after so many seconds of wall time."""
    def stop(*_):
        raise TooLong(f"more than {seconds} s")
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return call()
    finally:
        signal.alarm(0)


def try_build(cls, config):
    """Returns the model of a configuration on the meta device and None, or None and the reason for failure."""
    reason = "no model class takes this configuration"
    for model in model_classes(cls)[:4]:
        try:
            with torch.device("meta"):
                return limit_time(20, lambda: model(config)), None
        except (Exception, TooLong) as error:
            reason = f"{type(error).__name__}: {str(error)[:160]}"
    return None, reason


def build_model(cls, config):
    """Returns the model of a configuration on the meta device, or raises ValueError."""
    model, reason = try_build(cls, config)
    if model is None:
        raise ValueError(reason)
    return model


def rebuild(module):
    """Returns a copy of a module on the CPU, made by its constructor."""
    args, kwargs = module.made_of
    made = type(module)(*args, **kwargs)
    if hasattr(made, "_init_weight"):  # releases before 5 fill sinusoidal tables here, after the constructor
        with torch.no_grad():
            made._init_weight()
    return made


def rotary_frequencies(module):
    """Returns {layer type: (frequencies, attention factor, shape)} by the inv_freq tensors of a rotary module.

    The layer type is "" if one tensor is for all layers.
    """
    found = {}
    tensors = list(module.named_buffers(recurse=False))
    tensors += [(k, v) for k, v in vars(module).items() if isinstance(v, torch.Tensor)]
    for name, tensor in tensors:
        if name.endswith("inv_freq") and not name.endswith("original_inv_freq"):
            layers = name[:-len("inv_freq")].rstrip("_")
            factor = getattr(module, f"{layers}_attention_scaling" if layers else "attention_scaling", 1.0)
            found[layers] = (tensor.detach().double().flatten().tolist(), float(factor), list(tensor.shape))
    return found
