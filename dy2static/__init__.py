"""dy2static compiles imperative Chainer code, with its Python control flow, through ``@to_static``.

Import it before Chainer: the first thing it does is to make Chainer importable on today's Python and NumPy.
"""
from dy2static import compat

compat.install()

__version__ = "0.1.0"
