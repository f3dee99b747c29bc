"""The command line: `python -m helpers.export pages|slides|handout|marks|plan …`."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from helpers import export
from helpers.export import handout, marks, plan

# Each with a command line of its own. They need nothing but requirements.txt.
_COMMANDS = {"handout": handout.main, "marks": marks.main, "plan": plan.main}


def main() -> None:
    """The command line."""
    command, *rest = sys.argv[1:] or [""]
    if command in _COMMANDS:
        _COMMANDS[command](rest)
        return
    parser = argparse.ArgumentParser(
        prog="python -m helpers.export",
        description=export.__doc__.partition("\n\n")[0],
        epilog="For a class, each with --help: handout (without solutions), marks (who is right), plan (90 minutes).",
    )
    parser.add_argument("kind", choices=("pages", "slides"), help="pages to read, or decks with notes for the speaker")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--notes", action="store_true", help="pages with the teacher's notes, folded")
    arguments = parser.parse_intermixed_args()
    if not (find_spec("latex2mathml") and find_spec("pyreveal")):
        parser.error("set up for teaching first: python -m pip install -r requirements.txt -e '.[teach]'")
    from helpers.export.documents import NOTEBOOKS, write

    known = {path.name[:2]: path for path in NOTEBOOKS}
    if absent := set(arguments.numbers) - set(known):
        parser.error(f"there is no notebook {min(absent)}; there are {', '.join(known)}")
    chosen = [known[number] for number in sorted(set(arguments.numbers)) or known]
    *written, start = write(arguments.kind, chosen, arguments.out, arguments.notes)
    thing = "page" if arguments.kind == "pages" else "deck"
    several = "" if len(written) == 1 else "s"
    print(f"{len(written)} {thing}{several}; open {start}")


if __name__ == "__main__":
    main()
