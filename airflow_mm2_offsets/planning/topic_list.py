"""The list of a job's topics on the target, which the job gets as an argument; pure.

A long list has no file, as long offsets have: a job that reads thousands of topics subscribes by a
pattern.
"""


def find_long_list(topics: str, max_bytes: int) -> str | None:
    """Return why a list of topics can't be an argument, as a sentence; None if it can.

    Args:
        topics: The topics' names on the target, separated by commas.
        max_bytes: The longest argument.
    """
    size = len(topics.encode())
    if size <= max_bytes:
        return None
    return (
        f"the list of the {topics.count(',') + 1} topics on the target has {size} bytes, and an "
        f"argument of the job may have {max_bytes} (argument_max_bytes): let the job subscribe by "
        f"subscribePattern, and give that as subscribe_pattern; then its arguments need no list"
    )
