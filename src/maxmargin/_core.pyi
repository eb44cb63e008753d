from typing import Any

import numpy as np
from numpy.typing import NDArray

F = NDArray[np.float64]

class DeadlineReached(TimeoutError): ...

class Rows:
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def is_sparse(self) -> bool: ...
    def unchanged(self, n_threads: int) -> bool: ...
    @staticmethod
    def dense(X: NDArray[Any]) -> Rows: ...
    @staticmethod
    def csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_cols: int) -> Rows: ...

class Watch:
    def __init__(self, interval: float = 0.05, deadline: float | None = None) -> None: ...
    @property
    def past_deadline(self) -> bool: ...
    def cancel(self) -> None: ...
    @property
    def n_polls(self) -> int: ...

class Blas:
    @staticmethod
    def borrow(capsules: dict[str, Any]) -> Blas: ...

class Barrier:
    def __init__(
        self,
        boxed: bool,
        y: F,
        C: F,
        target: F,
        alpha: F,
        t: F,
        s: F,
        xi: F,
        margin: F,
        D: F,
        e_s: F,
        e_xi: F,
        d_alpha: F,
        d_margin: F,
    ) -> None: ...
    def scale(self, n_threads: int, /) -> None: ...
    def coefficient(self, out: F, n_threads: int) -> None: ...
    def direction(self, rows: Rows, dw: F, db: float, n_threads: int, watch: Watch | None = None) -> float: ...
    def complementarity(self, step: float, n_threads: int, /) -> float: ...
    def second_order(self, mu: float, n_threads: int, /) -> None: ...
    def recentre(self, step: float, mu: float, n_threads: int, /) -> None: ...
    def move(self, step: float, n_threads: int, /) -> None: ...

class Descent:
    def __init__(
        self,
        y: F,
        lower: F,
        upper: F,
        diagonal: F,
        tube: float,
        target: F,
        sq_norm: F,
        alpha: F,
        w: F,
        bias_center: float,
        bias_gain: float,
        signed_sum: float,
        seed: int,
        workers: int = 1,
        exchanges: int = 1,
        entropy: bool = False,
    ) -> None: ...
    def epoch(self, rows: Rows, watch: Watch | None = None, n_threads: int = 1) -> float: ...
    def unshrink(self) -> None: ...
    @property
    def n_active(self) -> int: ...
    @property
    def n_halved(self) -> int: ...
    @property
    def bias(self) -> float: ...
    bias_center: float

class Joint:
    def __init__(
        self,
        label: NDArray[np.int32],
        cost: F,
        sq_norm: F,
        alpha: F,
        W: F,
        class_sum: F,
        bias_center: F,
        bias_gain: float,
        scratch: F,
        seed: int,
    ) -> None: ...
    def epoch(self, rows: Rows, watch: Watch | None = None) -> float: ...
    def unshrink(self) -> None: ...
    @property
    def n_active(self) -> int: ...

class _Counts:
    n_seen: int
    n_steps: int
    n_mistakes: int
    n_corrections: int
    pause: bool

class _Learner(_Counts):
    def run(
        self, rows: Rows, y: F, order: NDArray[np.int64] | None, begin: int, end: int, watch: Watch | None = None
    ) -> int: ...

class Online(_Learner):
    def __init__(self, rule: str, v: F, batch: int = 1) -> None: ...
    def average(self, sum: F) -> None: ...
    def thin(self, l1: float, done: F) -> None: ...
    def extend(self, own: F, delta: float) -> None: ...
    def settle(self) -> None: ...
    scale: float
    b: float
    bias_gain: float
    margin: float
    rate: float
    offset: float
    power: float
    count_corrections: bool
    by_performance: bool
    recent: float
    k: int
    rho: float
    l1_total: float
    mean: bool
    sum_scale: float
    sum_b: float
    diverged: bool

class Pocket(_Learner):
    def __init__(self, rule: str, w: F, best_w: F) -> None: ...
    def pack(self, rows: Rows, y: F, reach: float) -> None: ...
    b: float
    bias_gain: float
    rate: float
    best_b: float
    best_errors: int
    best_run: int
    run_length: int
    judged: bool
    patience: int
    since_change: int
    n_evaluations: int

class Winnower(_Learner):
    def __init__(self, balanced: bool, s: F, w: F) -> None: ...
    s_bias: float
    w_bias: float
    log_base: float
    bias_input: float
    threshold: float
    shift: float

class Multiclass(_Counts):
    def __init__(self, W: F, b: F) -> None: ...
    def average(self, sum_W: F, sum_b: F) -> None: ...
    def run(
        self,
        rows: Rows,
        label: NDArray[np.int32],
        order: NDArray[np.int64] | None,
        begin: int,
        end: int,
        watch: Watch | None = None,
    ) -> int: ...
    bias_gain: float
    rate: float
    margin: float

class Dual(_Counts):
    def __init__(self, squares: bool, coefficient: F, score: F) -> None: ...
    def skip(self, y: F, order: NDArray[np.int64], begin: int) -> int: ...
    def row(self, K: F, i: int, y: float) -> bool: ...
    b: float
    bias_gain: float
    rate: float
    margin: float

def count_errors(rows: Rows, y: F, w: F, b: float) -> int: ...

class SvmlightParser:
    def __init__(self, keep_lines: bool = False) -> None: ...
    def feed(self, bytes: NDArray[np.uint8], last: bool, n_threads: int) -> int: ...
    def forgive(self) -> None: ...
    @property
    def error(self) -> tuple[int, int, str] | None: ...
    @property
    def n_lines(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def smallest_column(self) -> int: ...
    @property
    def largest_column(self) -> int: ...
    def take(self) -> tuple[F, NDArray[np.int32], NDArray[np.int64], F, NDArray[np.int64]]: ...

def scores(rows: Rows, w: F, bias: float, out: F, n_threads: int, watch: Watch | None = None) -> None: ...
def combine(rows: Rows, coefficient: F, out: F, n_threads: int, watch: Watch | None = None) -> None: ...
def compensated_scores(rows: Rows, w: F, high: F, low: F, n_threads: int) -> None: ...
def compensated_combine(rows: Rows, coefficient: F, out: F, n_threads: int) -> None: ...
def roomiest(alpha: F, sign: F, upper: F) -> tuple[int, float, int, float]: ...
def to_grid(alpha: F, sign: F, unit: float, out: F) -> tuple[int, int, float]: ...
def pool_connect(array_api: Any) -> None: ...
def pool_enter() -> Any: ...
def pool_leave(before: Any) -> None: ...
def pool_kept(release: bool = False) -> int: ...
def survey(rows: Rows, squared_norms: F, column_squares: F, n_threads: int) -> tuple[bool, float, int]: ...
def squared_norms(rows: Rows, out: F, n_threads: int) -> None: ...
def normal_matrix(
    rows: Rows, D: F, bias: float, H: F, blas: Blas, n_threads: int, watch: Watch | None = None, add: bool = False
) -> None: ...
def gram(
    rows: Rows, chosen: NDArray[np.int64], G: F, blas: Blas, n_threads: int, watch: Watch | None = None
) -> None: ...
def gram_block(
    rows: Rows,
    lines: NDArray[np.int64],
    columns: NDArray[np.int64],
    G: F,
    n_threads: int,
    watch: Watch | None = None,
) -> None: ...
def clipped_slope(z: F, dm: F, lower: F, upper: F, sigma: F, tube: float, t: float, n_threads: int) -> float: ...
def clipped_point(
    scores: F,
    b: float,
    sign: F,
    target: F,
    anchor: F,
    lower: F,
    upper: F,
    sigma: F,
    tube: float,
    z: F,
    pi: F,
    signed_pi: F,
    D: F,
    n_threads: int,
) -> tuple[float, float, float, float]: ...
def lasso_sweeps(
    H: F, g: F, price: F, w: F, d: F, Hd: F, max_sweeps: int, tol: float, watch: Watch | None = None
) -> int: ...
def info() -> dict[str, Any]: ...
def use_isa(name: str) -> None: ...

class KernelFunction:
    def __init__(self, kind: int, gamma: float, coef0: float, degree: float) -> None: ...

class Tiles:
    def __init__(self, packed: Rows, given: Rows, squares: F) -> None: ...

def kernel_block(
    kernel: KernelFunction,
    left: Tiles,
    lines: NDArray[np.int64],
    right: Tiles,
    out: NDArray[Any],
    column: int,
    blas: Blas,
    n_threads: int,
    watch: Watch | None = None,
) -> None: ...
def kernel_gram(
    kernel: KernelFunction,
    rows: Tiles,
    own: F,
    out: NDArray[Any],
    blas: Blas,
    n_threads: int,
    watch: Watch | None = None,
) -> None: ...
def kernel_scores(
    kernel: KernelFunction,
    left: Tiles,
    lines: NDArray[np.int64] | None,
    right: Tiles,
    coefficient: F,
    out: F,
    sizes: F | None,
    blas: Blas,
    n_threads: int,
    watch: Watch | None = None,
) -> None: ...
def cholesky(A: NDArray[Any], blas: Blas, n_threads: int, watch: Watch | None = None) -> bool: ...

class PairReport:
    n_steps: int
    n_negative: int
    violation: float
    stopped: bool

class PairSteps:
    def __init__(
        self,
        lower: F,
        upper: F,
        own: F,
        ridge: F | None,
        beta: F,
        slope: F,
        group_end: NDArray[np.int64],
        tube: float,
    ) -> None: ...
    def loop(self, K: NDArray[Any], most_steps: int, stop: float, watch: Watch | None = None) -> PairReport: ...
    def choose(self, size: int) -> tuple[float, NDArray[np.int32]]: ...
    def solve(
        self, block: NDArray[Any], most_steps: int, stop: float, watch: Watch | None = None
    ) -> tuple[PairReport, NDArray[np.int32], F]: ...
    def add(
        self,
        values: NDArray[Any],
        places: NDArray[np.int64],
        change: F,
        segments: NDArray[np.int64],
        n_threads: int,
    ) -> None: ...
    def violation(self) -> float: ...
