"""JSON that is decoded to be encoded again: fractions stay as they were written.

`12345678901234567.89` has no float that says so, and `1.10` may be a version.
"""

from __future__ import annotations

from typing import Any

import msgspec

_decode = msgspec.json.Decoder(float_hook=lambda text: msgspec.Raw(text.encode())).decode


def decode_exactly(text: str) -> Any:
    """The value of a JSON text in which each fraction is a `msgspec.Raw`, for encoding again.

    Raises:
        msgspec.DecodeError: it isn't JSON; or `UnicodeError`, `RecursionError`.
    """
    return _decode(text)
