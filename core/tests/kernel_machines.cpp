// Part of test_core.cpp, which includes it: values of kernels by tiles, factors, and steps on pairs.
#include "working_set.hpp"

namespace {

// --- the reference BLAS, column-major
// -------------------------------------------------------------------------

template <class T>
void gemm(char* transa, char* transb, int* m, int* n, int* k, T* alpha, T* a, int* lda, T* b, int* ldb,
          T* beta, T* c, int* ldc) {
    CHECK(*transa == 'T' && *transb == 'N');
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i < *m; ++i) {
            double sum = 0.0;
            for (int l = 0; l < *k; ++l) sum += static_cast<double>(a[l + i * *lda] * b[l + j * *ldb]);
            T& out = c[i + j * *ldc];
            out = (*beta == T(0) ? T(0) : *beta * out) + *alpha * static_cast<T>(sum);
        }
}

template <class T>
void syrk(char* uplo, char* trans, int* n, int* k, T* alpha, T* a, int* lda, T* beta, T* c, int* ldc) {
    CHECK(*uplo == 'U' && *trans == 'T');
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i <= j; ++i) {
            T& out = c[i + j * *ldc] *= *beta;
            for (int l = 0; l < *k; ++l) out += *alpha * a[l + i * *lda] * a[l + j * *lda];
        }
}

template <class T>
void trsm(char* side, char* uplo, char* transa, char* diag, int* m, int* n, T* alpha, T* a, int* lda, T* b,
          int* ldb) {
    CHECK(*side == 'L' && *uplo == 'U' && *transa == 'T' && *diag == 'N' && *alpha == T(1));
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i < *m; ++i) {
            T& out = b[i + j * *ldb];
            for (int l = 0; l < i; ++l) out -= a[l + i * *lda] * b[l + j * *ldb];
            out /= a[i + i * *lda];
        }
}

template <class T>
void potrf(char* uplo, int* n, T* a, int* lda, int* info) {
    CHECK(*uplo == 'U');
    *info = 0;
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i <= j; ++i) {
            T& out = a[i + j * *lda];
            for (int l = 0; l < i; ++l) out -= a[l + i * *lda] * a[l + j * *lda];
            if (i < j) {
                out /= a[i + i * *lda];
                continue;
            }
            if (!(out > T(0))) {
                *info = j + 1;
                return;
            }
            out = std::sqrt(out);
        }
}

const Blas reference{dsyrk,        gemm<double>, syrk<float>,   gemm<float>,
                     trsm<double>, trsm<float>,  potrf<double>, potrf<float>};

// --- values
// ---------------------------------------------------------------------------------------------------

const KernelFunction kernel_functions[] = {
    {KernelKind::linear, 1.0, 0.0, 1.0},     {KernelKind::polynomial, 0.3, 1.0, 3.0},
    {KernelKind::polynomial, 0.1, 9.0, 2.5}, {KernelKind::gaussian, 0.4, 0.0, 0.0},
    {KernelKind::laplacian, 0.4, 0.0, 0.0},  {KernelKind::sigmoid, 0.3, -0.2, 0.0}};

double value_of(const KernelFunction& kernel, const double* x, const double* z, index_t d) {
    double product = 0.0, square = 0.0, length = 0.0;
    for (index_t j = 0; j < d; ++j) {
        product += x[j] * z[j];
        square += (x[j] - z[j]) * (x[j] - z[j]);
        length += std::abs(x[j] - z[j]);
    }
    switch (kernel.kind) {
        case KernelKind::polynomial:
            return std::pow(kernel.gamma * product + kernel.coef0, kernel.degree);
        case KernelKind::gaussian:
            return std::exp(-kernel.gamma * square);
        case KernelKind::laplacian:
            return std::exp(-kernel.gamma * length);
        case KernelKind::sigmoid:
            return std::tanh(kernel.gamma * product + kernel.coef0);
        default:
            return product;
    }
}

// What the core writes as T, for several numbers of threads; slots that it must not touch hold 7.
template <class T, class Kernel>
Vec values(index_t size, Kernel kernel) {
    return for_threads([&](Execution how) {
        std::vector<T> out(size, T(7));
        kernel(static_cast<void*>(out.data()), how);
        return Vec(out.begin(), out.end());
    });
}

bool within(const Vec& a, const Vec& b, double off) {
    double size = 1.0;
    for (const double v : b) size = std::max(size, std::abs(v));
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](double v, double u) { return std::abs(v - u) <= off * size; });
}

template <class T>
void test_values(const Kernels& k, const Matrix& m, const KernelFunction& kernel) {
    const double off = sizeof(T) == 4 ? 2e-6 : 1e-13;
    Vec squares(m.n), own = random_vector(m.n, 1, 2);
    for (index_t i = 0; i < m.n; ++i) squares[i] = m.dot(i, m.row(i));
    const TileRows rows{m.view(), m.view(), squares.data()};
    const auto value = [&](index_t i, index_t j) { return value_of(kernel, m.row(i), m.row(j), m.d); };

    std::vector<std::int64_t> lines(m.n + 5);  // in no order, some twice
    for (index_t l = 0; l < m.n + 5; ++l) lines[l] = l * l * 31 % m.n;
    const auto n_lines = static_cast<index_t>(lines.size()), stride = m.n + 3;
    Vec block(n_lines * stride, 7.0), gram(m.n * m.n);
    for (index_t l = 0; l < n_lines; ++l)
        for (index_t j = 0; j < m.n; ++j) block[l * stride + j] = value(lines[l], j);
    CHECK(within(values<T>(n_lines * stride,
                           [&](void* to, Execution how) {
                               k.kernel_block(kernel, rows, lines.data(), n_lines, rows, to, stride,
                                              reference, how);
                           }),
                 block, off));
    for (index_t i = 0; i < m.n; ++i)
        for (index_t j = 0; j < m.n; ++j) gram[i * m.n + j] = i == j ? own[i] : value(i, j);
    const Vec K = values<T>(m.n * m.n, [&](void* to, Execution how) {
        k.kernel_gram(kernel, rows, own.data(), to, m.n, reference, how);
    });
    CHECK(within(K, gram, off));
    for (index_t i = 0; i < m.n; ++i)
        for (index_t j = 0; j < i; ++j) CHECK(K[i * m.n + j] == K[j * m.n + i]);

    const Vec c = random_vector(2 * m.n, -1, 1);
    for (const bool all : {true, false}) {
        const index_t n = all ? m.n : n_lines;
        Vec wanted(3 * n);  // two sums of every line, then what the first is made of
        for (index_t i = 0; i < n; ++i)
            for (index_t j = 0; j < m.n; ++j) {
                const double v = value(all ? i : lines[i], j);
                wanted[2 * i] += c[j] * v, wanted[2 * i + 1] += c[m.n + j] * v;
                wanted[2 * n + i] += std::abs(c[j] * v);
            }
        CHECK(within(result(3 * n,
                            [&](double* to, Execution how) {
                                std::fill_n(to, 3 * n, 0.0);
                                k.kernel_scores(kernel, rows, all ? nullptr : lines.data(), n, rows, c.data(),
                                                2, to, to + 2 * n, reference, how);
                            }),
                     wanted, off));
    }
}

// Two clusters far from zero: products see rows from an origin, and lose the digits of a distance all the
// same.
template <class T>
void test_cancellation(const Kernels& k) {
    constexpr index_t n = 70, d = 3;
    for (const double gamma : {0.3, 1e4}) {
        Vec given(n * d), origin(d), squares(n), wanted(n * n);
        for (index_t i = 0; i < n * d; ++i)
            given[i] = 1e6 * static_cast<double>(i / d % 2) + uniform(-1, 1) * 1e-2;
        for (index_t i = 0; i < n * d; ++i) origin[i % d] += given[i] / n;
        std::vector<T> packed(n * d);
        for (index_t i = 0; i < n * d; ++i) {
            packed[i] = static_cast<T>(given[i] - origin[i % d]);
            squares[i / d] += static_cast<double>(packed[i]) * static_cast<double>(packed[i]);
        }
        const KernelFunction kernel{KernelKind::gaussian, gamma, 0.0, 0.0};
        RowsView seen{RowsView::Layout::dense, sizeof(T) == 4, false, packed.data(), {}, {}, n, d},
            as_given = seen;
        as_given.single = false, as_given.values = given.data();
        const TileRows rows{seen, as_given, squares.data()};
        for (index_t i = 0; i < n * n; ++i)
            wanted[i] = value_of(kernel, &given[i / n * d], &given[i % n * d], d);
        const Vec own(n, 1.0);
        CHECK(within(values<T>(n * n,
                               [&](void* to, Execution how) {
                                   k.kernel_gram(kernel, rows, own.data(), to, n, reference, how);
                               }),
                     wanted, sizeof(T) == 4 ? 1e-6 : 1e-13));
    }
}

template <class T>
void test_cholesky(const Kernels& k, index_t n) {
    const Vec B = random_vector(n * 4, -1, 1);
    Vec A(n * n);
    for (index_t i = 0; i < n * n; ++i) {
        A[i] = i / n == i % n ? 2.0 : 0.0;
        for (index_t l = 0; l < 4; ++l) A[i] += B[i / n * 4 + l] * B[i % n * 4 + l];
    }
    const Vec L = values<T>(n * n, [&](void* to, Execution how) {
        std::transform(A.begin(), A.end(), static_cast<T*>(to), [](double v) { return static_cast<T>(v); });
        CHECK(k.cholesky(to, sizeof(T) == 4, n, reference, how));
    });
    double worst = 0.0;
    for (index_t i = 0; i < n; i += 7)
        for (index_t j = 0; j <= i; ++j) {
            double sum = 0.0;
            for (index_t l = 0; l <= j; ++l) sum += L[i * n + l] * L[j * n + l];
            worst = std::max(worst, std::abs(sum - A[i * n + j]));
        }
    CHECK(worst <= (sizeof(T) == 4 ? 1e-4 : 1e-12));
    std::vector<T> wrong(n * n);
    for (index_t i = 0; i < n; ++i) wrong[i * n + i] = i == n - 1 ? T(-1) : T(1);
    CHECK(!k.cholesky(wrong.data(), sizeof(T) == 4, n, reference, Execution{2, nullptr}));
}

// --- steps on pairs
// -------------------------------------------------------------------------------------------

struct Pairs {
    index_t n;
    Vec K, linear, lower, upper, own, ridge, beta, slope, scratch;
    std::vector<float> K32;
    std::vector<index_t> ends;
    double tube;
    Pairs(index_t size, bool with_ridge, double width, index_t n_groups)
        : n(size),
          K(n * n),
          linear(random_vector(n, -2, 2)),
          own(n),
          beta(n),
          slope(n),
          scratch(2 * n),
          tube(width) {
        const Vec X = random_vector(2 * n, -1.5, 1.5);
        for (index_t i = 0; i < n * n; ++i) {
            const float value =
                static_cast<float>(value_of(kernel_functions[3], &X[i / n * 2], &X[i % n * 2], 2));
            K[i] = static_cast<double>(value);
            K32.push_back(value);
        }
        const Vec cost = random_vector(n, 0.5, 3.0);
        for (index_t i = 0; i < n; ++i) {
            if (with_ridge) ridge.push_back(0.5 / cost[i]);
            own[i] = K[i * n + i] + (with_ridge ? ridge[i] : 0.0);
            lower.push_back(with_ridge ? -inf : i % 3 == 0 ? -cost[i] : tube > 0.0 ? -0.5 * cost[i] : 0.0);
            upper.push_back(with_ridge ? inf : cost[i]);
            beta[i] = i % 4 == 1 ? 0.3 * cost[i] : 0.0;
        }
        for (index_t g = 1; g <= n_groups; ++g) ends.push_back(g * n / n_groups);
        slope = slopes();
    }
    Vec slopes() const {
        Vec out = linear;
        for (index_t i = 0; i < n; ++i) {
            for (index_t j = 0; j < n; ++j) out[i] += K[i * n + j] * beta[j];
            if (!ridge.empty()) out[i] += ridge[i] * beta[i];
        }
        return out;
    }
    Vec sums() const {
        Vec out;
        for (std::size_t g = 0; g < ends.size(); ++g)
            out.push_back(
                std::accumulate(beta.begin() + (g == 0 ? 0 : ends[g - 1]), beta.begin() + ends[g], 0.0));
        return out;
    }
    double cost() const {
        const Vec g = slopes();
        double value = 0.0;
        for (index_t i = 0; i < n; ++i)
            value += 0.5 * beta[i] * (g[i] + linear[i]) + tube * std::abs(beta[i]);
        return value;
    }
    PairProblem problem() {
        PairProblem q;
        q.n = n, q.tube = tube, q.lower = lower.data(), q.upper = upper.data(), q.own = own.data();
        q.ridge = ridge.empty() ? nullptr : ridge.data(), q.beta = beta.data(), q.slope = slope.data();
        q.rise = scratch.data(), q.fall = scratch.data() + n;
        q.n_groups = static_cast<index_t>(ends.size()), q.group_end = ends.data();
        return q;
    }
    void invariants(const Vec& sums_before) const {
        CHECK(close(slope, slopes()) && close(sums(), sums_before));
        CHECK(std::equal(beta.begin(), beta.end(), upper.begin(), std::less_equal<>()));
        CHECK(std::equal(beta.begin(), beta.end(), lower.begin(), std::greater_equal<>()));
    }
};

void test_pair_loop(const Kernels& k, Pairs p, bool single) {
    PairProblem q = p.problem();
    const void* K = single ? static_cast<const void*>(p.K32.data()) : p.K.data();
    const Vec sums = p.sums();
    double before = p.cost();
    PairReport report;
    for (int turn = 0; turn < 100000; ++turn) {
        report = k.pair_loop(q, K, single, p.n, 3, 1e-9, nullptr);
        CHECK(report.n_steps <= 3 && report.n_negative == 0 && !report.stopped);
        CHECK(p.cost() <= before + 1e-12 * (1.0 + std::abs(before)));
        before = p.cost();
        if (report.n_steps < 3) break;
    }
    p.invariants(sums);
    CHECK(report.violation <= 1e-9 && near(k.pair_ends(q), report.violation));
    Watch stopped(always, nullptr, 0.0);
    std::fill(p.slope.begin(), p.slope.end(), 0.0);
    for (index_t i = 0; i < p.n; ++i) p.slope[i] = i % 2 == 0 ? -1e3 : 1e3;
    const PairReport early = k.pair_loop(q, K, single, p.n, index_t{1} << 40, 0.0, &stopped);
    CHECK(early.n_steps <= 255);
}

void test_working_set(const Kernels& k, Pairs p, index_t size) {
    PairProblem q = p.problem();
    WorkingSet set;
    const Vec sums = p.sums();
    double before = p.cost(), violation = k.pair_ends(q);
    const index_t begin[] = {0, p.n / 3}, length[] = {p.n / 3, p.n - p.n / 3};
    for (int turn = 0; turn < 5000 && violation > 1e-7; ++turn) {
        set.choose(q, size);
        const auto m = set.members.size();
        CHECK(m > 0 && m <= static_cast<std::size_t>(size) &&
              std::is_sorted(set.members.begin(), set.members.end()));
        Vec block;
        for (const auto i : set.members)
            for (const auto j : set.members) block.push_back(p.K[i * p.n + j]);
        set.solve(k, q, block.data(), false, 1e-8, 200, nullptr);
        std::vector<const void*> lines;
        for (const auto v : set.changed) lines.push_back(&p.K[v * p.n]);
        const Vec start = p.slope;
        p.slope = for_threads([&](Execution how) {
            Vec out = start;
            k.add_lines(Segments{2, begin, length}, lines.data(), false, set.change.data(),
                        static_cast<index_t>(lines.size()), out.data(), p.n, how);
            return out;
        });
        q.slope = p.slope.data();
        CHECK(p.cost() <= before + 1e-12 * (1.0 + std::abs(before)));
        before = p.cost(), violation = k.pair_ends(q);
    }
    p.invariants(sums);
    CHECK(violation <= 1e-7);
}

void test_kernel_machines(const Kernels& k) {
    const index_t shapes[][2] = {{1, 1}, {3, 5}, {64, 4}, {65, 9}, {257, 3}, {530, 6}};
    for (const auto& [n, d] : shapes)
        for (int type = 0; type < 6; ++type) {
            const Matrix m(n, d, type >= 2, type % 2 == 1, type >= 4);
            where = std::string(k.name) + " tiles " + std::to_string(type) + " of " + std::to_string(n);
            for (const KernelFunction& kernel : kernel_functions)
                m.single ? test_values<float>(k, m, kernel) : test_values<double>(k, m, kernel);
        }
    where = std::string(k.name) + " cancellation";
    test_cancellation<float>(k), test_cancellation<double>(k);
    for (const index_t n : {1, 5, 256, 300}) {
        where = std::string(k.name) + " cholesky of " + std::to_string(n);
        test_cholesky<float>(k, n), test_cholesky<double>(k, n);
    }
    for (const index_t n : {2, 3, 4, 8, 9, 31, 60})
        for (const bool ridge : {false, true})
            for (const double tube : {0.0, 0.3})
                for (const index_t n_groups : {1, 2}) {
                    where = std::string(k.name) + " pairs of " + std::to_string(n);
                    if (n < 2 * n_groups) continue;
                    const Pairs p(n, ridge, tube, n_groups);
                    test_pair_loop(k, p, false), test_pair_loop(k, p, true);
                    if (n >= 9) test_working_set(k, p, 16);
                }
}

}  // namespace
