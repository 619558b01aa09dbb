from __future__ import annotations

import json

import pytest

from lakehouse_engine.format.seal import BLANK_SEAL, SEAL_KEY, is_intact, seal

CONTENT = json.dumps({"before": 1, SEAL_KEY: BLANK_SEAL, "after": [2, 3]}).encode()


def test_every_flipped_bit_of_what_was_sealed_shows_or_hides_the_seal_itself():
    sealed = seal(CONTENT)
    assert is_intact(sealed) is True
    key = sealed.index(SEAL_KEY.encode())
    text = range(key, key + len(SEAL_KEY) + len(': "crc32:') + 9)
    for position in range(len(sealed)):
        for bit in range(8):
            flipped = bytearray(sealed)
            flipped[position] ^= 1 << bit
            assert is_intact(bytes(flipped)) is False or position in text, (position, bit)


def test_content_of_others_has_no_seal():
    assert is_intact(b'{"lakehouse": 1}') is None


def test_content_without_room_for_a_seal_is_not_sealed():
    with pytest.raises(ValueError, match="0 blanks"):
        seal(b"{}")


def test_the_rest_stays_as_it_was():
    assert json.loads(seal(CONTENT))["after"] == [2, 3]
