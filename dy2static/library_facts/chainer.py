"""What is known of Chainer's functions: names of their classes."""
from __future__ import annotations

from .table import named, read

#: Classes of functions, by their names.
NODES = read("""
views: AsStrided BroadcastTo Cast Contiguous Copy Diagonal Dropout ExpandDims Flip FlipLR FlipUD GetItem Identity Moveaxis
    Reshape Rollaxis SplitAxis Squeeze SumTo Swapaxes Transpose
rereads: Absolute BatchNormalization BilinearFunction Bias Clip Convolution2DFunction ConvolutionND Cos
    Deconvolution2DFunction DeconvolutionND Div EinSum ELU EmbedIDFunction Exp LayerNormalization LeakyReLU LinearFunction
    LogSoftmax MatMul Maximum Minimum Mul MulConstant PReLUFunction PowVarConst ReLU Sigmoid Sin Softmax Softplus Square
    Tanh TensorDot LinearGradData
rereads forgets: Add AddConstant Concat Neg Stack Sub Sum
forgets: MultiAdd SubFromConstant
""")

#: Those that may give their operand or a view of it.
VIEWING = named("views", NODES)
