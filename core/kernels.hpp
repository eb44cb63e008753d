// The table of everything the core can do, one table per instruction set.
#pragma once
#include "blas.hpp"
#include "parallel.hpp"
#include "rows.hpp"

namespace maxmargin {

// One interior-point iterate, its scaling and its direction; every pointer has one entry per row.
struct BarrierState {
    index_t n = 0;
    bool boxed = true;  // hinge: 0 <= alpha <= C; else squared hinge: alpha >= 0 with alpha²/(4C) in the dual
    // the problem
    const double* y = nullptr;       // −1 or +1
    const double* C = nullptr;       // cost of a row; rows of cost 0 take no part
    const double* target = nullptr;  // the margin asked of a row
    // the iterate (t = C − alpha and xi only when boxed)
    double* alpha = nullptr;
    double* t = nullptr;
    double* s = nullptr;
    double* xi = nullptr;
    double* margin = nullptr;
    // scaling and complementarity corrections
    double* D = nullptr;
    double* e_s = nullptr;
    double* e_xi = nullptr;
    // the direction
    double* d_alpha = nullptr;
    double* d_margin = nullptr;
};

// Which rows an epoch takes, and in which order (visits.hpp).
struct Visits {
    std::int32_t* rows = nullptr;    // the active ones, rising
    std::int32_t* blocks = nullptr;  // scratch of visit_blocks(n) entries
    index_t n_active = 0;
    std::uint64_t random = 0;
};
inline constexpr index_t largest_visit_block = 32;
inline constexpr index_t visit_block(index_t n) {
    return n < 64 ? 1 : n < 2048 ? n / 64 : largest_visit_block;
}
inline constexpr index_t visit_blocks(index_t n) { return n / 32 + 128; }  // enough for any active part of n

inline constexpr index_t most_workers = 8;

struct DescentState {
    index_t n = 0;
    const double* y = nullptr;
    const double* lower = nullptr;     // box of alpha: 0 in a classifier, −upper in a regression
    const double* upper = nullptr;     // infinity for squared slack
    const double* diagonal = nullptr;  // added to the Hessian's diagonal: 1/(2C) for squared slack
    double tube = 0.0;                 // price of |alpha|: the tube's half-width in a regression
    bool entropy = false;              // of the logistic loss, instead of diagonal and tube
    const double* target = nullptr;
    const double* sq_norm = nullptr;
    double* alpha = nullptr;
    double* w = nullptr;
    Visits visits;
    index_t n_workers = 1;         // rows that are worked on at the same time; more than 1 needs the next two
    index_t n_exchanges = 1;       // how often in an epoch the workers tell each other their w
    double* worker_w = nullptr;    // n_cols per worker
    double* held_alpha = nullptr;  // n
    double bias_center = 0.0;      // b = bias_center + bias_gain Σ alpha y
    double bias_gain = 0.0;
    double signed_sum = 0.0;  // Σ alpha y
    double shrink_high = 0.0, shrink_low = 0.0;
};

struct EpochReport {
    double violation_high = 0.0, violation_low = 0.0;  // range of projected gradients seen
    bool stopped = false;
    index_t n_halved = 0;  // exchanges at which the workers' steps together went too far
};

// The multipliers along a line, for the exact line search.
struct ClippedLine {
    index_t n = 0;
    const double* z = nullptr;
    const double* dm = nullptr;
    const double* lower = nullptr;
    const double* upper = nullptr;
    const double* sigma = nullptr;
    double tube = 0.0;
};

// Where a row's multiplier is at some scores: z = anchor + sigma (target − sign (score + b)), shrunk by the
// tube and clipped to pi; D is sigma where nothing was clipped, signed_pi is sign·pi.
struct ClippedPoint {
    index_t n = 0;
    const double* scores = nullptr;
    const double* sign = nullptr;
    const double* target = nullptr;
    const double* anchor = nullptr;
    const double* lower = nullptr;
    const double* upper = nullptr;
    const double* sigma = nullptr;
    double tube = 0.0;
    double* z = nullptr;
    double* pi = nullptr;
    double* signed_pi = nullptr;
    double* D = nullptr;
};

// Σ signed_pi, Σ (pi − anchor)², Σ |pi| and Σ D.
struct ClippedSums {
    double balance = 0.0, moved = 0.0, size = 0.0, curvature = 0.0;
};

// One epoch of the joint multi-class machine; alpha has n_classes entries per row, W one per column and
// class.
struct JointState {
    index_t n = 0, n_classes = 0;
    const std::int32_t* label = nullptr;
    const double* cost = nullptr;
    const double* sq_norm = nullptr;
    double* alpha = nullptr;
    double* W = nullptr;
    double* class_sum = nullptr;          // Σ_i alpha_im
    const double* bias_center = nullptr;  // b_m = bias_center_m + bias_gain class_sum_m
    double bias_gain = 0.0;
    double* scratch = nullptr;  // 3 n_classes
    Visits visits;
    double shrink_beyond = 0.0;  // rows that sit in a corner more firmly than this are left out
};

struct JointReport {
    double violation = 0.0;
    bool stopped = false;
};

// minimise over d  g·d + ½ dᵀHd + Σ price_j |w_j + d_j|; Hd is kept up to date.
struct LassoState {
    index_t n = 0;
    const double* H = nullptr;  // full symmetric, row-major
    const double* g = nullptr;
    const double* price = nullptr;
    const double* w = nullptr;
    double* d = nullptr;
    double* Hd = nullptr;
};

// --- machines that learn row by row ------------------------------------------------------------------------

enum class OnlineRule : int {
    perceptron,    // y f <= margin: y
    hinge,         // y f <= margin: y, and every step shrinks
    logistic,      // y / (1 + exp(y f))
    exponential,   // y exp(-y f)
    tube,          // sign of y - f where |y - f| >= margin
    squared_tube,  // 2 (y - f) where (y - f)^2 > margin
    squares,       // y - f
    relaxation,    // y (margin - y f) / |z|^2 where y f <= margin
    hebb,          // f
    oja            // f, and w shrinks by 1 - step f^2
};

// What was seen and done; the same for every machine.
struct OnlineCounts {
    index_t n_seen = 0;         // rows
    index_t n_steps = 0;        // batches
    index_t n_mistakes = 0;     // rows with y f <= 0 (outside the tube in a regression)
    index_t n_corrections = 0;  // rows that changed the weights
    bool pause = false;         // stop after every step that corrected something, so that somebody can look
};

// One linear machine that moves by w += step * correction * x; the weights are scale * v.
struct OnlineState {
    OnlineRule rule = OnlineRule::perceptron;
    double* v = nullptr;
    double scale = 1.0;
    double b = 0.0;
    double bias_gain = 1.0;  // the bias moves by bias_gain * step * correction
    double margin = 0.0;
    // step = rate / (k + offset)^power; k counts steps, or only those that corrected something
    double rate = 1.0, offset = 1.0, power = 0.0;
    bool count_corrections = false;
    bool by_performance = false;  // times the recent share of mistakes
    double recent = 1.0;
    index_t k = 0;
    double rho = 0.0;       // every step shrinks w by 1 - 2 step rho
    double l1 = 0.0;        // and moves it by step * l1 towards 0
    double l1_total = 0.0;  // how far it has moved so far; each weight catches up when it is next used
    double* l1_done = nullptr;
    index_t batch = 1;
    bool mean = false;             // of the batch's corrections instead of their sum
    double* correction = nullptr;  // of the batch's rows
    double* sum = nullptr;         // of all weights after each step is  sum_scale * v - sum
    double sum_scale = 0.0, sum_b = 0.0;
    double* own = nullptr;  // one more coordinate per row, of size `delta` there
    double delta = 0.0;
    bool diverged = false;
    OnlineCounts counts;
};

// Rows times their labels, packed for quick counts of errors; see error_count.hpp.
inline constexpr index_t packed_rows = 64;
inline index_t packed_blocks(index_t n_rows) { return (n_rows + packed_rows - 1) / packed_rows; }
struct PackedRows {
    const float* values = nullptr;  // packed_blocks * packed_rows * (n_cols + 1) numbers
    float* w = nullptr;             // scratch
    double reach = 0.0;             // the largest norm of (x, 1)
};

// Pocket: the perceptron, and the best of its weights so far.
enum class PocketRule : int { error, ratchet, run };
struct PocketState {
    PocketRule rule = PocketRule::error;
    double* w = nullptr;
    double b = 0.0, bias_gain = 1.0, rate = 1.0;
    double* best_w = nullptr;
    double best_b = 0.0;
    index_t best_errors = -1;  // of best_w; -1: not counted
    index_t best_run = 0, run_length = 0;
    bool judged = false;  // the present weights have been compared with the pocket
    index_t n_evaluations = 0, since_change = 0;
    PackedRows packed;
    index_t patience = 0;  // stop after so many corrections without a better one; 0: never
    OnlineCounts counts;
};

// w_j = sinh(log_base s_j) * 2 / e^shift (balanced) or e^(log_base s_j - shift): weights that grow by
// factors.
struct WinnowState {
    bool balanced = true;
    double* s = nullptr;
    double* w = nullptr;
    double s_bias = 0.0, w_bias = 0.0;
    double log_base = 0.0;
    double bias_input = 1.0;  // 0: no bias
    double threshold = 0.0;   // the positive machine says f - threshold
    double shift = 0.0;
    OnlineCounts counts;
};

// All classes at once: the row's class comes nearer, the best other one goes away.
struct MulticlassState {
    index_t n_classes = 0;
    double* W = nullptr;  // n_cols * n_classes, a column's weights together
    double* b = nullptr;
    double bias_gain = 1.0, rate = 1.0, margin = 0.0;
    double* sum_W = nullptr;  // the mean of all weights is W - sum / n_seen
    double* sum_b = nullptr;
    double* scores = nullptr;
    OnlineCounts counts;
};

// Coefficients instead of weights: f_i = Σ_j coefficient_j K_ji + b, kept up to date for every row.
struct DualState {
    bool squares = false;  // Widrow-Hoff instead of the perceptron
    index_t n = 0;
    double* coefficient = nullptr;
    double* score = nullptr;  // without the bias
    double b = 0.0, bias_gain = 1.0, rate = 1.0, margin = 0.0;
    OnlineCounts counts;
};

// A kernel's function of two rows.
enum class KernelKind : int { linear, polynomial, gaussian, laplacian, sigmoid };
struct KernelFunction {
    KernelKind kind = KernelKind::linear;
    double gamma = 1.0, coef0 = 0.0, degree = 1.0;
};

// Rows as tiles of kernel values want them: packed, in the type of the values and, if dense, seen from an
// origin where that keeps digits; and as they were given, for differences that have lost too many.
struct TileRows {
    RowsView packed, given;
    const double* squares = nullptr;  // of the packed rows
};

// What is solved by steps on pairs (pair_steps.hpp); every pointer has one entry per variable.
struct PairProblem {
    index_t n = 0;
    double tube = 0.0;
    const double* lower = nullptr;
    const double* upper = nullptr;
    const double* own = nullptr;    // diagonal of the kernel matrix, with the ridge
    const double* ridge = nullptr;  // nullptr: none
    double* beta = nullptr;
    double* slope = nullptr;  // Kβ + ridge β + linear
    double* rise = nullptr;   // scratch: what a slope upwards, and downwards, has beside it
    double* fall = nullptr;
    index_t n_groups = 1;
    const index_t* group_end = nullptr;  // variables of a group are neighbours, and their sum never changes
};

struct PairReport {
    index_t n_steps = 0;
    index_t n_negative = 0;  // pairs of negative curvature: the kernel is not positive semidefinite
    double violation = 0.0;
    bool stopped = false;
};

// Where the columns of the variables are in a line of the kernel matrix: segments of neighbours.
struct Segments {
    index_t n = 1;
    const index_t* begin = nullptr;   // column
    const index_t* length = nullptr;  // variables
};

// What one visit to all values says.
struct Survey {
    bool finite = true;
    double largest = 0.0;  // |value|; without meaning unless all are finite
    index_t longest_row = 0;
    std::uint64_t digest = 0;
};

struct Kernels {
    const char* name;
    // out_i = <x_i, w> + bias
    void (*scores)(const RowsView&, const double* w, double bias, double* out, const Execution&);
    // out = Σ coefficient_i x_i  (n_cols entries)
    void (*combine)(const RowsView&, const double* coefficient, double* out, const Execution&);
    void (*squared_norms)(const RowsView&, double* out, const Execution&);
    // the first two in twice the working precision (compensated.hpp): high + low, and rounded once
    void (*compensated_scores)(const RowsView&, const double* w, double* high, double* low, const Execution&);
    void (*compensated_combine)(const RowsView&, const double* coefficient, double* out, const Execution&);
    // H (+)= Σ D_i (x_i, bias)(x_i, bias)ᵀ, row-major upper triangle, size n_cols + (bias.value != 0)
    void (*normal_matrix)(const RowsView&, const double* D, BiasColumn, bool add, double* H, const Blas&,
                          const Execution&);
    // G_jk = <x_rows[j], x_rows[k]>, row-major upper triangle
    void (*gram)(const RowsView&, const std::int64_t* rows, index_t n, double* G, const Blas&,
                 const Execution&);
    // G_jk = <x_lines[j], x_columns[k]>, row-major
    void (*gram_block)(const RowsView&, const std::int64_t* lines, index_t n_lines,
                       const std::int64_t* columns, index_t n_columns, double* G, const Execution&);
    void (*barrier_scale)(const BarrierState&, const Execution&);
    void (*barrier_coefficient)(const BarrierState&, double* out, const Execution&);
    // fills d_margin and d_alpha; the longest step in [0, 2] that keeps alpha, t, s and xi non-negative
    double (*barrier_direction)(const RowsView&, const BarrierState&, const double* dw, double db,
                                const Execution&);
    // Σ alpha s + t xi after a step
    double (*barrier_complementarity)(const BarrierState&, double step, const Execution&);
    void (*barrier_second_order)(const BarrierState&, double mu, const Execution&);
    void (*barrier_recentre)(const BarrierState&, double step, double mu, const Execution&);
    void (*barrier_move)(const BarrierState&, double step, const Execution&);
    EpochReport (*descent_epoch)(const RowsView&, DescentState&, const Execution&);
    // Σ clip(shrunk(z_i − t sigma_i dm_i), lower_i, upper_i) dm_i, where shrunk() moves by tube sigma_i to 0
    double (*clipped_slope)(const ClippedLine&, double t, const Execution&);
    ClippedSums (*clipped_point)(const ClippedPoint&, double b, const Execution&);
    JointReport (*joint_epoch)(const RowsView&, JointState&, Watch*);
    // Sweeps over the coordinates of a quadratic with an l1 penalty; how many were needed
    index_t (*lasso_sweeps)(LassoState&, index_t max_sweeps, double tol, Watch*);
    // One visit before a fit; column_squares, Σ_i x_ij², is for dense rows only, else left alone
    Survey (*survey)(const RowsView&, double* squared_norms, double* column_squares, const Execution&);
    std::uint64_t (*digest)(const RowsView&, const Execution&);
    // Each takes the rows order[begin..end) (begin..end without an order) and returns where it stopped: at
    // the end, when the watch says so, when somebody wants to look, or when the machine has diverged.
    index_t (*online_rows)(const RowsView&, const double* y, const std::int64_t* order, index_t begin,
                           index_t end, OnlineState&, Watch*);
    void (*online_settle)(index_t n_cols, OnlineState&);  // weights that wait for l1 catch up
    index_t (*pocket_rows)(const RowsView&, const double* y, const std::int64_t* order, index_t begin,
                           index_t end, PocketState&, Watch*);
    void (*pack_rows)(const RowsView&, const double* y, float* packed);  // dense rows only
    // Rows with y f <= 0, or `most` if there are at least as many
    index_t (*count_errors)(const RowsView&, const double* y, const double* w, double b, index_t most);
    index_t (*winnow_rows)(const RowsView&, const double* y, const std::int64_t* order, index_t begin,
                           index_t end, WinnowState&, Watch*);
    index_t (*multiclass_rows)(const RowsView&, const std::int32_t* label, const std::int64_t* order,
                               index_t begin, index_t end, MulticlassState&, Watch*);
    // Takes one row whose line of the kernel matrix is K; whether the coefficients changed
    bool (*dual_row)(const double* K, index_t i, double y, DualState&);
    // Values of a kernel (kernel_tiles.hpp); `out` is float where the packed rows are. Chosen lines of the
    // left with all of the right, a side with itself, and sums with coefficients, one line a machine
    void (*kernel_block)(const KernelFunction&, const TileRows& left, const std::int64_t* lines,
                         index_t n_lines, const TileRows& right, void* out, index_t stride, const Blas&,
                         const Execution&);
    void (*kernel_gram)(const KernelFunction&, const TileRows&, const double* own, void* out, index_t stride,
                        const Blas&, const Execution&);
    void (*kernel_scores)(const KernelFunction&, const TileRows& left, const std::int64_t* lines,
                          index_t n_lines, const TileRows& right, const double* coefficient,
                          index_t n_machines, double* out, double* sizes, const Blas&, const Execution&);
    // Steps on pairs (pair_steps.hpp): the ends of all slopes and the largest violation; steps on a matrix at
    // hand; and slopes += Σ change_k line_k
    double (*pair_ends)(PairProblem&);
    PairReport (*pair_loop)(PairProblem&, const void* K, bool single, index_t stride, index_t most_steps,
                            double stop, Watch*);
    void (*add_lines)(const Segments&, const void* const* lines, bool single, const double* change,
                      index_t n_lines, double* slope, index_t n, const Execution&);
    // L with LLᵀ = A in the lower triangle of a row-major A; whether A was positive definite
    bool (*cholesky)(void* A, bool single, index_t n, const Blas&, const Execution&);
};

namespace baseline {
const Kernels& kernels();
}
#ifdef MAXMARGIN_HAS_AVX2
namespace avx2 {
const Kernels& kernels();
}
#endif

const char* choose_isa(bool force_baseline);
const Kernels& kernels_for(const char* isa);

}  // namespace maxmargin
