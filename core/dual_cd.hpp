// One epoch of dual coordinate descent with shrinking for
//     minimise over alpha  ½‖Σ alpha_i y_i x_i‖² + ½ Σ diagonal_i alpha_i² − Σ target_i alpha_i
//              + tube Σ |alpha_i| + bias_center Σ alpha y + ½ bias_gain (Σ alpha y)²,   lower <= alpha <=
//              upper.
// The last two terms are the augmented Lagrangian of Σ alpha y = 0: a proximal step on the bias.
// With `entropy` (the logistic loss) the quadratic terms of alpha give way to
//     Σ alpha ln alpha + (upper − alpha) ln(upper − alpha),   0 < alpha < upper.
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

// The minimiser of slope x + tube |x| between two bounds: an empty row.
inline double without_curvature(double slope, double tube, double lower, double upper) {
    if (slope < -tube) return upper;
    return slope > tube ? lower : smaller(larger(0.0, lower), upper);
}

// What a row's slope says: how far it is from optimal, and whether it may be left out for a while.
struct Judgement {
    double projected;
    bool shrink;
};

inline Judgement judge(const DescentState& q, index_t i, double a, double slope) {
    const double lower = q.lower[i], upper = q.upper[i];
    if (q.tube > 0.0 && a == 0.0)  // |alpha| has two slopes at 0 and one elsewhere
        return {slope > q.tube ? slope - q.tube : smaller(slope + q.tube, 0.0),
                slope - q.tube < q.shrink_low && slope + q.tube > q.shrink_high};
    const double at = slope + (a > 0.0 ? q.tube : -q.tube);
    const double here = q.tube > 0.0 ? at : slope;
    if (a == lower) return {smaller(here, 0.0), here > q.shrink_high};
    if (a == upper) return {larger(here, 0.0), here < q.shrink_low};
    return {here, false};
}

// What a run of steps did: the violations it met, and by how much it lowered the objective.
struct Progress {
    double violation_high = -__builtin_inf(), violation_low = __builtin_inf(), decrease = 0.0;
};

// The root u of u + slope + curvature (upper s(u) − a) = 0, s the sigmoid: the logit of the multiplier that
// minimises the entropy plus a parabola with this slope at a. The left side rises by at least 1 per unit, so
// Newton's method with a bracket finds it.
inline double best_logit(double a, double upper, double slope, double curvature) {
    double low = -slope - curvature * (upper - a), high = -slope + curvature * a;
    double u = a <= 0.0 ? low : a >= upper ? high : __builtin_log(a / (upper - a));
    u = smaller(larger(u, low), high);
    for (int step = 0; step < 60; ++step) {
        const double s = 1.0 / (1.0 + __builtin_exp(-u));
        const double f = u + slope + curvature * (upper * s - a);
        (f < 0.0 ? low : high) = u;
        double next = u - f / (1.0 + curvature * upper * s * (1.0 - s));
        if (!(next >= low && next <= high)) next = 0.5 * (low + high);
        const double moved = next - u;
        u = next;
        if (larger(moved, -moved) <= 1e-11 * (1.0 + larger(u, -u))) break;
    }
    return u;
}

template <class Rows>
bool entropy_step(const Rows& rows, DescentState& q, index_t i, Progress& progress) {
    const double a = q.alpha[i], upper = q.upper[i];
    if (!(upper > 0.0)) return true;  // a row without cost
    const double bias = q.bias_center + q.bias_gain * q.signed_sum;
    const double slope = q.y[i] * (rows.dot(i, q.w) + bias) - q.target[i];
    const double curvature = q.sq_norm[i] + q.bias_gain;
    const double now = upper / (1.0 + __builtin_exp(-best_logit(a, upper, slope, curvature)));
    const double moved = now - a, change = moved * q.y[i];
    const double steep =
        curvature + 4.0 / upper;  // at least: the entropy bends by upper / (alpha (upper − alpha))
    progress.violation_high = larger(progress.violation_high, -steep * moved);
    progress.violation_low = smaller(progress.violation_low, -steep * moved);
    progress.decrease += 0.5 * steep * moved * moved;
    q.alpha[i] = now;
    q.signed_sum += change;
    rows.axpy(i, change, q.w);
    return true;
}

// Moves one multiplier to its minimum; whether the row stays active.
template <class Rows>
bool descent_step(const Rows& rows, DescentState& q, index_t i, Progress& progress) {
    if (q.entropy) return entropy_step(rows, q, i, progress);
    const double a = q.alpha[i], upper = q.upper[i];
    if (!(upper > 0.0)) return true;  // a row without cost
    const double bias = q.bias_center + q.bias_gain * q.signed_sum;
    const double slope = q.y[i] * (rows.dot(i, q.w) + bias) - q.target[i] + q.diagonal[i] * a;
    const Judgement found = judge(q, i, a, slope);
    if (found.shrink) return false;
    progress.violation_high = larger(progress.violation_high, found.projected);
    progress.violation_low = smaller(progress.violation_low, found.projected);
    if (found.projected == 0.0) return true;
    const double curvature = q.sq_norm[i] + q.bias_gain + q.diagonal[i];
    const double now = curvature > 0.0
                           ? best_multiplier(a - slope / curvature, q.tube / curvature, q.lower[i], upper)
                           : without_curvature(slope, q.tube, q.lower[i], upper);
    const double moved = now - a, change = moved * q.y[i];
    const double kinked = q.tube > 0.0 ? q.tube * (larger(now, -now) - larger(a, -a)) : 0.0;
    progress.decrease -= (slope + 0.5 * curvature * moved) * moved + kinked;
    q.alpha[i] = now;
    q.signed_sum += change;
    rows.axpy(i, change, q.w);
    return true;
}

// A block's multipliers go only a share of their way; rows that left did not move.
inline void take_back(DescentState& q, index_t block, double share) {
    const index_t size = visit_block(q.visits.n_active), begin = block * size;
    for (index_t k = begin; k < smaller(begin + size, q.visits.n_active); ++k) {
        const index_t i = q.visits.rows[k];
        if (i >= 0) q.alpha[i] = q.held_alpha[i] + share * (q.alpha[i] - q.held_alpha[i]);
    }
}

// What the workers found together: their steps added up, or halved (divided by the number of workers) where
// the sum would lower the objective by less than half of what they gained apart. Convexity makes the mean
// safe.
inline double agree(DescentState& q, const Progress* worker, const double* sums, index_t n_cols) {
    double together = 0.0, apart = 0.0, decrease = 0.0, sum = 0.0;
    for (index_t j = 0; j < n_cols; ++j) {
        double total = 0.0;
        for (index_t l = 0; l < q.n_workers; ++l) {
            const double step = q.worker_w[l * n_cols + j] - q.w[j];
            total += step;
            apart += step * step;
        }
        together += total * total;
        q.worker_w[j] = total;  // of all workers: the first one's own is not needed any more
    }
    for (index_t l = 0; l < q.n_workers; ++l) {
        decrease += worker[l].decrease;
        apart += q.bias_gain * sums[l] * sums[l];
        sum += sums[l];
    }
    together += q.bias_gain * sum * sum;
    const double share =
        0.5 * (together - apart) <= 0.5 * decrease ? 1.0 : 1.0 / static_cast<double>(q.n_workers);
    for (index_t j = 0; j < n_cols; ++j) q.w[j] += share * q.worker_w[j];
    q.signed_sum += share * sum;
    return share;
}

// An epoch in workers: each works with a w of its own on its part of the blocks until they meet. The result
// does not depend on how many threads there are.
template <class Rows>
EpochReport descent_workers(const Rows& rows, DescentState& q, const Execution& how) {
    const index_t n_blocks = shuffle_blocks(q.visits), n_parts = q.n_exchanges * q.n_workers, d = rows.n_cols;
    Progress all;
    bool stopped = false;
    index_t n_halved = 0;
    const auto part = [&](index_t p) { return n_blocks * p / n_parts; };
    for (index_t exchange = 0; exchange < q.n_exchanges && n_blocks > 0; ++exchange) {
        stopped = how.watch != nullptr && how.watch->stop();
        if (stopped) break;
        Progress worker[most_workers];
        double sums[most_workers];
        for_tasks(q.n_workers, Execution{how.n_threads, nullptr}, [&](index_t l) {
            DescentState own = q;
            Progress progress;  // not in `worker`, whose entries share cache lines
            own.w = q.worker_w + l * d;
            for (index_t j = 0; j < d; ++j) own.w[j] = q.w[j];
            const index_t first = exchange * q.n_workers + l;
            for (index_t b = part(first); b < part(first + 1); ++b)
                visit_rows(q.visits, q.visits.blocks[b], [&](index_t i) {
                    q.held_alpha[i] = q.alpha[i];
                    return descent_step(rows, own, i, progress);
                });
            worker[l] = progress;
            sums[l] = own.signed_sum - q.signed_sum;
        });
        const double share = agree(q, worker, sums, d);
        if (share < 1.0) {
            ++n_halved;
            for (index_t b = part(exchange * q.n_workers); b < part((exchange + 1) * q.n_workers); ++b)
                take_back(q, q.visits.blocks[b], share);
        }
        for (index_t l = 0; l < q.n_workers; ++l) {
            all.violation_high = larger(all.violation_high, worker[l].violation_high);
            all.violation_low = smaller(all.violation_low, worker[l].violation_low);
        }
    }
    compact(q.visits);
    return {all.violation_high, all.violation_low, stopped, n_halved};
}

template <class Rows>
EpochReport descent_rows(const Rows& rows, DescentState& q, const Execution& how) {
    if (q.n_workers > 1) return descent_workers(rows, q, how);
    Progress progress;
    const bool stopped =
        visit_active(q.visits, how.watch, [&](index_t i) { return descent_step(rows, q, i, progress); });
    return {progress.violation_high, progress.violation_low, stopped, 0};
}

inline EpochReport descent_epoch(const RowsView& view, DescentState& q, const Execution& how) {
    return visit(view, [&](auto rows) { return descent_rows(rows, q, how); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
