"""The road from a product of a sparse matrix to its graph.

Like ``driver``, of which it is a part, it knows the directives of ``t2s.spatial`` and what
``t2s.sparse_repr`` builds from them: directives become the parts and numbers of a ``Product``.
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
