"""Torture: seeded attacks on crawl folders, graph folders, input files and running processes.

``make torture`` runs it for some minutes, and ``tests/house/test_torture.py`` for a few trials of each kind. A trial
ends in the right answer, or in an error of one line with exit code 2. Everything else is a violation: a crash, a
hang, a traceback, or another answer with exit code 0. Each trial has a number, and the seed and the number make it
again::

    python -m torture --seed 7 --only "crawl flips" --trial 1234
"""
