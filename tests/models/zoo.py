"""All models: importing a family adds its own."""
from models import agents, generative, imagenet, images, language, sequences, third_party  # noqa: F401
from models.training import ZOO

__all__ = ["ZOO"]
