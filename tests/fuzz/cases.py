"""Seeded cases of the text readers, and the byte mutations that all targets share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any


def dice(target: str, seed: int, case: int) -> Random:
    """The one source of chance of a case."""
    return Random(f"{target} {seed} {case}")


def chance(rng: Random, probability: float) -> bool:
    return rng.random() < probability


# --- bytes --------------------------------------------------------------------------------------------------------

INTERESTING = [
    *(bytes([byte]) for byte in b'\x00\t\n\v\f\r #,:;"\'|+-.0189eEn\x7f\x80\xc3\xff{}[]'),
    b"\xef\xbb\xbf", b"\r\n", b"\xc3\xa9", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"1e999", b"nan", b"-inf", b"null",
    b"99999999999999999999", b"1:", b":1", b"\\u0000", b"\\ud800", b"true", b'""', b"\n\n",
]  # fmt: skip


def mutated(rng: Random, text: bytes, most: int = 6) -> bytes:
    """``text`` after a few of the usual mishaps."""
    out = bytearray(text)
    for _ in range(rng.randint(1, most)):
        at = rng.randrange(len(out) + 1)
        end = min(len(out), at + rng.choice((1, 1, 2, 4, 16, 64)))
        match rng.randrange(9):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(out):
                out[at] = rng.randrange(256)
            case 2:
                out[at:at] = rng.choice(INTERESTING)
            case 3:
                out[at:end] = rng.choice(INTERESTING)
            case 4:
                del out[at:end]
            case 5:
                out[at:at] = out[at:end]  # the same again
            case 6:
                other = rng.randrange(len(out) + 1)
                out[other:other] = out[at:end]
            case 7:
                out[at:at] = rng.choice(INTERESTING) * rng.choice((2, 8, 40, 400))
            case 8 if chance(rng, 0.3):
                del out[at:]
            case _:
                out[at:at] = rng.randbytes(rng.randint(1, 4))
    return bytes(out)


def spoilt(rng: Random, text: bytes) -> bytes:
    """Often ``text`` as it is, more often mutated, sometimes noise."""
    luck = rng.random()
    if luck < 0.5:
        return text
    if luck < 0.95:
        return mutated(rng, text)
    return rng.randbytes(rng.randrange(80))


ODD_NUMBERS = (
    "0", "-0", "+0.0", "1.", ".5", "-.5e3", "+7", "1e22", "1e23", "1e-22", "9007199254740993", "1e308", "1e309",
    "-1e400", "1e-400", "4.9e-324", "2.2250738585072011e-308", "1.7976931348623157e308", "1.7976931348623159e308",
    "0e999999999999", "1e99999999999999999999", "1e-99999999999999999999", "0." + "0" * 350 + "1", "1" + "0" * 320,
    "0." + "3" * 60, "123456789012345678901234567890", "nan", "inf", "-Infinity", "0x1p3", "1_000", "1e", "1e+", "+",
    "-", ".", "--1", "1..2", "١٢", "1,5", "NaN", "True", "", "é", "18446744073709551616",
)  # fmt: skip


def number_text(rng: Random, odd: float = 0.1) -> str:
    """A number as people and programs write it; with probability ``odd`` one from the fringes."""
    if chance(rng, odd):
        return rng.choice(ODD_NUMBERS)
    match rng.randrange(5):
        case 0:
            return str(rng.randint(-9, 99))
        case 1:
            return f"{rng.uniform(-10, 10):.3f}"
        case 2:
            return repr(rng.gauss(0.0, 1.0))
        case 3:
            return f"{rng.gauss(0.0, 1.0):.{rng.randrange(20)}e}"
        case _:
            return repr(rng.random() * 10.0 ** rng.randint(-320, 308))


# --- svmlight -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SvmlightCase:
    """A text, and how it is read: the buffer's bytes a thread (None: as usual), threads, reader's options."""

    text: bytes
    piece: int | None
    n_threads: int
    options: dict[str, Any] = field(default_factory=dict)


def svmlight_case(seed: int, case: int) -> SvmlightCase:
    rng = dice("svmlight", seed, case)
    odd = rng.choice((0.0, 0.0, 0.01, 0.1))
    lines = [_svmlight_line(rng, odd) for _ in range(rng.choice((0, 1, 2, 3, 5, 12)))]
    end = rng.choice(("\n", "\n", "\n", "\n", "\r\n", "\r\n", " \n", "\r"))
    text = end.join(lines) + (end if chance(rng, 0.7) else "")
    blob = spoilt(rng, text.encode(errors="surrogatepass"))
    piece = rng.choice((1, 2, 7, 16, 40, 100, 1000)) if chance(rng, 0.97) else None
    if blob and chance(rng, 0.0005):  # long enough for several threads
        blob = blob * (200_000 // len(blob) + 1)
        blob = mutated(rng, blob) if chance(rng, 0.5) else blob
        piece = rng.choice((100_000, None))
    options: dict[str, Any] = {}
    if chance(rng, 0.3):
        options["zero_based"] = rng.choice((True, False, None))
    if chance(rng, 0.3):
        options["n_features"] = rng.choice((1, 3, 10, 2**31 - 1, None))
    return SvmlightCase(blob, piece, rng.choice((1, 1, 2, 3)), options)


def _svmlight_line(rng: Random, odd: float) -> str:
    if chance(rng, 0.08):
        return rng.choice(("", "   ", "# only a comment", "\t#", "\v", "1", "-1 # no columns"))
    gap = rng.choice((" ", " ", " ", "  ", "\t", "\f", " \r"))
    label = rng.choice(("1", "-1", "+1", "0", number_text(rng, odd)))
    if chance(rng, odd):
        label = rng.choice(("a", "1:2", "1,2", "", "qid:4", "#"))
    column, cells = rng.randrange(2), []
    for _ in range(rng.choice((0, 1, 2, 3, 8))):
        name = str(column) if not chance(rng, odd) else rng.choice(ODD_COLUMNS)
        cells.append(f"{name}{rng.choice(':::::: ') if chance(rng, odd) else ':'}{number_text(rng, odd)}")
        column += rng.choice((1, 1, 1, 2, 5, 1000)) if not chance(rng, odd) else rng.choice((0, -1, 2**31))
    tail = rng.choice((" # note", "#", " ", "\t# 1:2 3:4", " qid:1")) if chance(rng, 0.1) else ""
    return gap.join([label, *cells]) + tail


ODD_COLUMNS = ("0", "00", "007", "-1", "+1", "1.0", "2147483646", "2147483647", "2147483648", "9" * 30, "qid", "", "x")


# --- CSV ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvCase:
    """A text, the reader's block (None: as usual), and arguments of reader, layout and encoding."""

    text: bytes
    block: int | None
    read: dict[str, Any]
    layout: dict[str, Any]
    learn: dict[str, str]


NAMES = (
    "age", "b", "class", "label", "y", "Target", "x0", "x1", "blood pressure", "größe", "a,b", "", " ", "1", "nan",
    "line\nend", 'quo"te', "x;y", "\ufeffbom", "\x00",
)  # fmt: skip
WORDS = (
    "red", "green", "Oslo", " padded ", "yes", "no", "", "NA", "?", "a,b", "x;y", 'quo"te', "two\nlines", "é", "True",
    "false", "2024-01-31", "2024-01-31 12:00:00", "12:30", "1 000", "5%", "\x00", "N/A",
)  # fmt: skip


def csv_case(seed: int, case: int) -> CsvCase:
    rng = dice("csv", seed, case)
    names = [rng.choice(NAMES) if chance(rng, 0.7) else f"f{j}" for j in range(rng.choice((1, 2, 3, 4, 6)))]
    if chance(rng, 0.95):
        names = list(dict.fromkeys(names))
    kinds = [rng.choice(("int", "int", "float", "float", "text", "bool", "gaps", "odd", "turns")) for _ in names]
    n_rows = rng.choice((0, 1, 2, 4, 4, 4, 9, 9, 30))
    rows = [[_cell(rng, kind, i, n_rows) for kind in kinds] for i in range(n_rows)]
    text = _csv_text(rng, [names, *rows] if chance(rng, 0.85) else rows)
    layout: dict[str, Any] = {}
    if chance(rng, 0.1):
        layout["header"] = rng.choice((True, False))
    if chance(rng, 0.05):
        layout["delimiter"] = rng.choice((",", ";", "\t", "|", " ", "ab", '"', "\n", "é", "\x00", "1"))
    if chance(rng, 0.2):
        layout["na"] = rng.choice((("?",), ("red", "5%"), ("",), ("0",)))
    if chance(rng, 0.05):
        layout["decimal"] = rng.choice((",", ",", ".", "e", "-", "é", "", "ab", "\x00", "\n"))
    read: dict[str, Any] = {}
    if chance(rng, 0.4):
        read["target"] = rng.choice((*names, *names, *names, 0, -1, "0", "-1", 99, "no such", "1.5"))
    if chance(rng, 0.1):
        read["drop"] = [rng.choice((*names, *names, "0", "no such"))]
    if chance(rng, 0.15):
        read["bad_rows"] = []
    learn = {
        "missing": rng.choice(("error", "mean", "mean", "drop")),
        "text": rng.choice(("error", "onehot", "onehot", "drop")),
    }
    block = rng.choice((16, 64, 300)) if chance(rng, 0.15) else None
    return CsvCase(spoilt(rng, text), block, read, layout, learn)


def _cell(rng: Random, kind: str, row: int, n_rows: int) -> str:
    if kind == "turns":  # numbers first, text further down
        kind = "int" if row < n_rows - 1 else "text"
    if kind == "gaps":
        kind = rng.choice(("float", "none"))
    match kind:
        case "int":
            return str(rng.randint(-5, 40))
        case "float":
            return number_text(rng, 0.0)
        case "bool":
            return rng.choice(("true", "false"))
        case "none":
            return rng.choice(("", "NA", "nan", "null"))
        case "odd":
            return number_text(rng, 0.5)
        case _:
            return rng.choice(WORDS)


def _csv_text(rng: Random, rows: Sequence[Sequence[str]]) -> bytes:
    delimiter = rng.choice((",", ",", ",", ";", "\t", "|"))
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    careless = chance(rng, 0.1)  # quotes left out
    lines = []
    for row in rows:
        cells = list(row)
        if chance(rng, 0.01):
            cells = [*cells, "extra"] if chance(rng, 0.5) else cells[1:]
        lines.append(delimiter.join(cell if careless else _quoted(rng, cell, delimiter) for cell in cells))
        if chance(rng, 0.02):
            lines.append("")
    head = b"\xef\xbb\xbf" if chance(rng, 0.05) else b""
    encoding = "utf-8" if chance(rng, 0.95) else "utf-16" if chance(rng, 0.5) else "latin-1"
    return head + (end.join(lines) + (end if chance(rng, 0.8) else "")).encode(encoding, errors="replace")


def _quoted(rng: Random, cell: str, delimiter: str) -> str:
    if chance(rng, 0.05) or any(c in cell for c in (delimiter, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell
