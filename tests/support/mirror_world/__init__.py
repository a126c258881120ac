"""Worlds of one partition that MirrorMaker 2 copies, drawn at random, whose truth is known.

- ``logs`` and ``mirror`` extend the logs and the simulated MirrorMaker 2 of
  ``airflow_mm2_offsets.testing`` by what can go wrong, set up by ``settings``; ``world`` runs
  ``steps`` and knows the truth; ``kinds`` says what can happen, and ``draw`` draws. None of them
  knows a rule of translation.
- ``clusters`` and ``archives`` are a world as a plan sees it; ``index_check``, ``plan_check`` and
  ``wait_check`` ask; ``judging`` compares with the truth; ``telling`` says whether anything could
  have told a loss; ``report`` counts.
- ``python -m tests.support.mirror_world`` does all that for many worlds, ``cases`` for pytest.
"""
