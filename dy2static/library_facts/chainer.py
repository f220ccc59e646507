"""What is known of Chainer's functions: names of their classes."""
from __future__ import annotations

from .table import named, read

#: Classes of functions, by their names.
NODES = read("""
views: AsStrided Contiguous Copy Diagonal Identity
views forgets: BroadcastTo Cast Dropout ExpandDims Flip FlipLR FlipUD GetItem Moveaxis Reshape Rollaxis SplitAxis Squeeze SumTo
    Swapaxes Transpose
rereads: Absolute BatchNormalization BilinearFunction Bias Clip Convolution2DFunction ConvolutionND Cos
    Deconvolution2DFunction DeconvolutionND Div EinSum ELU EmbedIDFunction LayerNormalization LeakyReLU LinearFunction
    MatMul Maximum Minimum Mul MulConstant PReLUFunction PowVarConst Sigmoid Sin Softplus Square Tanh TensorDot LinearGradData
rereads forgets: Add AddConstant Concat Exp LogSoftmax Neg ReLU Softmax Stack Sub Sum
forgets: Cumsum Depth2Space Dstack Expm1 Hstack Im2Col MultiAdd Pad Repeat Separate Space2Depth Sqrt SubFromConstant Tile Vstack
    Where
""")

#: Those that may give their operand or a view of it.
VIEWING = named("views", NODES)
