"""What goes wrong here is said in a line or two; the command line prints it without a traceback."""


class DevstackError(Exception):
    """The development stack cannot do what was asked; the message says why and what to do."""


class MissingToolError(DevstackError):
    """Something this machine must have is not installed."""


class ServerFailedError(DevstackError):
    """A server ended, or did not answer in time; the message quotes the end of its log."""
