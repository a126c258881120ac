"""The one error of a release."""


class ReleaseError(Exception):
    """Nothing can be released: the message names the cause and the next step."""
