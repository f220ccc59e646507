"""Runs an inference model that `train.py` saved on the digits to test; no class of the model is needed.

    python examples/paddle/serve.py FOLDER PROBABILITIES.npy
"""
import sys

from dy2static import CPUPlace, Executor, load_inference_model
import numpy as np
from sklearn.datasets import load_digits


def main():
    folder, results = sys.argv[1:]
    bunch = load_digits()
    images, labels = (bunch.data[1440:] / 16).astype(np.float32), bunch.target[1440:]
    exe = Executor(CPUPlace())
    program, feed_names, fetch_targets = load_inference_model(folder, exe)
    print("served:", ", ".join(feed_names), "->", [target.shape for target in fetch_targets])
    probabilities, = exe.run(program, feed={feed_names[0]: images}, fetch_list=fetch_targets)
    print(f"accuracy {np.mean(probabilities.argmax(axis=1) == labels):.4f} in another process", flush=True)
    one, = exe.run(program, feed={feed_names[0]: images[:1]}, fetch_list=fetch_targets)
    print(f"one image alone: {one.argmax()}, which is {labels[0]}", flush=True)
    np.save(results, probabilities)


if __name__ == "__main__":
    main()
