"""Catalog documents from outside: a file, a folder, standard input or a running registry, as JSON or YAML."""

from signalbook.sources.catalogs import Contents, Reach, Source, open_source
from signalbook.sources.documents import (
    Document,
    Part,
    choose_model,
    include_loader,
    parts,
    read_document,
    read_documents,
    read_model,
)

__all__ = [
    "Contents",
    "Document",
    "Part",
    "Reach",
    "Source",
    "choose_model",
    "include_loader",
    "open_source",
    "parts",
    "read_document",
    "read_documents",
    "read_model",
]
