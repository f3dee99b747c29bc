"""The course as slides or as pages, for where no JupyterLab is: `python -m helpers.export slides --out DIR [NN ...]`.

Nothing is run: what is shown are the stored outputs. Each file that is written stands alone: it opens from a disk,
without a network, in any current browser. Needs the extra `teach`. Each line names a file of this folder:

- writing: missing, write
- documents: page, slides
- cells: what becomes of a cell
- talk: SLIDE_TYPES, slide_type, stage
"""

from helpers.export.documents import page, slides
from helpers.export.talk import SLIDE_TYPES, slide_type, stage
from helpers.export.writing import missing, write
