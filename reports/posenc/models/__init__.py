"""Reads model files: which positional encodings a model has, and the problems that check and time them.

    model.py        finds a file, recognises its format, and returns a Model
    config.py       reads config.json of transformers, with one module for each kind of encoding
    llama_cpp.py    reads the keys of a GGUF file, which gguf.py takes out of it; other_json.py reads other JSON files
    types.txt       states what config.json lacks: the encoding of each model type; architectures.txt the same for GGUF
    members.py      reads a member of a file, and rejects a value that is out of range
    part.py         holds the result: a Part for each way in which the model encodes positions
    calls.py        turns parts into problems, such as "rope_half tokens=512 heads=40 head_dim=128 in_place=true"
"""
