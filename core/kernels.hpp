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

inline constexpr index_t most_lanes = 8;

struct DescentState {
    index_t n = 0;
    const double* y = nullptr;
    const double* lower = nullptr;     // box of alpha: 0 in a classifier, −upper in a regression
    const double* upper = nullptr;     // infinity for squared slack
    const double* diagonal = nullptr;  // added to the Hessian's diagonal: 1/(2C) for squared slack
    double kink = 0.0;                 // price of |alpha|: the tube's half-width in a regression
    bool entropy = false;              // of the logistic loss, instead of diagonal and kink
    const double* target = nullptr;
    const double* sq_norm = nullptr;
    double* alpha = nullptr;
    double* w = nullptr;
    Visits visits;
    index_t n_lanes = 1;           // rows that are worked on at the same time; more than 1 needs the next two
    index_t n_meetings = 1;        // how often in an epoch the lanes tell each other their w
    double* lane_w = nullptr;      // n_cols per lane
    double* held_alpha = nullptr;  // n
    double bias_center = 0.0;      // b = bias_center + bias_gain Σ alpha y
    double bias_gain = 0.0;
    double signed_sum = 0.0;  // Σ alpha y
    double shrink_high = 0.0, shrink_low = 0.0;
};

struct EpochReport {
    double violation_high = 0.0, violation_low = 0.0;  // range of projected gradients seen
    bool stopped = false;
    index_t n_halved = 0;  // meetings at which the lanes' steps together went too far
};

// The multipliers along a line, for the exact line search.
struct ClippedLine {
    index_t n = 0;
    const double* z = nullptr;
    const double* dm = nullptr;
    const double* lower = nullptr;
    const double* upper = nullptr;
    const double* sigma = nullptr;
    double kink = 0.0;
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

struct Kernels {
    const char* name;
    // out_i = <x_i, w> + bias
    void (*scores)(const RowsView&, const double* w, double bias, double* out, const Execution&);
    // out = Σ coefficient_i x_i  (n_cols entries)
    void (*combine)(const RowsView&, const double* coefficient, double* out, const Execution&);
    void (*squared_norms)(const RowsView&, double* out, const Execution&);
    // H = Σ D_i (x_i, bias)(x_i, bias)ᵀ, row-major upper triangle, size n_cols + (bias.value != 0)
    void (*normal_matrix)(const RowsView&, const double* D, BiasColumn, double* H, const Blas&,
                          const Execution&);
    // G_jk = <x_rows[j], x_rows[k]>, row-major upper triangle
    void (*gram)(const RowsView&, const std::int64_t* rows, index_t n, double* G, const Execution&);
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
    // Σ clip(shrunk(z_i − t sigma_i dm_i), lower_i, upper_i) dm_i, where shrunk() moves by kink sigma_i to 0
    double (*clipped_slope)(const ClippedLine&, double t);
    JointReport (*joint_epoch)(const RowsView&, JointState&, Watch*);
    // Sweeps over the coordinates of a quadratic with an l1 penalty; how many were needed
    index_t (*lasso_sweeps)(LassoState&, index_t max_sweeps, double tol, Watch*);
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
