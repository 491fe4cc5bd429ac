"""Adapter of KerasHub for `posenc scoreboard`, by Keras with TensorFlow: runs keras.py with this backend."""
import runpy
from pathlib import Path

PACKAGES = ["tensorflow", "keras", "keras-hub"]

runpy.run_path(str(Path(__file__).with_name("keras.py")), init_globals={"BACKEND": "tensorflow"})
