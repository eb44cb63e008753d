// Matrix products over rows: X w, Xᵀ c, Xᵀ D X and Gram blocks.
#pragma once
#include <cmath>

#include "kernels.hpp"
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline void scores(const RowsView& view, const double* w, double bias, double* out, const Execution& how) {
    visit(view, [&](auto rows) {
        for_chunks(rows.n_rows, rows.cost(), how, [&](index_t, index_t begin, index_t end) {
            for (index_t i = begin; i < end; ++i) out[i] = rows.dot(i, w) + bias;
        });
    });
}

inline void squared_norms(const RowsView& view, double* out, const Execution& how) {
    visit(view, [&](auto rows) {
        for_chunks(rows.n_rows, rows.cost(), how, [&](index_t, index_t begin, index_t end) {
            for (index_t i = begin; i < end; ++i) out[i] = rows.squared_norm(i);
        });
    });
}

// How many partial results a sum over rows is split into: by the data alone, at most 16, two or 16 MB, and
// so few that adding them up stays cheap beside the work itself.
inline index_t parts_for(index_t n_rows, index_t result_size, index_t work) {
    const index_t size = larger(index_t{1}, result_size);
    const index_t by_rows = n_rows / 512;
    const index_t by_memory =
        larger((index_t{2} << 20) / size, size <= (index_t{4} << 20) ? index_t{2} : index_t{1});
    const index_t by_work = work / (8 * size);
    return larger(index_t{1}, smaller(smaller(index_t{16}, by_rows), smaller(by_memory, by_work)));
}

inline index_t part_begin(index_t part, index_t n_parts, index_t n_rows) { return n_rows * part / n_parts; }

// The partial results of a sum over rows: part 0 is the result itself, the others have memory of their own.
class Parts {
  public:
    Parts(double* result, index_t n_parts, index_t size, bool keep = false)
        : result_(result), n_parts_(n_parts), size_(size), others_((n_parts - 1) * size) {
        for (index_t j = 0; !keep && j < size; ++j) result[j] = 0.0;
    }
    double* operator[](index_t p) { return p == 0 ? result_ : others_ + (p - 1) * size_; }
    // result = part 0 + part 1 + …, always in this order.
    void add_up() {
        for (index_t p = 1; p < n_parts_; ++p)
            for (index_t j = 0; j < size_; ++j) result_[j] += (*this)[p][j];
    }

  private:
    double* result_;
    index_t n_parts_, size_;
    Buffer others_;
};

template <class T>
void combine_rows(const DenseRows<T>& rows, const double* c, index_t begin, index_t end, double* out) {
    const T* pending[4];
    double factor[4];
    int held = 0;
    for (index_t i = begin; i < end; ++i) {
        if (c[i] == 0.0) continue;
        pending[held] = rows.row(i);
        factor[held++] = c[i];
        if (held == 4) {
            dense_axpy4(factor, pending, out, rows.n_cols);
            held = 0;
        }
    }
    for (int k = 0; k < held; ++k) dense_axpy(factor[k], pending[k], out, rows.n_cols);
}

template <class T, class I>
void combine_rows(const CsrRows<T, I>& rows, const double* c, index_t begin, index_t end, double* out) {
    for (index_t i = begin; i < end; ++i)
        if (c[i] != 0.0) rows.axpy(i, c[i], out);
}

inline void combine(const RowsView& view, const double* c, double* out, const Execution& how) {
    visit(view, [&](auto rows) {
        const index_t size = rows.n_cols, work = rows.n_rows * (rows.cost() + 1);
        const index_t n_parts = parts_for(rows.n_rows, size, work);
        Parts parts(out, n_parts, size);
        for_tasks(n_parts, worth(how, work), [&](index_t p) {
            combine_rows(rows, c, part_begin(p, n_parts, rows.n_rows),
                         part_begin(p + 1, n_parts, rows.n_rows), parts[p]);
        });
        parts.add_up();
    });
}

// C += factor·AᵀA for row-major blocks: `block` holds n_rows rows of length size; C row-major, upper
// triangle.
inline void add_outer(const Blas& blas, double* block, int n_rows, int size, double factor, double* C) {
    char uplo = 'L', trans = 'N';  // column-major lower = row-major upper
    double one = 1.0;
    blas.dsyrk(&uplo, &trans, &size, &n_rows, &factor, block, &size, &one, C, &size);
}

inline constexpr index_t block_rows = 256, block_columns = 256;

template <class T>
void add_normal(const DenseRows<T>& rows, const double* D, BiasColumn bias, index_t begin, index_t end,
                double* H, double* block, const Blas& blas) {
    const index_t size = rows.n_cols + (bias.value != 0.0);
    for (const double sign : {1.0, -1.0}) {
        int held = 0;
        const auto flush = [&] {
            if (held > 0) add_outer(blas, block, held, static_cast<int>(size), sign, H);
            held = 0;
        };
        for (index_t i = begin; i < end; ++i) {
            if (sign > 0.0 ? D[i] <= 0.0 : !(D[i] < 0.0)) continue;  // NaN counts as positive
            const double root = std::sqrt(sign * D[i]);
            const T* x = rows.row(i);
            double* out = block + held * size;
            for (index_t j = 0; j < rows.n_cols; ++j) out[j] = root * static_cast<double>(x[j]);
            if (bias.value != 0.0) out[rows.n_cols] = root * bias.value;
            if (++held == block_rows) flush();
        }
        flush();
    }
}

// Sorted indices keep every entry in the upper triangle.
template <class T, class I>
void add_normal(const CsrRows<T, I>& rows, const double* D, BiasColumn bias, index_t begin, index_t end,
                double* H, double*, const Blas&) {
    const index_t d = rows.n_cols, size = d + (bias.value != 0.0);
    for (index_t i = begin; i < end; ++i) {
        if (D[i] == 0.0) continue;
        const I stop = rows.indptr[i + 1];
        for (I a = rows.indptr[i]; a < stop; ++a) {
            const double v = D[i] * static_cast<double>(rows.values[a]);
            double* line = H + static_cast<index_t>(rows.indices[a]) * size;
            for (I b = a; b < stop; ++b) line[rows.indices[b]] += v * static_cast<double>(rows.values[b]);
            if (bias.value != 0.0) line[d] += v * bias.value;
        }
        if (bias.value != 0.0) H[d * size + d] += D[i] * bias.value * bias.value;
    }
}

inline void normal_matrix(const RowsView& view, const double* D, BiasColumn bias, bool add, double* H,
                          const Blas& blas, const Execution& how) {
    visit(view, [&](auto rows) {
        const index_t size = rows.n_cols + (bias.value != 0.0), area = size * size;
        if (size == 0) return;
        index_t active = 0;
        for (index_t i = 0; i < rows.n_rows; ++i) active += D[i] != 0.0;
        const index_t work = active * rows.cost() * rows.cost() / 2;
        const index_t n_parts = parts_for(active, area, work);
        const bool dense = view.layout == RowsView::Layout::dense;
        const index_t block = dense ? block_rows * size : 0;
        Parts parts(H, n_parts, area, add);
        Buffer blocks(n_parts * block);
        for_tasks(n_parts, worth(how, work), [&](index_t p) {
            add_normal(rows, D, bias, part_begin(p, n_parts, rows.n_rows),
                       part_begin(p + 1, n_parts, rows.n_rows), parts[p], blocks + p * block, blas);
        });
        parts.add_up();
    });
}

template <class T, class I>
void gram_line(const CsrRows<T, I>& rows, const std::int64_t* chosen, index_t j, index_t n, double* scratch,
               double* out) {
    rows.axpy(chosen[j], 1.0, scratch);
    for (index_t k = j; k < n; ++k) out[k] = rows.dot(chosen[k], scratch);
    const index_t i = chosen[j];
    for (I k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) scratch[rows.indices[k]] = 0.0;
}

inline void gram_block(const RowsView& view, const std::int64_t* lines, index_t n_lines,
                       const std::int64_t* columns, index_t n_columns, double* G, const Execution& how) {
    visit(view, [&](auto rows) {
        const index_t n_tasks = smaller(n_lines, index_t{16});
        Buffer scratch(n_tasks * rows.n_cols);
        for_tasks(n_tasks, worth(how, n_lines * n_columns * (rows.cost() + 1)), [&](index_t p) {
            double* line = scratch + p * rows.n_cols;
            for (index_t j = p; j < n_lines; j += n_tasks) {
                rows.axpy(lines[j], 1.0, line);
                for (index_t k = 0; k < n_columns; ++k) G[j * n_columns + k] = rows.dot(columns[k], line);
                rows.clear(lines[j], line);
            }
        });
    });
}

// Some columns of the chosen rows, as doubles, row after row.
template <class T>
void pack_columns(const DenseRows<T>& rows, const std::int64_t* chosen, index_t n, index_t first,
                  index_t width, double* block) {
    for (index_t j = 0; j < n; ++j) {
        const T* x = rows.row(chosen[j]) + first;
        for (index_t k = 0; k < width; ++k) block[j * width + k] = static_cast<double>(x[k]);
    }
}

// G += the inner products of the chosen rows in some of the columns.
template <class T>
void add_gram(const DenseRows<T>& rows, const std::int64_t* chosen, index_t n, index_t begin, index_t end,
              double* G, double* block, const Blas& blas) {
    for (index_t first = begin; first < end; first += block_columns) {
        const index_t width = smaller(block_columns, end - first);
        pack_columns(rows, chosen, n, first, width, block);
        char uplo = 'L', trans = 'T';  // column-major lower = row-major upper
        double one = 1.0;
        int size = static_cast<int>(n), k = static_cast<int>(width);
        blas.dsyrk(&uplo, &trans, &size, &k, &one, block, &k, &one, G, &size);
    }
}

// Few rows: a sum over columns in parts, a piece of each part at a time so that the watch is asked now and
// then.
template <class T>
void gram_by_columns(const DenseRows<T>& rows, const std::int64_t* chosen, index_t n, double* G,
                     const Blas& blas, const Execution& how) {
    const index_t d = rows.n_cols, work = n * n * d / 2, n_parts = parts_for(d, n * n, work);
    const index_t longest = larger(block_columns, (index_t{1} << 30) / larger(index_t{1}, n * n));
    const index_t n_pieces = (d / n_parts + longest) / longest, n_blocks = n_parts * n_pieces;
    Parts parts(G, n_parts, n * n);
    Buffer blocks(n_parts * n * block_columns);
    for (index_t piece = 0; piece < n_pieces; ++piece)
        for_tasks(n_parts, worth(how, work / n_pieces), [&](index_t p) {
            const index_t k = p * n_pieces + piece;
            add_gram(rows, chosen, n, part_begin(k, n_blocks, d), part_begin(k + 1, n_blocks, d), parts[p],
                     blocks + p * n * block_columns, blas);
        });
    parts.add_up();
}

// Many rows: every task has a tile of G of its own.
template <class T>
void gram_by_tiles(const DenseRows<T>& rows, const std::int64_t* chosen, index_t n, double* G,
                   const Blas& blas, const Execution& how) {
    const index_t n_bands = (n + block_rows - 1) / block_rows, d = rows.n_cols;
    for_tasks(n_bands * n_bands, worth(how, n * n * d / 2), [&](index_t task) {
        const index_t a = task / n_bands * block_rows, b = task % n_bands * block_rows;
        if (a > b) return;
        const index_t n_a = smaller(block_rows, n - a), n_b = smaller(block_rows, n - b);
        Buffer blocks(2 * block_rows * block_columns);
        double *left = blocks + 0, *right = blocks + block_rows * block_columns;
        double one = 1.0, keep = 0.0;
        for (index_t first = 0; first < d; first += block_columns, keep = 1.0) {
            const index_t width = smaller(block_columns, d - first);
            pack_columns(rows, chosen + a, n_a, first, width, left);
            pack_columns(rows, chosen + b, n_b, first, width, right);
            char trans = 'T', plain = 'N';  // column-major, so right·leftᵀ
            int rows_b = static_cast<int>(n_b), rows_a = static_cast<int>(n_a), k = static_cast<int>(width),
                stride = static_cast<int>(n);
            blas.dgemm(&trans, &plain, &rows_b, &rows_a, &k, &one, right, &k, left, &k, &keep, G + a * n + b,
                       &stride);
        }
    });
}

inline constexpr index_t many_rows = 512;

template <class T>
void gram_of(const DenseRows<T>& rows, const std::int64_t* chosen, index_t n, double* G, const Blas& blas,
             const Execution& how) {
    if (n > many_rows && rows.n_cols > 0)
        gram_by_tiles(rows, chosen, n, G, blas, how);
    else if (n > 0)
        gram_by_columns(rows, chosen, n, G, blas, how);
}

template <class T, class I>
void gram_of(const CsrRows<T, I>& rows, const std::int64_t* chosen, index_t n, double* G, const Blas&,
             const Execution& how) {
    const index_t n_tasks = smaller(n, index_t{16});
    Buffer scratch(n_tasks * rows.n_cols);
    // Task p takes lines p, p + n_tasks, …: their lengths fall evenly.
    for_tasks(n_tasks, worth(how, n * n * (rows.cost() + 1) / 2), [&](index_t p) {
        for (index_t j = p; j < n; j += n_tasks)
            gram_line(rows, chosen, j, n, scratch + p * rows.n_cols, G + j * n);
    });
}

inline void gram(const RowsView& view, const std::int64_t* chosen, index_t n, double* G, const Blas& blas,
                 const Execution& how) {
    visit(view, [&](auto rows) { gram_of(rows, chosen, n, G, blas, how); });
}

}  // namespace maxmargin::MAXMARGIN_ISA
