"""What the cells of a notebook show where nobody runs them: on a page and on a slide."""

import ast
import re
from dataclasses import dataclass, field

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

_HELP = ("<details><summary>Hint<", "<details><summary>Solution<")  # how a cell begins that helps with an exercise
_FOLD = re.compile(r"<details><summary>.*?</summary>\n\n(.*)\n\n</details>", re.DOTALL)
# What a markdown cell is made of: folds, fences of code, paragraphs, lists, tables, formulas.
_BLOCK = re.compile(r"<details>.*?</details>|```.*?```|(?:[^\n]+(?:\n+(?= )|\n|$))+", re.DOTALL)
_SHOWN_WORDS = 12  # of a paragraph: a shorter one is shown even if a teacher could as well say it
_QUESTION_WORDS = 90  # of what comes before a guess: more stays on the slide above, and the question alone goes along


def slide_type(cell: NotebookNode) -> str:
    """The slide type of a cell, or "" where it goes on with the slide above it."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def folded(cell: NotebookNode) -> bool:
    """Whether JupyterLab folds the code of a cell, since it is no part of the lesson: a picture, or a table."""
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def is_guess(cell: NotebookNode) -> bool:
    """Whether a cell asks for a prediction."""
    return cell.cell_type == "code" and bool(re.search(r"^guess = \.\.\.", cell.source, re.MULTILINE))


def is_exercise(cell: NotebookNode) -> bool:
    """Whether a cell is the stub of an exercise."""
    return "exercise" in cell.metadata.get("tags", [])


def answer(cell: NotebookNode) -> str:
    """What comes out where a cell asks for a guess, as `compare` left it with its output; "" where it did not."""
    return next((output.metadata.answer for output in cell.outputs if "answer" in output.get("metadata", {})), "")


def lesson_code(source: str) -> str:
    """The code less its asserts, its guess, and its calls of `draw` and `explore`, whose picture says it all."""
    statements = ast.parse(source).body
    if all(isinstance(statement, ast.Assert) for statement in statements):  # then they are what the cell says
        return source
    hidden: set[int] = set()  # numbers of lines
    for statement in statements:
        draws = ast.unparse(statement).startswith(("draw.", "explore.", "guess = ...", "compare("))
        if draws or isinstance(statement, ast.Assert):
            hidden.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    lines = source.splitlines()
    return "\n".join(line for number, line in enumerate(lines, start=1) if number not in hidden).strip("\n")


def _task(words: str) -> NotebookNode:
    return new_output("display_data", {"text/html": f'<p class="task">{words}</p>'})


# ---- A page


def for_page(notebook: NotebookNode, notes: bool = False) -> NotebookNode:
    """The notebook as a page shows it, changed in place: with the teacher's notes only if asked."""
    notebook.cells = [_on_paper(cell) for cell in notebook.cells if notes or slide_type(cell) != "notes"]
    return notebook


def _on_paper(cell: NotebookNode) -> NotebookNode:
    """The cell; a guess and an exercise ask for a pencil, and not for a kernel."""
    if is_exercise(cell):
        cell.outputs = [_task("Try it before you look at the hint or the solution.")]
    elif is_guess(cell):
        cell.metadata.after = _folded_answer(answer(cell))
        cell.outputs = [_task("Write your guess down before you go on.")]
    return cell


def _folded_answer(sentence: str) -> str:
    return f"<details><summary>What comes out</summary><p>{sentence}</p></details>" if sentence else ""


# ---- Slides


@dataclass
class Slide:
    """What one slide shows, and what its speaker says.

    kind: "text" may go together with the next one, or be split; "picture", "guess" and "exercise" have a slide to
        themselves.
    hidden: from which cell on a key has to be pressed to show them.
    """

    kind: str = "text"
    cells: list[NotebookNode] = field(default_factory=list)
    notes: list[NotebookNode] = field(default_factory=list)
    hidden: int | None = None

    def put(self, cell: NotebookNode) -> None:
        """Show a cell; or say it, where it is a paragraph that explains what is seen."""
        (self.notes if _is_said(cell) and self.kind != "exercise" else self.cells).append(cell)

    @property
    def has_only_words(self) -> bool:
        """Whether it shows no more than a heading, or a sentence that leads to what comes next."""
        shown = [cell for cell in self.cells if cell.cell_type == "code" or not cell.source.startswith("#")]
        return not shown or (len(shown) == 1 and _leads(shown[0]))


def for_slides(notebook: NotebookNode) -> NotebookNode:
    """The notebook as reveal.js wants it, changed in place: a stack of slides for each section.

    A picture, a living view, a guess and an exercise have each a slide to themselves; what comes out of a guess waits
    for a key. On the other slides is what an audience has to see, and in the notes what a teacher says about it; how
    much of it one slide holds, the deck finds out. The set-up is left out; hints and solutions become notes.
    ValueError where the first cell starts no slide.
    """
    if slide_type(notebook.cells[0]) != "slide":
        raise ValueError("the first cell must have the slide type 'slide'")
    stacks: list[list[Slide]] = []
    for cell in notebook.cells:
        if slide_type(cell) == "slide":
            stacks.append([Slide()])
        if slide_type(cell) != "skip" and not _sets_up(cell):
            _place(cell, stacks[-1])
    notebook.cells = [cell for stack in stacks for cell in _tagged(_shown(stack))]
    return notebook


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


def _place(cell: NotebookNode, stack: list[Slide]) -> None:
    """Put a cell on the slides of its section."""
    if slide_type(cell) == "notes" or cell.source.startswith(_HELP):
        cell.source = cell.source.replace("<details>", "<details open>", 1)
        stack[-1].notes.append(cell)
    elif cell.cell_type == "markdown":
        _place_text(cell, stack)
    elif is_guess(cell):
        _place_guess(cell, stack)
    elif is_exercise(cell):
        if stack[-1].kind == "picture":
            stack.append(Slide("exercise"))
        stack[-1].put(_on_paper(cell))
    else:
        _place_code(cell, stack)


def _text_slide(stack: list[Slide]) -> Slide:
    """The slide for what needs none to itself."""
    if stack[-1].kind in ("picture", "guess"):
        stack.append(Slide())
    return stack[-1]


def _place_text(cell: NotebookNode, stack: list[Slide]) -> None:
    if cell.source.startswith("## Exercises"):
        stack[-1].kind = "exercise"
    elif cell.source.startswith("### Exercise"):
        stack.append(Slide("exercise"))
    elif slide_type(cell) == "subslide" and stack[-1].kind != "exercise" and not stack[-1].has_only_words:
        stack.append(Slide())
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


def _place_guess(cell: NotebookNode, stack: list[Slide]) -> None:
    """A question with its slide to itself; after a key the code that answers it, and the answer."""
    slide = _question(stack)
    sentence = answer(cell)
    shown = [new_output("display_data", {"text/html": f"<p>{sentence}</p>"})] if sentence else []
    revealed = new_code_cell(lesson_code(cell.source), outputs=shown)
    cell.source, cell.outputs = "", [_task("Write your guess down.")]
    slide.hidden = len(slide.cells) + 1
    slide.cells += [cell, revealed]


def _question(stack: list[Slide]) -> Slide:
    """A new slide with the question from the end of the last one: what was said since its last code, if not too long.

    Where code stands between question and guess, or all of the slide is the question, that slide itself.
    """
    above = stack[-1]
    if above.kind != "text":
        stack.append(Slide("guess"))
        return stack[-1]
    begin = len(above.cells)
    while begin and above.cells[begin - 1].cell_type == "markdown":
        begin -= 1
    asked = above.cells[begin:]
    if sum(len(cell.source.split()) for cell in asked) > _QUESTION_WORDS:
        asked = asked[-1:]
    if len(asked) in (0, len(above.cells)):
        above.kind = "guess"
        return above
    del above.cells[-len(asked) :]
    stack.append(Slide("guess", asked))
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
            slide.notes = above.notes + [shown for shown in above.cells if _leads(shown)]
            slide.cells = [shown for shown in above.cells if not _leads(shown)] + slide.cells
            stack.remove(above)
        stack += [slide, *answers]


def _is_picture(output: NotebookNode) -> bool:
    """Whether an output is a figure or a living view."""
    return any(kind.endswith((".view+json", "image/png")) for kind in output.get("data", {}))


def _tagged(stack: list[Slide]) -> list[NotebookNode]:
    """The cells of a section, each with the tags that go before and after it."""
    cells: list[NotebookNode] = []
    for slide in stack:
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
