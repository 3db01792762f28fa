"""The one exception a user is meant to read."""


class GCBError(Exception):
    """A user's mistake or an outside fault: the message names the thing, its value, and what would be accepted.

    The command line prints it without a traceback.
    """
