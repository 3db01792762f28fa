"""Errors that are not the visitor's: each has the HTTP status that says so. Any other `GCBError` is a 422."""

from gcb.errors import GCBError


class NotLoaded(GCBError):
    """The agent is not there yet, or cannot be loaded."""

    status = 503


class Busy(GCBError):
    """More visitors wait than can be served in reasonable time."""

    status = 503


class NotThere(GCBError):
    """What was asked for is not there yet, or cannot be had of this run."""

    status = 409
