// One epoch of dual coordinate descent for the joint multi-class machine:
//     minimise over alpha  ½ Σ_m ‖Σ_i alpha_im x_i‖² + Σ_im e_im alpha_im + Σ_m (bias_center_m s_m + ½ gain
//     s_m²) with  Σ_m alpha_im = 0,  alpha_im <= cost_i [m = y_i],   e_im = [m != y_i],  s_m = Σ_i alpha_im.
// All multipliers of one row are moved at once, to the exact minimum of their part.
// Invariants after every step: W_m = Σ_i alpha_im x_i, class_sum_m = s_m.
// Crammer, Singer: On the algorithmic implementation of multiclass kernel-based vector machines, 2001.
// Keerthi, Sundararajan, Chang, Hsieh, Lin: A sequential dual method for large scale multi-class linear SVMs,
// 2008.
#pragma once
#include "dual_cd.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// Falling order; k is small, and the values are nearly sorted from class to class.
inline void sort_falling(double* v, index_t k) {
    for (index_t gap = k / 2; gap > 0; gap /= 2)
        for (index_t a = gap; a < k; ++a) {
            const double held = v[a];
            index_t b = a;
            for (; b >= gap && v[b - gap] < held; b -= gap) v[b] = v[b - gap];
            v[b] = held;
        }
}

// The level beta with Σ_m min(upper_m, (beta − B_m)/A) = 0, upper_m = cost for m = label and 0 otherwise.
inline double balancing_level(const double* B, double A, double cost, index_t label, index_t k,
                              double* sorted) {
    for (index_t m = 0; m < k; ++m) sorted[m] = B[m];
    sorted[label] += A * cost;
    sort_falling(sorted, k);
    // The r largest of B_m + A upper_m are below their bound: r beta = their sum − A cost.
    double beta = sorted[0] - A * cost;
    index_t r = 1;
    for (; r < k && beta < static_cast<double>(r) * sorted[r]; ++r) beta += sorted[r];
    return beta / static_cast<double>(r);
}

// Scores of all classes at once: W is stored one line per column of X.
template <class T>
void class_scores(const DenseRows<T>& rows, index_t i, const double* W, index_t k, double* out) {
    const T* x = rows.row(i);
    for (index_t j = 0; j < rows.n_cols; ++j) dense_axpy(static_cast<double>(x[j]), W + j * k, out, k);
}
template <class T, class I>
void class_scores(const CsrRows<T, I>& rows, index_t i, const double* W, index_t k, double* out) {
    for (I p = rows.indptr[i]; p < rows.indptr[i + 1]; ++p)
        dense_axpy(static_cast<double>(rows.values[p]), W + static_cast<index_t>(rows.indices[p]) * k, out,
                   k);
}
template <class T>
void add_classes(const DenseRows<T>& rows, index_t i, const double* change, index_t k, double* W) {
    const T* x = rows.row(i);
    for (index_t j = 0; j < rows.n_cols; ++j) dense_axpy(static_cast<double>(x[j]), change, W + j * k, k);
}
template <class T, class I>
void add_classes(const CsrRows<T, I>& rows, index_t i, const double* change, index_t k, double* W) {
    for (I p = rows.indptr[i]; p < rows.indptr[i + 1]; ++p)
        dense_axpy(static_cast<double>(rows.values[p]), change, W + static_cast<index_t>(rows.indices[p]) * k,
                   k);
}

// How far a row's multipliers are from optimal: max over all of −slope, less the least over those that may
// rise. Where only one may rise, the row sits in a corner, and a negative value says how firmly.
struct RowState {
    double violation;
    bool corner;
};

inline RowState judge_row(const double* slope, const double* alpha, double cost, index_t label, index_t k) {
    double highest = -__builtin_inf(), lowest = __builtin_inf();
    index_t n_free = 0, free = 0;
    for (index_t m = 0; m < k; ++m) {
        if (alpha[m] < (m == label ? cost : 0.0)) {
            lowest = smaller(lowest, slope[m]);
            ++n_free;
            free = m;
        }
    }
    for (index_t m = 0; m < k; ++m)
        if (n_free != 1 || m != free) highest = larger(highest, slope[m]);
    return {highest - lowest, n_free == 1};
}

// The minimiser of a row's part, in `level`. Dividing by a small A magnifies rounding, so that the label's
// own multiplier is what balances the others; where it is at its bound, they are scaled to balance it.
inline void best_row(double* slope, const double* alpha, double A, double cost, index_t label, index_t k,
                     double* level) {
    for (index_t m = 0; m < k; ++m) slope[m] -= A * alpha[m];
    const double beta = balancing_level(slope, A, cost, label, k, level);
    double others = 0.0;
    for (index_t m = 0; m < k; ++m) {
        level[m] = m == label ? 0.0 : smaller(0.0, (beta - slope[m]) / A);
        others -= level[m];
    }
    const bool bound = (beta - slope[label]) / A >= cost;  // exactly there, or the next look would doubt it
    const double scale = (bound || others > cost) && others > 0.0 ? cost / others : 1.0;
    double total = 0.0;
    for (index_t m = 0; m < k; ++m) {
        level[m] *= scale;
        total -= level[m];
    }
    level[label] = bound && others > 0.0 ? cost : smaller(total, cost);
}

// A row without any entry and no bias: everything goes to the steepest other class.
inline void best_empty_row(const double* slope, double cost, index_t label, index_t k, double* level) {
    index_t steepest = label == 0 ? 1 : 0;
    for (index_t m = 0; m < k; ++m)
        if (m != label && slope[m] > slope[steepest]) steepest = m;
    for (index_t m = 0; m < k; ++m) level[m] = m == label ? cost : m == steepest ? -cost : 0.0;
}

template <class Rows>
JointReport joint_rows(const Rows& rows, JointState& q, Watch* watch) {
    const index_t k = q.n_classes;
    double *slope = q.scratch, *level = slope + k, *change = level + k;
    JointReport report;
    report.stopped = visit_active(q.visits, watch, [&](index_t i) {
        const index_t label = q.label[i];
        const double cost = q.cost[i], A = q.sq_norm[i] + q.bias_gain;
        if (!(cost > 0.0)) return true;
        double* alpha = q.alpha + i * k;
        for (index_t m = 0; m < k; ++m)
            slope[m] = q.bias_center[m] + q.bias_gain * q.class_sum[m] + (m == label ? 0.0 : 1.0);
        class_scores(rows, i, q.W, k, slope);
        const RowState found = judge_row(slope, alpha, cost, label, k);
        if (found.corner && found.violation < -q.shrink_beyond) return false;
        report.violation = larger(report.violation, found.violation);
        if (found.corner && found.violation <= 0.0) return true;
        if (A > 0.0)
            best_row(slope, alpha, A, cost, label, k, level);
        else
            best_empty_row(slope, cost, label, k, level);
        bool moved = false;
        for (index_t m = 0; m < k; ++m) {
            change[m] = level[m] - alpha[m];
            moved = moved || change[m] != 0.0;
            alpha[m] = level[m];
            q.class_sum[m] += change[m];
        }
        if (moved) add_classes(rows, i, change, k, q.W);
        return true;
    });
    return report;
}

inline JointReport joint_epoch(const RowsView& view, JointState& q, Watch* watch) {
    return visit(view, [&](auto rows) { return joint_rows(rows, q, watch); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
