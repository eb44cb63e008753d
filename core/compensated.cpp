#include "compensated.hpp"

#include "products.hpp"

namespace maxmargin::MAXMARGIN_ISA {
namespace {

// A sum and what its roundings have lost.
struct Sum {
    double high = 0.0, low = 0.0;

    void add(double value) {
        const double s = high + value, z = s - high;
        low += (high - (s - z)) + (value - z);
        high = s;
    }
    void add_product(double a, double b) {
        const double p = a * b;
        low += __builtin_fma(a, b, -p);
        add(p);
    }
    void add(const Sum& other) {
        add(other.high);
        low += other.low;
    }
};

// As many sums side by side as hide the time of one addition.
inline constexpr int columns_at_once = 8;

template <class T>
Sum dot(const DenseRows<T>& rows, index_t i, const double* w) {
    const T* x = rows.row(i);
    double high[columns_at_once] = {}, low[columns_at_once] = {};
    index_t j = 0;
    for (; j + columns_at_once <= rows.n_cols; j += columns_at_once)
        for (int k = 0; k < columns_at_once; ++k) {
            const double a = static_cast<double>(x[j + k]), p = a * w[j + k];
            const double s = high[k] + p, z = s - high[k];
            low[k] += __builtin_fma(a, w[j + k], -p) + ((high[k] - (s - z)) + (p - z));
            high[k] = s;
        }
    Sum total;
    for (; j < rows.n_cols; ++j) total.add_product(static_cast<double>(x[j]), w[j]);
    for (int k = 0; k < columns_at_once; ++k) total.add(Sum{high[k], low[k]});
    return total;
}

template <class T, class I>
Sum dot(const CsrRows<T, I>& rows, index_t i, const double* w) {
    Sum total;
    for (I k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k)
        total.add_product(static_cast<double>(rows.values[k]), w[rows.indices[k]]);
    return total;
}

template <class T>
void add_row(const DenseRows<T>& rows, index_t i, double c, double* high, double* low) {
    const T* x = rows.row(i);
    for (index_t j = 0; j < rows.n_cols; ++j) {
        const double a = static_cast<double>(x[j]), p = c * a;
        const double s = high[j] + p, z = s - high[j];
        low[j] += __builtin_fma(c, a, -p) + ((high[j] - (s - z)) + (p - z));
        high[j] = s;
    }
}

template <class T, class I>
void add_row(const CsrRows<T, I>& rows, index_t i, double c, double* high, double* low) {
    for (I k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
        Sum sum{high[rows.indices[k]], low[rows.indices[k]]};
        sum.add_product(c, static_cast<double>(rows.values[k]));
        high[rows.indices[k]] = sum.high;
        low[rows.indices[k]] = sum.low;
    }
}

}  // namespace

void compensated_scores(const RowsView& view, const double* w, double* high, double* low,
                        const Execution& how) {
    visit(view, [&](auto rows) {
        for_chunks(rows.n_rows, 4 * rows.cost(), how, [&](index_t, index_t begin, index_t end) {
            for (index_t i = begin; i < end; ++i) {
                const Sum sum = dot(rows, i, w);
                high[i] = sum.high;
                low[i] = sum.low;
            }
        });
    });
}

void compensated_combine(const RowsView& view, const double* c, double* out, const Execution& how) {
    visit(view, [&](auto rows) {
        const index_t d = rows.n_cols, work = 4 * rows.n_rows * (rows.cost() + 1);
        const index_t n_parts = parts_for(rows.n_rows, 2 * d, work);
        Buffer sums(2 * n_parts * d);
        for_tasks(n_parts, worth(how, work), [&](index_t p) {
            double *high = sums + 2 * p * d, *low = high + d;
            for (index_t i = part_begin(p, n_parts, rows.n_rows); i < part_begin(p + 1, n_parts, rows.n_rows);
                 ++i)
                if (c[i] != 0.0) add_row(rows, i, c[i], high, low);
        });
        for (index_t j = 0; j < d; ++j) {
            Sum sum;
            for (index_t p = 0; p < n_parts; ++p)
                sum.add(Sum{*(sums + (2 * p * d + j)), *(sums + (2 * p * d + d + j))});
            out[j] = sum.high + sum.low;
        }
    });
}

}  // namespace maxmargin::MAXMARGIN_ISA
