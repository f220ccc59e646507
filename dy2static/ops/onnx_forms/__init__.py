"""Ops as nodes of ONNX: the rules that declarations name in ``onnx=``, where the name of an operator does not do.

A rule is ``rule(o, types, results, *operands, **attrs)``, as `dy2static.ir.op.OpDef` says.  It gives NumPy's values:
signs of remainders, NaN, wrap-around, indices counted from the end, axes of size zero.
"""
