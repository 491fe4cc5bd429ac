"""What the modules of transformers themselves compute of positions.

A model is built without memory for its weights (device meta), with the arguments of every module's
constructor kept, and the modules that encode positions are built again on the CPU and run.
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

transformers.logging.set_verbosity(50)
logging.disable(logging.CRITICAL)
torch.set_num_threads(1)


def keep_arguments(cls, *args, **kwargs):
    made = object.__new__(cls)
    object.__setattr__(made, "made_of", (args, kwargs))
    return made


nn.Module.__new__ = keep_arguments


def without_timm(plain):
    """Of a model of the library timm, which need not be there, nothing is asked: its place is kept."""
    return lambda config, **kwargs: nn.Identity() if config.model_type == "timm_wrapper" else plain(config, **kwargs)


for auto in (transformers.AutoModel, transformers.AutoModelForImageClassification):
    auto.from_config = without_timm(auto.from_config)


# Releases before 5 know rope_scaling alone, which has neither base nor share, and is one for all layers.
PARAMETERS = hasattr(transformers.modeling_rope_utils, "RopeParameters")
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5, "mrope_section": [8, 12, 12]}
BY_LAYERS = {k: {"rope_type": "default", "rope_theta": 10000.0} for k in ("full_attention", "sliding_attention")}
# Members without which no model of a type can be made, or none that runs: its class leaves them to files.
NEEDED = {
    "autoformer": {"prediction_length": 24}, "informer": {"prediction_length": 24},
    "time_series_transformer": {"prediction_length": 24},
    "chameleon": {"vocabulary_map": {"<image>": 8711, "IMGIMGA": 4}},
    "esm": {"vocab_size": 33, "position_embedding_type": "rotary"}, "moonshine_streaming": {"num_key_value_heads": 8},
    "gemma4_assistant": {"text_config": {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}},
    "timesfm": {"use_positional_embedding": True}, "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128}, "hunyuan_vl_text": {"head_dim": 128},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense"] * 40},
    "diffusion_gemma_text": {"num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 64},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 768},
    "qwen4_exp_text": {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 2048, "indexer_compress_ratio": 4},
    "t5gemma2_text": {"dropout_rate": 0.0}, "t5gemma2_decoder": {"dropout_rate": 0.0},
    "glm4v_text": {"rope_parameters": MROPE}, "glm_image_text": {"rope_parameters": MROPE},
    "glm4v_moe_text": {"rope_parameters": MROPE, "head_dim": 128},
    "cohere_compass_text": {"rope_parameters": BY_LAYERS},
}
if not PARAMETERS:
    for needed in NEEDED.values():
        needed.pop("rope_parameters", None)


def filled(cls, members):
    """Makes the class take these members where it is called without them."""
    plain = cls.__init__

    def init(self, *args, **kwargs):
        plain(self, *args, **{**copy.deepcopy(members), **kwargs})
    cls.__init__ = init


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
            except Exception as error:
                print(f"survey: {folder}/{name}: {error}", file=sys.stderr)
                continue
            for cls in vars(module).values():
                if (inspect.isclass(cls) and issubclass(cls, PretrainedConfig) and cls.model_type
                        and cls.__module__ == module.__name__ and "deprecated" not in (cls.__doc__ or "")[:60]):
                    types.setdefault(cls.model_type, cls)
    for name in set(NEEDED) & set(types):
        filled(types[name], NEEDED[name])
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
        except Exception as error:
            print(f"survey: {folder}.{name}: {error}", file=sys.stderr)
            continue
        for model in vars(module).values():
            if (inspect.isclass(model) and issubclass(model, PreTrainedModel) and model.__module__ == module.__name__
                    and getattr(model, "config_class", None) is cls and "PreTrained" not in model.__name__):
                found.append(model)
    return sorted(found or models_of_others(cls), key=lambda m: (not m.__name__.endswith("Model"), not m.__name__.endswith("Backbone"), "For" in m.__name__, len(m.__name__)))


def models_of_others(cls):
    """The classes of models of another type that take such a configuration, too."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES
    name = MODEL_MAPPING_NAMES.get(cls.model_type)
    return [getattr(transformers, name)] if isinstance(name, str) else []


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
    made = type(module)(*args, **kwargs)
    if hasattr(made, "_init_weight"):  # releases before 5 make sinusoids there, once the model stands
        with torch.no_grad():
            made._init_weight()
    return made


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
