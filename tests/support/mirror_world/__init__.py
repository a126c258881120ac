"""Worlds of one partition that MirrorMaker 2 copies, drawn at random, whose truth is known.

``records`` and ``logs`` hold what lies where, ``writer`` and ``mirror`` are MirrorMaker 2 and
Connect after Kafka's own code, ``world`` lets things happen and knows the truth, ``kinds`` says
what can happen, and ``draw`` draws. None of them knows a rule of translation. ``judging`` compares
answers with the truth; ``python -m tests.support.mirror_world`` does so for many worlds.
"""
