"""The small module behind the notebooks. Each line names a file or a folder; nothing is loaded until asked for.

- version: at_least(version), what a notebook asks for first
- merge: an update keeps your answers: `python -m helpers.merge`
- units: numbers with their units, for people (2.42 GB, 2.25 GiB, 144 days), and small tables
- progress: which guesses are made and which exercises are right: `python -m helpers.progress`
- specs: what vendors promise; find(device name), and the MFU against a known peak
- roofline: a machine as peak and bandwidth: ridge, attainable FLOP/s, seconds and bound of a cost
- formats: floating-point formats as values; decode, encode, neighbours
- storage: where elements are; layout, offset_of, same_storage, touched_bytes
- flops: the rules for the FLOPs of one op
- timing: measure(function), a time with its spread, and whether it was disturbed
- model: the block and the GPT of the course in named dimensions, and published configurations; read_config(card)
- exercises: the cases, the oracle and the usual mistakes of every exercise
- counting: count(fn, *args) -> Cost: FLOPs and bytes, op by op; what autograd keeps; a trace of what is alive
- machine: this device and the best that it can do: peak(dtype), bandwidth(nbytes), time_ops(ops)
- budget: what a model costs: a block box by box; bytes and FLOPs of training and decoding, planned and traced
- draw: every figure of the course; each displays itself, as a picture and in words
- explore: the interactive views
- check: check(exercise, answer) and compare(guess, value, unit)
- export: the notebooks as slides and pages, hand-outs for a class, its marks: `python -m helpers.export`

Notebooks write `from helpers import formats` and call `formats.decode(...)`, so that a call names the file to open.
"""

__version__ = "0.1.0"
