"""Stand-ins for what Chainer imports from modules that are gone: pkg_resources and onnx.mapping."""
from __future__ import annotations

import importlib.metadata
from types import SimpleNamespace
from typing import Any

import numpy
from packaging.requirements import Requirement


class DistributionNotFound(Exception):
    """A required distribution is not installed."""


class VersionConflict(Exception):
    """A required distribution is installed in a version that does not fit."""


def require(*requirements: str) -> None:
    """Check that every requirement (``"cupy>=7"``) is installed in a version that fits."""
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            raise DistributionNotFound(text) from None
        if not requirement.specifier.contains(version, prereleases=True):
            raise VersionConflict(f"{text} (installed: {version})")


class WorkingSet:
    """The installed distributions."""

    def require(self, *requirements: str) -> None:
        """Check that every requirement is installed in a version that fits."""
        require(*requirements)


pkg_resources = SimpleNamespace(
    WorkingSet=WorkingSet, require=require, DistributionNotFound=DistributionNotFound,
    VersionConflict=VersionConflict, ResolutionError=(DistributionNotFound, VersionConflict))


class _TensorTypes:
    """ONNX's number for a NumPy dtype, by index."""

    def __getitem__(self, dtype: Any) -> int:
        import onnx.helper

        return int(onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype)))


NP_TYPE_TO_TENSOR_TYPE = _TensorTypes()

# TensorProto.DataType -> the field of a TensorProto that holds such data
STORAGE_TENSOR_TYPE_TO_FIELD = {
    1: "float_data", 6: "int32_data", 7: "int64_data", 8: "string_data", 9: "int32_data", 10: "int32_data",
    11: "double_data", 12: "uint64_data", 13: "uint64_data",
}
