"""What the slide types of cells make of a notebook."""

from nbformat import NotebookNode

SLIDE_TYPES = ("slide", "subslide", "fragment", "notes", "skip")


def slide_type(cell: NotebookNode) -> str:
    """The slide type of a cell: one of SLIDE_TYPES, or "" where the cell goes on with the slide above it."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def stage(notebook: NotebookNode) -> NotebookNode:
    """The notebook as reveal.js wants it, changed in place: sections of slides, fragments in them, notes aside.

    Every cell gets the tags that go before and after it; cells to skip are gone. ValueError where the first cell starts
    no slide.
    """
    notebook.cells = [cell for cell in notebook.cells if slide_type(cell) != "skip"]
    if not notebook.cells or slide_type(notebook.cells[0]) != "slide":
        raise ValueError("the first cell that is shown must have the slide type 'slide'")
    fragment, end = "", ""  # what would close the fragment and the sections that are open
    for cell in notebook.cells:
        before, after = "", ""
        match slide_type(cell):
            case "slide":
                before, fragment, end = fragment + end + "<section><section>", "", "</section></section>"
            case "subslide":
                before, fragment = fragment + "</section><section>", ""
            case "fragment":
                before, fragment = fragment + '<div class="fragment">', "</div>"
            case "notes":
                before, after = '<aside class="notes">', "</aside>"
                cell.source = cell.source.replace("<details>", "<details open>", 1)
        cell.metadata.update(before=before, after=after)
    notebook.cells[-1].metadata.after += fragment + end
    return notebook
