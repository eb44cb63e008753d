// Values k(x, z) of a kernel for many pairs of rows, a tile at a time: inner products by BLAS (or, of sparse
// rows, sixteen at a time), then the kernel's function while the tile is in the cache. What is done with a
// tile is the caller's business: it is stored, mirrored, or multiplied by coefficients at once.
#pragma once
#include <cmath>

#include "exponential.hpp"
#include "kernels.hpp"
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline constexpr index_t tile_lines = 64, tile_columns = 512, sparse_lines = 16;

inline void multiply(const Blas& blas, const double* left, index_t m, const double* right, index_t w,
                     index_t d, double* out, index_t stride) {
    char trans = 'T', plain = 'N';  // column-major, so right·leftᵀ
    double one = 1.0, zero = 0.0;
    int n_right = static_cast<int>(w), n_left = static_cast<int>(m), k = static_cast<int>(d),
        ld = static_cast<int>(stride);
    blas.dgemm(&trans, &plain, &n_right, &n_left, &k, &one, const_cast<double*>(right), &k,
               const_cast<double*>(left), &k, &zero, out, &ld);
}

inline void multiply(const Blas& blas, const float* left, index_t m, const float* right, index_t w, index_t d,
                     float* out, index_t stride) {
    char trans = 'T', plain = 'N';
    float one = 1.0f, zero = 0.0f;
    int n_right = static_cast<int>(w), n_left = static_cast<int>(m), k = static_cast<int>(d),
        ld = static_cast<int>(stride);
    blas.sgemm(&trans, &plain, &n_right, &n_left, &k, &one, const_cast<float*>(right), &k,
               const_cast<float*>(left), &k, &zero, out, &ld);
}

// ‖x − z‖² of rows as they were given: the digits that ‖x‖² + ‖z‖² − 2⟨x, z⟩ may lose.
template <class T, class S>
double direct_square(const DenseRows<T>& a, index_t i, const DenseRows<S>& b, index_t j) {
    const T* x = a.row(i);
    const S* z = b.row(j);
    double sum[4] = {};
    for (index_t k = 0; k < a.n_cols; ++k) {
        const double apart = static_cast<double>(x[k]) - static_cast<double>(z[k]);
        sum[k & 3] += apart * apart;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Calls body(x_k, z_k) for every column where one of two sparse rows has a number.
template <class T, class I, class S, class J, class Body>
void both(const CsrRows<T, I>& a, index_t i, const CsrRows<S, J>& b, index_t j, Body body) {
    index_t p = a.indptr[i], q = b.indptr[j];
    const index_t p_end = a.indptr[i + 1], q_end = b.indptr[j + 1];
    while (p < p_end || q < q_end) {
        const index_t left = p < p_end ? static_cast<index_t>(a.indices[p]) : a.n_cols;
        const index_t right = q < q_end ? static_cast<index_t>(b.indices[q]) : a.n_cols;
        const double x = left <= right ? static_cast<double>(a.values[p++]) : 0.0;
        const double z = right <= left ? static_cast<double>(b.values[q++]) : 0.0;
        body(x, z);
    }
}

template <class T, class I, class S, class J>
double direct_square(const CsrRows<T, I>& a, index_t i, const CsrRows<S, J>& b, index_t j) {
    double sum = 0.0;
    both(a, i, b, j, [&](double x, double z) { sum += (x - z) * (x - z); });
    return sum;
}

template <class T, class S>
double direct_sum(const DenseRows<T>& a, index_t i, const DenseRows<S>& b, index_t j) {
    const T* x = a.row(i);
    const S* z = b.row(j);
    double sum[lanes] = {};
    index_t k = 0;
    for (; k + lanes <= a.n_cols; k += lanes)
        for (int t = 0; t < lanes; ++t)
            sum[t] += std::abs(static_cast<double>(x[k + t]) - static_cast<double>(z[k + t]));
    double last = 0.0;
    for (; k < a.n_cols; ++k) last += std::abs(static_cast<double>(x[k]) - static_cast<double>(z[k]));
    return fold(sum) + last;
}

template <class T, class I, class S, class J>
double direct_sum(const CsrRows<T, I>& a, index_t i, const CsrRows<S, J>& b, index_t j) {
    double sum = 0.0;
    both(a, i, b, j, [&](double x, double z) { sum += std::abs(x - z); });
    return sum;
}

// Rows of two sides are both dense or both sparse; the bindings see to it.
template <class Body>
void visit_both(const RowsView& a, const RowsView& b, Body body) {
    visit(a, [&]<class Left>(Left left) {
        visit(b, [&]<class Right>(Right right) {
            if constexpr (Left::dense == Right::dense) body(left, right);
        });
    });
}

// A tile's place: so many lines, whose rows on the left are `line[k]` or begin + k, and columns from `first`.
struct TilePlace {
    const std::int64_t* line;
    index_t begin, n_lines, first, width;
    index_t n_multiplied;  // lines of the product: a row's bits must not depend on how many are beside it
    index_t left(index_t k) const { return line != nullptr ? line[k] : begin + k; }
};

// Scratch of one task.
template <class T>
struct TileRoom {
    Buffer packed, sums;
    explicit TileRoom(const RowsView& left)
        : packed(((left.layout == RowsView::Layout::dense ? tile_lines : sparse_lines) * left.n_cols *
                      static_cast<index_t>(sizeof(T)) +
                  7) /
                 8),
          sums(tile_lines) {}
    T* rows() { return reinterpret_cast<T*>(packed.data()); }
};

template <class T>
void tile_products(const DenseRows<T>& left, const DenseRows<T>& right, const TilePlace& at,
                   TileRoom<T>& room, T* out, index_t stride, const Blas& blas) {
    const index_t d = left.n_cols;
    T* packed = room.rows();
    for (index_t k = 0; k < at.n_lines; ++k) {
        const T* x = left.row(at.left(k));
        for (index_t j = 0; j < d; ++j) packed[k * d + j] = x[j];
    }
    multiply(blas, packed, at.n_multiplied, right.row(at.first), at.width, d, out, stride);
}

template <class T, class I, class J>
void tile_products(const CsrRows<T, I>& left, const CsrRows<T, J>& right, const TilePlace& at,
                   TileRoom<T>& room, T* out, index_t stride, const Blas&) {
    T* spread = room.rows();  // column after column, sixteen rows each
    for (index_t begin = 0; begin < at.n_lines; begin += sparse_lines) {
        const index_t m = smaller(sparse_lines, at.n_lines - begin);
        for (index_t k = 0; k < m; ++k) {
            const index_t i = at.left(begin + k);
            for (index_t p = left.indptr[i]; p < left.indptr[i + 1]; ++p)
                spread[left.indices[p] * sparse_lines + k] = left.values[p];
        }
        for (index_t c = 0; c < at.width; ++c) {
            T sum[sparse_lines] = {};
            const index_t j = at.first + c;
            for (index_t p = right.indptr[j]; p < right.indptr[j + 1]; ++p) {
                const T v = right.values[p];
                const T* x = spread + right.indices[p] * sparse_lines;
                for (index_t k = 0; k < sparse_lines; ++k) sum[k] += v * x[k];
            }
            for (index_t k = 0; k < m; ++k) out[(begin + k) * stride + c] = sum[k];
        }
        for (index_t k = 0; k < m; ++k) {
            const index_t i = at.left(begin + k);
            for (index_t p = left.indptr[i]; p < left.indptr[i + 1]; ++p)
                spread[left.indices[p] * sparse_lines + k] = T(0);
        }
    }
}

template <class T>
inline constexpr double unit = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
template <class T>
inline constexpr double value_error = sizeof(T) == 4 ? 8e-7 : 5e-14;  // of a kernel's value, at most

// What products of d numbers lose, in units of ‖x‖² + ‖z‖²: measured, with room.
inline double product_error(index_t d) { return 3.0 + std::sqrt(static_cast<double>(d)) / 16.0; }

// How far exp(t) may be from the truth if its exponent is wrong by `off` at most: computed too low, the value
// hides that.
inline double value_lost(double value, double off) {
    return value * (off < 1.0 ? off * (1.0 + 2.0 * off) : std::exp(off));
}

// exp(−γ t) of a line of products; entries where cancellation may have cost too many digits are computed
// anew.
template <class T>
void gaussian_line(const KernelFunction& kernel, const TileRows& left, index_t i, const TileRows& right,
                   const TilePlace& at, const T* squares, T most_square, T* out) {
    const T gamma = static_cast<T>(-kernel.gamma), own = static_cast<T>(left.squares[i]), zero = T(0);
    for (index_t c = 0; c < at.width; ++c) {
        const T t = (own + squares[c]) - T(2) * out[c];
        out[c] = gamma * (t > zero ? t : zero);
    }
    exponentials(out, at.width);
    const double lost = kernel.gamma * product_error(left.packed.n_cols) * unit<T>;
    const double most_off = (left.squares[i] + static_cast<double>(most_square)) * lost;
    if (most_off <= value_error<T>) return;
    T largest[lanes] = {};
    for (index_t c = 0; c + lanes <= at.width; c += lanes)
        for (int k = 0; k < lanes; ++k) {
            const T size = out[c + k] * (own + squares[c + k]);
            largest[k] = largest[k] > size ? largest[k] : size;
        }
    const index_t rest = at.width % lanes;
    for (index_t c = at.width - rest; c < at.width; ++c) {
        const T size = out[c] * (own + squares[c]);
        largest[0] = largest[0] > size ? largest[0] : size;
    }
    for (int k = 1; k < lanes; ++k) largest[0] = largest[0] > largest[k] ? largest[0] : largest[k];
    if (most_off < 0.1 && static_cast<double>(largest[0]) * lost * 1.2 <= value_error<T>) return;
    visit_both(left.given, right.given, [&](auto a, auto b) {
        for (index_t c = 0; c < at.width; ++c) {
            const double sum = static_cast<double>(own) + static_cast<double>(squares[c]);
            if (value_lost(static_cast<double>(out[c]), sum * lost) <= value_error<T>) continue;
            out[c] = static_cast<T>(std::exp(-kernel.gamma * direct_square(a, i, b, at.first + c)));
        }
    });
}

template <class T>
void power_line(T* out, index_t n, T gamma, T coef0, double degree) {
    for (index_t j = 0; j < n; ++j) out[j] = gamma * out[j] + coef0;
    if (degree != std::floor(degree) || degree > 64.0) {
        for (index_t j = 0; j < n; ++j)
            out[j] = static_cast<T>(std::pow(static_cast<double>(out[j]), degree));
        return;
    }
    const int whole = static_cast<int>(degree);
    for (index_t j = 0; j < n; ++j) {
        T power = T(1), base = out[j];
        for (int e = whole; e > 0; e >>= 1) {
            power = e & 1 ? power * base : power;
            base *= base;
        }
        out[j] = power;
    }
}

template <class T>
void sigmoid_line(T* out, index_t n, T gamma, T coef0) {
    constexpr T most = sizeof(T) == 4 ? T(40) : T(350);  // tanh is 1 to the last bit well before
    for (index_t j = 0; j < n; ++j) {
        const T v = gamma * out[j] + coef0;
        out[j] = T(2) * (v > most ? most : v < -most ? -most : v);
    }
    exponentials(out, n);
    for (index_t j = 0; j < n; ++j) out[j] = T(1) - T(2) / (out[j] + T(1));
}

template <class T>
void laplacian_tile(const KernelFunction& kernel, const TileRows& left, const TileRows& right,
                    const TilePlace& at, T* out, index_t stride) {
    visit_both(left.given, right.given, [&](auto a, auto b) {
        for (index_t k = 0; k < at.n_lines; ++k) {
            T* line = out + k * stride;
            for (index_t c = 0; c < at.width; ++c)
                line[c] = static_cast<T>(-kernel.gamma * direct_sum(a, at.left(k), b, at.first + c));
            exponentials(line, at.width);
        }
    });
}

// The values of one tile, lines `stride` apart.
template <class T>
void kernel_tile(const KernelFunction& kernel, const TileRows& left, const TileRows& right,
                 const TilePlace& at, TileRoom<T>& room, T* out, index_t stride, const Blas& blas) {
    if (kernel.kind == KernelKind::laplacian) return laplacian_tile(kernel, left, right, at, out, stride);
    visit_both(left.packed, right.packed, [&](auto a, auto b) {
        if constexpr (sizeof(*a.values) == sizeof(T) && sizeof(*b.values) == sizeof(T))
            tile_products(a, b, at, room, out, stride, blas);
    });
    const T gamma = static_cast<T>(kernel.gamma), coef0 = static_cast<T>(kernel.coef0);
    T squares[tile_columns], most = T(0);
    for (index_t c = 0; c < at.width; ++c) {
        squares[c] = static_cast<T>(right.squares[at.first + c]);
        most = squares[c] > most ? squares[c] : most;
    }
    for (index_t k = 0; k < at.n_lines; ++k) {
        T* line = out + k * stride;
        if (kernel.kind == KernelKind::gaussian)
            gaussian_line(kernel, left, at.left(k), right, at, squares, most, line);
        if (kernel.kind == KernelKind::polynomial) power_line(line, at.width, gamma, coef0, kernel.degree);
        if (kernel.kind == KernelKind::sigmoid) sigmoid_line(line, at.width, gamma, coef0);
    }
}

inline index_t pieces(index_t n, index_t size) { return (n + size - 1) / size; }

// out_kj = k(left line k, right j), lines of `stride` values.
template <class T>
void kernel_block(const KernelFunction& kernel, const TileRows& left, const std::int64_t* lines,
                  index_t n_lines, const TileRows& right, T* out, index_t stride, const Blas& blas,
                  const Execution& how) {
    const index_t n = right.packed.n_rows, across = pieces(n, tile_columns);
    const index_t work = n_lines * n * (left.packed.n_cols / 8 + 4);
    for_tasks(pieces(n_lines, tile_lines) * across, worth(how, work), [&](index_t task) {
        const index_t k = task / across * tile_lines, first = task % across * tile_columns;
        TileRoom<T> room(left.packed);
        const index_t m = smaller(tile_lines, n_lines - k);
        const TilePlace at{lines + k, 0, m, first, smaller(tile_columns, n - first), m};
        kernel_tile(kernel, left, right, at, room, out + k * stride + first, stride, blas);
    });
}

// All values of a side with itself, exactly symmetric; lines are `stride` apart. Only tiles that touch the
// lower triangle are computed.
template <class T>
void kernel_gram(const KernelFunction& kernel, const TileRows& rows, const double* own, T* out,
                 index_t stride, const Blas& blas, const Execution& how) {
    const index_t n = rows.packed.n_rows, side = 4 * tile_lines, bands = pieces(n, side);
    for_tasks(bands * (bands + 1) / 2, worth(how, n * n * (rows.packed.n_cols / 16 + 4)), [&](index_t task) {
        auto down = static_cast<index_t>((std::sqrt(8.0 * static_cast<double>(task) + 1.0) - 1.0) / 2.0);
        while (down * (down + 1) / 2 > task) --down;
        while ((down + 1) * (down + 2) / 2 <= task) ++down;
        const index_t across = task - down * (down + 1) / 2, first = across * side;
        TileRoom<T> room(rows.packed);
        for (index_t k = down * side; k < smaller(n, (down + 1) * side); k += tile_lines) {
            const index_t m = smaller(tile_lines, n - k);
            const TilePlace at{nullptr, k, m, first, smaller(side, n - first), m};
            T* tile = out + k * stride + first;
            kernel_tile(kernel, rows, rows, at, room, tile, stride, blas);
            for (index_t c = 0; c < at.width;
                 c += 16)  // mirrored a few columns at a time: they share cache lines
                for (index_t i = 0; i < m; ++i)
                    for (index_t t = c; t < smaller(c + 16, at.width); ++t)
                        if (first + t < k + i) out[(first + t) * stride + k + i] = tile[i * stride + t];
        }
        if (across == down)
            for (index_t i = first; i < smaller(n, first + side); ++i)
                out[i * stride + i] = static_cast<T>(own[i]);
    });
}

// out_i += Σ_j coefficient_mj k(x_i, z_j) for every machine m and the chosen rows on the left (nullptr: all);
// and, if asked for, Σ_j |coefficient_0j k(x_i, z_j)|. Sums over a tile are rounded as float64 even where
// values are float.
template <class T>
void kernel_scores(const KernelFunction& kernel, const TileRows& left, const std::int64_t* lines,
                   index_t n_lines, const TileRows& right, const double* coefficient, index_t n_machines,
                   double* out, double* sizes, const Blas& blas, const Execution& how) {
    const index_t n = n_lines, n_right = right.packed.n_rows;
    const index_t work = n * n_right * (left.packed.n_cols / 8 + 4);
    for_tasks(pieces(n, tile_lines), worth(how, work), [&](index_t task) {
        const index_t k = task * tile_lines;
        TileRoom<T> room(left.packed);
        Buffer values(tile_lines * tile_columns * static_cast<index_t>(sizeof(T)) / 8);
        T* tile = reinterpret_cast<T*>(values.data());
        for (index_t first = 0; first < n_right; first += tile_columns) {
            const index_t m = smaller(tile_lines, n - k);
            const TilePlace at{lines != nullptr ? lines + k : nullptr,
                               k,
                               m,
                               first,
                               smaller(tile_columns, n_right - first),
                               pieces(m, 8) * 8};
            kernel_tile(kernel, left, right, at, room, tile, tile_columns, blas);
            for (index_t i = 0; i < at.n_lines; ++i) {
                const T* line = tile + i * tile_columns;
                for (index_t m = 0; m < n_machines; ++m)
                    out[(k + i) * n_machines + m] +=
                        dense_dot(line, coefficient + m * n_right + first, at.width);
                if (sizes == nullptr) continue;
                double sum[lanes] = {}, last = 0.0;
                index_t j = 0;
                for (; j + lanes <= at.width; j += lanes)
                    for (int t = 0; t < lanes; ++t)
                        sum[t] += std::abs(static_cast<double>(line[j + t]) * coefficient[first + j + t]);
                for (; j < at.width; ++j)
                    last += std::abs(static_cast<double>(line[j]) * coefficient[first + j]);
                sizes[k + i] += fold(sum) + last;
            }
        }
    });
}

}  // namespace maxmargin::MAXMARGIN_ISA
