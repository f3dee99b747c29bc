"""How an answer is run: within its own time, on a busy machine too, and without harm to the kernel."""

import builtins
import contextlib
import gc
import locale
import os
import random
import subprocess
import sys
import threading
import time
import warnings

import matplotlib
import numpy as np
import pytest
import torch
from jupyter_client.manager import start_new_kernel

from helpers.check import check, run, runner
from helpers.exercises import EXERCISES
from helpers.exercises.exercise import exercise

pytestmark = pytest.mark.slow
PATIENCE = 300  # seconds, however busy the machine is


@pytest.fixture
def ask(monkeypatch):
    """What the check says of an answer with that many seconds of its own, called twice."""

    def ask(answer, seconds=1, cases=((1,), (2,))):
        monkeypatch.setattr(run, "SECONDS", seconds)
        EXERCISES.pop("probe", None)
        exercise("probe", lambda n: 1, cases=cases)
        return check("probe", answer).message

    yield ask
    EXERCISES.pop("probe", None)


def endless(n):
    while True:
        pass


def stubborn(n):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.1)


def all_swallowed(n):
    begin = time.monotonic()
    while time.monotonic() - begin < 5:
        try:  # noqa: SIM105
            time.sleep(0.1)
        except BaseException:
            pass
    return 1


def asleep(n):
    time.sleep(100 if n == 2 else 0)


def deadlocked(n):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def multiplying(n):
    x = torch.rand(512, 512)
    while True:
        x = (x @ x).clamp(max=1)


LOOP = "Does a loop in it never end, or is there a shorter way?"
WAITS = "It computes nothing: does it sleep, or wait for a lock, an input, a compiler?"


@pytest.mark.parametrize(
    ("answer", "line", "why"),
    [
        (endless, "", LOOP),
        (multiplying, "", LOOP),
        (stubborn, "time.sleep(0.1)", WAITS),
        (asleep, "time.sleep(100 if n == 2 else 0)", WAITS),
        (deadlocked, "lock.acquire()", WAITS),
        (all_swallowed, "time.sleep(0.1)", WAITS),
    ],
)
def test_what_does_not_end_is_ended_with_a_verdict(ask, capsys, answer, line, why):
    before = sys.stdout
    message = ask(answer)
    assert message.startswith("it had not come to an end after 1 seconds of its own, in the line `" + line)
    assert message.endswith(why)
    assert len(message) <= 200
    assert sys.stdout is before
    print("here")
    assert capsys.readouterr().out == "here\n"


def test_threads_that_compute_are_no_waiting(ask):
    over = threading.Event()

    def work():
        while not over.is_set():
            pass

    def answer(n):
        threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    try:
        assert LOOP in ask(answer)
    finally:
        over.set()  # nobody can stop them


def test_input_gets_a_verdict(ask, monkeypatch):
    monkeypatch.setattr(builtins, "input", lambda prompt="": threading.Event().wait())
    assert WAITS in ask(lambda n: input())


def test_an_interrupt_gets_a_verdict(ask, monkeypatch):
    def interrupted(done, timeout):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "wait", interrupted)
    assert ask(lambda n: time.sleep(0.2)) == "you stopped it before it came to an end."


def test_what_waits_for_a_while_or_computes_for_a_while_is_right(ask):
    def answer(n):
        time.sleep(0.3)
        begin = time.process_time()
        while time.process_time() - begin < 0.3:
            pass
        return 1

    assert ask(answer, seconds=4) == "correct."


def test_a_learner_who_waits_is_told_so_once(ask, monkeypatch, capsys):
    monkeypatch.setattr(runner, "SILENCE", 0.1)
    assert ask(lambda n: time.sleep(0.6) or 1, seconds=2, cases=[(1,), (2,)]) == "correct."
    assert capsys.readouterr().out == "Running: it may take 2 seconds of its own.\n"
    assert ask(lambda n: 1) == "correct."
    assert not capsys.readouterr().out


def test_the_checks_own_work_takes_none_of_the_time(ask):
    class Slow:
        def __deepcopy__(self, memo):
            begin = time.process_time()
            while time.process_time() - begin < 0.2:
                pass
            return self

    assert ask(lambda thing: 1, seconds=0.3, cases=[(Slow(),), (Slow(),), (Slow(),)]) == "correct."


def test_a_call_is_over_after_a_long_time_on_the_clock_and_no_loop_is_blamed(ask, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 1)
    message = ask(asleep, seconds=100)
    assert message.startswith("it had not come to an end after 1 seconds on the clock, in the line `time.sleep(")
    assert message.endswith("Is this machine busy with something else? Run the cell again.")


SLOW_MODULE = """
import time
begin = time.process_time()
while time.process_time() - begin < {seconds}:
    pass
import slow_part
whole = True
"""


@pytest.fixture
def slow_module(tmp_path, monkeypatch):
    """A package that takes longer to import than an answer has."""
    (tmp_path / "slow_whole.py").write_text(SLOW_MODULE.format(seconds=0.9))
    (tmp_path / "slow_part.py").write_text(SLOW_MODULE.format(seconds=0.3).replace("import slow_part", ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("slow_whole", "slow_part"):
        sys.modules.pop(name, None)


def test_an_import_takes_none_of_the_time_and_is_not_stopped(ask, slow_module):
    def answer(n):
        import slow_whole

        return int(slow_whole.whole)

    assert ask(answer, seconds=0.5) == "correct."


def test_what_loops_after_an_import_leaves_the_module_whole(ask, slow_module):
    def answer(n):
        import slow_whole  # noqa: F401

        endless(n)

    assert LOOP in ask(answer)
    assert sys.modules["slow_whole"].whole and sys.modules["slow_part"].whole


def test_an_interrupted_import_is_left_to_its_end(ask, slow_module, monkeypatch):
    calls = []

    def wait(done, timeout):
        calls.append(timeout)
        if len(calls) == 8:  # within the import
            raise KeyboardInterrupt
        return original(done, timeout)

    def answer(n):
        import slow_whole  # noqa: F401

        endless(n)

    original = runner.wait
    monkeypatch.setattr(runner, "wait", wait)
    assert ask(answer) == "you stopped it before it came to an end."
    assert sys.modules["slow_whole"].whole and sys.modules["slow_part"].whole


def test_a_redirection_that_is_cut_off_does_not_stay(ask, capsys):
    before, ended = sys.stdout, threading.Event()

    def answer(n):
        try:
            with contextlib.redirect_stdout(None):
                time.sleep(2)
        finally:
            ended.set()

    assert WAITS in ask(answer, seconds=0.5)
    assert sys.stdout is before
    assert ended.wait(PATIENCE)
    print("still here")
    assert capsys.readouterr().out == "still here\n"


SETTINGS = {
    "print": lambda: setattr(builtins, "print", None),
    "stdout": lambda: setattr(sys, "stdout", None),
    "stderr": lambda: setattr(sys, "stderr", None),
    "dtype": lambda: torch.set_default_dtype(torch.float16),
    "device": lambda: torch.set_default_device("meta"),
    "gradients": lambda: torch.set_grad_enabled(False),
    "precision": lambda: torch.set_float32_matmul_precision("medium"),
    "determinism": lambda: torch.use_deterministic_algorithms(True),
    "anomalies": lambda: torch.autograd.set_detect_anomaly(True),
    "recursion": lambda: sys.setrecursionlimit(10_000),
    "folder": lambda: os.chdir("/"),
    "environment": lambda: (os.environ.pop("PATH"), os.environ.update(MADE_UP="1")),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8" if locale.setlocale(locale.LC_ALL) == "C" else "C"),
    "collection": gc.disable,
    "path": sys.path.clear,
    "switching": lambda: sys.setswitchinterval(1),
    "threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "warnings": lambda: warnings.simplefilter("error"),
    "drawing": lambda: matplotlib.rcParams.update({"lines.linewidth": 99}),
}


def settings():
    torch_settings = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    modes = torch.get_float32_matmul_precision(), torch.are_deterministic_algorithms_enabled()
    process = os.getcwd(), gc.isenabled(), sys.path[:], sys.getswitchinterval(), sys.getrecursionlimit()
    others = torch.get_num_threads(), warnings.filters[:], matplotlib.rcParams["lines.linewidth"]
    others += (dict(os.environ), locale.setlocale(locale.LC_ALL))
    return print, sys.stdout, sys.stderr, torch_settings, modes, torch.is_anomaly_enabled(), process, others


@pytest.mark.parametrize("name", SETTINGS)
def test_what_an_answer_sets_does_not_stay(ask, name):
    def answer(n):
        SETTINGS[name]()
        return 1

    before = settings()
    assert ask(answer) == "correct."
    assert settings() == before


def test_what_an_answer_sets_does_not_change_the_right_answers(monkeypatch):
    def answer(n):
        torch.set_default_dtype(torch.float64)
        return torch.ones(n)

    exercise("probe", lambda n: torch.ones(n), cases=[(1,), (2,)])
    assert "expected dtype torch.float32, got torch.float64" in check("probe", answer).message
    EXERCISES.pop("probe")


def test_a_check_does_not_depend_on_the_default_device(monkeypatch):
    asked = EXERCISES["low_rank"]
    monkeypatch.delitem(asked.__dict__, "inputs", raising=False)
    torch.set_default_device("meta")
    try:
        assert check("low_rank", lambda x, w, a, b: x @ w + (x @ a) @ b).message == "correct."
        assert asked.inputs[-1][0].device.type == "cpu"
    finally:
        torch.set_default_device(None)


class Peculiar(BaseException):
    pass


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, Peculiar, StopIteration, SystemError])
def test_whatever_is_raised_becomes_a_verdict(ask, error):
    def answer(n):
        raise error

    assert ask(answer).startswith(f"probe(1): it raised {error.__name__}")


def test_an_async_function_is_told(ask):
    async def answer(n):
        return 1

    assert "an async function returns a coroutine: write def without async" in ask(answer)


def test_the_random_generators_are_left_alone(ask):
    def seed(number):
        random.seed(number), np.random.seed(number), torch.manual_seed(number)

    def draw():
        return random.random(), np.random.rand(), torch.rand(()).item()

    seed(5)
    expected = draw()
    seed(5)
    ask(lambda n: seed(1) or sum(draw()))
    assert draw() == expected


# ---- In a real kernel.

SET_UP = """
import time
from helpers.check import check, run
from helpers.exercises.exercise import exercise
exercise("probe", lambda n: n, cases=[(n,) for n in range(30)])
"""


@pytest.fixture(scope="module")
def kernel():
    """Runs a cell in a kernel, and returns what it prints or shows."""
    manager, client = start_new_kernel(startup_timeout=PATIENCE)

    def cell(source):
        texts = []

        def keep(message):
            content = message["content"]
            texts.append(content.get("text") or content.get("data", {}).get("text/plain") or content.get("ename", ""))

        client.execute_interactive(source, timeout=PATIENCE, output_hook=keep, allow_stdin=False)
        return "".join(texts)

    yield cell
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("guess = 38 to 43\ncompare(guess, 40)", "You predicted 38 to 43; it is 40: within your range."),
        ("def windows(x, size):\n    return (\ncheck(windows)", "✗ windows: Python cannot read line 2"),
        ("x = (", "SyntaxError"),
    ],
)
def test_a_half_written_cell_does_not_stop_a_kernel(kernel, cell, words):
    kernel("from helpers.check import check, compare")
    assert kernel(cell).startswith(words)


COLD = """
import torch
from helpers.check import check

def last_logits(hidden, weight):
    return hidden[-1] @ weight.T

check(last_logits)
"""


def test_a_cold_check_beside_busy_processes_is_right(kernel):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(5)]
    try:
        assert [kernel(COLD) for _ in range(2)] == 2 * ["✓ last_logits: correct."]
    finally:
        for process in busy:
            process.kill()


SLEEPER = """
def sleeper(n):
    if n == 1:
        print("going to sleep")
        time.sleep({seconds})
    return n
check("probe", sleeper)
"""


def test_the_cells_behind_an_answer_in_compiled_code_run_and_print(kernel):
    kernel(SET_UP)
    assert kernel(SLEEPER.format(seconds=1.5)) == "✓ probe: correct."
    kernel("run.SECONDS = 0.5")
    assert WAITS in kernel(SLEEPER.format(seconds=4))
    assert kernel("print('behind it'); 1 + 1") == "behind it\n2"
    assert kernel("check('probe', lambda n: n)") == "✓ probe: correct."
    assert kernel("time.sleep(3); print('after it')") == "after it\n"
