"""Numbers that are compared, and those that mutated files say."""


def near(a, b):
    return abs(a - b) <= 2e-5 * max(abs(a), abs(b)) + 1e-30


def same_numbers(ours, theirs):
    return len(ours) == len(theirs) and all(near(a, b) for a, b in zip(ours, theirs))


SIZES = {"hidden_size": [512, 1024, 3072], "n_embd": [512, 1024], "d_model": [512, 1024],
         "num_attention_heads": [4, 8, 16], "n_head": [4, 8], "max_position_embeddings": [512, 8192, 131072],
         "num_hidden_layers": [4, 12]}


def some(rng, plain, numbers, share=0.35):
    """Some of the members that a class has, said otherwise."""
    return {key: rng.choice(numbers[key]) for key in numbers if key in plain and rng.random() < share}
