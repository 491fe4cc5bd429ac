"""What attention does besides encoding positions, said in the same words whatever kind of file says it."""

from .members import Members, is_number, member_of

WINDOW = "sliding_window attention.sliding_window"
CHUNKS = "attention_chunk_size attention.chunk_size"
TEMPERATURE = (
    "attn_temperature_tuning rope_parameters.llama_4_scaling_beta rope_scaling.llama_4_scaling_beta llama_4_scaling "
    "attention.temperature_scale"
)
SINKS = ("gpt_oss", "gpt-oss")  # types and architectures whose heads have one


def note_besides(members: Members, kind: str) -> None:
    """Notes windows, chunks, temperatures and sinks, which no problem has."""
    window, chunks, temperature = (member_of(members.file, names) for names in (WINDOW, CHUNKS, TEMPERATURE))
    used = member_of(members.file, "use_sliding_window").value is not False
    if is_number(window.value) and window.value > 0 and used:
        members.note(f"Windows of {window.value} tokens are not covered ({members.path(window.name)})")
    if is_number(chunks.value) and chunks.value > 0:
        members.note(f"Chunks of {chunks.value} tokens are not covered ({members.path(chunks.name)})")
    if temperature.value:
        members.note(f"Scores that are scaled by position are not covered ({members.path(temperature.name)})")
    if kind in SINKS:
        members.note("Attention sinks are not covered")
