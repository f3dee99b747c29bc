"""Numbers and units as people write them: "40 MB", "4e7", "85,9", "3/4", "half a year", "40 billion"."""

import re

_PREFIXES = {"": 1.0, "m": 1e-3, "µ": 1e-6, "u": 1e-6, "n": 1e-9, "p": 1e-12, "k": 1e3}
_PREFIXES |= {name: 1000.0**power for power, name in enumerate("KMGTPE", start=1)}
_PREFIXES |= {f"{name}i": 1024.0**power for power, name in enumerate("KMGTPE", start=1)}
_BASES = {
    "B": ("B", "byte", "bytes"),
    "FLOP": ("FLOP", "FLOPs"),
    "s": ("s", "sec", "second", "seconds"),
}
_LONG_PREFIXES = {"kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12}
_LOWER_CASE = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_SPANS = {
    "min": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400, "week": 604_800, "month": 2_629_800,
    "year": 31_557_600,
}  # fmt: skip
_COUNTS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_TENS = ["ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: value for value, word in enumerate(_SMALL)} | {word: 10 * n for n, word in enumerate(_TENS, start=1)}
_WORDS |= {"none": 0, "nothing": 0}
_SHARES = {"half": 50, "third": 100 / 3, "quarter": 25, "fifth": 20, "tenth": 10}  # in percent
# How many base units each unit is, and its base.
_UNITS = {
    prefix + name: (factor, base)
    for base, names in _BASES.items()
    for name in names
    for prefix, factor in _PREFIXES.items()
}
_UNITS |= {word + name: (factor, "B") for word, factor in _LONG_PREFIXES.items() for name in _BASES["B"]}
_UNITS |= {prefix + name: (factor / 8, "B") for prefix, factor in _PREFIXES.items() for name in ("bit", "bits")}
_UNITS |= {name: (factor, "B") for name, factor in _LOWER_CASE.items()}
_TIMES = {span + plural: (float(seconds), "s") for span, seconds in _SPANS.items() for plural in ("", "s")}
_SINGULAR = {name: base for base in ("B", "s") for name in _BASES[base]}


def scale(unit: str) -> tuple[float, str]:
    """How many base units a unit is, and its base.

    >>> scale("GB"), scale("days"), scale("GFLOP per second"), scale("billion parameters")
    ((1000000000.0, 'B'), (86400.0, 's'), (1000000000.0, 'FLOP/s'), (1000000000.0, 'parameters'))
    """
    unit = unit.strip()
    head, slash, per = (part.strip() for part in unit.replace(" per ", "/").partition("/"))
    per = _SINGULAR.get(per, per)
    if head.casefold() in _TIMES:
        return _TIMES[head.casefold()]
    if head in _UNITS:
        factor, base = _UNITS[head]
        return factor, base + slash + per
    word, _, things = unit.partition(" ")
    return (_COUNTS[word], things) if word in _COUNTS else (1.0, head + slash + per)


_NUMBER = re.compile(r"([-+]?(?:\d[\d_,]*)?\.?\d+\.?(?:e[-+]?\d+)?) *(%?)(.*)", re.IGNORECASE)
_SUPERSCRIPTS = {ord(high): low for high, low in zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True)}
_ONE = r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_POWER = re.compile(rf"({_ONE})(?: ?(?:\^|\*\*) ?([-+]?\d{{1,3}}))?", re.IGNORECASE)
_TIMES_OR_OVER = re.compile(r" ?(times|[×·/x]|(?<!\*)\*(?!\*)) ?", re.IGNORECASE)
_PRODUCT = re.compile(rf"^{_POWER.pattern}(?:{_TIMES_OR_OVER.pattern}{_POWER.pattern})*(?![\d.,])", re.IGNORECASE)


def amount(text: str, unit: str) -> float | None:
    """The number of `unit` that a text gives; None for another text.

    >>> amount("40 MB", "B"), amount("3/4", ""), amount("half a year", "days"), amount("40B", "billion parameters")
    (40000000.0, 0.75, 182.625, 40.0)
    >>> amount("forty", "%"), amount("4 × 10⁷", "FLOP"), amount("2^10 B", "KiB"), amount("3 x 2^4 / 6", "")
    (40.0, 40000000.0, 1.0, 8.0)
    >>> amount("a quarter", "%"), amount("half", ""), amount("16 bits", "B"), amount("27 TFLOPs", "FLOP/s")
    (25.0, 0.5, 2.0, 27000000000000.0)

    Where no unit is asked for, it may be any word but one that is a unit of something else: "22 requests".
    """
    text = text.strip()
    in_words = text[:1].isalpha()  # "an error" is no number, "a year" is one
    text = _in_digits(text)
    if re.fullmatch(r"[-+]?(nan|inf|infinity)", text, re.IGNORECASE):
        return float(text)
    match = _NUMBER.fullmatch(text)
    if not match or re.search(r",(?!\d{3}(?!\d)).*,", match[1]):  # "2,3,3" is a list
        return None
    number = _number(match[1])
    if match[2] and unit not in ("", "%"):
        return None
    if match[2] and not unit:
        number /= 100
    return _converted(number, match[3], unit, in_words)


def _in_digits(text: str) -> str:
    """The text with "a", "forty", "half a" and "10⁷" as digits, and without words that change nothing."""
    text = re.sub(rf"^(?:an? |one )?({'|'.join(_SHARES)})$", _of_share, text, flags=re.IGNORECASE)
    text = re.sub(r"^half an?\b", "0.5", text, flags=re.IGNORECASE)
    text = re.sub(r"^an?(?=\s+\S)", "1", text, flags=re.IGNORECASE)
    text = re.sub(r"^[A-Za-z]+", lambda word: str(_WORDS.get(word[0].casefold(), word[0])), text)
    text = re.sub(r"(?<=\d)[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda high: f"^{high[0].translate(_SUPERSCRIPTS)}", text)
    text = _PRODUCT.sub(_of_product, text)
    text = re.sub(r" ?per ?cent$", "%", text)
    text = re.sub(r"(?<=\d) (?=\d{3}\b)", "", text)  # 85 900 000
    return re.sub(r"(?<=\d) ?(?:times|x)$", "", text)


def _of_share(match: re.Match[str]) -> str:
    """A share in words as one in percent."""
    return f"{_SHARES[match[1].casefold()]!r}%"


def _of_product(match: re.Match[str]) -> str:
    """A product, quotient or power as one number; a single number, and what divides by zero, as it is written."""
    written = match[0]
    if re.fullmatch(_ONE, written, re.IGNORECASE):
        return written
    first, *others = _TIMES_OR_OVER.split(written)
    try:
        value = _of_power(first)
        for sign, factor in zip(others[::2], others[1::2], strict=True):
            value = value / _of_power(factor) if sign == "/" else value * _of_power(factor)
    except (ZeroDivisionError, OverflowError):
        return written
    return repr(value)


def _of_power(written: str) -> float:
    match = _POWER.fullmatch(written)
    assert match
    exponent = int(match[2] or 1)
    return float(f"1e{exponent}") if match[1] == "10" else float(match[1]) ** exponent


def _number(digits: str) -> float:
    """A number with separators as they are written: 1,000 and 1_000, and Europe's 85,9."""
    digits = re.sub(r",(?=\d{3}(?!\d))", "", digits.replace("_", ""))
    return float(digits.replace(",", "."))


def _converted(number: float, given: str, unit: str, in_words: bool) -> float | None:
    """That number of the unit that was given, in the unit that is asked for; None where one is not of the other."""
    factor, base = scale(unit)
    if base == "FLOP/s":  # TFLOPS, and TFLOPs, too, where a rate is asked for
        given = re.sub("FLOP[Ss]$", "FLOP/s", given)
    if not given:
        return number
    if given in _PREFIXES:  # "140 G"
        return number * _PREFIXES[given] / factor
    count = _count(given, unit, base)
    if count is not None:
        return number * count / factor
    given_factor, given_base = scale(given)
    if not unit and not in_words and given_factor == 1 and given_base not in _BASES:
        return number if re.fullmatch(r"[A-Za-z]+(/[A-Za-z]+)?", given_base) else None
    return number * given_factor / factor if given_base == base else None


def _count(given: str, unit: str, base: str) -> float | None:
    """What a word such as "billion" multiplies by, alone or before the unit; and a B where no bytes are asked for."""
    counts = _COUNTS if base.startswith("B") else _COUNTS | {"B": 1e9}
    for word, power in counts.items():
        if given.startswith(word) and given.removeprefix(word).strip() in ("", unit, f"{unit}s"):
            return power
    return None
