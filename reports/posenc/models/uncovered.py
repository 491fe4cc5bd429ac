"""Reports what the problems of a model leave out: windows, chunks and sinks of attention, unread keys about positions.

config.py calls check_unread() after it has read all parts. "rotary_pct": 1.0, which nothing read, changes nothing and
becomes a note; "rotary_pct": 0.5 rejects the file. A key that repeats the value of the key that counts is accepted.
"""

import json
import re
from typing import Any, Dict, Iterator, Tuple

from .members import Members, is_number, member_of
from .types import type_of

ABOUT_POSITIONS = re.compile(r"rope|rotary|alibi|xpos|position|_per_layer$|_theta$|_base$")
EMPTY: Tuple[Any, ...] = ("", [], {})

# Values that equal the behaviour without the key. Any other value, even false or 0, may switch a rotation off.
NEUTRAL: Dict[str, Tuple[Any, ...]] = {
    "rotary": (True,), "rotary_pct": (1,), "rotary_percent": (1,), "rotary_emb_fraction": (1,), "rope_ratio": (1,),
    "partial_rotary_factor": (1,), "use_rotary_pos_emb": (True,), "use_rope": (True,), "use_position_ids": (True,),
    "rope": (True,), "position_embedding_type": ("absolute",), "rope_scaling_factor": (1,),
    "rotary_scaling_factor": (1,), "apply_rotary_pos_emb": (True,), "use_rotary_embedding": (True,),
}  # fmt: skip

# Keys that were reviewed and have no effect on the encoding of positions, with their meaning.
UNRELATED = {
    "ngram_vocab_size_base": "size of a table of n-grams",
    "dim_model_base": "width of the model whose learning rate was tuned (MiniCPM)",
    "indexer_rope_interleave": "the indexer of sparse attention, which is not covered",
    "position_id_per_seconds": "how a processor counts positions of sound",
    "position_embedding_size": "rows of a table for pictures, which is not covered",
    "positional_dropout": "dropout of training",
    "reduction_position": "where frames are joined",
    "mm_newline_position": "where tokens of line breaks stand",
    "t2u_max_position_embeddings": "another stack's length",
    "max_target_positions": "another stack's length",
    "max_text_positions": "another stack's length",
    "max_speech_positions": "another stack's length",
    "offset_alibi": "unread by the classes of Bloom",
    "initializer_positions": "initialisation",
    "flash_rotary": "which of two equal implementations runs",
    "original_rope": "which of two equal implementations runs",
    "alibi_impl": "which of several equal implementations runs",
    "position_ids": "a buffer",
    "window_positional_embedding_background_size": "how a table of patches is stored",
    "static_position_embeddings": "sinusoids, whatever it says (Marian)",
}

# Keys that are noted, with the note.
UNCOVERED = {
    "num_position_embeddings": "the learned table that its code adds to patches is not covered",
    "max_2d_position_embeddings": "the tables of places on a page that its code adds are not covered",
}


def _unread_keys(members: Members) -> Iterator[Tuple[str, Any]]:
    """Yields keys that were not read, of the object that was read and of the whole file."""
    for key, value in members.file.items():
        if key not in members.read_keys:
            yield key, value
    if members.file is not members.root:
        default = members.defaults.get("rope_parameters")
        counts = {**(default if isinstance(default, dict) else {}), **members.defaults, **members.file}
        for key, value in members.root.items():
            if member_of(counts, key).value != value:
                yield key, value


def _changes_nothing(key: str, value: Any) -> bool:
    """Returns whether a value equals the behaviour without the key: a value of NEUTRAL, null, empty, or false.

    False is none if NEUTRAL has true for the key.
    """
    neutral = NEUTRAL.get(key, ())
    if isinstance(value, bool):
        return value is any(known is True for known in neutral)
    return value is None or value in EMPTY or value in [known for known in neutral if known is not True]


def _shown(value: Any) -> str:
    """Returns a value for a message, in at most 60 characters."""
    return "a list" if isinstance(value, list) and value else json.dumps(value)[:60]


def note_neutral(members: Members, key: str, value: Any) -> None:
    """Notes a key about positions whose value changes nothing."""
    if ABOUT_POSITIONS.search(key):
        members.note(f"{key} is {_shown(value)}, which changes nothing: it is not read")


def check_unread(members: Members, kind: str) -> None:
    """Notes or rejects keys about positions that were not read."""
    whole = type_of(members.root.get("model_type"))
    for key, value in _unread_keys(members):
        if key in UNRELATED or not ABOUT_POSITIONS.search(key) or isinstance(value, dict):
            continue
        layers = members.find_value("num_hidden_layers")
        if key == "rope_scaling_layers" and is_number(layers) and value == list(range(int(layers))):
            continue  # all of them
        if whole and "flat" in whole.flags and members.file is not members.root and key in members.file:
            members.note(f"{key} is {_shown(value)} beside that of the text, which counts")
        elif key in UNCOVERED:
            members.note(f"{key}: {UNCOVERED[key]}")
        elif _changes_nothing(key, value):
            note_neutral(members, key, value)
        else:
            members.reject(f"{key} is {_shown(value)}: a key about positions that is not read for model_type '{kind}'. "
                           "Remove it if it changes nothing")  # fmt: skip


# ---- what attention does besides encoding positions ----

WINDOW = "sliding_window attention.sliding_window"
CHUNKS = "attention_chunk_size attention.chunk_size"
TEMPERATURE = (
    "attn_temperature_tuning rope_parameters.llama_4_scaling_beta rope_scaling.llama_4_scaling_beta llama_4_scaling "
    "attention.temperature_scale"
)
SINKS = ("gpt_oss", "gpt-oss")  # model types and architectures with attention sinks


def note_besides(members: Members, kind: str) -> None:
    """Notes windows, chunks, temperatures and sinks, in the same words for every kind of file."""
    window, chunks, temperature = (member_of(members.file, names) for names in (WINDOW, CHUNKS, TEMPERATURE))
    is_used = member_of(members.file, "use_sliding_window").value is not False
    if is_number(window.value) and window.value > 0 and is_used:
        members.note(f"Windows of {window.value} tokens are not covered ({members.path(window.name)})")
    if is_number(chunks.value) and chunks.value > 0:
        members.note(f"Chunks of {chunks.value} tokens are not covered ({members.path(chunks.name)})")
    if temperature.value:
        members.note(f"Scores that are scaled by position are not covered ({members.path(temperature.name)})")
    if kind in SINKS:
        members.note("Attention sinks are not covered")
