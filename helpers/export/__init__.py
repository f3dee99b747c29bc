"""The course as pages to read and as slides to show: `python -m helpers.export pages|slides --out DIR [NN …]`.

Nothing is run: what is shown are the stored outputs. Each file that is written stands alone: it opens from a disk,
without a network, in any current browser. Needs the extra `teach`.

For a class, without that extra: `handout` writes the notebooks without solutions and notes, and `marks` makes a table
of what a folder of students' notebooks has right.
"""
