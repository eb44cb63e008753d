"""What maxmargin uses of other libraries that they do not promise to keep, each with the reason: the only such file.

=====================  ========================================  ==================================================
name                   where it is                               why
=====================  ========================================  ==================================================
LinearClassifierMixin  sklearn.linear_model._base                scores and classes as its own linear classifiers
SparseCoefMixin        sklearn.linear_model._base                ``sparsify`` and ``densify``
ovr_decision_function  sklearn.utils.multiclass                  votes of pairs, with its ties
CallbackSupportMixin,  sklearn.callback (experimental)           progress bars and other listeners
with_callbacks
listeners_of           the attribute that sklearn.callback sets  who listens: nothing is reported to nobody
blas_capsules          ``__pyx_capi__`` of cython_blas and       products and Cholesky factors without a BLAS of our
                       cython_lapack in scipy.linalg             own
numpy_c_api            numpy's ``_ARRAY_API``                    its table of C functions, without its headers: to
                                                                 ask for PyDataMem_SetHandler (NEP 49)
set_blas_threads       ``_real_set_num_threads`` of              OpenBLAS has one pool per process; the public
                       threadpoolctl's controllers               setter obeys one Python thread only
=====================  ========================================  ==================================================

scikit-learn is imported when one of its names is first used, and only where estimators are defined.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SKLEARN = {
    "LinearClassifierMixin": ("sklearn.linear_model._base", "LinearClassifierMixin"),
    "SparseCoefMixin": ("sklearn.linear_model._base", "SparseCoefMixin"),
    "ovr_decision_function": ("sklearn.utils.multiclass", "_ovr_decision_function"),
    "CallbackSupportMixin": ("sklearn.callback", "CallbackSupportMixin"),
    "with_callbacks": ("sklearn.callback", "with_callbacks"),
}


def __getattr__(name: str) -> Any:
    if name not in _SKLEARN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _SKLEARN[name]
    return getattr(import_module(module), attribute)


def listeners_of(estimator: Any) -> Any:
    """The callbacks that scikit-learn has registered on an estimator, None if there are none."""
    return getattr(estimator, "_skl_callbacks", None)


def forget_listeners(estimator: Any) -> None:
    """Let nobody listen to this estimator any more."""
    estimator.__dict__.pop("_skl_callbacks", None)


def blas_capsules() -> dict[str, Any]:
    """Capsules of the routines the core borrows, by name; a capsule's name is its signature, which the core checks."""
    blas = import_module("scipy.linalg.cython_blas").__pyx_capi__
    lapack = import_module("scipy.linalg.cython_lapack").__pyx_capi__
    routines = {name: blas[name] for name in ("dsyrk", "ssyrk", "dgemm", "sgemm", "dtrsm", "strsm")}
    return routines | {name: lapack[name] for name in ("dpotrf", "spotrf")}


def numpy_c_api() -> Any:
    """The capsule of NumPy's C functions, which compiled extensions get in the same way."""
    return import_module("numpy._core._multiarray_umath")._ARRAY_API


def set_blas_threads(library: Any, count: int) -> None:
    """Set the number of threads of a BLAS that threadpoolctl has found."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(count)
