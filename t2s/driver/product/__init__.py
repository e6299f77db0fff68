"""Lower a product of a sparse matrix to its graph.

This part of ``driver`` connects the directives of ``t2s.spatial`` with ``t2s.sparse_repr``: from
the directives it derives the parts and sizes of a ``Product``.
"""

from t2s.driver.product.from_func import (
    bytes_moved,
    interpret_product,
    lower_product,
    parts_of,
    product_of,
    split_inputs,
)
from t2s.sparse_repr.representation.hardware.product import Product

__all__ = [
    "Product",
    "bytes_moved",
    "interpret_product",
    "lower_product",
    "parts_of",
    "product_of",
    "split_inputs",
]
