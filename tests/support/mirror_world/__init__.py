"""Worlds of one partition that MirrorMaker 2 copies, drawn at random, whose truth is known.

- ``logs`` and ``mirror`` extend the logs and the simulated MirrorMaker 2 of
  ``airflow_mm2_offsets.testing`` by what can go wrong, set up by ``settings``. ``world`` runs
  ``steps`` and knows the truth. ``kinds`` lists what can happen, and ``draw`` draws from it. None
  of them knows a rule of translation.
- ``clusters`` and ``archives`` show a world to a plan. ``index_check``, ``plan_check`` and
  ``wait_check`` ask for answers, ``judging`` compares them with the truth, ``telling`` says
  whether anything could have shown a loss, and ``report`` counts.
- ``python -m tests.support.mirror_world`` does that for many worlds, and ``cases`` for pytest.

``tests.support.worlds`` draws worlds with fewer mishaps, whose upper bounds hold as well.
"""
