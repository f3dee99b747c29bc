"""Checks that a learner runs: `check(exercise, answer)` and `compare(guess, value)`. Neither raises, whatever is given.

How a check works
-----------------
1. `names` finds the `Exercise` that the table of a notebook (`helpers.exercises`) put on the list: an oracle, readable
   cases and a generator of random ones, and the mistakes that learners make, each a formula and a sentence.
2. `judge` runs the answer on every input in the sandbox of `run`: on copies, with random generators, the cell's output
   and the caches of einops left as they were. `runner` is the thread that can be stopped, after ten seconds of the
   answer's own. Only a learner's calls run there; all else stands outside of that time.
3. `answers.difference` puts each outcome beside the oracle's. Any spelling of the right answer counts (`amounts` reads
   "40 MB"); a difference becomes words.
4. Where something differs, `diagnose.explain` asks its rules one after the other what the answer did. The first is
   `usual_mistake`: the one listed formula that gives the same in every case, or, where a mistake is `seen_in` a part
   of the answer, the same there. `errors` explains what was raised, `reading` what no source can mean, `formulas` what
   is wrong with a function of numbers, `tensors` with tensors, `conditions` where an answer is right; `nearest` edits
   the learner's own `source` in one step (`edits`, which the tests use for the slips of the solutions, too), and names
   the place where that makes it right, never the edit. Of a single value `values` asks after units and numbers of the
   statement: several readings of one value are one question, or none. A table may say what each word of a choice would
   mean (`words`), and what holds of every right answer (`laws`, tried on the learner's). Where no rule speaks, the
   folded hint is named.
5. A right answer to an exercise with a `cost` is counted in `costs`, on the devices of the inputs, and beside the
   oracle's cost it may have `allowed_ratio`. One that is out of time, and right in smaller calls, is not called wrong.
6. `judge` makes the `Verdict`, two lines at most: the smallest call that differs, and one sentence. Of a single value
   only the direction is said, since more would give it away.

To add a rule, write a function that takes an `attempt.Attempt` (the exercise, outcomes and right ones, the learner's
function, safe to call again) and returns one sentence that is true in every case, or None; put it on
`diagnose.RULES_OF_CALLS` where it shall be asked, and its example into `tests/test_check_diagnose.py`. A rule that
fails says nothing. Arguments have the names of the learner's own function; where it takes any, those of the oracle.
To mend a verdict, make it in plain Python: `print(check("windows", f))`. The rule that spoke is found by its words, or
is the last one of a `print(rule)` in `diagnose._said`. Right, but called too dear: `costs`; right, but called wrong:
`answers.difference`.
`compare` is in `guess`, and uses the same spellings; `estimates` reads ranges and rough numbers. `cells` sees to cells
that Python cannot read, or that raise, so that a half-written answer does not stop Run All.
"""

from helpers.check.cells import install, stopped, unreadable
from helpers.check.guess import Comparison, compare
from helpers.check.judge import Verdict, check
from helpers.check.recorded import MIME, answers, record, request

install()
