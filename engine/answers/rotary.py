"""How a model turns queries and keys by their place."""

from dataclasses import dataclass

import numpy as np

from engine.trace import Floats, Ints


@dataclass(frozen=True, eq=False)
class Turning:
    """One way of turning, that of `layers`: c pairs of dimensions, n positions."""

    kind: str | None  # the config's name for these layers, where not all layers turn alike
    layers: tuple[int, ...]
    variant: str  # "default", "linear", "llama3", "yarn", …
    theta: float | None  # the config's base
    factor: float | None  # the config's factor of scaling
    rotated: int  # dimensions that are turned, 2c
    apart: int | None  # a dimension is turned with the one `apart` further on, c or 1; None where that cannot be tried
    frequencies: Floats  # [c], radians a position
    scaling: float  # cosines and sines are multiplied by it (YaRN), so scores by its square
    angles: Floats  # [n, c], radians in (−π, π], at `Rotary.positions`
    here: Floats  # [c], the same at `Rotary.told`

    @property
    def wavelengths(self) -> Floats:
        """[c], positions until a pair has come round once; ∞ for a pair that stands still."""
        with np.errstate(divide="ignore"):
            return np.asarray(2 * np.pi / self.frequencies)


@dataclass(frozen=True, eq=False)
class Rotary:
    """The angles at n positions that end with, or hold, the one that the model was told."""

    turn: int
    position: int  # the place in the turn
    head_dim: int
    context: int  # positions that the model can take
    positions: Ints  # [n], rising
    turnings: tuple[Turning, ...]
    ahead: int = 0  # the position that the model was told of the token, less `position`: not 0 in a sliding window

    @property
    def told(self) -> int:
        """The position that the model was told, by which it turned."""
        return self.position + self.ahead
