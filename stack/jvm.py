"""Options of the JVMs that the stack and the tests start."""

QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""No time spent on optimising code that runs for seconds or minutes."""
