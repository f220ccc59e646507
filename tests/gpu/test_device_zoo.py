"""Models of the zoo train on arrays of the stand-in for CuPy as they do eagerly there, and are compiled whole."""
import pytest
from cupy_double import on_double
from models_on_double import compare

MODELS = [
    "MLP", "CNN: batch normalisation, dropout", "ResNet, small", "VAE", "VAE, F.gaussian", "MAML: two inner steps, second order",
    "char RNN, stateful LSTM, truncated", "word2vec: CBOW, softmax", "word2vec: SkipGram, hierarchical softmax",
    "word2vec: SkipGram, negative sampling", "WaveNet, small", "tree on data-dependent recursion", "actor-critic update (A2C)"]


@pytest.mark.parametrize("name", MODELS)
@on_double
def test_model(name):
    compare(name)
