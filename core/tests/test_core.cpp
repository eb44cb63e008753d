// The core without Python: every kernel of every instruction set against obvious loops.
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels.hpp"

using namespace maxmargin;

namespace {

using Vec = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

long n_passed = 0, n_failed = 0;
std::string where;
void check(bool holds, const char* text, const char* file, int line) {
    ++(holds ? n_passed : n_failed);
    if (!holds && n_failed <= 20) std::printf("%s:%d: %s: %s\n", file, line, where.c_str(), text);
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

std::mt19937_64 engine(1);
double uniform(double low, double high) { return std::uniform_real_distribution<>(low, high)(engine); }
Vec random_vector(index_t n, double low, double high) {
    Vec out(n);
    for (double& v : out) v = uniform(low, high);
    return out;
}
double total(const Vec& a) { return std::accumulate(a.begin(), a.end(), 0.0); }
bool always(void*) { return true; }
void nap(int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

// The message of the exception; empty when there is none.
template <class Error, class Work>
std::string thrown(Work work) try {
    work();
    return "";
} catch (const Error& error) {
    return error.what();
}

// `size` is that of the numbers that were added up; NaN is near nothing.
bool near(double a, double b, double size = 1.0) { return std::abs(a - b) <= 1e-11 * (size + std::abs(b)); }
bool close(const Vec& a, const Vec& b) {
    double size = 1.0;
    for (const double v : b) size = std::max(size, std::abs(v));
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](double v, double u) { return near(v, u, size); });
}
bool same(const Vec& a, const Vec& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(&a[0], &b[0], a.size() * sizeof(double)) == 0);
}

// What one thread computes, after a check that 2 and 4 threads compute the same bits.
template <class Run>
Vec for_threads(Run run) {
    const Vec one = run(Execution{1, nullptr});
    for (const int n_threads : {2, 4}) CHECK(same(one, run(Execution{n_threads, nullptr})));
    return one;
}
template <class Kernel>
Vec result(index_t size, Kernel kernel) {
    return for_threads([&](Execution how) {
        Vec out(size, nan);
        kernel(out.data(), how);
        return out;
    });
}

// `full` is what every layout stands for; some rows are empty.
struct Matrix {
    index_t n, d;
    bool csr, single, wide;
    Vec full, float64;
    std::vector<float> float32;
    std::vector<std::int32_t> indices32, indptr32{0};
    std::vector<std::int64_t> indices64, indptr64{0};
    Matrix(index_t n_rows, index_t n_cols, bool is_csr, bool is_single, bool is_wide)
        : n(n_rows), d(n_cols), csr(is_csr), single(is_single), wide(is_wide) {
        for (index_t i = 0; i < n; ++i) {
            for (index_t j = 0; j < d; ++j) {
                double v = i % 7 == 3 || (csr && uniform(0, 1) < 0.4) ? 0.0 : uniform(-1, 1);
                if (single) v = static_cast<double>(static_cast<float>(v));
                full.push_back(v);
                if (csr && v == 0.0) continue;
                single ? float32.push_back(static_cast<float>(v)) : float64.push_back(v);
                indices32.push_back(static_cast<std::int32_t>(j));
            }
            indptr32.push_back(static_cast<std::int32_t>(indices32.size()));
        }
        indices64.assign(indices32.begin(), indices32.end());
        indptr64.assign(indptr32.begin(), indptr32.end());
    }
    RowsView view() const {
        RowsView v{csr ? RowsView::Layout::csr : RowsView::Layout::dense, single, wide, {}, {}, {}, n, d};
        v.values = single ? static_cast<const void*>(float32.data()) : float64.data();
        if (csr) v.indices = wide ? static_cast<const void*>(indices64.data()) : indices32.data();
        if (csr) v.indptr = wide ? static_cast<const void*>(indptr64.data()) : indptr32.data();
        return v;
    }
    const double* row(index_t i) const { return full.data() + i * d; }
    double dot(index_t i, const double* w) const { return std::inner_product(w, w + d, row(i), 0.0); }
    Vec combine(const Vec& c) const {
        Vec out(d);
        for (index_t i = 0; i < n; ++i)
            for (index_t j = 0; j < d; ++j) out[j] += c[i] * full[i * d + j];
        return out;
    }
};

// The reference BLAS: column-major, and it touches only the triangle named by uplo.
void dsyrk(char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta,
           double* c, int* ldc) {
    const int p = *trans == 'N' ? 1 : *lda, q = *trans == 'N' ? *lda : 1;
    for (int j = 0; j < *n; ++j)
        for (int i = *uplo == 'L' ? j : 0; i < (*uplo == 'L' ? *n : j + 1); ++i) {
            double& out = c[i + j * *ldc] *= *beta;
            for (int l = 0; l < *k; ++l) out += *alpha * a[i * p + l * q] * a[j * p + l * q];
        }
}

void dgemm(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a, int* lda, double* b,
           int* ldb, double* beta, double* c, int* ldc) {
    CHECK(*transa == 'T' && *transb == 'N');
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i < *m; ++i) {
            double& out = c[i + j * *ldc];
            out = *beta == 0.0 ? 0.0 : *beta * out;
            for (int l = 0; l < *k; ++l) out += *alpha * a[l + i * *lda] * b[l + j * *ldb];
        }
}

Vec upper_triangle(const Vec& H, index_t n) {
    Vec out;
    for (index_t j = 0; j < n; ++j) out.insert(out.end(), H.begin() + j * n + j, H.begin() + (j + 1) * n);
    return out;
}

void test_products(const Kernels& k, const Matrix& m) {
    const RowsView v = m.view();
    Vec w = random_vector(m.d, -1, 1), c = random_vector(m.n, -1, 1), D = random_vector(m.n, 0, 2);
    for (index_t i = 0; i < m.n; i += 5) c[i] = D[i] = 0.0;
    Vec scores(m.n), norms(m.n);
    for (index_t i = 0; i < m.n; ++i) scores[i] = m.dot(i, w.data()) + 0.3, norms[i] = m.dot(i, m.row(i));
    CHECK(close(result(m.n, [&](auto to, auto how) { k.scores(v, w.data(), 0.3, to, how); }), scores));
    CHECK(close(result(m.n, [&](auto to, auto how) { k.squared_norms(v, to, how); }), norms));
    CHECK(close(result(m.d, [&](auto to, auto how) { k.combine(v, c.data(), to, how); }), m.combine(c)));
    for (const double bias : {0.0, 1.0, -2.5}) {
        const index_t size = m.d + (bias != 0.0);
        Vec wanted(size * size), line(size, bias);
        for (index_t i = 0; i < m.n; ++i) {
            std::copy_n(m.row(i), m.d, line.begin());
            for (index_t j = 0; j < size * size; ++j) wanted[j] += D[i] * line[j / size] * line[j % size];
        }
        const Vec H = result(size * size, [&](auto to, auto how) {
            k.normal_matrix(v, D.data(), BiasColumn{bias}, false, to, Blas{dsyrk, dgemm}, how);
        });
        CHECK(close(upper_triangle(H, size), upper_triangle(wanted, size)));
        Vec change(m.n);  // every third row goes, others count more
        for (index_t i = 0; i < m.n; ++i) change[i] = i % 3 == 0 ? -D[i] : i % 3 == 1 ? 0.5 : 0.0;
        for (index_t i = 0; i < m.n; ++i) {
            std::copy_n(m.row(i), m.d, line.begin());
            for (index_t j = 0; j < size * size; ++j)
                wanted[j] += change[i] * line[j / size] * line[j % size];
        }
        const Vec changed = result(size * size, [&](auto to, auto how) {
            std::copy(H.begin(), H.end(), to);
            k.normal_matrix(v, change.data(), BiasColumn{bias}, true, to, Blas{dsyrk, dgemm}, how);
        });
        CHECK(close(upper_triangle(changed, size), upper_triangle(wanted, size)));
    }
    const index_t n = m.n > 0 ? std::min<index_t>(m.n + 3, 530) : 0;
    std::vector<std::int64_t> chosen(n);  // in no order, some rows twice
    for (index_t l = 0; l < n; ++l) chosen[l] = l * l * 31 % m.n;
    Vec wanted(n * n);
    for (index_t j = 0; j < n * n; ++j) wanted[j] = m.dot(chosen[j % n], m.row(chosen[j / n]));
    const Vec G =
        result(n * n, [&](auto to, auto how) { k.gram(v, chosen.data(), n, to, Blas{dsyrk, dgemm}, how); });
    CHECK(close(upper_triangle(G, n), upper_triangle(wanted, n)));
    const std::vector<std::int64_t> lines(chosen.begin(), chosen.begin() + n / 3);
    const auto n_lines = static_cast<index_t>(lines.size());
    wanted.resize(n_lines * n);
    for (index_t j = 0; j < n_lines * n; ++j) wanted[j] = m.dot(lines[j / n], m.row(chosen[j % n]));
    const Vec block = result(n_lines * n, [&](auto to, auto how) {
        k.gram_block(v, lines.data(), n_lines, chosen.data(), n, to, how);
    });
    CHECK(close(block, wanted));
    Watch stopped(always, nullptr, 0.0);
    const auto stop_block = [&] {
        k.gram_block(v, lines.data(), n_lines, chosen.data(), n, Vec(n_lines * n).data(),
                     Execution{1, &stopped});
    };
    CHECK((thrown<Interrupted>(stop_block) != "") == (n_lines > 0));
    const auto stop = [&] { k.combine(v, c.data(), w.data(), Execution{1, &stopped}); };
    CHECK(thrown<Interrupted>(stop) != "");
}

void test_clipped(const Kernels& k) {
    for (const index_t n : {0, 1, 15, 16, 17, 1000, 9000})
        for (const double tube : {0.0, 0.4}) {
            const Vec scores = random_vector(n, -3, 3), dm = random_vector(n, -1, 1),
                      sigma = random_vector(n, 0.1, 2), anchor = random_vector(n, -1, 1),
                      target = random_vector(n, -1, 1), lower = random_vector(n, -2, 0),
                      upper = random_vector(n, 0, 2);
            Vec sign(n), z(n), pi(n), signed_pi(n), D(n), wanted(4);
            for (index_t i = 0; i < n; ++i) sign[i] = i % 3 == 0 ? 1.0 : -1.0;
            const auto clipped = [&](index_t i, double moved) {
                const double width = tube * sigma[i];
                return std::clamp(std::copysign(std::max(std::abs(moved) - width, 0.0), moved), lower[i],
                                  upper[i]);
            };
            Vec z_wanted(n), pi_wanted(n), D_wanted(n);
            double slope = 0.0;
            for (index_t i = 0; i < n; ++i) {
                z_wanted[i] = anchor[i] + sigma[i] * (target[i] - sign[i] * (scores[i] + 0.3));
                pi_wanted[i] = clipped(i, z_wanted[i]);
                const bool inside = pi_wanted[i] > lower[i] && pi_wanted[i] < upper[i] &&
                                    std::abs(z_wanted[i]) > tube * sigma[i];
                D_wanted[i] = inside ? sigma[i] : 0.0;
                wanted[0] += sign[i] * pi_wanted[i];
                wanted[1] += (pi_wanted[i] - anchor[i]) * (pi_wanted[i] - anchor[i]);
                wanted[2] += std::abs(pi_wanted[i]);
                wanted[3] += D_wanted[i];
                slope += clipped(i, z_wanted[i] - 0.7 * sigma[i] * dm[i]) * dm[i];
            }
            const ClippedPoint point{n,
                                     scores.data(),
                                     sign.data(),
                                     target.data(),
                                     anchor.data(),
                                     lower.data(),
                                     upper.data(),
                                     sigma.data(),
                                     tube,
                                     z.data(),
                                     pi.data(),
                                     signed_pi.data(),
                                     D.data()};
            const Vec sums = for_threads([&](Execution how) {
                const ClippedSums s = k.clipped_point(point, 0.3, how);
                return Vec{s.balance, s.moved, s.size, s.curvature};
            });
            CHECK(close(z, z_wanted) && close(pi, pi_wanted) && close(D, D_wanted));
            for (int s = 0; s < 4; ++s) CHECK(near(sums[s], wanted[s], 1000));
            const ClippedLine line{n, z.data(), dm.data(), lower.data(), upper.data(), sigma.data(), tube};
            const Vec found =
                for_threads([&](Execution how) { return Vec{k.clipped_slope(line, 0.7, how)}; });
            CHECK(near(found[0], slope, 1000));
        }
}

// Every fifth row has cost 0, and what a pass computes starts as NaN: a pass that used such a row would show.
struct Iterate {
    bool boxed;
    Vec y, C, target, alpha, t, s, xi, margin, D, e_s, e_xi, d_alpha, d_margin;
    Iterate(index_t n, bool hinge) : boxed(hinge), y(n), C(n), D(n, nan), d_alpha(n, nan), d_margin(n, nan) {
        for (Vec* v : {&target, &alpha, &t, &s, &xi, &margin, &e_s, &e_xi}) *v = random_vector(n, 0.1, 1.5);
        for (index_t i = 0; i < n; ++i) {
            C[i] = alpha[i] + t[i];
            y[i] = uniform(-1, 1) < 0.0 ? -1.0 : 1.0;
            if (i % 5 == 2) C[i] = 0.0;
        }
    }
    BarrierState state() {
        BarrierState b;
        b.n = static_cast<index_t>(y.size()), b.boxed = boxed, b.y = y.data(), b.C = C.data();
        b.target = target.data(), b.alpha = alpha.data(), b.s = s.data(), b.margin = margin.data();
        b.D = D.data(), b.e_s = e_s.data(), b.d_alpha = d_alpha.data(), b.d_margin = d_margin.data();
        if (boxed) b.t = t.data(), b.xi = xi.data(), b.e_xi = e_xi.data();
        return b;
    }
    std::array<const Vec*, 10> written() const {
        return {&alpha, &t, &s, &xi, &margin, &D, &e_s, &e_xi, &d_alpha, &d_margin};
    }
};

void test_barrier(const Kernels& k, const Matrix& m, bool boxed) {
    const Iterate start(m.n, boxed);
    Vec rhs, dw = random_vector(m.d, -1, 1);
    const double db = 0.4, mu = 0.05, step = 0.6;
    double longest = nan, sum = nan, expected_longest = 2.0, expected_sum = 0.0;
    Watch stopped(always, nullptr, 0.0);
    std::vector<Iterate> after(5, start);
    for_threads([&](Execution how) {
        rhs.assign(m.n, nan), after[0] = start;
        k.barrier_scale(after[0].state(), how);
        k.barrier_coefficient(after[0].state(), rhs.data(), how);
        after[1] = after[0];
        longest = k.barrier_direction(m.view(), after[1].state(), dw.data(), db, how);
        sum = k.barrier_complementarity(after[1].state(), step, how);
        after[2] = after[3] = after[4] = after[1];
        k.barrier_second_order(after[2].state(), mu, how);
        k.barrier_recentre(after[3].state(), step, mu, how);
        how.watch = &stopped;
        k.barrier_move(after[4].state(), step, how);  // is never left half done
        Vec all = rhs;
        all.insert(all.end(), {longest, sum});
        for (const Iterate& b : after)
            for (const Vec* v : b.written()) all.insert(all.end(), v->begin(), v->end());
        return all;
    });
    const Iterate &b = after[1], &second = after[2], &recentred = after[3], &moved = after[4];
    // A complementary pair, u v = −e linearised: (alpha, s) or (t, xi). Returns dv.
    const auto pair = [&](Vec Iterate::* u_, Vec Iterate::* v_, Vec Iterate::* e_, index_t i, double du) {
        const double u = (b.*u_)[i], v = (b.*v_)[i], e = (b.*e_)[i], dv = (-e - u * v - v * du) / u;
        const double new_u = u + step * du, new_v = v + step * dv, product = new_u * new_v;
        const double signed_pi = std::max(std::clamp(product, 0.1 * mu, 10 * mu) - product, -10 * mu);
        CHECK(near((second.*e_)[i], du * dv - mu, 100));
        CHECK(near((recentred.*e_)[i], e - signed_pi, 100));
        CHECK(near((moved.*u_)[i], new_u, 10) && near((moved.*v_)[i], new_v, 100));
        expected_longest = std::min({expected_longest, du < 0.0 ? -u / du : 2.0, dv < 0.0 ? -v / dv : 2.0});
        expected_sum += product;
        return dv;
    };
    for (index_t i = 0; i < m.n; ++i) {
        if (b.C[i] == 0.0) {
            bool idle = std::isnan(rhs[i]);
            for (const Iterate& a : after)
                for (int l = 0; l < 10; ++l)
                    idle = idle && std::memcmp(&a.written()[l]->at(i), &start.written()[l]->at(i), 8) == 0;
            CHECK(idle);
            continue;
        }
        const double da = b.d_alpha[i], ds = pair(&Iterate::alpha, &Iterate::s, &Iterate::e_s, i, da);
        const double slack = boxed ? b.xi[i] + pair(&Iterate::t, &Iterate::xi, &Iterate::e_xi, i, -da)
                                   : 0.5 * (b.alpha[i] + da) / b.C[i];
        CHECK(near(b.D[i] * ((boxed ? b.xi[i] / b.t[i] : 0.5 / b.C[i]) + b.s[i] / b.alpha[i]), 1.0));
        CHECK(near(b.d_margin[i], b.y[i] * (m.dot(i, dw.data()) + db), 10));
        CHECK(near(moved.margin[i], b.margin[i] + step * b.d_margin[i], 10));
        // margin − target + slack = s after a full step; D rho = d_alpha + D d_margin
        CHECK(near(b.margin[i] + b.d_margin[i] - b.target[i] + slack, b.s[i] + ds, 100 * (1 + std::abs(ds))));
        CHECK(near(rhs[i], b.y[i] * (da + b.D[i] * b.d_margin[i] + b.alpha[i]), 100));
    }
    CHECK(near(longest, expected_longest) && near(sum, expected_sum, 10.0 * static_cast<double>(m.n)));
}

}  // namespace

#include "descents.cpp"
#include "kernel_machines.cpp"
#include "online.cpp"

namespace {

struct Tally {
    std::vector<std::atomic<int>> runs;
    index_t fails = -1, polls_left = 100;
    bool slow = false;  // helpers leave the calling thread time to poll
    std::thread::id caller = std::this_thread::get_id();
    explicit Tally(index_t n) : runs(n) {}
    index_t done() const { return std::count(runs.begin(), runs.end(), 1); }
    static void body(void* context, index_t task) {
        Tally& tally = *static_cast<Tally*>(context);
        if (tally.slow && std::this_thread::get_id() != tally.caller) nap(1000);
        ++tally.runs[task];
        if (task == tally.fails) throw std::out_of_range("task " + std::to_string(task));
    }
    static bool poll(void* context) {
        Tally& tally = *static_cast<Tally*>(context);
        CHECK(std::this_thread::get_id() == tally.caller);
        nap(100);
        return --tally.polls_left == 0;
    }
};

void test_tasks(int n_threads) {
    where = "run_tasks, threads = " + std::to_string(n_threads);
    for (const index_t n : {0, 1, 2, 5, 1000000}) {
        Tally tally(n);
        run_tasks(n, Execution{n_threads, nullptr}, Tally::body, &tally);
        CHECK(tally.done() == n);
    }
    Tally failing(500), watched(5000);
    failing.fails = 37, watched.slow = true;
    const auto fail = [&] { run_tasks(500, Execution{n_threads, nullptr}, Tally::body, &failing); };
    CHECK(thrown<std::out_of_range>(fail) == "task 37" && (n_threads > 1 || failing.done() == 38));
    Watch watch(Tally::poll, &watched, 0.0);
    const auto stop = [&] { run_tasks(5000, Execution{n_threads, &watch}, Tally::body, &watched); };
    CHECK(thrown<Interrupted>(stop) != "" && watch.n_polls() == 100 && watch.stopped());
    CHECK(watched.done() < 5000 && (n_threads > 1 || watched.done() == 100));
    CHECK(watch.stop() && watch.n_polls() == 100);  // once stopped, always stopped
}

// A thread that is ended while it polls is unwound to its end, and takes its helpers along.
void test_end_of_a_thread(int n_threads) {
    where = "end of a thread, threads = " + std::to_string(n_threads);
    struct Context {
        int n_threads;
        Tally tally{5000};
    } context{n_threads};
    const auto work = [](void* argument) -> void* {
        Context& given = *static_cast<Context*>(argument);
        given.tally.caller = std::this_thread::get_id(), given.tally.slow = true;
        Watch watch([](void*) -> bool { pthread_exit(nullptr); }, nullptr, 0.0);
        run_tasks(5000, Execution{given.n_threads, &watch}, Tally::body, &given.tally);
        return argument;
    };
    pthread_t thread{};
    void* result = &context;
    CHECK(pthread_create(&thread, nullptr, work, &context) == 0 && pthread_join(thread, &result) == 0);
    const index_t done = context.tally.done();
    nap(5000);
    CHECK(result == nullptr && done < 5000 && context.tally.done() == done);
}

void test_watch() {
    where = "watch";
    const auto start = Watch::clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double>(Watch::clock::now() - start).count(); };
    Watch silent, rare([](void*) { return false; }, nullptr, 0.01);
    while (elapsed() < 0.1) silent.stop(), rare.stop();
    CHECK(!rare.stop() && rare.n_polls() >= 1 && static_cast<double>(rare.n_polls()) * 0.01 <= elapsed());
    CHECK(!silent.stop() && silent.n_polls() == 0);
}

}  // namespace

int main() {
    const std::string best = choose_isa(false);
    std::vector<const Kernels*> tables{&kernels_for("baseline")};
    if (best != "baseline") tables.push_back(&kernels_for(best.c_str()));
    CHECK(tables.front()->name == std::string(choose_isa(true)) && tables.back()->name == best);
    for (const int n_threads : {1, 2, 4, 16}) test_tasks(n_threads), test_end_of_a_thread(n_threads);
    test_watch();
    for (const Kernels* k : tables) test_kernel_machines(*k);
    // both sides of 16 lanes, blocks of 256 and chunks of 2048; the last is large enough for threads
    const index_t shapes[][2] = {{0, 3},    {3, 0},    {1, 1},    {1, 5},     {5, 1},
                                 {16, 17},  {255, 15}, {256, 16}, {257, 33},  {2047, 3},
                                 {2048, 1}, {2049, 5}, {4097, 2}, {22301, 20}};
    const std::string kinds[] = {" dense float64 ",     " dense float32 ",     " csr float64 int32 ",
                                 " csr float32 int32 ", " csr float64 int64 ", " csr float32 int64 "};
    for (const auto& [n, d] : shapes)
        for (int type = 0; type < 6; ++type)
            for (const Kernels* k : tables) {
                const Matrix m(n, d, type >= 2, type % 2 == 1, type >= 4);
                where = k->name + kinds[type] + std::to_string(n) + " x " + std::to_string(d);
                test_products(*k, m);
                test_clipped(*k);
                for (const bool boxed : {true, false}) test_barrier(*k, m, boxed);
                test_descents(*k, m);
                test_online(*k, m);
            }
    std::printf("%ld passed, %ld failed\n", n_passed, n_failed);
    return n_failed == 0 ? 0 : 1;
}
