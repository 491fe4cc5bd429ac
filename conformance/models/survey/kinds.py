"""The kinds of positions that the survey knows: a module for each.

Such a module has
    ENCODINGS                    the encodings of types.txt whose rows it compares
    FLAG                         where it has one: of these rows those alone that have this flag
    row(cls, seen, plain, known) (encoding, flags, members, besides) of a type; a text where its positions are of
                                 this kind and cannot be read, with the reason; None where they are not of this kind
    ask(cls, seen, config)       what transformers computes for a configuration, in numbers; None where this
                                 cannot be asked of such a type: its row rests on people alone
    judge(said, answer)          "" where the reader says the same, else what differs
    mutate(rng, plain, seen)     members of a file that says some things otherwise than its class
    MUTATIONS                    the most files of a type, where asking takes long; or it is not there
`seen` is what truth.look() saw in the type's model, `plain` its class's members by default, and `known` what
rows.members() found the class to read.
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


def find(cls, seen, plain, known):
    """The row of a type by the first kind that its positions are of, or the reason why there is none."""
    why = None
    for kind in KINDS:
        made = kind.row(cls, seen, plain, known)
        if made is not None and not isinstance(made, str):
            return made
        why = why or made
    return why
