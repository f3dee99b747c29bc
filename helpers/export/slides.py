"""A notebook as a deck: which of its cells a slide shows, which its speaker says, and what waits for a key."""

import re
from dataclasses import dataclass, field

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from helpers.export.cells import answer, folded, is_exercise, is_guess, slide_type, task
from helpers.export.code import Definitions, asked_code, free_names, lesson_code

_HINT, _SOLUTION = "<details><summary>Hint<", "<details><summary>Solution<"  # how the cells below an exercise begin
_FOLD = re.compile(r"<details><summary>.*?</summary>\n\n(.*)\n\n</details>", re.DOTALL)
# What a markdown cell is made of: folds, fences of code, paragraphs, lists, tables, formulas.
_BLOCK = re.compile(r"<details>.*?</details>|```.*?```|(?:[^\n]+(?:\n+(?= )|\n|$))+", re.DOTALL)
_SHOWN_WORDS = 12  # of a paragraph: a shorter one is shown even if a teacher could as well say it


@dataclass
class Slide:
    """What one slide shows, and what its speaker says.

    kind: "text" may go together with the next one, or be split; "picture", "guess", "exercise" and "solution" have a
        slide to themselves; "answer" is one that was folded.
    asks_from: where the cells begin that a guess is about.
    hidden: from which cell on a key has to be pressed to show them.
    """

    kind: str = "text"
    cells: list[NotebookNode] = field(default_factory=list)
    notes: list[NotebookNode] = field(default_factory=list)
    asks_from: int | None = None
    hidden: int | None = None

    def put(self, cell: NotebookNode) -> None:
        """Show a cell; or say it, where it is a paragraph that explains what is seen."""
        is_shown = self.kind == "exercise" or self.asks_from is not None or not _is_said(cell)
        is_shown = is_shown and not cell.source.startswith("Replace the three dots")  # which are in the notebook alone
        (self.cells if is_shown else self.notes).append(cell)

    @property
    def has_only_words(self) -> bool:
        """Whether it shows no more than a heading, or a sentence that leads to what comes next."""
        shown = [cell for cell in self.cells if cell.cell_type == "code" or not cell.source.startswith("#")]
        return not shown or (len(shown) == 1 and _leads(shown[0]))


def for_slides(notebook: NotebookNode) -> NotebookNode:
    """The notebook as reveal.js wants it, changed in place: a stack of slides for each section.

    A picture, a living view, a guess and an exercise have each a slide to themselves. With a guess stands the text that
    asks, and the code that it is about; what comes out waits for a key. On the other slides is what an audience has to
    see, and in the notes what a teacher says about it; how much of it one slide holds, the deck finds out. The set-up
    is left out; a hint becomes a note, a solution the slide below its exercise. ValueError where the first cell starts
    no slide.
    """
    if slide_type(notebook.cells[0]) != "slide":
        raise ValueError("the first cell must have the slide type 'slide'")
    stacks: list[list[Slide]] = []
    asking, defined = _asking(notebook.cells), Definitions()
    for place, cell in enumerate(notebook.cells):
        if slide_type(cell) == "slide":
            stacks.append([Slide()])
        source = cell.source
        if slide_type(cell) == "skip" or _sets_up(cell):
            continue
        if is_guess(cell):
            _place_guess(cell, stacks[-1], defined)
        else:
            _place(cell, stacks[-1], place in asking)
        if cell.cell_type == "code" and not is_exercise(cell):
            defined.add(source)
    notebook.cells = [cell for stack in stacks for cell in _tagged(_shown(stack))]
    return notebook


def _asking(cells: list[NotebookNode]) -> set[int]:
    """Where the texts are that ask for a guess: of each, the last one before it."""
    found: set[int] = set()
    last = None
    for place, cell in enumerate(cells):
        if cell.cell_type == "markdown" and slide_type(cell) not in ("notes", "skip"):
            last = place
        elif is_guess(cell) and last is not None:
            found.add(last)
    return found


def _shown(stack: list[Slide]) -> list[Slide]:
    """The slides that show something; what is said on others is said on the one before.

    Where there would be a heading alone, what is said is shown.
    """
    shown: list[Slide] = []
    for slide in stack:
        if len(slide.cells) == 1 and slide.cells[0].source.startswith("## "):
            slide.cells += [note for note in slide.notes if not note.source.startswith("<details")]
            slide.notes = [note for note in slide.notes if note.source.startswith("<details")]
        if slide.cells:
            shown.append(slide)
        else:
            shown[-1].notes += slide.notes
    return shown


def _sets_up(cell: NotebookNode) -> bool:
    """Whether a cell is the one with the imports."""
    return cell.cell_type == "code" and bool(re.search(r"^(import|from) [\w., ]+$", cell.source, re.MULTILINE))


def _place(cell: NotebookNode, stack: list[Slide], asks: bool) -> None:
    """Put a cell on the slides of its section."""
    if slide_type(cell) == "notes" or cell.source.startswith(_HINT):
        cell.source = cell.source.replace("<details>", "<details open>", 1)
        stack[-1].notes.append(cell)
    elif cell.source.startswith(_SOLUTION):
        _place_solution(cell, stack)
    elif cell.cell_type == "markdown":
        _place_text(cell, stack, asks)
    elif is_exercise(cell):
        if stack[-1].kind == "picture":
            stack.append(Slide("exercise"))
        cell.source = re.sub(r"\n{3,}", "\n\n", cell.source)
        cell.outputs = []
        stack[-1].put(cell)
    else:
        _place_code(cell, stack)


def _text_slide(stack: list[Slide]) -> Slide:
    """The slide for what needs none to itself."""
    if stack[-1].kind in ("picture", "guess", "solution"):
        stack.append(Slide())
    return stack[-1]


def _place_text(cell: NotebookNode, stack: list[Slide], asks: bool) -> None:
    if cell.source.startswith("### Exercise") and (stack[-1].kind != "exercise" or stack[-1].cells):
        stack.append(Slide("exercise"))
    elif slide_type(cell) == "subslide" and stack[-1].kind != "exercise" and not stack[-1].has_only_words:
        stack.append(Slide())
    if cell.source.startswith("## Exercises"):  # it is said with the first of them
        stack[-1].kind = "exercise"
        stack[-1].notes += [new_markdown_cell(block) for block in _BLOCK.findall(cell.source)[1:]]
        return
    if asks:
        slide = _text_slide(stack)
        slide.asks_from = len(slide.cells)
    for source in _BLOCK.findall(cell.source):
        if fold := _FOLD.fullmatch(source):  # an answer, for those who have thought about it
            stack.append(Slide("answer", [new_markdown_cell(fold[1])]))
            continue
        block = new_markdown_cell(source.strip())
        is_takeaway_of_guess = stack[-1].kind == "guess" and source.startswith(">")
        goes_along = _is_said(block) or is_takeaway_of_guess
        (stack[-1] if goes_along else _text_slide(stack)).put(block)


def _is_said(cell: NotebookNode) -> bool:
    """Whether it is a paragraph that a teacher says: no question, no definition, and it leads to nothing below."""
    if cell.cell_type != "markdown" or re.match(r"[#>|<`]|[-*] |\d+\. ", cell.source):
        return False
    is_short = len(cell.source.split()) <= _SHOWN_WORDS
    return not (is_short or _leads(cell) or re.search(r"\?|\*\*|\$\$", cell.source))


def _leads(cell: NotebookNode) -> bool:
    """Whether a paragraph announces what comes next."""
    return cell.cell_type == "markdown" and cell.source.endswith(":")


def _place_solution(cell: NotebookNode, stack: list[Slide]) -> None:
    """A solution on a slide of its own, under the number of its exercise."""
    headings = [shown.source for slide in stack for shown in slide.cells if shown.source.startswith("### Exercise")]
    number = re.match(r"### (Exercise \d+)", headings[-1]) if headings else None
    heading = new_markdown_cell(f"### {number[1] if number else 'The exercise'}: a solution")
    fold = _FOLD.fullmatch(cell.source)
    solution = fold[1] if fold else cell.source
    stack.append(Slide("solution", [heading, new_markdown_cell(re.sub(r"\n{3,}", "\n\n", solution))]))


def _place_guess(cell: NotebookNode, stack: list[Slide], defined: Definitions) -> None:
    """A question with its slide to itself: what is asked about, and after a key what answers it.

    What the code takes from above is shown once more, unless the deck finds it on the same slide.
    """
    slide = _question(stack)
    sentence = answer(cell)
    shown = [new_output("display_data", {"text/html": f"<p>{sentence}</p>"})] if sentence else []
    form = re.search(r"^guess = \.\.\.  # (.+)$", cell.source, re.MULTILINE)
    cell.source, waiting = asked_code(cell.source)
    cell.outputs = [task(f"Write your guess down: {form[1]}." if form else "Write your guess down.")]
    told = "\n".join(part.source for part in slide.cells if part.cell_type == "markdown")
    names = free_names(cell.source) | set(re.findall(r"(?<=`)\w+(?=`)|\b[a-z]\d\b", told))  # as in `x`, and as in w1
    for statement in defined.recalled(names):
        slide.cells.append(new_code_cell(statement, metadata={"tags": ["recalled"]}))
    slide.hidden = len(slide.cells) + 1
    slide.cells += [cell, new_code_cell(waiting, outputs=shown)]


def _question(stack: list[Slide]) -> Slide:
    """A new slide with the text that asks, and all that has come since; where nothing came before, that slide."""
    above = stack[-1]
    if above.kind != "text" or above.asks_from is None:
        stack.append(Slide("guess"))
    elif above.asks_from == 0:
        above.kind, above.asks_from = "guess", None
    else:
        stack.append(Slide("guess", above.cells[above.asks_from :]))
        del above.cells[above.asks_from :]
    return stack[-1]


def _place_code(cell: NotebookNode, stack: list[Slide]) -> None:
    """Code and what it shows; a picture gets a slide to itself, and what leads to it is said."""
    pictures = [output for output in cell.outputs if _is_picture(output)]
    cell.source = "" if folded(cell) else lesson_code(cell.source)
    cell.outputs = [output for output in cell.outputs if not _is_picture(output)]
    if cell.source or cell.outputs:
        _text_slide(stack).put(cell)
    for output in pictures:
        slide = Slide("picture", [new_code_cell(outputs=[output])])
        answers = [stack.pop()] if stack[-1].kind == "answer" else []
        above = stack[-1]
        if above.kind == "text" and above.has_only_words:
            slide.cells, slide.notes = above.cells + slide.cells, above.notes
            stack.remove(above)
        stack += [slide, *answers]


def _is_picture(output: NotebookNode) -> bool:
    """Whether an output is a figure or a living view."""
    return any(kind.endswith((".view+json", "image/png")) for kind in output.get("data", {}))


def _tagged(stack: list[Slide]) -> list[NotebookNode]:
    """The cells of a section, each with the tags that go before and after it; what the teacher asks comes first."""
    cells: list[NotebookNode] = []
    for slide in stack:
        slide.notes.sort(key=lambda note: slide_type(note) != "notes")
        for cell in (*slide.cells, *slide.notes):
            cell.metadata.update(before="", after="")
        for note in slide.notes:
            role = "notes teacher" if slide_type(note) == "notes" else "notes"
            note.metadata.update(before=f'<aside class="{role}">', after="</aside>")
        if slide.hidden is not None:
            slide.cells[slide.hidden].metadata.before = '<div class="fragment">'
            slide.cells[-1].metadata.after = "</div>"
        shown = slide.cells + slide.notes
        shown[0].metadata.before = f'<section class="{slide.kind}">{shown[0].metadata.before}'
        shown[-1].metadata.after += "</section>"
        cells += shown
    cells[0].metadata.before = "<section>" + cells[0].metadata.before
    cells[-1].metadata.after += "</section>"
    return cells
