// Typed rows and the one place where a view's run-time types become compile-time types.
#pragma once
#include "simd.hpp"

namespace maxmargin::MAXMARGIN_ISA {

template <class T>
struct DenseRows {
    const T* values;
    index_t n_rows, n_cols;

    const T* row(index_t i) const { return values + i * n_cols; }
    static constexpr bool dense = true;
    index_t place(index_t i) const { return i * n_cols; }  // of a row's first value
    index_t n_values() const { return place(n_rows); }
    index_t cost() const { return n_cols; }
    double dot(index_t i, const double* w) const { return dense_dot(row(i), w, n_cols); }
    void axpy(index_t i, double c, double* out) const { dense_axpy(c, row(i), out, n_cols); }
    // axpy of row i, then dot of the row `next`
    double axpy_dot(index_t i, double c, double* out, index_t next) const {
        return dense_axpy_dot(c, row(i), out, row(next), n_cols);
    }
    void clear(index_t, double* out) const {
        for (index_t j = 0; j < n_cols; ++j) out[j] = 0.0;
    }
    double squared_norm(index_t i) const { return dense_dot(row(i), row(i), n_cols); }
    void add_squares(index_t i, double* __restrict sums) const {
        const T* __restrict x = row(i);
        for (index_t j = 0; j < n_cols; ++j) {
            const double v = static_cast<double>(x[j]);
            sums[j] += v * v;
        }
    }
};

template <class T, class I>
struct CsrRows {
    const T* values;
    const I* indices;
    const I* indptr;
    index_t n_rows, n_cols;

    static constexpr bool dense = false;
    index_t place(index_t i) const { return static_cast<index_t>(indptr[i]); }
    index_t n_values() const { return place(n_rows); }
    index_t cost() const { return n_rows > 0 ? static_cast<index_t>(indptr[n_rows]) / n_rows : 0; }
    double dot(index_t i, const double* w) const {
        double sum[4] = {};  // a single sum would wait for each addition
        I k = indptr[i];
        const I end = indptr[i + 1];
        for (; k + 3 < end; k += 4)
            for (int t = 0; t < 4; ++t) sum[t] += static_cast<double>(values[k + t]) * w[indices[k + t]];
        for (; k < end; ++k) sum[0] += static_cast<double>(values[k]) * w[indices[k]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    void axpy(index_t i, double c, double* out) const {
        for (I k = indptr[i]; k < indptr[i + 1]; ++k) out[indices[k]] += c * static_cast<double>(values[k]);
    }
    double axpy_dot(index_t i, double c, double* out, index_t next) const {
        axpy(i, c, out);
        return dot(next, out);
    }
    void clear(index_t i, double* out) const {
        for (I k = indptr[i]; k < indptr[i + 1]; ++k) out[indices[k]] = 0.0;
    }
    double squared_norm(index_t i) const {
        return dense_dot(values + indptr[i], values + indptr[i],
                         static_cast<index_t>(indptr[i + 1] - indptr[i]));
    }
    void add_squares(index_t, double*) const {}  // a scatter: left to whoever asks for column sizes
};

template <class F>
auto visit(const RowsView& v, F&& f) {
    const auto csr = [&](auto value, auto index) {
        using T = decltype(value);
        using I = decltype(index);
        return f(CsrRows<T, I>{static_cast<const T*>(v.values), static_cast<const I*>(v.indices),
                               static_cast<const I*>(v.indptr), v.n_rows, v.n_cols});
    };
    if (v.layout == RowsView::Layout::dense)
        return v.single ? f(DenseRows<float>{static_cast<const float*>(v.values), v.n_rows, v.n_cols})
                        : f(DenseRows<double>{static_cast<const double*>(v.values), v.n_rows, v.n_cols});
    if (v.wide_indices) return v.single ? csr(float{}, std::int64_t{}) : csr(double{}, std::int64_t{});
    return v.single ? csr(float{}, std::int32_t{}) : csr(double{}, std::int32_t{});
}

inline index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
inline index_t larger(index_t a, index_t b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }
inline double larger(double a, double b) { return a > b ? a : b; }

// Calls body(task) for each task, in parallel.
template <class Body>
void for_tasks(index_t n_tasks, const Execution& how, Body body) {
    run_tasks(n_tasks, how, [](void* context, index_t task) { (*static_cast<Body*>(context))(task); }, &body);
}

// Chunks of rows whose size depends on the data alone.
inline constexpr index_t chunk_rows = 2048;
inline index_t chunks_of(index_t n) { return (n + chunk_rows - 1) / chunk_rows; }

// Starting a thread costs more than a small pass.
inline Execution worth(const Execution& how, index_t operations) {
    return operations < 200000 ? Execution{1, how.watch} : how;
}

template <class Body>
void for_chunks(index_t n, index_t cost_per_row, const Execution& how, Body body) {
    for_tasks(chunks_of(n), worth(how, n * (cost_per_row + 1)),
              [&](index_t c) { body(c, c * chunk_rows, smaller(n, (c + 1) * chunk_rows)); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
