// Part of test_core.cpp, which includes it: the coordinate descents against their objectives.
namespace {

// Losses whose dual is quadratic over a box: of a classifier, or of a regression with multipliers of both
// signs.
struct Box {
    bool squared, regression;
    double tube;
};

constexpr double bias_center = 0.2;

// The rows of a Visits, and what must hold of them: active rows rise.
struct Order {
    std::vector<std::int32_t> rows, blocks;
    Order(Visits& v, index_t n) : rows(n), blocks(visit_blocks(n)) {
        v.rows = rows.data(), v.blocks = blocks.data(), v.random = 7;
        everything(v);
    }
    void everything(Visits& v) {
        std::iota(rows.begin(), rows.end(), 0);
        v.n_active = static_cast<index_t>(rows.size());
    }
    bool sound(const Visits& v) const {
        bool rising = v.n_active >= 0 && v.n_active <= static_cast<index_t>(rows.size());
        for (index_t k = 0; rising && k < v.n_active; ++k)
            rising = rows[k] >= (k > 0 ? rows[k - 1] + 1 : 0) && rows[k] < static_cast<index_t>(rows.size());
        return rising;
    }
};

// A dual problem and the iterate that starts somewhere inside, at 0 and at both bounds.
struct Descending {
    const Matrix& m;
    index_t n = m.n;
    Vec y, lower, upper, diagonal, target, norms, alpha, w;
    DescentState q;
    Order order{q.visits, n};
    Vec worker_w, held;
    Descending(const Kernels& k, const Matrix& matrix, Box box, double bias_gain, index_t workers)
        : m(matrix) {
        worker_w.resize(workers * m.d), held.resize(n);
        q.n_workers = workers, q.n_exchanges = workers, q.worker_w = worker_w.data(),
        q.held_alpha = held.data();
        const Vec C = random_vector(n, 0.1, 2);
        target = random_vector(n, 0.8, 1.5), norms.resize(n), diagonal.resize(n), alpha.resize(n);
        y.assign(n, 1.0), lower.assign(n, 0.0), upper.assign(n, inf);
        k.squared_norms(m.view(), norms.data(), Execution{});
        for (index_t i = 0; i < n; ++i) {
            box.squared ? diagonal[i] = 0.5 / C[i] : upper[i] = C[i];
            alpha[i] = i % 4 == 1 ? C[i] : (i % 4 == 2 ? 0.4 * C[i] : 0.0);
            if (i % 3 == 0) (box.regression ? target[i] : y[i]) *= -1.0;
            if (box.regression) lower[i] = -upper[i];
            if (box.regression && i % 8 >= 4) alpha[i] *= -1.0;
            if (i % 11 == 10) lower[i] = upper[i] = alpha[i] = 0.0;  // a row without cost
        }
        w = m.combine(signed_alpha());
        q.n = n, q.y = y.data(), q.lower = lower.data(), q.upper = upper.data();
        q.diagonal = diagonal.data(), q.tube = box.tube, q.target = target.data(), q.sq_norm = norms.data();
        q.alpha = alpha.data(), q.w = w.data();
        q.bias_center = bias_center, q.bias_gain = bias_gain, q.signed_sum = total(signed_alpha());
        q.shrink_high = inf, q.shrink_low = -inf;
    }
    Vec signed_alpha() const {
        Vec out = alpha;
        for (index_t i = 0; i < n; ++i) out[i] *= y[i];
        return out;
    }
    double cost() const {  // the dual objective is −cost
        const double sum = total(signed_alpha());
        double value = (bias_center + 0.5 * q.bias_gain * sum) * sum;
        for (index_t i = 0; i < n; ++i)
            value += (0.5 * diagonal[i] * alpha[i] - target[i]) * alpha[i] + q.tube * std::abs(alpha[i]);
        return value + 0.5 * std::inner_product(w.begin(), w.end(), w.begin(), 0.0);
    }
    // A multiplier that may rise must not want to, and so for one that may fall.
    bool optimal(index_t i) const {
        const double score = m.dot(i, w.data()) + bias_center + q.bias_gain * q.signed_sum, a = alpha[i];
        const double slope = y[i] * score - target[i] + diagonal[i] * a;
        const double right = slope + (a >= 0.0 ? q.tube : -q.tube);
        const double left = slope + (a > 0.0 ? q.tube : -q.tube);
        return (a == upper[i] || right >= -1e-8) && (a == lower[i] || left <= 1e-8);
    }
    void invariants() const {
        CHECK(close(w, m.combine(signed_alpha())));
        CHECK(near(q.signed_sum, total(signed_alpha()), static_cast<double>(n)));
        CHECK(std::equal(alpha.begin(), alpha.end(), upper.begin(), std::less_equal<>()));
        CHECK(std::equal(alpha.begin(), alpha.end(), lower.begin(), std::greater_equal<>()));
        CHECK(order.sound(q.visits));
    }
};

void test_descent(const Kernels& k, const Matrix& m, Box box, double bias_gain, index_t workers) {
    Descending p(k, m, box, bias_gain, workers);
    DescentState& q = p.q;
    for (int epoch = 0; epoch < 6; ++epoch) {
        const double before = p.cost(), rounding = epoch == 0 ? 0.0 : 1e-12 * (1.0 + std::abs(before));
        const EpochReport report = k.descent_epoch(m.view(), q, Execution{2, nullptr});
        q.shrink_high = report.violation_high > 0.0 ? report.violation_high : inf;
        q.shrink_low = report.violation_low < 0.0 ? report.violation_low : -inf;
        p.invariants();
        CHECK(p.n == 0 || p.cost() < before + rounding);
        CHECK(!report.stopped);
    }
    double last = p.n <= 16 ? inf : 0.0;
    for (int epoch = 0; last > 1e-9 && epoch < 100000; ++epoch) {
        p.order.everything(q.visits), q.shrink_high = inf, q.shrink_low = -inf;
        const EpochReport report = k.descent_epoch(m.view(), q, Execution{2, nullptr});
        last = report.violation_high - report.violation_low;
    }
    CHECK(last <= 1e-9);
    for (index_t i = 0; p.n <= 16 && i < p.n; ++i) CHECK(p.optimal(i));
    Watch stopped(always, nullptr, 0.0);
    const Vec held = p.alpha;
    p.order.everything(q.visits);
    CHECK(k.descent_epoch(m.view(), q, Execution{1, &stopped}).stopped == (p.n > 0) && same(p.alpha, held));
}

// The joint multi-class machine; some rows have no cost.
struct Joined {
    const Matrix& m;
    index_t n = m.n, k;
    std::vector<std::int32_t> label;
    Vec cost, norms, alpha, W, class_sum, center, scratch;
    JointState q;
    Order order{q.visits, n};
    Joined(const Kernels& kernels, const Matrix& matrix, index_t n_classes, double bias_gain)
        : m(matrix), k(n_classes), label(n), norms(n), alpha(n * k), W(m.d * k), class_sum(k) {
        cost = random_vector(n, 0.1, 2), center = random_vector(k, -0.3, 0.3), scratch.assign(3 * k, nan);
        kernels.squared_norms(m.view(), norms.data(), Execution{});
        for (index_t i = 0; i < n; ++i) {
            label[i] = static_cast<std::int32_t>((i * i + i / 3) % k);
            if (i % 5 == 4) cost[i] = 0.0;
            if (i % 3 == 1)
                alpha[i * k + label[i]] = 0.5 * cost[i], alpha[i * k + (label[i] + 1) % k] -= 0.5 * cost[i];
        }
        W = expected_W(), class_sum = expected_sums();
        q.n = n, q.n_classes = k, q.label = label.data(), q.cost = cost.data();
        q.sq_norm = norms.data(), q.alpha = alpha.data(), q.W = W.data(), q.class_sum = class_sum.data();
        q.bias_center = center.data(), q.bias_gain = bias_gain, q.scratch = scratch.data();
        q.shrink_beyond = inf;
    }
    // Rows of cost 0 are left alone.
    bool idle(index_t i) const { return cost[i] == 0.0; }
    bool idle() const {
        return std::all_of(cost.begin(), cost.end(), [](double c) { return c == 0.0; });
    }
    double upper(index_t i, index_t c) const { return c == label[i] ? cost[i] : 0.0; }
    Vec expected_W() const {
        Vec out(m.d * k);
        for (index_t i = 0; i < n; ++i)
            for (index_t j = 0; j < m.d * k; ++j) out[j] += m.row(i)[j / k] * alpha[i * k + j % k];
        return out;
    }
    Vec expected_sums() const {
        Vec out(k);
        for (index_t j = 0; j < n * k; ++j) out[j % k] += alpha[j];
        return out;
    }
    double objective() const {
        double value = 0.5 * std::inner_product(W.begin(), W.end(), W.begin(), 0.0);
        for (index_t j = 0; j < n * k; ++j) value += j % k == label[j / k] ? 0.0 : alpha[j];
        for (index_t c = 0; c < k; ++c)
            value += (center[c] + 0.5 * q.bias_gain * class_sum[c]) * class_sum[c];
        return value;
    }
    // All slopes of a row are equal, but those of multipliers at their bound may be less.
    double violation(index_t i) const {
        double highest = -inf, lowest = inf;
        for (index_t c = 0; c < k; ++c) {
            double slope = center[c] + q.bias_gain * class_sum[c] + (c == label[i] ? 0.0 : 1.0);
            for (index_t j = 0; j < m.d; ++j) slope += m.row(i)[j] * W[j * k + c];
            highest = std::max(highest, slope);
            if (alpha[i * k + c] < upper(i, c)) lowest = std::min(lowest, slope);
        }
        return highest - lowest;
    }
    void invariants() const {
        const Vec wanted = expected_sums();
        CHECK(close(W, expected_W()));
        bool sums = true, bounds = true;
        for (index_t c = 0; c < k; ++c) sums = sums && near(class_sum[c], wanted[c], static_cast<double>(n));
        for (index_t i = 0; i < n; ++i) {
            const double sum = std::accumulate(&alpha[i * k], &alpha[i * k] + k, 0.0);
            sums = sums && (idle(i) || near(sum, 0.0, 16.0 * static_cast<double>(k)));
            for (index_t c = 0; c < k; ++c) bounds = bounds && alpha[i * k + c] <= upper(i, c);
        }
        CHECK(sums && bounds);
        CHECK(order.sound(q.visits));
    }
};

void test_joint(const Kernels& kernels, const Matrix& m, index_t n_classes, double bias_gain) {
    Joined p(kernels, m, n_classes, bias_gain);
    JointState& q = p.q;
    for (int epoch = 0; epoch < 3; ++epoch) {
        const double before = p.objective(), rounding = epoch == 0 ? 0.0 : 1e-12 * (1.0 + std::abs(before));
        const JointReport report = kernels.joint_epoch(m.view(), q, nullptr);
        p.invariants();
        q.shrink_beyond = report.violation > 0.0 ? report.violation : inf;
        CHECK(p.idle() ? report.violation == 0.0 : p.objective() < before + rounding);
        CHECK(!report.stopped);
    }
    double last = p.n <= 16 ? inf : 0.0;
    for (int epoch = 0; last > 1e-9 && epoch < 100000; ++epoch) {
        p.order.everything(q.visits), q.shrink_beyond = inf;
        last = kernels.joint_epoch(m.view(), q, nullptr).violation;
    }
    CHECK(last <= 1e-9);
    for (index_t i = 0; p.n <= 16 && i < p.n; ++i) CHECK(p.idle(i) || p.violation(i) <= 1e-8);
    Watch stopped(always, nullptr, 0.0);
    const Vec held = p.alpha;
    p.order.everything(q.visits);
    CHECK(kernels.joint_epoch(m.view(), q, &stopped).stopped == (p.n > 0) && same(p.alpha, held));
}

// The quadratic is that of the rows, of full rank or not, and bounded below; coordinate 0 has no price.
void test_lasso(const Kernels& k, const Matrix& m) {
    const index_t n = m.d;
    Vec H(n * n), d(n), Hd(n), g = random_vector(n, -0.9, 0.9), price = random_vector(n, 0.1, 2), w(n);
    const Vec centre = random_vector(n, -2, 2);
    if (n > 0) price[0] = 0.0;
    for (index_t j = 0; j < n; ++j) {
        w[j] = j % 3 == 0 ? 0.0 : uniform(-1, 1), g[j] *= price[j], H[j * n + j] = j % 2 == 0 ? 0.5 : 0.0;
        for (index_t l = 0; l < n; ++l) {
            for (index_t i = 0; i < m.n; ++i) H[j * n + l] += m.row(i)[j] * m.row(i)[l];
            g[j] += H[j * n + l] * centre[l];
        }
    }
    LassoState q{n, H.data(), g.data(), price.data(), w.data(), d.data(), Hd.data()};
    const auto cost = [&] {
        double value = 0.0;
        for (index_t j = 0; j < n; ++j)
            value += (g[j] + 0.5 * Hd[j]) * d[j] + price[j] * std::abs(w[j] + d[j]);
        return value;
    };
    const auto product = [&] {
        Vec out(n);
        for (index_t j = 0; j < n * n; ++j) out[j / n] += H[j] * d[j % n];
        return out;
    };
    Watch stopped(always, nullptr, 0.0);
    CHECK(thrown<Interrupted>([&] { k.lasso_sweeps(q, 5, 0.0, &stopped); }) != "" && same(d, Vec(n)));
    CHECK(k.lasso_sweeps(q, 0, 0.0, nullptr) == 0 && same(d, Vec(n)));
    for (int call = 0; call < 6; ++call) {
        const double before = cost();
        CHECK(k.lasso_sweeps(q, 2, 0.0, nullptr) <= 2);
        CHECK(close(Hd, product()) && cost() <= before + 1e-12 * (1.0 + std::abs(before)));
    }
    CHECK(k.lasso_sweeps(q, 100000, 1e-24, nullptr) < 100000);
    CHECK(k.lasso_sweeps(q, 100000, 1e-24, nullptr) <= 1);  // one sweep sees that nothing is left to do
    const Vec slopes = product();
    for (index_t j = 0; j < n; ++j) {
        const double value = w[j] + d[j], slope = g[j] + slopes[j];
        if (H[j * n + j] == 0.0) continue;
        CHECK(value == 0.0 ? std::abs(slope) <= price[j] + 1e-8
                           : std::abs(slope + std::copysign(price[j], value)) <= 1e-8);
    }
}

void test_descents(const Kernels& k, const Matrix& m) {
    for (const double bias_gain : {0.5, 0.0}) {
        for (const bool squared : {false, true})
            for (const Box box : {Box{squared, false, 0.0}, Box{squared, true, 0.0}, Box{squared, true, 0.3}})
                for (const index_t workers : {1, 2, 3}) test_descent(k, m, box, bias_gain, workers);
        for (const index_t n_classes : {2, 5}) test_joint(k, m, n_classes, bias_gain);
    }
    test_lasso(k, m);
}

}  // namespace
