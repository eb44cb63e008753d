"""What the machine can do at most: products of matrices and reading of memory, measured when asked for.

A race that states ratios states these beside them: seconds belong to a machine and to what else it is doing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.solvers.base import usable_cores

SIZE = 2048  # of the square matrices: far beyond every cache, and less than a second in float64
NUMBERS = 2**27  # float32 numbers that are read: 512 MB, far beyond every cache
REPEATS = 5  # the fastest counts


def measure() -> dict[str, float]:
    """GFLOP/s of NumPy's matrix product in both precisions on all cores; GB/s of reading on one thread and on all."""
    numbers = np.ones(NUMBERS, dtype=np.float32)
    return {
        "float32_gemm_gflops": gemm(np.float32),
        "float64_gemm_gflops": gemm(np.float64),
        "read_gb_per_s_one_thread": reading(numbers, 1),
        "read_gb_per_s_all_threads": reading(numbers, usable_cores()),
    }


def gemm(dtype: Any) -> float:
    """Of the product of two square matrices."""
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((SIZE, SIZE)).astype(dtype) for _ in range(2))
    return 2.0 * SIZE**3 / fastest(lambda: left @ right) / 1e9


def reading(numbers: Any, n_threads: int) -> float:
    """Of inner products, one part of the numbers per thread."""
    parts = np.array_split(numbers, n_threads)
    with threadpool_limits(1), ThreadPoolExecutor(n_threads) as threads:
        return float(numbers.nbytes / fastest(lambda: list(threads.map(lambda part: part @ part, parts))) / 1e9)


def fastest(work: Callable[[], Any]) -> float:
    """Seconds of the fastest call after one that warms up."""
    work()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def said(ceilings: dict[str, float]) -> str:
    """One line of them."""
    return (
        f"ceilings: GEMM {ceilings['float32_gemm_gflops']:.0f} GFLOP/s in float32, "
        f"{ceilings['float64_gemm_gflops']:.0f} in float64; reading {ceilings['read_gb_per_s_one_thread']:.1f} GB/s "
        f"on one thread, {ceilings['read_gb_per_s_all_threads']:.1f} on all"
    )
