"""Secrets and text hygiene: what is cleaned once, at the boundary, and is then the same in every store."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"
_MIN_SECRET_CHARS = 8  # shorter values ("true", "1234") stand in too much honest text
_NAMED_LIKE_A_SECRET = re.compile(r"(key|token|secret|password|passwd|credential)s?$", re.IGNORECASE)
_SHAPED_LIKE_A_SECRET = re.compile(
    r"""\b(?:
        sk-[A-Za-z0-9_-]{16,}            # OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-)
      | xox[abprs]-[A-Za-z0-9-]{10,}     # Slack
      | gh[pousr]_[A-Za-z0-9]{20,}       # GitHub
      | AKIA[0-9A-Z]{16}                 # AWS access key id
      | eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}  # JSON Web Token
    )""",
    re.VERBOSE,
)


def clean_text(text: str) -> str:
    """Replace what some store or wire cannot hold: an unpaired surrogate and NUL become U+FFFD."""
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return paired.replace("\0", "\ufffd")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes known secret values, and what is shaped like one, out of text before it is written.

    `needles` are the forms of the values in `secrets` that are looked for.
    """

    # Left out of its own repr, which tracebacks show.
    needles: tuple[str, ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> "Redactor":
        """Know every value whose variable is named like a secret, in the forms in which programs write one.

        As it is, in base64, hex, URL and JSON form, and reversed.
        """
        secrets = {
            value
            for name, value in environment.items()
            if _NAMED_LIKE_A_SECRET.search(name) and len(value) >= _MIN_SECRET_CHARS
        }
        needles = {form for value in secrets for form in _forms(value)}
        return cls(
            needles=tuple(sorted(needles, key=lambda needle: (-len(needle), needle))),
            secrets=tuple(sorted(map(clean_text, secrets))),
        )

    def redact(self, text: str) -> str:
        """Return `text` with every known or secret-shaped value replaced by `[redacted]`."""
        for needle in self.needles:
            if needle in text:
                text = text.replace(needle, REDACTED)
        return _SHAPED_LIKE_A_SECRET.sub(REDACTED, text)


def _forms(value: str) -> Iterator[str]:
    raw = value.encode("utf-8", "surrogateescape")  # as the environment held it
    yield from (clean_text(value), clean_text(value)[::-1], raw.hex(), raw.hex().upper())
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw))
    yield from (json.dumps(clean_text(value), ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True))
    for before in range(3):
        # Base64 goes by three bytes, so a value inside other text has one of three forms. Its first and last digit
        # also hold bits of its neighbours, and are left out.
        encoded = base64.b64encode(bytes(before) + raw).rstrip(b"=").decode()
        inside = encoded[(0, 2, 3)[before] : None if (before + len(raw)) % 3 == 0 else -1]
        yield from (inside, inside.replace("+", "-").replace("/", "_"))
