// Winnow: weights that are multiplied instead of added to, kept by their logarithms.
// Littlestone: Learning quickly when irrelevant attributes abound, 1988.
#pragma once
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline constexpr double largest_exponent = 300.0;

inline double winnow_weight(const WinnowState& q, double s) {
    const double a = q.log_base * s;
    if (!q.balanced) return __builtin_exp(a - q.shift);
    const double size = a < 0.0 ? -a : a;
    const double w = __builtin_exp(size - q.shift) * -__builtin_expm1(-2.0 * size);
    return a < 0.0 ? -w : w;
}

// All weights by the logarithms, with a shift that keeps the largest one representable.
inline void winnow_all(WinnowState& q, index_t n_cols, double largest) {
    q.shift = largest;
    for (index_t j = 0; j < n_cols; ++j) q.w[j] = winnow_weight(q, q.s[j]);
    q.w_bias = winnow_weight(q, q.s_bias);
}

// Adds to one logarithm; whether the weight would leave the range.
inline bool winnow_add(WinnowState& q, double& s, double& w, double by, double& largest) {
    s += by;
    const double a = q.log_base * s, size = q.balanced && a < 0.0 ? -a : a;
    largest = larger(largest, size);
    if (size - q.shift > largest_exponent) return true;
    w = winnow_weight(q, s);
    return false;
}

template <class T, class Each>
void each_entry(const DenseRows<T>& rows, index_t i, Each each) {
    const T* x = rows.row(i);
    for (index_t j = 0; j < rows.n_cols; ++j) each(j, static_cast<double>(x[j]));
}
template <class T, class I, class Each>
void each_entry(const CsrRows<T, I>& rows, index_t i, Each each) {
    for (I k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k)
        each(static_cast<index_t>(rows.indices[k]), static_cast<double>(rows.values[k]));
}

template <class Rows>
index_t winnow_typed(const Rows& rows, const double* y, const std::int64_t* order, index_t begin, index_t end,
                     WinnowState& q, Watch* watch) {
    for (index_t t = begin; t < end; ++t) {
        if (watch != nullptr && (t & 255) == 0 && watch->stop()) return t;
        const index_t i = order != nullptr ? order[t] : t;
        double f = rows.dot(i, q.w) + q.w_bias * q.bias_input;
        if (!q.balanced) f -= q.threshold * __builtin_exp(-q.shift);
        ++q.counts.n_seen;
        ++q.counts.n_steps;
        if (y[i] * f > 0.0) continue;
        ++q.counts.n_mistakes;
        ++q.counts.n_corrections;
        double largest = 0.0;
        bool out = false;
        each_entry(rows, i, [&](index_t j, double x) {
            if (x != 0.0) out |= winnow_add(q, q.s[j], q.w[j], y[i] * x, largest);
        });
        if (q.bias_input != 0.0) out |= winnow_add(q, q.s_bias, q.w_bias, y[i] * q.bias_input, largest);
        if (out) winnow_all(q, rows.n_cols, largest);
        if (q.counts.pause) return t + 1;
    }
    return end;
}

inline index_t winnow_rows(const RowsView& view, const double* y, const std::int64_t* order, index_t begin,
                           index_t end, WinnowState& q, Watch* watch) {
    return visit(view, [&](auto rows) { return winnow_typed(rows, y, order, begin, end, q, watch); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
