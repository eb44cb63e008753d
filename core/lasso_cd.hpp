// Coordinate descent on a quadratic with an l1 penalty, in the size of a working set:
//     minimise over d  g·d + ½ dᵀHd + Σ price_j |w_j + d_j|.
// Invariant: Hd = H d. Sweeps over all coordinates alternate with sweeps over those that are not zero.
// Friedman, Hastie, Tibshirani: Regularization paths for generalized linear models via coordinate descent,
// 2010.
#pragma once
#include "dual_cd.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// The largest gain of a step; `all` also tries coordinates that are zero.
inline double lasso_sweep(LassoState& q, bool all) {
    double gain = 0.0;
    for (index_t j = 0; j < q.n; ++j) {
        const double* line = q.H + j * q.n;
        const double curvature = line[j], value = q.w[j] + q.d[j];
        if (!(curvature > 0.0) || (!all && value == 0.0)) continue;
        const double slope = q.g[j] + q.Hd[j];
        const double now = best_multiplier(value - slope / curvature, q.price[j] / curvature,
                                           -__builtin_inf(), __builtin_inf());
        const double step = now - value;
        if (step == 0.0) continue;
        q.d[j] += step;
        dense_axpy(step, line, q.Hd, q.n);
        gain = larger(gain, curvature * step * step);
    }
    return gain;
}

inline index_t lasso_sweeps(LassoState& q, index_t max_sweeps, double tol, Watch* watch) {
    index_t sweeps = 0;
    while (sweeps < max_sweeps) {
        if (watch != nullptr && watch->stop()) throw Interrupted();
        ++sweeps;
        if (lasso_sweep(q, true) <= tol) break;
        while (sweeps < max_sweeps && lasso_sweep(q, false) > tol) {
            ++sweeps;
            if (watch != nullptr && (sweeps & 15) == 0 && watch->stop()) throw Interrupted();
        }
    }
    return sweeps;
}

}  // namespace maxmargin::MAXMARGIN_ISA
