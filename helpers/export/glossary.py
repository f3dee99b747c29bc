"""The glossary: the course's words, each in the sentence that explains it, found in the notebooks themselves."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from helpers.export.cells import slide_type

# Where a notebook uses one of these, a page explains it.
_TERMS = """
MFU, MAC, significand, hidden 1, subnormal, IEEE rule, tfloat32, tensor cores, E4M3, gradual underflow, loss scale,
stagnation, accumulator, mixed-precision training, meta device, master copy, quantise, MXFP4, NVFP4, stride, row-major,
in place, touched bytes, cache line, broadcasting, causal mask, KV cache, einops, einsum, jaxtyping, beartype, HFU,
rotary embeddings, attention weights, dispatcher, vector units, matrix units, grouped-query attention, SwiGLU, LoRA,
mixture of experts, arithmetic intensity, memory-bound, compute-bound, ridge, critical batch, prefill, decoding,
roofline, working set, activations, logits, recomputation, tensor parallelism, sequence parallelism, QLoRA
"""
# And these are everyday words, too, so that they are explained in the glossary alone.
_EVERYDAY = """
FLOP, FLOP/s, exponent, fraction, code, bias, normal, gap, tie, moments, relative error, outliers, storage, offset,
shape, view, elementwise, fused, pinned, rearrange, repeat, query, key, score, channels, values, peak, linear model,
head, embedding, dense, cache, kernel, bandwidth, lower bound, overhead, least time, launch, bracket, states
"""


@dataclass(frozen=True)
class Term:
    """A word, the sentence that explains it, in Markdown, and where it stands: a notebook, and one of its sections."""

    word: str
    sentence: str
    notebook: str
    section: str
    everyday: bool

    @property
    def anchor(self) -> str:
        """The id of the place where it is explained; without "word-", that of its entry in the glossary."""
        return "word-" + re.sub(r"\W+", "-", self.word.lower())

    @property
    def plain(self) -> str:
        """The sentence without its marks."""
        return re.sub(r"\[([^]]*)\]\([^)]*\)|[*`$\\]", r"\1", self.sentence)


def glossary(notebooks: Iterable[Path]) -> dict[str, Term]:
    """The words in alphabetical order, by their lower case: each from where a notebook first sets it in bold or italic.

    A word that none of these notebooks explains is left out.
    """
    found: dict[str, Term] = {}
    wanted = {word: everyday for everyday, words in ((False, _TERMS), (True, _EVERYDAY)) for word in _split(words)}
    for path in notebooks:
        section = ""
        for cell in nbformat.read(path, as_version=4).cells:
            if heading := re.match(r"#+ (.+)", cell.source):
                section = heading[1]
            if cell.cell_type != "markdown" or slide_type(cell) == "notes":
                continue
            for word, sentence in _marked(cell):
                if word in wanted and word not in found:
                    found[word] = Term(
                        _spelled(word), re.sub(r"[:;]$", ".", sentence), path.name, section, wanted[word]
                    )
    return dict(sorted(found.items()))


def _split(words: str) -> list[str]:
    return [word.strip().lower() for word in words.split(",")]


def _spelled(word: str) -> str:
    return next(name.strip() for name in f"{_TERMS},{_EVERYDAY}".split(",") if name.strip().lower() == word)


def _marked(cell: NotebookNode) -> list[tuple[str, str]]:
    """Each word in bold or italic, in lower case, with its sentence."""
    pairs = []
    for paragraph in re.split(r"\n{2,}|\n(?=[-|] )", cell.source):
        for sentence in re.split(r"(?<=[.?!]) (?=[A-Z*`(])", paragraph.strip().lstrip("-|> ")):
            pairs += [(word.lower(), sentence) for word in re.findall(r"(?<!\*)\*{1,2}([^*]+)\*{1,2}(?!\*)", sentence)]
    return pairs


def pattern(terms: dict[str, Term]) -> re.Pattern[str]:
    """What finds the words of the glossary in a text, those that are everyday words left out."""
    words = sorted((re.escape(word) for word, term in terms.items() if not term.everyday), key=len, reverse=True)
    return re.compile(rf"\b({'|'.join(words)})\b" if words else r"(?!)", re.IGNORECASE)


def as_notebook(terms: dict[str, Term]) -> NotebookNode:
    """The glossary as a notebook of one cell, with links to where each word is explained."""
    entries = [
        f"## {term.word}\n\n{term.sentence} [{term.notebook[:2]}, {term.section}]({term.notebook}#{term.anchor})"
        for term in terms.values()
    ]
    return new_notebook(cells=[new_markdown_cell("\n\n".join(["# Glossary", *entries]))])
