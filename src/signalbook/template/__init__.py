"""URI templates (RFC 6570 level 1, and `{+name}`): one text that a value is made from and matched against."""

from signalbook.template.template import Placeholder, Template

__all__ = ["Placeholder", "Template"]
