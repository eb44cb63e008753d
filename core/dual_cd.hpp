// One epoch of dual coordinate descent with shrinking for
//     minimise over alpha  ½‖Σ alpha_i y_i x_i‖² + ½ Σ diagonal_i alpha_i² − Σ target_i alpha_i
//              + kink Σ |alpha_i| + bias_center Σ alpha y + ½ bias_gain (Σ alpha y)²,   lower <= alpha <=
//              upper.
// The last two terms are the augmented Lagrangian of Σ alpha y = 0: a proximal step on the bias.
// Invariants after every step: w = Σ alpha_i y_i x_i, signed_sum = Σ alpha_i y_i.
// Hsieh, Chang, Lin, Keerthi, Sundararajan: A dual coordinate descent method for large-scale linear SVM,
// 2008.
#pragma once
#include "visits.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// The minimiser of ½(x − wanted)² + threshold |x| between two bounds.
inline double best_multiplier(double wanted, double threshold, double lower, double upper) {
    const double shrunk = wanted - smaller(larger(wanted, -threshold), threshold);
    return smaller(larger(shrunk, lower), upper);
}

// The minimiser of slope x + kink |x| between two bounds: an empty row.
inline double without_curvature(double slope, double kink, double lower, double upper) {
    if (slope < -kink) return upper;
    return slope > kink ? lower : smaller(larger(0.0, lower), upper);
}

// What a row's slope says: how far it is from optimal, and whether it may be left out for a while.
struct Judgement {
    double projected;
    bool shrink;
};

inline Judgement judge(const DescentState& q, index_t i, double a, double slope) {
    const double lower = q.lower[i], upper = q.upper[i];
    if (q.kink > 0.0 && a == 0.0)  // |alpha| has two slopes at 0 and one elsewhere
        return {slope > q.kink ? slope - q.kink : smaller(slope + q.kink, 0.0),
                slope - q.kink < q.shrink_low && slope + q.kink > q.shrink_high};
    const double at = slope + (a > 0.0 ? q.kink : -q.kink);
    const double here = q.kink > 0.0 ? at : slope;
    if (a == lower) return {smaller(here, 0.0), here > q.shrink_high};
    if (a == upper) return {larger(here, 0.0), here < q.shrink_low};
    return {here, false};
}

template <class Rows>
EpochReport descent_rows(const Rows& rows, DescentState& q, Watch* watch) {
    const double inf = __builtin_inf();
    EpochReport report{-inf, inf, false};
    report.stopped = visit_active(q.visits, watch, [&](index_t i) {
        const double a = q.alpha[i], upper = q.upper[i];
        if (!(upper > 0.0)) return true;  // a row without cost
        const double bias = q.bias_center + q.bias_gain * q.signed_sum;
        const double slope = q.y[i] * (rows.dot(i, q.w) + bias) - q.target[i] + q.diagonal[i] * a;
        const Judgement found = judge(q, i, a, slope);
        if (found.shrink) return false;
        report.violation_high = larger(report.violation_high, found.projected);
        report.violation_low = smaller(report.violation_low, found.projected);
        if (found.projected == 0.0) return true;
        const double curvature = q.sq_norm[i] + q.bias_gain + q.diagonal[i];
        const double now = curvature > 0.0
                               ? best_multiplier(a - slope / curvature, q.kink / curvature, q.lower[i], upper)
                               : without_curvature(slope, q.kink, q.lower[i], upper);
        const double change = (now - a) * q.y[i];
        q.alpha[i] = now;
        q.signed_sum += change;
        rows.axpy(i, change, q.w);
        return true;
    });
    return report;
}

inline EpochReport descent_epoch(const RowsView& view, DescentState& q, Watch* watch) {
    return visit(view, [&](auto rows) { return descent_rows(rows, q, watch); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
