"""`machine.bandwidth`, the sweep and recorded runs: what they run, report and refuse; and that rates are plausible."""

import dataclasses
import datetime
import inspect
import itertools
import json
import platform
import re

import pytest
import torch

from helpers import machine, records, units, workloads
from helpers.records import Record
from helpers.timing import Timing


def test_bandwidth_reports_what_it_ran():
    found = machine.bandwidth(2**22, "cpu", seconds=0.06)
    assert found.nbytes == 2**22 and found.device == machine.name("cpu")
    assert [kernel for kernel, _, _ in found.tried] == ["read", "copy", "add"]
    rates = {kernel: moved / run.low for kernel, moved, run in found.tried}
    assert found.byte_per_s == pytest.approx(max(rates.values()))
    assert found.kernel == max(rates, key=rates.get)
    assert repr(found).startswith(units.si(found.byte_per_s, "B/s") + " in 4 MiB on ")


def test_the_rate_is_that_of_a_plain_sum():
    """Against a stopwatch of our own, loosely: this is no timed test, but a factor of 8 would be bits, not bytes."""
    x = torch.ones(2**24)
    plain = max(x.nbytes / run.low for run in [machine.timing.measure(x.sum, seconds=0.2)])
    assert machine.bandwidth(x.nbytes, "cpu", seconds=0.3).byte_per_s > plain / 6


@pytest.mark.parametrize(("nbytes", "moved"), [(2**16, 2**24), (2**23, 2**24), (2**26, 2**26)])
def test_small_sets_are_passed_through_many_times_in_a_call(nbytes, moved):
    memory = torch.ones(nbytes // 4)
    kernels = machine._kernels(memory)
    assert kernels["read"][0] == pytest.approx(moved, rel=0.01)
    assert len(kernels["read"][1]) == 1
    # A sum over repeated passes has a result per thread and pass, each of them the sum of the thread's lane.
    sums = kernels["read"][1][0]()
    assert sums.sum().item() * 4 == pytest.approx(moved, rel=0.01)


def test_a_large_set_is_passed_through_in_slices_that_cover_it():
    memory = torch.zeros(2**28 // 4)
    moved, calls = machine._kernels(memory)["read"]
    assert (moved, len(calls)) == (2**24, 16)
    memory.view(16, -1).copy_(torch.arange(16.0)[:, None])
    assert [call().max().item() * torch.get_num_threads() / (2**24 // 4) for call in calls] == list(range(16))


def test_the_kernels_write_what_they_say():
    memory = torch.ones(2**22 // 4)
    for _, calls in machine._kernels(memory).values():
        for call in calls:
            call()
    third = memory.numel() // 3
    assert torch.equal(memory[2 * third : 3 * third], torch.full((third,), 2.0))


def test_a_sample_is_one_call_and_time_is_kept(monkeypatch):
    class Clock:
        now = 0.0

    monkeypatch.setattr(machine.benchmark, "timer", lambda: Clock.now)

    def takes(seconds):
        def call():
            Clock.now += seconds

        return call

    found = machine._in_turns([takes(1.0), takes(3.0)], seconds=8)
    assert (found.low, found.high, found.runs) == (1.0, 3.0, 5)  # warm-up 3, then 1 + 3 + 1 + 3 + 1 = 9 > 8
    assert machine._in_turns([takes(100.0)], seconds=1).runs == 3


@pytest.mark.parametrize("nbytes", [0, -1, 100, 4095, 2.0**20, "1 GiB"])
def test_no_working_set(nbytes):
    with pytest.raises(ValueError, match="a working set has 4096 bytes or more, got"):
        machine.bandwidth(nbytes, "cpu")


def test_the_smallest_working_set():
    assert machine._touched(4096, torch.device("cpu")).nbytes == 4096


def test_memory_is_bounded_by_what_is_free(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**26)
    with pytest.raises(ValueError, match="64 MiB is more than half of the 64 MiB that are free on cpu"):
        machine.bandwidth(2**26, "cpu")
    assert machine.bandwidth(2**25, "cpu", seconds=0.01).nbytes == 2**25
    assert machine.bandwidth(where="cpu", seconds=0.01).nbytes == 2**24
    assert max(one.nbytes for one in machine.sweep("cpu", seconds=0.01, rounds=1)) == 2**24
    monkeypatch.setattr(machine, "free_memory", lambda where: 0)
    with pytest.raises(ValueError, match="4096 bytes or more, got 1"):
        machine.bandwidth(where="cpu")


def test_a_sweep_keeps_the_best_of_its_rounds(monkeypatch):
    sizes, rates = [2**14, 2**16], iter([1.0, 5.0, 4.0, 2.0, 3.0, 3.0])

    def measured(memory, nbytes, seconds):
        assert memory.nbytes == 2**16 and seconds == pytest.approx(6 / 3 / 2)
        return machine.Bandwidth(next(rates), nbytes, "read", "x", Timing(1, 1, 1, 3), ())

    monkeypatch.setattr(machine, "_best_bandwidth", measured)
    found = machine.sweep("cpu", seconds=6, sizes=sizes)
    assert [(one.nbytes, one.byte_per_s) for one in found] == [(2**14, 4.0), (2**16, 5.0)]


def test_each_op_is_run_on_sets_of_inputs_that_take_turns(monkeypatch):
    class Clock:
        now = 0.0

    made = []

    def work(name, seconds, memory):
        def make(where):
            made.append(name)

            def call():
                Clock.now += seconds

            return call

        return workloads.Workload(name, (), "float32", 1, 1, memory, make)

    monkeypatch.setattr(machine.benchmark, "timer", lambda: Clock.now)
    monkeypatch.setattr(machine, "caches", lambda where: {"L1": 10, "L2": 1000})
    large, small = machine.runs([work("a", 1.0, 2000), work("b", 2.0, 1)], "cpu", seconds=20)
    assert made == ["a"] * 2 + ["b"] * 4
    assert (large.median, large.runs, small.median, small.runs) == (1.0, 11, 2.0, 6)
    monkeypatch.setattr(machine, "caches", lambda where: {})  # not told: 64 MiB are a guess
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**30)
    machine.runs([work("c", 1.0, 2**28), work("d", 1.0, 2**28 - 1), work("e", 1.0, 2**26)], "cpu", seconds=0)
    assert "".join(made[6:]) == "cddeeee"
    monkeypatch.setattr(machine, "free_memory", lambda where: 2000)
    with pytest.raises(ValueError, match=r"c takes 1\.46 KiB, too much for 1\.95 KiB of free memory"):
        machine.runs([work("c", 1.0, 1500)], "cpu")


def test_a_cpu_has_no_link():
    assert machine.link("cpu") is None


@pytest.mark.parametrize(
    ("there", "here", "nbytes"), [(2**20, 2**22, 2**18), (2**22, 2**20, 2**18), (2**40, 2**40, 2**28)]
)
def test_a_link_copies_from_memory_that_stays_in_its_place(monkeypatch, there, here, nbytes):
    """To meta, which takes everything and holds nothing."""
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda host: pinned.append(host.nbytes) or host)
    monkeypatch.setattr(machine, "free_memory", lambda where: here if str(where) == "cpu" else there)
    monkeypatch.setattr(machine.timing, "measure", lambda call, seconds: call() is None or Timing(0.5, 0.25, 1.0, 9))
    found = machine.link("meta", seconds=0.01)
    assert pinned == [nbytes] and found.nbytes == nbytes
    assert (found.byte_per_s, found.kernel, found.device) == (4 * nbytes, "host to device", machine.name("meta"))
    assert found.tried == (("host to device", nbytes, found.timing),)


def test_how_long_is_measured_where_nobody_says():
    asked = {
        function: inspect.signature(getattr(machine, function)).parameters["seconds"].default
        for function in ("peak", "bandwidth", "sweep", "runs", "link", "record")
    }
    assert asked == {"peak": 3.0, "bandwidth": 0.6, "sweep": 3.0, "runs": 3.0, "link": 0.3, "record": 40.0}


def test_the_device_of_the_course_is_measured_where_nobody_says(monkeypatch):
    """Told to be meta: whatever is asked then comes from there."""
    monkeypatch.setattr(machine, "device", lambda: "meta")
    monkeypatch.setattr(machine, "free_memory", lambda where: 2**30)
    seen = []
    monkeypatch.setattr(machine, "_best_bandwidth", lambda memory, nbytes, seconds: seen.append(memory.device.type))
    machine.bandwidth(2**16)
    with pytest.raises(AttributeError):  # nothing was measured that could be compared
        machine.sweep(sizes=[2**16, 2**17])
    work = workloads.Workload("a", (), "float32", 1, 1, 1, lambda where: seen.append(where.type) or (lambda: None))
    machine.runs([work], seconds=0.001)
    assert set(seen) == {"meta"}
    with pytest.raises(ValueError, match="no matmul peak for int8 on meta"):
        machine.peak("int8")


def test_caches_grow_by_level():
    found = machine.caches("cpu")
    assert list(found) == sorted(found)
    assert all(size >= 1024 for size in found.values())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_a_gpu():
    assert machine.link("cuda").byte_per_s > 1e8
    assert machine.bandwidth(where="cuda", seconds=0.3).byte_per_s > machine.link("cuda").byte_per_s
    assert all(size > 2**20 for size in machine.caches("cuda").values())


def test_a_gpu_gets_more_work_in_a_call():
    """On meta, which is no CPU either, and holds no memory."""
    small = machine._kernels(torch.empty(2**24, device="meta"))
    assert small["read"][0] == 2**32 and [len(calls) for _, calls in small.values()] == [1]
    large = machine._kernels(torch.empty(2**34, device="meta"))
    assert {kernel: (moved, len(calls)) for kernel, (moved, calls) in large.items()} == {
        "read": (2**32, 16),
        "copy": (2**32, 16),
        "add": (2**32 // 12 * 12, 16),
    }


@pytest.mark.parametrize(
    ("where", "cache", "free", "size"),
    [
        ("cpu", 2**20, 2**40, 2**30),
        ("cpu", 2**29, 2**40, 2**31),
        ("cpu", 2**20, 2**31 + 5, 2**29),
        ("cuda", 2**20, 2**40, 2**32),
    ],
)
def test_main_memory_is_more_than_any_cache_and_no_more_than_a_quarter(monkeypatch, where, cache, free, size):
    monkeypatch.setattr(machine, "caches", lambda where: {"L1": 1, "L2": cache})
    monkeypatch.setattr(machine, "free_memory", lambda where: free)
    assert machine._main_memory(torch.device(where)) == size


def test_a_sweep_starts_with_what_the_first_cache_holds(monkeypatch):
    monkeypatch.setattr(machine, "_main_memory", lambda where: 2**16)
    assert [one.nbytes for one in machine.sweep("cpu", seconds=0.01, rounds=1)] == [2**14, 2**15, 2**16]


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_a_record_keeps_the_best_of_six_rounds(monkeypatch, where):
    """Every measurement replaced: what is asked for, and what of it is written down."""
    asked = []
    rates = {dtype: itertools.cycle([3.0, 7.0, 5.0]) for dtype in machine._DTYPES[where]}
    bytes_per_s, times = itertools.cycle([1.0, 4.0]), itertools.cycle([5, 2])
    fits, large = (workloads.Workload(n, ((2, 3),), "float32", 8, 9, m, None) for n, m in (("a", 49), ("b", 50)))

    def peak(dtype, device, *, seconds):
        asked.append((dtype, device.type, seconds))
        if dtype == "float16":
            raise ValueError("cannot")
        rate = next(rates[dtype])
        return machine.Peak(rate, dtype, "x", int(rate), Timing(2.0, 1.0, 3.0, 9, 0.5), ())

    def sweep(device, *, seconds, rounds):
        asked.append(("sweep", device.type, seconds, rounds))
        rate = next(bytes_per_s)
        run = Timing(1, 1, 1, 3, rate / 8)
        return [machine.Bandwidth(rate, nbytes, "read", "x", run, ()) for nbytes in (512, 256)]

    def runs(work, device, *, seconds):
        asked.append(("runs", [one.name for one in work], device.type, seconds))
        low = next(times)
        return [Timing(low + 1.0, low, 9.0, 9, 0.25) for _ in work]

    monkeypatch.setattr(machine, "peak", peak)
    monkeypatch.setattr(machine, "sweep", sweep)
    monkeypatch.setattr(machine, "runs", runs)
    monkeypatch.setattr(
        machine, "link", lambda device: sweep(device, seconds=0, rounds=0)[0] if where == "cuda" else None
    )
    monkeypatch.setattr(machine, "name", lambda device: f"my {device.type}")
    monkeypatch.setattr(machine, "caches", lambda device: {"L2": 5})
    monkeypatch.setattr(machine, "free_memory", lambda device: 100)
    monkeypatch.setattr(machine, "workloads", lambda *what: asked.append(what) or (fits, large))
    found = machine.record(where, seconds=48.0)

    dtypes = machine._DTYPES[where]
    per_run = 48 / 2 / 6 / len(dtypes)
    one_round = [(dtype, where, per_run) for dtype in dtypes]
    work = [("float32",)] if where == "cpu" else [("float32", 8192), ("bfloat16", 8192)]
    one_round += [("sweep", where, 2.0, 1), ("runs", ["a"] * len(work), where, 2.0)]
    assert asked[: len(work) + len(one_round)] == work + one_round
    assert len(asked) == len(work) + 6 * len(one_round) + (where == "cuda")
    timed = {"seconds": 2.0, "fastest": 1.0, "spread": 0.5}
    assert [row["dtype"] for row in found.peaks] == [dtype for dtype in dtypes if dtype != "float16"]
    assert all(row == {"dtype": row["dtype"], "flop_per_s": 7.0, "size": 7} | timed for row in found.peaks)
    row = {"byte_per_s": 4.0, "kernel": "read", "spread": 0.5}
    assert found.bandwidths == ({"nbytes": 256} | row, {"nbytes": 512} | row)
    op = {"name": "a", "shapes": ((2, 3),), "dtype": "float32", "flops": 8, "bytes": 9}
    assert found.ops == (op | {"seconds": 3.0, "fastest": 2, "spread": 0.25},)
    assert (found.method, found.device, found.kind, found.caches) == (records.METHOD, f"my {where}", where, {"L2": 5})
    assert found.threads == torch.get_num_threads()
    assert found.link == (None if where == "cpu" else 1.0)
    assert datetime.date.fromisoformat(found.date) == datetime.datetime.now(datetime.UTC).date()
    software = {"system": platform.system(), "python": platform.python_version(), "torch": torch.__version__}
    assert found.software == software | ({"cuda": str(torch.version.cuda)} if where == "cuda" else {})


@pytest.fixture(scope="module")
def tiny():
    """A whole record, of small workloads and little time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "workloads", lambda dtype, *rows: workloads.workloads(dtype, 64, (64,)))
        patch.setattr(machine, "_main_memory", lambda where: 2**22)
        patch.setattr(machine, "SIZES", (64, 128))
        return machine.record("cpu", seconds=1.0, today="2026-01-31")


def test_a_record_survives_the_file(tiny, tmp_path):
    tiny.save(tmp_path / "r.json")
    again = records.load(tmp_path / "r.json")
    assert again == dataclasses.replace(
        tiny,
        ops=tuple({**row, "shapes": [list(shape) for shape in row["shapes"]]} for row in tiny.ops),
    )
    assert again.roofline("float32").peak == again.peak("float32") == tiny.peak("float32") > 0
    assert again.bandwidth == again.bandwidths[-1]["byte_per_s"] > 0
    assert again.date == "2026-01-31" and again.link is None


def test_what_was_not_measured_is_not_there(tiny):
    with pytest.raises(ValueError, match=r"was not measured in float8_e4m3fn, only in float64, float32"):
        tiny.peak("float8_e4m3fn")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"method": 1}', "no json"])
def test_other_files_are_no_records(text, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"r\.json is no record of a machine: "):
        records.load(path)


@pytest.mark.parametrize("method", [0, 2, 99])
def test_another_method_is_not_understood(tiny, tmp_path, method):
    dataclasses.replace(tiny, method=method).save(tmp_path / "r.json")
    with pytest.raises(
        ValueError, match=f"^r.json is no record of a machine: its method is {method}, .* knows 1 to 1$"
    ):
        records.load(tmp_path / "r.json")


def test_a_record_is_written_a_row_per_line(tmp_path):
    rows = ({"nbytes": 1, "byte_per_s": 2.0}, {"nbytes": 2, "byte_per_s": 8.0})
    peaks = ({"dtype": "float32", "flop_per_s": 16.0},)
    record = Record(1, "my µchip", "cpu", 2, "2026-01-31", {"torch": "2"}, {}, peaks, rows, None, ())
    record.save(str(tmp_path / "r.json"))
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == (
        '{\n "method": 1,\n "device": "my \\u00b5chip",\n "kind": "cpu",\n "threads": 2,\n "date": "2026-01-31",\n'
        ' "software": {"torch": "2"},\n "caches": {},\n'
        ' "peaks": [\n  {"dtype": "float32", "flop_per_s": 16.0}\n ],\n'
        ' "bandwidths": [\n  {"nbytes": 1, "byte_per_s": 2.0},\n  {"nbytes": 2, "byte_per_s": 8.0}\n ],\n'
        ' "link": null,\n "ops": []\n}\n'
    )
    again = records.load(str(tmp_path / "r.json"))
    assert again == record
    assert (again.bandwidth, again.peak("float32"), again.roofline("float32").ridge) == (8.0, 16.0, 2.0)


def test_a_record_has_all_its_fields(tmp_path):
    (tmp_path / "r.json").write_text('{"method": 1}')
    fields = "bandwidths, caches, date, device, kind, link, method, ops, peaks, software, threads"
    with pytest.raises(ValueError, match=f"^r.json is no record of a machine: its fields are not {fields}$"):
        records.load(tmp_path / "r.json")


def test_the_command_writes_a_record(tiny, tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(machine, "record", lambda device, seconds: asked.append((device, seconds)) or tiny)
    monkeypatch.setattr("sys.argv", ["machine", "--out", str(tmp_path / "mine.json"), "--device", "cpu"])
    machine.main()
    monkeypatch.setattr("sys.argv", ["machine", "--out", str(tmp_path / "mine.json"), "--seconds", "2.5"])
    machine.main()
    assert asked == [("cpu", 40.0), (None, 2.5)]
    assert records.load(tmp_path / "mine.json").device == tiny.device
    out = capsys.readouterr().out
    peaks = ", ".join(f"{row['dtype']} {units.si(row['flop_per_s'], 'FLOP/s')}" for row in tiny.peaks)
    memory = units.si(tiny.bandwidths[-1]["byte_per_s"], "B/s")
    sentence = f"{tiny.device}: {peaks}; {memory}; {len(tiny.ops)} ops. Wrote mine.json."
    assert out.splitlines() == [sentence, sentence]


def test_the_command_explains_itself(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["machine", "--help"])
    with pytest.raises(SystemExit):
        machine.main()
    assert " ".join(capsys.readouterr().out.split()).startswith(
        "usage: python -m helpers.machine [-h] --out FILE [--seconds SECONDS] [--device {cpu,cuda}]"
        " Measure this machine. options: -h, --help show this help message and exit"
        " --out FILE the JSON file to write --seconds SECONDS about"
        " how long to measure; default: 40 --device {cpu,cuda} default: cuda where there is one"
    )


def test_the_command_refuses_a_folder_that_is_not_there(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["machine", "--out", "nowhere/at/all.json"])
    with pytest.raises(SystemExit):
        machine.main()
    assert "there is no folder nowhere/at" in capsys.readouterr().err


RECORDED = sorted(records.FOLDER.glob("*.json"))


def test_there_is_a_recorded_machine():
    assert RECORDED and len(records.recorded()) == len(RECORDED)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_runs_are_complete_and_name_no_place(path):
    record, text = records.load(path), path.read_text(encoding="utf-8")
    assert isinstance(record, Record) and record.method <= records.METHOD
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", record.date)
    assert not re.search(r"/(?:home|root|tmp|usr|work|Users)\b|\.local\b|hostname", text)
    assert {"torch", "python", "system"} <= set(record.software)
    assert {"float32", "bfloat16"} <= {row["dtype"] for row in record.peaks}
    sizes = [row["nbytes"] for row in record.bandwidths]
    assert sizes == sorted(sizes) and len(sizes) >= 10
    for row in (*record.peaks, *record.bandwidths, *record.ops):
        assert all(value >= 0 for value in row.values() if isinstance(value, float | int))
    names = {row["name"] for row in record.ops}
    wanted = "ReLU|GELU, eager|GELU, fused|softmax|layer norm|dot|matrix-vector|matmul 1024|attention|MLP step"
    assert names >= set(wanted.split("|"))
    json.loads(text)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_costs_are_those_of_the_formulas(path):
    record = records.load(path)
    formulas = {
        (work.name, work.dtype): (work.flops, work.bytes)
        for dtype in {row["dtype"] for row in record.ops}
        for work in workloads.workloads(dtype, rows=record.ops[0]["shapes"][0][0])
    }
    for row in record.ops:
        assert formulas[row["name"], row["dtype"]] == (row["flops"], row["bytes"])
        assert 0 < row["fastest"] <= row["seconds"]
