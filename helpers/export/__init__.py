"""The course as pages to read and as slides to show: `python -m helpers.export pages|slides --out DIR [NN …]`.

Nothing is run: what is shown are the stored outputs. Each file that is written stands alone: it opens from a disk,
without a network, in any current browser. Needs the extra `teach`.

For a class, without that extra: `handout` writes a folder without solutions and notes, `marks` makes tables of what a
folder of students' notebooks has right, and `plan` says what of a lesson fits into 90 minutes.
"""
