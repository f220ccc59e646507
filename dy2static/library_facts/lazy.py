"""What lazy arrays have to know of NumPy's functions and methods: which enter expressions, and which see memory of others."""
from __future__ import annotations

from .table import read

#: Functions of ``numpy``.
FUNCTIONS = read("""
at_once: nonzero unique meshgrid broadcast_arrays split array_split hsplit vsplit dsplit histogram histogram2d histogramdd ix_
    diag_indices diag_indices_from tril_indices triu_indices tril_indices_from triu_indices_from unravel_index atleast_1d atleast_2d
    atleast_3d trim_zeros gradient unstack/2 polydiv polyfit block average nanpercentile nanquantile lexsort select choose argwhere
    flatnonzero extract compress intersect1d setdiff1d setxor1d union1d
at_once looks: allclose array_equal array_equiv
looks: array2string array_repr array_str result_type can_cast iscomplexobj isrealobj may_share_memory shares_memory save savez
    savetxt common_type min_scalar_type
sees: transpose swapaxes moveaxis rollaxis squeeze expand_dims flip fliplr flipud rot90 matrix_transpose/2 permute_dims/2
sees memory: reshape ravel real imag
sees memory late: einsum round around
sees fixed: broadcast_to diagonal
sees memory fixed: diag
""")

#: Functions of ``numpy.linalg``.
LINALG = read("""
at_once: lstsq slogdet svd eigh qr LinAlgError
""")

#: Methods of arrays.
METHODS = read("""
built: all any argmax argmin argpartition argsort astype clip copy cumprod cumsum dot flatten max mean min prod repeat
    searchsorted std sum take trace var
built sees: squeeze swapaxes transpose
built sees memory: ravel reshape
built sees memory late: conj conjugate round
built sees fixed: diagonal
changes: byteswap fill itemset/1 partition put sort
refused: resize setflags
""")
