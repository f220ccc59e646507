"""All models: importing a family adds its own."""
from models import generative, images, language  # noqa: F401
from models.training import ZOO

__all__ = ["ZOO"]
