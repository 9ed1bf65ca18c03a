"""Roles as the colours of the page."""

from typing import Literal

Role = Literal["system", "user", "assistant", "tool", "scaffold"]

ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool", "scaffold")


def role_colour(role: str) -> Role:
    """The colour of a role; a role that a recorded trace made up gets that of the scaffold."""
    return role if role in ROLES else "scaffold"
