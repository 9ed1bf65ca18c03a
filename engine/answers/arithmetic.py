"""Sums of rows of the embedding."""

from dataclasses import dataclass

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Term:
    """One word of the formula: its sign, the token that stands for it, where it would have come among the results."""

    sign: int  # +1 or −1
    token_id: int
    token_bytes: bytes
    norm: float
    cosine: float  # with the result
    rank: int  # among all rows by that cosine, 1 = most alike


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """t terms and the k rows nearest to their sum by cosine, the terms themselves left out."""

    formula: str
    terms: tuple[Term, ...]  # [t]
    norm: float  # of the sum
    token_ids: Ints  # [k]
    token_bytes: tuple[bytes, ...]  # [k]
    cosines: Floats  # [k]
    near_terms: Ints  # [k, t], the place of each result among the neighbours of each term alone, 1 = nearest; 0: none
