"""Networks of the sizes that people run, beside PyTorch, JAX and the inference engines ONNX Runtime and OpenVINO.

    python benchmarks/networks.py --install                  # the peers, each in an environment of its own
    python benchmarks/networks.py [--cells ResNet50,BERT] [--columns "dy2static;ONNX"] [--threads 2] [--rounds 15] [--seconds 0.15]
    python benchmarks/networks.py --memory                   # peak memory, a process each

Each framework has a process of its own; in a round each of them runs for a moment while the others wait, and ratios are formed
within rounds.  On one thread the lesser of processor and wall time counts.  Engines run models that PyTorch has exported, and
inference only; "frozen" is inference after `dy2static.freeze`.  What is not installed is left out.
"""
from rounds import Column, run

COLUMNS = (
    Column("Chainer", "chainer", ("eager",)),
    Column("dy2static", "chainer", ("dy2static",)),
    Column("dy2static, frozen", "chainer", ("frozen",)),
    Column("PyTorch", "torch", ("eager",), "torch"),
    Column("torch.compile", "torch", ("compile",), "torch"),
    Column("JAX", "jax", ("jit",), "jax"),
    Column("ONNX Runtime", "engines", ("onnxruntime",), "torch"),
    Column("OpenVINO", "engines", ("openvino",), "torch"),
)

if __name__ == "__main__":
    run(__doc__, ["nets", "further", "recent", "twins"], COLUMNS, "dy2static")
