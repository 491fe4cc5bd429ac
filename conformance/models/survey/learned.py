"""Learned tables: types whose embeddings add one. The sizes that are read are compared with those of the model's tables."""
import collections
import re

from look import tables_of
from truth import build
from values import SIZES, some

ENCODINGS = ("learned",)
# Tables that are not of the places of tokens, or of patches, in their sequence.
BESIDES = re.compile(r"^(x|y|h|w|box|visual|entity|mid|time|temporal|tile|cell|window|rel|relative)_|entity|relative|rel_pos")


def shallow(plain):
    """Members that make a model of few layers, where that changes no position."""
    return {k: 1 for k in ("num_hidden_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_layers")
            if isinstance(plain.get(k), int) and plain[k] > 1}


def main_tables(tables):
    """{path: shape} of those that are of positions in the sequence; and the names of the others."""
    own = {t["path"]: t["shape"] for t in tables if not BESIDES.search(t["path"].rsplit(".weight", 1)[0].rsplit(".", 1)[-1])
           and "entity" not in t["path"] and "tile" not in t["path"]}
    return own, sorted({t["path"].rsplit(".", 1)[-1] for t in tables if t["path"] not in own})


def ask(cls, seen, config):
    """The sizes of the tables of positions that the model of a configuration has, [rows, width] by path."""
    plain = config.to_dict()
    for key, value in shallow(plain).items():
        try:
            setattr(config, key, value)
        except Exception:
            continue
    model, why = build(cls, config)
    if model is None:
        raise ValueError(why)
    return {**main_tables(tables_of(model))[0], **made_tables(model, config)}


def made_tables(model, config):
    """Those that a model makes as large as its picture."""
    maker = next((m for m in model.modules() if hasattr(m, "_get_pos_embed") and hasattr(m, "pos_embed_window")), None)
    if maker is None:
        return {}
    made = maker._get_pos_embed(tuple(i // s for i, s in zip(config.image_size, config.patch_stride)))
    return {"made": [made.shape[1] * made.shape[2], made.shape[3]]}


def judge(said, answer):
    """"" where the tables read are those that the model has."""
    mine = collections.Counter((int(p.get("rows", 0)), int(p["width"])) for p in said["parts"] if p["encoding"] == "learned")
    theirs = collections.Counter(tuple(shape) for shape in answer.values())
    same = set(mine) == set(theirs) and sum(mine.values()) in (1, sum(theirs.values()))
    return "" if same else f"tables of {sorted(mine)} are read, there are {answer}"


NUMBERS = {
    **SIZES, "pad_token_id": [0, 1, 5], "image_size": [96, 224, 384], "patch_size": [8, 16, 32],
    "embedding_size": [64, 128], "n_positions": [256, 2048], "num_layers": [2, 4],
    "max_source_positions": [600, 1500], "max_encoder_position_embeddings": [512, 4096],
    "max_decoder_position_embeddings": [256, 2048], "num_patches": [64, 196], "num_detection_tokens": [50, 100],
    "n_cls_tokens": [4, 8], "input_embedding_size": [64, 128], "emb_dim": [512, 1024], "block_size": [512, 2048],
    "embed_dim": [256, 512], "max_img_size": [1024, 2048], "max_image_size": [1024, 2048],
    "pretrain_image_size": [224, 384], "input_size": [224, 384], "num_frames": [8, 16],
    "num_hash_buckets": [16384, 20000],
    "vision_config": [{"image_size": 384, "patch_size": 32}, {"hidden_size": 1024, "num_attention_heads": 16}],
    "hidden_sizes": [[32, 64, 160, 256]], "seq_len": [1024, 2048], "max_num_patches": [1024, 2048],
    "axial_pos_shape": [[32, 64], [16, 16]], "axial_pos_embds_dim": [[128, 128], [32, 224]],
    "context_length": [64, 100], "patch_length": [4, 8], "patch_stride": [2, 4], "use_cls_token": [True],
    "num_mel_bins": [64, 128], "max_length": [512, 1024], "frequency_stride": [8, 10], "time_stride": [8, 10],
}


def mutate(rng, plain, seen):
    out = some(rng, plain, NUMBERS)
    if isinstance(plain.get("patch_stride"), (list, tuple)) and "patch_stride" in out:
        out["patch_stride"] = [out["patch_stride"]] * 2
    for key in ("image_size", "patch_size"):
        if key in out and isinstance(plain.get(key), (list, tuple)) and len(plain[key]) == 2:
            out[key] = [out[key], rng.choice(NUMBERS[key])]
    return out
