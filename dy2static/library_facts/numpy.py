"""What is known of NumPy's functions, and of the methods and attributes of arrays.

Each name stands once in the table of its place, behind its marks (`table.MARKS`); ``name/1`` and ``name/2`` are of NumPy 1 or 2
only.  A method has the marks of the function of its name, too.  Ufuncs are told by their type, and have marks for more than that.
"""
from __future__ import annotations

from .table import named, read

#: Functions of ``numpy``, and modules that are its attributes.
FUNCTIONS = read("""
saved: alltrue/1 array_equiv asarray_chkfinite asfortranarray bartlett blackman concat/2 convolve correlate
    cumproduct/1 cumulative_prod/2 cumulative_sum/2 diag_indices diag_indices_from ediff1d hamming hanning histogram2d
    histogram_bin_edges histogramdd i0 ix_ kaiser lexsort matrix_transpose/2 nanargmax nanargmin nancumprod nancumsum
    nanmedian nanpercentile nanprod nanquantile packbits permute_dims/2 polyadd polydiv polyfit polymul polysub polyval
    product/1 row_stack/1 sometrue/1 tril_indices_from trim_zeros triu_indices_from unpackbits unwrap
saved writes: fill_diagonal place put put_along_axis putmask
saved writes contents: copyto
saved types: ndim
saved types sizes: shape size
saved follows contents: insert
saved follows: block corrcoef cov gradient in1d/1 trapezoid/2 trapz/1
saved follows: angle argwhere atleast_1d atleast_2d atleast_3d average broadcast_arrays compress count_nonzero extract fix
    flatnonzero iscomplex isneginf isposinf isreal meshgrid nanmean nanstd nanvar ptp round_/1 sinc
saved follows sure: imag real
saved follows sure contents: clip dot full_like
saved follows sure contents listed: all any concatenate max min prod stack sum
saved follows sure contents alike: where
saved follows sure contents constant listed sends same: array asarray
saved follows sure sizes new: argsort
saved follows sure sizes: astype/2 broadcast_to copy empty_like expand_dims ones_like ravel reshape squeeze swapaxes
    transpose zeros_like
saved follows sure sizes listed: argmax argmin mean std var
saved follows sure sizes ordered: empty
saved follows sure sizes ordered constant: eye ones zeros
saved follows sure sizes constant new: cumsum repeat
saved follows sure sizes constant: tile
saved follows sure ordered constant: full
saved follows contents sends same: asanyarray ascontiguousarray
saved follows contents: allclose append cross inner isclose isin kron nan_to_num nanmax nanmin nansum outer
    select vdot
saved follows contents listed: amax amin column_stack dstack hstack vstack
saved follows sizes new: cumprod searchsorted sort take take_along_axis
saved follows sizes: argpartition choose einsum flip fliplr flipud indices interp median moveaxis pad partition
    percentile quantile roll rollaxis rot90 round tensordot trace tril triu vander
saved follows sizes rising: digitize histogram
saved follows sizes ordered constant: identity linspace
saved follows alike: nonzero unique
saved sure sizes ordered constant: arange
saved contents: array_equal
saved sizes: around array_split bincount delete diag diagflat diagonal diff dsplit geomspace hsplit logspace
    ravel_multi_index resize split unravel_index unstack/2 vsplit
saved follows sizes constant: tri
saved misleading: intersect1d poly polyder polyint roots setdiff1d setxor1d union1d
saved alike: tril_indices triu_indices
impure: apply_along_axis apply_over_axes ctypeslib f2py/2 fromfile fromfunction fromiter frompyfunc lib load loadtxt memmap
    piecewise random set_printoptions setbufsize seterr seterrcall testing vectorize
impure refused: nditer save savetxt savez
impure asks: errstate
refused: may_share_memory ndenumerate require shares_memory
memory: frombuffer
asks: dtype finfo iinfo issubdtype promote_types
types: can_cast iscomplexobj isrealobj isscalar result_type
sizes: ldexp
misleading: real_if_close
alike: mask_indices
compares: equal greater greater_equal less less_equal not_equal
""")

#: Functions of ``numpy.linalg``.
LINALG = read("""
saved: LinAlgError cond eigh lstsq matrix_norm/2 matrix_power matrix_rank qr slogdet svd svdvals/2 vector_norm/2
saved new: cholesky eigvalsh multi_dot tensorinv tensorsolve
saved follows: det
saved follows new: inv pinv solve
saved follows sizes: norm
saved misleading: eig eigvals
""")

#: Functions of ``numpy.random`` and methods of its generators: they all draw.
RANDOM = read("""
saved: beta binomial chisquare choice dirichlet exponential gamma geometric gumbel laplace logistic lognormal multinomial
    multivariate_normal normal permutation poisson rand randint randn random random_integers random_sample ranf rayleigh sample
    standard_cauchy standard_exponential standard_gamma standard_normal standard_t triangular uniform weibull
refused: shuffle
state: bit_generator get_state seed set_state spawn
""")

#: Methods of arrays.
METHODS = read("""
saved: choose compress
saved writes: partition put sort
saved writes contents: fill
saved changes contents: itemset/1
saved reads new: argsort cumprod cumsum repeat searchsorted take
saved reads: all any argmax argmin argpartition astype clip copy diagonal dot max mean min nonzero prod ptp/1 round squeeze std sum
    swapaxes tolist trace transpose var
saved reads memory: ravel reshape
saved reads follows sure sizes: item
saved reads follows sure sizes memory: flatten
saved follows: conj conjugate
changes: byteswap resize setfield setflags
host memory: tobytes tostring/1
refused: dump dumps getfield newbyteorder/1 tofile view
""")

#: Attributes of arrays that are no methods.
ATTRIBUTES = read("""
saved: flat itemsize mT/2 nbytes
saved reads: dtype imag ndim real shape size
saved reads follows sure: T
hidden: __array_interface__ __array_struct__ ctypes
reads: base data flags strides
""")

#: Attributes through which memory is seen.
HIDDEN = named("hidden", ATTRIBUTES)

#: Methods of ufuncs.
UFUNC_METHODS = read("""
saved follows contents: accumulate reduce
saved: at outer reduceat
""")
