"""Catalog documents from outside: a file, a folder or standard input, as JSON or YAML."""

from signalbook.sources.documents import (
    Document,
    choose_model,
    include_loader,
    read_document,
    read_documents,
    read_model,
)
from signalbook.sources.parts import Part, parts

__all__ = [
    "Document",
    "Part",
    "choose_model",
    "include_loader",
    "parts",
    "read_document",
    "read_documents",
    "read_model",
]
