// One epoch of dual coordinate descent with shrinking for
//     minimise over alpha  ½‖Σ alpha_i y_i x_i‖² + ½ Σ diagonal_i alpha_i² − Σ target_i alpha_i
//              + kink Σ |alpha_i| + bias_center Σ alpha y + ½ bias_gain (Σ alpha y)²,   lower <= alpha <=
//              upper.
// The last two terms are the augmented Lagrangian of Σ alpha y = 0: a proximal step on the bias.
// Invariants after every step: w = Σ alpha_i y_i x_i, signed_sum = Σ alpha_i y_i.
// Hsieh, Chang, Lin, Keerthi, Sundararajan: A dual coordinate descent method for large-scale linear SVM,
// 2008.
#pragma once
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

inline void shuffle_active(DescentState& q) {
    for (index_t k = q.n_active - 1; k > 0; --k) {
        const auto j =
            static_cast<index_t>((next_random(q.random) >> 32) * static_cast<std::uint64_t>(k + 1) >> 32);
        const std::int32_t held = q.order[k];
        q.order[k] = q.order[j];
        q.order[j] = held;
    }
}

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

template <class Rows>
EpochReport descent_rows(const Rows& rows, DescentState& q, Watch* watch) {
    const double inf = __builtin_inf();
    EpochReport report{-inf, inf, false};
    shuffle_active(q);
    for (index_t k = 0; k < q.n_active; ++k) {
        if ((k & 255) == 0 && watch != nullptr && watch->stop()) {
            report.stopped = true;
            break;
        }
        const index_t i = q.order[k];
        const double a = q.alpha[i], upper = q.upper[i];
        if (!(upper > 0.0)) continue;  // a row without cost
        const double bias = q.bias_center + q.bias_gain * q.signed_sum;
        const double slope = q.y[i] * (rows.dot(i, q.w) + bias) - q.target[i] + q.diagonal[i] * a;
        double projected = slope;
        bool shrink = false;
        if (q.kink > 0.0) {  // |alpha| has two slopes at 0 and one elsewhere
            if (a == 0.0) {
                shrink = slope - q.kink < q.shrink_low && slope + q.kink > q.shrink_high;
                projected = slope > q.kink ? slope - q.kink : smaller(slope + q.kink, 0.0);
            } else {
                projected = slope + (a > 0.0 ? q.kink : -q.kink);
                if (a == upper) {
                    shrink = projected < q.shrink_low;
                    projected = larger(projected, 0.0);
                } else if (a == q.lower[i]) {
                    shrink = projected > q.shrink_high;
                    projected = smaller(projected, 0.0);
                }
            }
        } else if (a == q.lower[i]) {
            shrink = slope > q.shrink_high;
            projected = smaller(slope, 0.0);
        } else if (a == upper) {
            shrink = slope < q.shrink_low;
            projected = larger(slope, 0.0);
        }
        if (shrink) {  // keep the row behind the active part
            --q.n_active;
            q.order[k] = q.order[q.n_active];
            q.order[q.n_active] = static_cast<std::int32_t>(i);
            --k;
            continue;
        }
        report.violation_high = larger(report.violation_high, projected);
        report.violation_low = smaller(report.violation_low, projected);
        if (projected == 0.0) continue;
        const double curvature = q.sq_norm[i] + q.bias_gain + q.diagonal[i];
        const double now = curvature > 0.0
                               ? best_multiplier(a - slope / curvature, q.kink / curvature, q.lower[i], upper)
                               : without_curvature(slope, q.kink, q.lower[i], upper);
        const double change = (now - a) * q.y[i];
        q.alpha[i] = now;
        q.signed_sum += change;
        rows.axpy(i, change, q.w);
    }
    return report;
}

inline EpochReport descent_epoch(const RowsView& view, DescentState& q, Watch* watch) {
    return visit(view, [&](auto rows) { return descent_rows(rows, q, watch); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
