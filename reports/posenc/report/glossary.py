"""Terms that a report explains where it uses them, and how its numbers come about: term("roofline") of sections.j2."""

from typing import Dict, NamedTuple


class Term(NamedTuple):
    """A term and its meaning."""

    name: str
    text: str


TERMS: Dict[str, Term] = {
    "step": Term(
        "time of a step",
        "Prefill takes in a prompt, decode makes one token. The time is the sum of all calls that the model's layers "
        "make in that step, on one thread, each as fast as when it is timed alone. Tables of angles are made once a "
        "step and shared by all layers.",
    ),
    "fastest": Term(
        "fastest",
        "The backend with the least time of those that conform. In thin letters: the timings are too noisy to tell.",
    ),
    "sure": Term(
        "how sure",
        "clear: the intervals are apart. tie: they meet. too noisy to tell: the timings decide nothing. "
        "± is the wider half of the interval that holds the median with 99 % confidence.",
    ),
    "default": Term(
        "default backend",
        "The backend that the library selects by itself on this CPU. POSENC_BACKEND=NAME in the environment, or "
        'posenc_select("NAME", NULL) in C, forces another.',
    ),
    "conforms": Term("conforms", "Every check of its kernels passed: golden vectors, errors, memory, properties."),
    "libm": Term("plain C (libm)", "Plain loops over the C library's sine and cosine. 3× means three times as fast."),
    "autovec": Term("compiler (autovec)", "The same loops, vectorised by the compiler: the best of its builds here."),
    "roofline": Term(
        "roofline",
        "The measured bandwidth bound: the best rate of storing or copying the same bytes, taken in the same rounds.",
    ),
    "per-element": Term("instructions per element", "Instructions that one more element of the output takes."),
    "frontend": Term("front-end", "The public function: it validates all arguments, then calls the kernel."),
    "prepared": Term("prepared call", "A call that was validated once and is made again with other data."),
    "bound": Term(
        "bound by",
        "The resource that alone would take longest: memory, conversions between types, ports of the core, latency, "
        "or the cost of the call itself.",
    ),
    "numerics": Term(
        "numerics mode",
        "How angles are formed. exact: real mathematics. hf_f32: in f32, as Hugging Face transformers does. "
        "ggml_f32: by repeated f32 products, as ggml does. torch_exp_f32: frequencies by exp in f32.",
    ),
    "ulp": Term("ulp", "Unit in the last place of an f32. Correct rounding has an error of at most 0.5 ulp."),
    "pair-ulp": Term("pair ulp", "Error of a rotation in ulp of the larger product, as the difference may cancel."),
    "interval": Term("interval (±)", "The median lies within it with 99 % confidence. ± is its wider half."),
    "control": Term("A/A control", "The same code timed against a second copy of itself. All difference is noise."),
    "noisy": Term(
        "noisy", "The interval is wider than 10 %, or the A/A control differs by more. A noisy timing decides nothing."
    ),
    "tie": Term("tie", "The intervals meet: the clock cannot tell the two apart."),
    "quality": Term("measurement quality", "How far to rely on times, from A (a quiet machine) to D (a busy one)."),
    "inconclusive": Term(
        "inconclusive", "Passed on too little evidence, in files of earlier builds. The exit code counts it as failed."
    ),
    "coverage": Term("evidence", "exhaustive: every input. searched: the hardest inputs. sampled: random inputs."),
    "suite-vectors": Term("vectors", "Golden outputs, made with multi-precision arithmetic."),
    "suite-accuracy": Term("accuracy", "Scans of positions against an integer oracle, each error within its limit."),
    "suite-digests": Term("digests", "Native backends return the same bits as on every other machine."),
    "suite-memory": Term("memory", "Tensors end at guard pages: no byte outside the arguments is touched."),
    "suite-properties": Term("properties", "Relations between calls that need no reference."),
    "suite-side-effects": Term("side effects", "Nothing is allocated, static data and errno stay, threads may share."),
    "suite-random": Term("random", "Random problems, judged by the oracle."),
    "verdict-slower": Term("SLOWER", "The whole interval lies beyond the noise threshold, and it was confirmed."),
    "verdict-faster": Term("FASTER", "The mirror image of SLOWER."),
    "verdict-same": Term("SAME", "The whole interval lies within the threshold."),
    "verdict-unclear": Term("UNCLEAR", "All else: more processes, or a quieter machine, would settle it."),
}

METHOD = (
    "A time is the median over rounds. Each round runs every backend of a case, a second copy of one of them and the "
    "rooflines in random order, so that a disturbance hits all of them.",
    "Before a case is timed, its output is compared with the verified scalar backend in full, and with the oracle on "
    "64 rows. Wrong outputs are not timed.",
    "GB/s counts useful bytes: inputs read once, outputs written once, 10^9 bytes to a GB. Tables of angles do not "
    "count as bytes of a rotation.",
    "The fastest backend has the least median of those that conform and are not noisy. Those whose intervals meet "
    "its own tie with it. Another backend replaces the default only if it is faster beyond both intervals and 3 %.",
    "Percentages and ratios are quotients of the numbers as they are printed.",
)

METHOD_OF_COMPARISONS = (
    "Each round of each process runs head, base and a second copy of base in random order. Processes are what is "
    "sampled: each gives one ratio for head and one for the A/A control.",
    "The noise threshold is the largest of 1 %, twice the median difference of the control, and what four in five "
    "processes stay below. SLOWER and FASTER need an interval beyond it, agreement of the processes, and two further "
    "processes that confirm it.",
    "Changes of results are exact: no statistics are involved.",
)
