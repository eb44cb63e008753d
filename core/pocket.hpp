// The pocket algorithm: a perceptron that keeps the best weights it has met.
// Gallant: Perceptron-based learning algorithms, 1990.
#pragma once
#include "error_count.hpp"
#include "online.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// Puts the present weights into the pocket if they are better.
template <class Rows>
void judge_pocket(const Rows& rows, const double* y, PocketState& q) {
    q.judged = true;
    if (q.rule != PocketRule::run) {
        const index_t most = q.best_errors >= 0 ? q.best_errors : rows.n_rows + 1;
        const index_t errors = q.packed.values != nullptr ? packed_errors(rows, y, q.packed, q.w, q.b, most)
                                                          : errors_of(rows, y, q.w, q.b, most);
        ++q.n_evaluations;
        if (errors >= most) return;
        q.best_errors = errors;
    }
    q.best_run = q.run_length;
    q.best_b = q.b;
    q.since_change = 0;
    for (index_t j = 0; j < rows.n_cols; ++j) q.best_w[j] = q.w[j];
}

template <class Rows>
index_t pocket_typed(const Rows& rows, const double* y, const std::int64_t* order, index_t begin, index_t end,
                     PocketState& q, Watch* watch) {
    for (index_t t = begin; t < end; ++t) {
        if (watch != nullptr && (t & 255) == 0 && watch->stop()) return t;
        if (q.patience > 0 && q.since_change >= q.patience) return t;
        const index_t i = order != nullptr ? order[t] : t;
        ++q.counts.n_seen;
        ++q.counts.n_steps;
        if (y[i] * (rows.dot(i, q.w) + q.b) > 0.0) {
            ++q.run_length;
            if (q.rule != PocketRule::error && q.run_length > q.best_run) {
                if (!q.judged)
                    judge_pocket(rows, y, q);
                else if (q.rule == PocketRule::run)
                    q.best_run = q.run_length;
            }
            continue;
        }
        ++q.counts.n_mistakes;
        ++q.counts.n_corrections;
        ++q.since_change;
        q.run_length = 0;
        q.judged = false;
        rows.axpy(i, q.rate * y[i], q.w);
        q.b += q.bias_gain * q.rate * y[i];
        if (q.rule == PocketRule::error) judge_pocket(rows, y, q);
        if (q.counts.pause) return t + 1;
    }
    return end;
}

inline index_t pocket_rows(const RowsView& view, const double* y, const std::int64_t* order, index_t begin,
                           index_t end, PocketState& q, Watch* watch) {
    return visit(view, [&](auto rows) { return pocket_typed(rows, y, order, begin, end, q, watch); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
