"""The waits: each polls until it is over, its deadline passes, or it can't end well."""
