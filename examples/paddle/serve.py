"""Runs an inference model that `train.py` saved on the digits to test; no class of the model is needed.

    python examples/paddle/serve.py FOLDER PROBABILITIES.npy
"""
import argparse

from dy2static import CPUPlace, Executor, load_inference_model
import numpy as np
from sklearn.datasets import load_digits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="what train.py has saved (a TracedLayer's inference model)")
    parser.add_argument("results", help="the .npy file for the probabilities")
    args = parser.parse_args()
    bunch = load_digits()
    images, labels = (bunch.data[1440:] / 16).astype(np.float32), bunch.target[1440:]
    exe = Executor(CPUPlace())
    program, feed_names, fetch_targets = load_inference_model(args.folder, exe)
    print("served:", ", ".join(feed_names), "->", [target.shape for target in fetch_targets])
    probabilities, = exe.run(program, feed={feed_names[0]: images}, fetch_list=fetch_targets)
    print(f"accuracy {np.mean(probabilities.argmax(axis=1) == labels):.4f} in another process", flush=True)
    one, = exe.run(program, feed={feed_names[0]: images[:1]}, fetch_list=fetch_targets)
    print(f"one image alone: {one.argmax()}, which is {labels[0]}", flush=True)
    np.save(args.results, probabilities)


if __name__ == "__main__":
    main()
