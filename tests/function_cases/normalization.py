"""Calls of chainer.functions.normalization."""
import chainer.functions as F
from lowering_cases.case import Case

CASES = [
    Case("batch_normalization keeps statistics", lambda x, gamma, beta, mean, var: F.batch_normalization(
        x, gamma, beta, running_mean=mean.array, running_var=var.array, decay=0.8), (4, 3), *[(3,)] * 4, low=0.5),
    Case("batch_renormalization", lambda x, gamma, beta, mean, var: F.batch_renormalization(
        x, gamma, beta, 1.5, 0.5, running_mean=mean.array, running_var=var.array), (4, 3), *[(3,)] * 4, low=0.5),
    Case("batch_renormalization keeps statistics", lambda x, gamma, beta, mean, var: F.batch_renormalization(
        x, gamma, beta, 1.5, 0.5, running_mean=mean.array, running_var=var.array, update_statistics=True),
        (4, 3, 2), *[(3,)] * 4, low=0.5),
    Case("fixed_batch_renormalization", F.fixed_batch_renormalization, (4, 3), *[(3,)] * 4, low=0.5),
    Case("decorrelated_batch_normalization", lambda x: F.decorrelated_batch_normalization(x, groups=2), (6, 4), dtypes="f d"),
    Case("decorrelated_batch_normalization keeps statistics", lambda x, mean, projection: F.decorrelated_batch_normalization(
        x, groups=1, running_mean=mean.array, running_projection=projection.array), (3, 2, 3), (1, 2), (1, 2, 2), dtypes="f d"),
    Case("fixed_decorrelated_batch_normalization", lambda x, mean, projection: F.fixed_decorrelated_batch_normalization(
        x, mean, projection, groups=2), (5, 4), (2, 2), (2, 2, 2), dtypes="f d"),
    *(Case(f"group_normalization {shape} {groups}", lambda x, gamma, beta, groups=groups: F.group_normalization(x, groups, gamma, beta),
           shape, shape[1:2], shape[1:2]) for shape, groups in (((2, 4, 3), 2), ((3, 4), 1), ((2, 3, 2, 2), 3))),
    *(Case(f"normalize {shape} {axis}", lambda x, axis=axis: F.normalize(x, axis=axis), shape)
      for shape, axis in (((4, 3), 1), ((2, 3, 2), (1, 2)), ((3,), 0), ((2, 1), 1))),
    *(Case(f"local_response_normalization {options}", lambda x, options=options: F.local_response_normalization(x, **options),
           (2, 6, 2)) for options in ({}, {"n": 3, "k": 1, "alpha": 0.01, "beta": 0.5})),
]
