"""What is known of Chainer's functions: names of their classes."""
from __future__ import annotations

from .table import named, read

#: Classes of functions, by their names.
NODES = read("""
views: AsStrided BroadcastTo Cast Contiguous Copy Diagonal Dropout ExpandDims Flip FlipLR FlipUD GetItem Identity Moveaxis
    Reshape Rollaxis SplitAxis Squeeze SumTo Swapaxes Transpose
rereads: Add AddConstant BatchNormalization BilinearFunction Bias Concat Convolution2DFunction ConvolutionND Deconvolution2DFunction
    DeconvolutionND Div EinSum EmbedIDFunction Exp LayerNormalization LinearFunction MatMul Mul MulConstant Neg PReLUFunction
    PowVarConst Softmax Stack Sub Sum Tanh TensorDot LinearGradData
""")

#: Those that may give their operand or a view of it.
VIEWING = named("views", NODES)
