"""The interface of comparers, and the mutations and tolerances that they share.

A comparer is for rows of types.txt of some encodings. It runs modules of transformers for a configuration, and compares
the numbers with what posenc read from the same file. Words of all comparers:

    inspected  what inspection.inspect_type() returned for the type with its defaults
    defaults   the members of the configuration class with their defaults
    reading    what survey.read() returned for a file: {"parts": [{"encoding": ..., ...}, ...], "notes": ...}
    expected   what compute() returned for that file
"""
import math

SIZES = {"hidden_size": [512, 1024, 3072], "n_embd": [512, 1024], "d_model": [512, 1024],
         "num_attention_heads": [4, 8, 16], "n_head": [4, 8], "max_position_embeddings": [512, 8192, 131072],
         "num_hidden_layers": [4, 12]}


class Comparer:
    """Base class of comparers."""
    encodings = ()  # encodings of types.txt that it compares
    flag = None  # a flag of types.txt, without which it compares no row; None: any row
    max_mutations = math.inf  # files of a type, fewer if compute() is slow
    values = {}  # {member: values of mutated files}

    def compute(self, cls, inspected, config):
        """Returns numbers of a configuration's model for JSON, or None if this type has no module that shows them.

        Raises an exception if transformers rejects the configuration.
        """
        raise NotImplementedError

    def compare(self, reading, expected):
        """Returns "" if posenc read what the model computes, else the first difference."""
        raise NotImplementedError

    def mutate(self, rng, defaults, inspected):
        """Returns the members of a file, some of them with random values."""
        return choose_members(rng, defaults, self.values)


def choose_members(rng, defaults, values):
    """Returns about a third of the members that a class has, with random ones of these values."""
    return {key: rng.choice(values[key]) for key in values if key in defaults and rng.random() < 0.35}


def near(a, b):
    """Returns true if two numbers agree to 2e-5, which covers angles computed in f32."""
    return abs(a - b) <= 2e-5 * max(abs(a), abs(b)) + 1e-30
