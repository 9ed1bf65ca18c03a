"""What the engine cannot do just now, each with words for the person who asked."""

from engine.said import said


class Refused(Exception):
    """Something cannot be done now; the message says why and what to do. The session lives on."""


class SessionGone(Refused):
    """The id belongs to no session: it was never given out, was closed, or its session was put away."""

    def __init__(self) -> None:
        super().__init__(said("session_ended"))


class SessionIdle(SessionGone):
    """The session was not used for too long."""


class SessionGaveWay(SessionGone):
    """The session gave up its place for another: as many were open as may be."""


class ModelPutAway(SessionGone):
    """The session's model was unloaded to make room for another."""


class Busy(Refused):
    """A run is in the way: this session's own, or too many of other visitors."""


class NoGpu(Refused):
    """The GPU that is lent could not be had, or was taken back; a moment later it may be there."""


class NothingStarted(Refused):
    """The session has no conversation yet."""

    def __init__(self) -> None:
        super().__init__(said("nothing_started"))
