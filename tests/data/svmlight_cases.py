"""An obvious svmlight parser, and text to try parsers on."""

import random

import numpy as np


def slowly(text):
    """The obvious parser, for text without errors: labels and, for each row, a dict from column to value."""
    labels, rows = [], []
    for line in text.split(b"\n"):
        tokens = line.split(b"#")[0].split()
        if tokens:
            labels.append(float(tokens[0]))
            pairs = [token.split(b":") for token in tokens[1:]]
            rows.append({int(column): float(value) for column, value in pairs})
    return labels, rows


def digits(rng, low, high):
    return "".join(rng.choices("0123456789", k=rng.randint(low, high)))


def random_number(rng):
    sign = rng.choice(["", "", "-", "+"])
    whole, long = digits(rng, 1, 6), digits(rng, 1, 30)
    text = rng.choice([whole, whole + ".", "." + whole, f"{whole}.{whole}", f"00{whole}", f"{long}.{whole}"])
    if rng.random() < 0.3:
        text += rng.choice("eE") + rng.choice(["", "+", "-"]) + digits(rng, 1, 2)
    return sign + text


def random_line(rng, first):
    kind = rng.random()
    if kind < 0.05:
        return ""
    if kind < 0.1:
        return "# 1:2 is a comment"
    blanks = [" ", " ", "  ", "\t", " \t"]
    out = rng.choice(["", "", "", " "]) + random_number(rng)
    column = first - 1
    for _ in range(rng.randint(0, 8)):
        column += rng.choice([1, 1, 2, 50])
        out += f"{rng.choice(blanks)}{rng.choice(['', '', '0'])}{column}:{random_number(rng)}"
    return out + rng.choice(["", "", " ", " # 9:x", "#"])


def random_text(seed, n_lines=None):
    rng = random.Random(seed)
    n_lines = rng.randint(1, 40) if n_lines is None else n_lines
    first = rng.choice([0, 1, 3])
    ends = rng.choice([["\n"], ["\r\n"], ["\n", "\r\n"]])
    text = "".join(random_line(rng, first) + rng.choice(ends) for _ in range(n_lines)) + "1 7:1"
    return (text + rng.choice(["", "\n"])).encode()


def decimal_strings(rng, count):
    """Numbers of every length and size: 17 to 40 digits, exponents, subnormals, leading zeros, halfway cases."""
    for k in range(count):
        kind = k % 6
        if kind == 0:
            yield f"{digits(rng, 1, 20)}.{digits(rng, 17, 20)}"
        elif kind == 1:
            yield f"{digits(rng, 1, 1)}.{digits(rng, 16, 39)}e{rng.randint(-345, 307)}"
        elif kind == 2:
            sign, zeros, end = rng.choice(["", "+", "-"]), "0" * rng.randint(0, 30), rng.choice(["", ".", ".0"])
            yield f"{sign}{zeros}{digits(rng, 17, 40)}{end}"
        elif kind == 3:
            yield f"-.{'0' * rng.randint(0, 330)}{digits(rng, 1, 25)}"
        elif kind == 4:
            yield repr(np.uint64(rng.getrandbits(62)).view(np.float64).item())
        else:
            middle = 2**53 + 2 * rng.getrandbits(52) + 1  # exactly between two neighbours
            yield f"{middle}{rng.choice(['', '.0', 'e0', '000e-3', '.000000000000000000000000001'])}"
