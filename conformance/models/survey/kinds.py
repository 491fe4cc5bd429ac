"""The kinds of positions that the survey knows: a module for each.

Such a module has
    ENCODINGS                    the encodings of types.txt whose rows it compares
    FLAG                         where it has one: of these rows those alone that have this flag
    ask(cls, seen, config)       what transformers computes for a configuration, in numbers; None where this
                                 cannot be asked of such a type: its row rests on people alone
    judge(said, answer)          "" where the reader says the same, else what differs
    mutate(rng, plain, seen)     members of a file that says some things otherwise than its class
    MUTATIONS                    the most files of a type, where asking takes long; or it is not there
`seen` is what look.look() saw in the type's model, and `plain` its class's members by default.
"""
import fractions_of
import learned
import relative
import rotation
import sinusoid
import terms
import tower
import windows

KINDS = [fractions_of, tower, rotation, windows, terms, sinusoid, learned, relative]


def kind_of(row):
    """The module that compares a row, or None."""
    return next((k for k in KINDS if row.encoding in k.ENCODINGS and getattr(k, "FLAG", None) in (None, *row.flags)), None)
