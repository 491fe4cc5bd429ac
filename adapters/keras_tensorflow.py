"""KerasHub, by Keras with TensorFlow: the functions of keras.py."""
import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).with_name("keras.py")), {"BACKEND": "tensorflow"})

PACKAGES = ["tensorflow", "keras", "keras-hub"]
