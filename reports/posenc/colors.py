"""Colours of backends, the same in every picture."""

from typing import Dict, Sequence

# A colour for each backend: blue and green have the same bits everywhere, purple is SLEEF, orange and yellow
# are the compiler's, grey is libm. Backends of one colour never run on one machine. No two colours are
# closer than 25 in CIELAB to eyes that lack a receptor.
BACKENDS: Dict[str, str] = {
    "avx512_bf16": "#132B79",
    "avx512": "#005FD9",
    "sve": "#005FD9",
    "rvv": "#005FD9",
    "avx2": "#A9D3FA",
    "neon": "#A9D3FA",
    "scalar": "#25A55C",
    "sleef_avx512": "#960056",
    "sleef_avx2": "#BF56AF",
    "sleef_neon": "#BF56AF",
    "autovec_v4": "#EE7219",
    "autovec_sve": "#EE7219",
    "autovec_rvv": "#EE7219",
    "autovec_v3": "#F7D312",
    "autovec_neon": "#F7D312",
    "libm": "#9E9E9E",
}
PLUGINS = ("#665600", "#551711")


def color_of(backend: str, others: Sequence[str] = ()) -> str:
    """Returns the colour of a backend; those that are not posenc's own take turns, in the order of `others`."""
    unknown = [name for name in others if name not in BACKENDS]
    at = unknown.index(backend) if backend in unknown else 0
    return BACKENDS.get(backend) or PLUGINS[at % len(PLUGINS)]
