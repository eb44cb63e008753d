"""Models as they are saved, loaded, used and certified."""

from maxmargin.models.certification import certify
from maxmargin.models.document import ModelFileError
from maxmargin.models.file import from_bytes, load, save, to_bytes
from maxmargin.models.liblinear_file import read_liblinear_model, write_liblinear_model
from maxmargin.models.libsvm_file import read_libsvm_model, write_libsvm_model
from maxmargin.models.model import Model, Training, relabelled, trained_on
from maxmargin.models.scaling import Scaling

__all__ = [
    "Model",
    "ModelFileError",
    "Scaling",
    "Training",
    "certify",
    "from_bytes",
    "load",
    "read_liblinear_model",
    "read_libsvm_model",
    "relabelled",
    "save",
    "to_bytes",
    "trained_on",
    "write_liblinear_model",
    "write_libsvm_model",
]
