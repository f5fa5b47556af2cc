"""Zstandard: the module of Python 3.14 and later, or its backport."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdError, ZstdFile
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdError, ZstdFile

__all__ = ["ZstdCompressor", "ZstdDecompressor", "ZstdError", "ZstdFile"]
