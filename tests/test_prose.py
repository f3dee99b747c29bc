"""Every number of the prose comes from a cell beside it, from the spec table, or from a source that is named."""

import pytest

from tests.tools import prose
from tests.tools.course import NOTEBOOKS, plain, read


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_number_has_an_origin(path):
    missing = [f"{number.text}{number.after!r} in: {text}" for text, number in prose.without_origin(path)]
    assert not missing, "show it in a cell of its section, or cite it in tests/tools/cited.toml:\n" + "\n".join(missing)


def test_what_is_cited_is_said_and_has_a_source():
    texts = {p.stem: "\n".join(plain(c.source) for c in read(p).cells if c.cell_type == "markdown") for p in NOTEBOOKS}
    for stem, quoted in prose.CITED.items():
        for text, source in quoted.items():
            assert text in texts[stem], f"{stem} no longer says {text}: take it out of tests/tools/cited.toml"
            assert len(source) > 10, f"name the source of {text}"
