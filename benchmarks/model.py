"""The model that everything is measured on."""

from functools import cache

from engine.catalog import load_catalog
from engine.model import LoadedModel, load


@cache
def embedded() -> LoadedModel:
    """The default model in float32 on the CPU."""
    catalog = load_catalog()
    return load(catalog.find(catalog.default), device="cpu", dtype="float32")
