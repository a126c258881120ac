"""The main job, real and whole: a running Spark job moves between clusters, and proves it."""
