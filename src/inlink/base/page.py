"""The frame of an HTML page that is one file: it loads nothing, and runs only its own script."""

import base64
import hashlib
import html
from importlib.resources import files

__all__ = ["csp_hash", "page_head"]


def csp_hash(text: str) -> str:
    """Return the hash of a script or style sheet, as a Content-Security-Policy names it, after ``sha256-``."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page_head(title: str, *, script: str = "", images: bool = False) -> str:
    """Return the beginning of a report, up to its body. Its style sheet is that of all reports.

    Parameters
    ----------
    title : str
        The title, which is escaped.
    script : str
        The script that the page may run. It is not part of the head.
    images : bool
        Whether the page may show images that it contains.
    """
    style = (files("inlink.base") / "assets" / "report.css").read_text()
    sources = f"style-src 'sha256-{csp_hash(style)}'"
    if images:
        sources += "; img-src data:"
    if script:
        sources += f"; script-src 'sha256-{csp_hash(script)}'"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; {sources}">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body>\n"
    )
