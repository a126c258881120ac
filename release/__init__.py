"""A release, written to a folder: ``make release``. Nothing is uploaded."""
