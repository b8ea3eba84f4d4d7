"""The conformance tests ask the same registry in this process as the tests of the registry do."""

from tests.registry.conftest import Api, MakeApi, Reply, make_api

__all__ = ["Api", "MakeApi", "Reply", "make_api"]
