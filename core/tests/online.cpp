// Part of test_core.cpp, which includes it: the machines that learn row by row against obvious loops.
namespace {

struct Walk {
    Vec y, w, sum, corrections = Vec(64);
    std::vector<std::int64_t> order;
    explicit Walk(const Matrix& m) : y(m.n), w(m.d), sum(m.d + 1), order(m.n) {
        for (double& v : y) v = uniform(0, 1) < 0.5 ? -1.0 : 1.0;
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), engine);
    }
};

// One pass of the perceptron with margin, shrinking and batches; and the mean of its weights.
void test_online_steps(const Kernels& k, const Matrix& m, index_t batch, double rho) {
    Walk walk(m);
    OnlineState q;
    q.v = walk.w.data(), q.sum = walk.sum.data(), q.correction = walk.corrections.data();
    q.batch = batch, q.margin = 0.3, q.rate = 0.5, q.rho = rho;
    CHECK(k.online_rows(m.view(), walk.y.data(), walk.order.data(), 0, m.n, q, nullptr) == m.n);
    Vec w(m.d), total_w(m.d);
    double b = 0.0, total_b = 0.0;
    index_t mistakes = 0, moved = 0, n_steps = 0;
    for (index_t begin = 0; begin < m.n; begin += batch, ++n_steps) {
        Vec c;
        for (index_t t = begin; t < std::min(m.n, begin + batch); ++t) {
            const index_t i = walk.order[t];
            const double margin = walk.y[i] * (m.dot(i, w.data()) + b);
            mistakes += margin <= 0.0;
            moved += margin <= 0.3;
            c.push_back(margin <= 0.3 ? 0.5 * walk.y[i] : 0.0);
        }
        for (double& v : w) v *= 1.0 - 2.0 * 0.5 * rho;
        for (std::size_t t = 0; t < c.size(); ++t) {
            for (index_t j = 0; j < m.d; ++j) w[j] += c[t] * m.row(walk.order[begin + t])[j];
            b += c[t];
        }
        for (index_t j = 0; j < m.d; ++j) total_w[j] += w[j];
        total_b += b;
    }
    Vec found = walk.w, mean(m.d);
    for (double& v : found) v *= q.scale;
    for (index_t j = 0; j < m.d; ++j) mean[j] = q.sum_scale * walk.w[j] - walk.sum[j];
    CHECK(q.counts.n_mistakes == mistakes && q.counts.n_corrections == moved && q.counts.n_steps == n_steps);
    CHECK(close(found, w) && near(q.b, b) && close(mean, total_w) && near(q.sum_b, total_b, m.n));
}

// Every other rule runs to the end with finite weights, in any split of its rows with the same bits.
void test_online_rules(const Kernels& k, const Matrix& m) {
    for (const OnlineRule rule : {OnlineRule::hinge, OnlineRule::logistic, OnlineRule::exponential,
                                  OnlineRule::tube, OnlineRule::squared_tube, OnlineRule::squares,
                                  OnlineRule::relaxation, OnlineRule::hebb, OnlineRule::oja}) {
        Vec ends[2];
        for (const int parts : {1, 3}) {
            engine.seed(5);
            Walk walk(m);
            Vec done(m.d);
            OnlineState q;
            q.rule = rule, q.v = walk.w.data(), q.correction = walk.corrections.data();
            q.margin = 0.1, q.rate = 0.02, q.power = 0.5;
            for (double& v : walk.w) v = 0.1;
            if (rule == OnlineRule::squared_tube) q.l1 = 0.05, q.l1_done = done.data();
            for (int part = 0; part < parts; ++part) {
                const index_t begin = m.n * part / parts, end = m.n * (part + 1) / parts;
                CHECK(k.online_rows(m.view(), walk.y.data(), walk.order.data(), begin, end, q, nullptr) ==
                      end);
            }
            k.online_settle(m.d, q);
            CHECK(!q.diverged && q.counts.n_seen == m.n);
            for (double& v : walk.w) v *= q.scale;
            for (const double v : walk.w) CHECK(std::isfinite(v));
            ends[parts > 1] = walk.w;
        }
        CHECK(same(ends[0], ends[1]));
    }
}

void test_pocket_and_winnow(const Kernels& k, const Matrix& m) {
    Walk walk(m);
    for (const PocketRule rule : {PocketRule::error, PocketRule::ratchet, PocketRule::run}) {
        Vec w(m.d), best(m.d);
        PocketState q;
        q.rule = rule, q.w = w.data(), q.best_w = best.data();
        CHECK(k.pocket_rows(m.view(), walk.y.data(), nullptr, 0, m.n, q, nullptr) == m.n);
        index_t errors = 0;
        for (index_t i = 0; i < m.n; ++i) errors += walk.y[i] * (m.dot(i, best.data()) + q.best_b) <= 0.0;
        if (q.best_errors >= 0) CHECK(std::abs(errors - q.best_errors) <= 1 + m.n / 1000);  // rounding at 0
        CHECK(q.counts.n_seen == m.n);
        if (m.view().layout != RowsView::Layout::dense) continue;
        // Packed rows count the same.
        const index_t size = packed_blocks(m.n) * packed_rows * (m.d + 1);
        std::vector<float> packed(size + m.d + 1);
        k.pack_rows(m.view(), walk.y.data(), packed.data());
        double reach = 0.0;
        for (index_t i = 0; i < m.n; ++i) {
            double norm = 1.0;
            for (index_t j = 0; j < m.d; ++j) norm += m.full[i * m.d + j] * m.full[i * m.d + j];
            reach = std::max(reach, std::sqrt(norm));
        }
        Vec again_w(m.d), again_best(m.d);
        PocketState again;
        again.rule = rule, again.w = again_w.data(), again.best_w = again_best.data();
        again.packed = {packed.data(), packed.data() + size, reach};
        CHECK(k.pocket_rows(m.view(), walk.y.data(), nullptr, 0, m.n, again, nullptr) == m.n);
        CHECK(again.best_errors == q.best_errors && again.n_evaluations == q.n_evaluations);
        CHECK(same(best, again_best));
    }
    for (const bool balanced : {true, false}) {
        Vec s(m.d), w(m.d, balanced ? 0.0 : 1.0);
        WinnowState q;
        q.balanced = balanced, q.s = s.data(), q.w = w.data(), q.log_base = 0.3, q.threshold = 1.0;
        q.bias_input = balanced ? 1.0 : 0.0;
        CHECK(k.winnow_rows(m.view(), walk.y.data(), walk.order.data(), 0, m.n, q, nullptr) == m.n);
        Vec expected(m.d);
        for (index_t j = 0; j < m.d; ++j)
            expected[j] = balanced ? (std::exp(0.3 * s[j] - q.shift) - std::exp(-0.3 * s[j] - q.shift))
                                   : std::exp(0.3 * s[j] - q.shift);
        CHECK(close(w, expected));
    }
}

void test_online(const Kernels& k, const Matrix& m) {
    if (m.n > 5000) return;
    for (const index_t batch : {1, 7}) test_online_steps(k, m, batch, batch > 1 ? 0.01 : 0.0);
    test_online_rules(k, m);
    test_pocket_and_winnow(k, m);
    bool finite = true;
    double largest = 0.0;
    for (const double v : m.full)
        finite = finite && std::isfinite(v), largest = std::max(largest, std::abs(v));
    Vec norms(m.n), again(m.n), expected(m.n), columns(m.d), same_columns(m.d), sums(m.d);
    k.squared_norms(m.view(), expected.data(), Execution{});
    const Survey one = k.survey(m.view(), norms.data(), columns.data(), Execution{2, nullptr});
    const Survey two = k.survey(m.view(), again.data(), same_columns.data(), Execution{1, nullptr});
    CHECK(one.finite == finite && two.finite == finite && one.digest == two.digest);
    CHECK(!finite || one.largest == largest);
    CHECK(one.longest_row == two.longest_row && one.longest_row <= m.d);
    CHECK(one.digest == k.digest(m.view(), Execution{2, nullptr}));
    CHECK(same(norms, expected) && same(again, expected) && same(columns, same_columns));
    for (index_t i = 0; i < m.n; ++i)
        for (index_t j = 0; j < m.d; ++j) sums[j] += m.full[i * m.d + j] * m.full[i * m.d + j];
    CHECK(m.view().layout != RowsView::Layout::dense || close(columns, sums));
}

}  // namespace
