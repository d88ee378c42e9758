"""Numbers that differ a little: floats were added in another order."""

from __future__ import annotations

import math


def is_near(one: float, other: float, distance: float) -> bool:
    """Whether two numbers are no further apart than that; what is no number is near to nothing but itself."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return one == other or (math.isnan(one) and math.isnan(other))
    return abs(one - other) <= distance
