"""dy2static compiles imperative Chainer code, with its Python control flow, through ``@to_static``.

Import it before Chainer: the first thing it does is to make Chainer importable on today's Python and NumPy.
"""
from dy2static import compat

compat.install()

__version__ = "0.2.0"

from dy2static.runtime.collection import settle, uncollected  # noqa: E402

with uncollected():                                     # what is imported stays: collections would find nothing
    from dy2static import export, extensions, pipeline
    from dy2static.api import enable_to_static, ignore_module, not_to_static, to_static
    from dy2static.api import set_code_level, set_pass_level, set_verbosity
    from dy2static.backends.pipelines import pipelines
    from dy2static.errors import (
        CaptureError,
        CheckWarning,
        DivergenceError,
        Dy2StaticError,
        FallbackWarning,
        LoadError,
        SaveError,
        SaveWarning,
        SettingWarning,
    )
    from dy2static.freezing import freeze, unfreeze
    from dy2static.paddle.executor import Executor
    from dy2static.paddle.models import load_inference_model
    from dy2static.paddle.names import install as install_paddle_names
    from dy2static.paddle.places import CPUPlace, CUDAPlace
    from dy2static.paddle.traced_layer import TracedLayer
    from dy2static.paddle.translator import ProgramTranslator
    from dy2static.input_spec import InputSpec
    from dy2static.lowering.registration import register_lowering
    from dy2static.saved.layer import TranslatedLayer
    from dy2static.saved.loading import load
    from dy2static.saved.saving import save
    from dy2static.static_function import BoundStaticFunction, StaticFunction
    from dy2static.static_graph import patch_chainer, static_code, static_graph
    settle()

pipeline.install()
install_paddle_names()

__all__ = ["BoundStaticFunction", "CPUPlace", "CUDAPlace", "CaptureError", "CheckWarning", "DivergenceError", "Dy2StaticError",
           "Executor", "FallbackWarning", "InputSpec", "LoadError", "ProgramTranslator", "SaveError", "SaveWarning",
           "SettingWarning", "StaticFunction", "TracedLayer", "TranslatedLayer", "enable_to_static", "export", "extensions",
           "freeze", "ignore_module", "load", "load_inference_model", "not_to_static", "patch_chainer", "pipelines",
           "register_lowering", "save", "set_code_level", "set_pass_level", "set_verbosity", "static_code", "static_graph",
           "to_static", "unfreeze"]
