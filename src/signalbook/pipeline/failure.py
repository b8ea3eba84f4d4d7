"""`PipelineError`: what stops a landing before it has changed anything."""

from __future__ import annotations

from signalbook.errors import SignalbookError

__all__ = ["PipelineError"]


class PipelineError(SignalbookError):
    """A landing that cannot begin or go on, in one sentence with the likely remedy."""
