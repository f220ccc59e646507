"""Places of elements as C: sums of numbers of turns and strides."""
from __future__ import annotations

from typing import List

from ..loops.ir import Address, Part


def loops_of(address: Address) -> List[str]:
    """The loops that it goes by."""
    return [index.loop if isinstance(index, Part) else index for index, _ in address.terms]


def address_text(address: Address) -> str:
    """The number of the element."""
    texts = [str(address.offset)] if address.offset else []
    for index, stride in address.terms:
        if isinstance(index, Part):
            texts.append(f"({_part(index)}) * {stride}")
        else:
            texts.append(f"{index} * {stride}" if stride != 1 else index)
    return " + ".join(texts) or "0"


def _part(part: Part) -> str:
    text = part.loop if part.divisor == 1 else f"{part.loop} / {part.divisor}"
    return text if part.modulus is None else f"({text}) % {part.modulus}"
