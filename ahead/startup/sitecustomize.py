"""Records the calls of kernels in each Python process that has this folder in PYTHONPATH."""

import ahead.record  # noqa: F401
