"""The course as pages to read and as slides to show: `python -m helpers.export pages|slides --out DIR [NN …]`.

Nothing is run: what is shown are the stored outputs. Each file that is written stands alone: it opens from a disk,
without a network, in any current browser. Needs the extra `teach`.

- cells: what a cell shows on a page and on a slide
- documents: a page, a deck, the start page; nbconvert with the templates of this folder
"""
