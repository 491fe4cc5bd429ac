"""posenc list types: the kinds of models that are read, and those that are rejected with the reason."""

import textwrap
from collections import Counter
from typing import Iterator, Sequence, Tuple

from ..models.llama_cpp import architectures
from ..models.types import types

COLUMN, WIDTH = 40, 110
Kind = Tuple[str, str, str]  # name, encoding, what its code does besides


def _lines(heading: str, kinds: Sequence[Kind]) -> Iterator[str]:
    for name, encoding, note in (heading, "encoding", "what its code does besides, or why it is rejected"), *kinds:
        first = f"{name:<21} {encoding:<17} "
        if note:
            yield textwrap.fill(note, WIDTH, initial_indent=first, subsequent_indent=" " * COLUMN,
                                break_long_words=False, break_on_hyphens=False)  # fmt: skip
        else:
            yield first.rstrip()


def type_lines() -> Iterator[str]:
    """Yields the kinds, and how many there are of each sort."""
    rows = [(kind.name, "rejected" if kind.rejected else kind.encoding, kind.note) for kind in types().values()]
    sorts = Counter(sort if sort in ("rejected", "composite", "none") else "read" for _, sort, _ in rows)
    gguf = [(one.name, "rejected" if one.what == "refused" else one.what, one.note) for one in architectures().values()]
    rejected = sum(what == "rejected" for _, what, _ in gguf)
    yield from _lines("model_type", rows)
    yield ""
    yield from _lines("general.architecture", gguf)
    yield ""
    yield (
        f"Hugging Face: {len(rows)} model types: {sorts['read']} read, {sorts['composite']} composite, {sorts['none']} "
        f"without positions (none), {sorts['rejected']} rejected"
    )
    yield f"GGUF: {len(gguf)} architectures: {len(gguf) - rejected} read as llama.cpp does, {rejected} rejected"
    yield "norm rotates neighbours, neox halves, mrope and imrope halves by three axes.  --config also reads the"
    yield "params.json of Meta's and Mistral's releases, and the configurations of diffusers' transformers."
