"""The command line: `python -m helpers.export slides|pages --out DIR [NN ...]`."""

import argparse
from pathlib import Path

from helpers import export
from helpers.export.writing import NOTEBOOKS, WHAT


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m helpers.export", description=export.__doc__.partition("\n\n")[0])
    parser.add_argument("kind", choices=WHAT, help="decks of slides with notes for the speaker, or pages to read")
    parser.add_argument("numbers", nargs="*", metavar="NN", help="notebook numbers, such as 01; default: all")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write to")
    arguments = parser.parse_intermixed_args()
    known = {path.name[:2]: path for path in NOTEBOOKS}
    for number in arguments.numbers:
        if number not in known:
            parser.error(f"there is no notebook {number}; there are {', '.join(known) or 'none'}")
    if names := " and ".join(export.missing(arguments.kind)):
        parser.error(f"{names} not installed; run: python -m pip install -r requirements.txt -e '.[teach]'")
    chosen = [known[number] for number in sorted(set(arguments.numbers)) or known]
    try:
        written = export.write(arguments.kind, chosen, arguments.out)
    except ValueError as error:
        parser.error(str(error))
    print(f"{len(written) - 1} {arguments.kind}; open {written[-1]}")


if __name__ == "__main__":
    main()
