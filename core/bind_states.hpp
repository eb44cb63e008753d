// The iterates of the solvers as Python objects: pointers into NumPy arrays that they keep alive.
#pragma once
#include <numeric>
#include <vector>

#include "bind_views.hpp"

namespace maxmargin {
namespace {

struct Barrier {
    BarrierState state;
    nb::object owner;
    Barrier(bool boxed, In y, In C, In target, Out alpha, Out t, Out s, Out xi, Out margin, Out D, Out e_s,
            Out e_xi, Out d_alpha, Out d_margin) {
        const auto n = static_cast<index_t>(y.size());
        state = {n,
                 boxed,
                 y.data(),
                 at(C, n, "C"),
                 at(target, n, "target"),
                 at(alpha, n, "alpha"),
                 at(t, boxed ? n : 0, "t"),
                 at(s, n, "s"),
                 at(xi, boxed ? n : 0, "xi"),
                 at(margin, n, "margin"),
                 at(D, n, "D"),
                 at(e_s, n, "e_s"),
                 at(e_xi, boxed ? n : 0, "e_xi"),
                 at(d_alpha, n, "d_alpha"),
                 at(d_margin, n, "d_margin")};
        owner = nb::make_tuple(y, C, target, alpha, t, s, xi, margin, D, e_s, e_xi, d_alpha, d_margin);
    }
};

// Owns the rows and blocks of a Visits.
struct VisitOrder {
    std::vector<std::int32_t> rows, blocks;
    VisitOrder(Visits& visits, index_t n, std::uint64_t seed)
        : rows(static_cast<std::size_t>(n)), blocks(static_cast<std::size_t>(visit_blocks(n))) {
        visits.rows = rows.data();
        visits.blocks = blocks.data();
        visits.random = seed;
        everything(visits);
    }
    void everything(Visits& visits) {
        std::iota(rows.begin(), rows.end(), 0);
        visits.n_active = static_cast<index_t>(rows.size());
    }
};

struct Descent {
    DescentState state;
    VisitOrder order;
    std::vector<double> worker_w, held_alpha;
    index_t n_halved = 0;  // in the last epoch
    index_t n_weights = 0;
    nb::object owner;
    Descent(In y, In lower, In upper, In diagonal, double tube, In target, In sq_norm, Out alpha, Out w,
            double bias_center, double bias_gain, double signed_sum, std::uint64_t seed, index_t workers,
            index_t exchanges, bool entropy)
        : order(state.visits, static_cast<index_t>(y.size()), seed) {
        const auto n = static_cast<index_t>(y.size());
        state.n = n;
        state.y = y.data();
        state.lower = at(lower, n, "lower");
        state.upper = at(upper, n, "upper");
        state.tube = tube;
        state.entropy = entropy;
        state.diagonal = at(diagonal, n, "diagonal");
        state.target = at(target, n, "target");
        state.sq_norm = at(sq_norm, n, "sq_norm");
        state.alpha = at(alpha, n, "alpha");
        state.w = w.data();
        n_weights = static_cast<index_t>(w.size());
        expect(workers >= 1 && workers <= most_workers && exchanges >= 1,
               "workers or exchanges out of range");
        state.n_workers = workers;
        state.n_exchanges = exchanges;
        if (workers > 1) {
            worker_w.resize(static_cast<std::size_t>(workers * n_weights));
            held_alpha.resize(static_cast<std::size_t>(n));
        }
        state.worker_w = worker_w.data();
        state.held_alpha = held_alpha.data();
        state.bias_center = bias_center;
        state.bias_gain = bias_gain;
        state.signed_sum = signed_sum;
        unshrink();
        owner = nb::make_tuple(y, lower, upper, diagonal, target, sq_norm, alpha, w);
    }
    void unshrink() {
        order.everything(state.visits);
        state.shrink_high = __builtin_inf();
        state.shrink_low = -__builtin_inf();
    }
    // Largest difference between two projected gradients of the epoch: 0 at the optimum of the active rows.
    double epoch(const Rows& rows, PyWatch* watch, int n_threads) {
        expect(rows.view.n_rows == state.n, "rows and state differ in length");
        expect(rows.view.n_cols == n_weights, "rows and w differ in length");
        EpochReport report;
        {
            const WithoutGil nogil;
            report = core().descent_epoch(rows.view, state,
                                          {n_threads, watch != nullptr ? &watch->watch : nullptr});
        }
        n_halved = report.n_halved;
        if (report.stopped) raise_stop(*watch);
        const double high = report.violation_high, low = report.violation_low;
        state.shrink_high = high > 0.0 ? high : __builtin_inf();
        state.shrink_low = low < 0.0 ? low : -__builtin_inf();
        return high >= low ? high - low : 0.0;
    }
};

// Keeps every entry of a position list inside its range.
void expect_positions(const std::int32_t* p, index_t n, index_t end, const char* what) {
    for (index_t i = 0; i < n; ++i) expect(p[i] >= 0 && p[i] < end, what);
}

struct Joint {
    JointState state;
    VisitOrder order;
    nb::object owner;
    Joint(Array<const std::int32_t, 1> label, In cost, In sq_norm, Array<double, 2> alpha, Array<double, 2> W,
          Out class_sum, In bias_center, double bias_gain, Out scratch, std::uint64_t seed)
        : order(state.visits, static_cast<index_t>(label.size()), seed) {
        const auto n = static_cast<index_t>(label.size()), k = static_cast<index_t>(alpha.shape(1));
        expect(static_cast<index_t>(alpha.shape(0)) == n && static_cast<index_t>(W.shape(1)) == k && k >= 2,
               "alpha or W has a wrong shape");
        expect_positions(label.data(), n, k, "a label leaves the classes");
        state.n = n;
        state.n_classes = k;
        state.label = label.data();
        state.cost = at(cost, n, "cost");
        state.sq_norm = at(sq_norm, n, "sq_norm");
        state.alpha = alpha.data();
        state.W = W.data();
        state.class_sum = at(class_sum, k, "class_sum");
        state.bias_center = at(bias_center, k, "bias_center");
        state.bias_gain = bias_gain;
        state.scratch = at(scratch, 3 * k, "scratch");
        n_cols = static_cast<index_t>(W.shape(0));
        owner = nb::make_tuple(label, cost, sq_norm, alpha, W, class_sum, bias_center, scratch);
        unshrink();
    }
    index_t n_cols = 0;
    void unshrink() {
        order.everything(state.visits);
        state.shrink_beyond = __builtin_inf();
    }
    // The largest violation of the optimality conditions met in the epoch.
    double epoch(const Rows& rows, PyWatch* watch) {
        expect(rows.view.n_rows == state.n && rows.view.n_cols == n_cols, "rows and state differ in shape");
        JointReport report;
        {
            const WithoutGil nogil;
            report = core().joint_epoch(rows.view, state, watch != nullptr ? &watch->watch : nullptr);
        }
        if (report.stopped) raise_stop(*watch);
        state.shrink_beyond = report.violation > 0.0 ? report.violation : __builtin_inf();
        return report.violation;
    }
};

void bind_joint(nb::module_& m) {
    nb::class_<Joint>(m, "Joint")
        .def(nb::init<Array<const std::int32_t, 1>, In, In, Array<double, 2>, Array<double, 2>, Out, In,
                      double, Out, std::uint64_t>(),
             "label"_a.noconvert(), "cost"_a.noconvert(), "sq_norm"_a.noconvert(), "alpha"_a.noconvert(),
             "W"_a.noconvert(), "class_sum"_a.noconvert(), "bias_center"_a.noconvert(), "bias_gain"_a,
             "scratch"_a.noconvert(), "seed"_a)
        .def("epoch", &Joint::epoch, "rows"_a, "watch"_a.none() = nb::none())
        .def("unshrink", &Joint::unshrink)
        .def_prop_ro("n_active", [](const Joint& q) { return q.state.visits.n_active; });
    m.def(
        "lasso_sweeps",
        [](Array<const double, 2> H, In g, In price, In w, Out d, Out Hd, index_t max_sweeps, double tol,
           PyWatch* watch) {
            const auto n = static_cast<index_t>(g.size());
            expect(static_cast<index_t>(H.shape(0)) == n && static_cast<index_t>(H.shape(1)) == n,
                   "H has a wrong shape");
            LassoState q{
                n, H.data(), g.data(), at(price, n, "price"), at(w, n, "w"), at(d, n, "d"), at(Hd, n, "Hd")};
            return run(1, watch, [&](const Execution& how) {
                return core().lasso_sweeps(q, max_sweeps, tol, how.watch);
            });
        },
        "H"_a.noconvert(), "g"_a.noconvert(), "price"_a.noconvert(), "w"_a.noconvert(), "d"_a.noconvert(),
        "Hd"_a.noconvert(), "max_sweeps"_a, "tol"_a, "watch"_a.none() = nb::none());
}

void bind_states(nb::module_& m) {
    nb::class_<Barrier>(m, "Barrier")
        .def(nb::init<bool, In, In, In, Out, Out, Out, Out, Out, Out, Out, Out, Out, Out>(), "boxed"_a,
             "y"_a.noconvert(), "C"_a.noconvert(), "target"_a.noconvert(), "alpha"_a.noconvert(),
             "t"_a.noconvert(), "s"_a.noconvert(), "xi"_a.noconvert(), "margin"_a.noconvert(),
             "D"_a.noconvert(), "e_s"_a.noconvert(), "e_xi"_a.noconvert(), "d_alpha"_a.noconvert(),
             "d_margin"_a.noconvert())
        .def("scale",
             [](const Barrier& b, int n_threads) {
                 run(n_threads, nullptr, [&](const Execution& how) { core().barrier_scale(b.state, how); });
             })
        .def(
            "coefficient",
            [](const Barrier& b, Out out, int n_threads) {
                at(out, b.state.n, "out");
                run(n_threads, nullptr,
                    [&](const Execution& how) { core().barrier_coefficient(b.state, out.data(), how); });
            },
            "out"_a.noconvert(), "n_threads"_a)
        .def(
            "direction",
            [](const Barrier& b, const Rows& rows, In dw, double db, int n_threads, PyWatch* watch) {
                expect(rows.view.n_rows == b.state.n, "rows and state differ in length");
                at(dw, rows.view.n_cols, "dw");
                return run(n_threads, watch, [&](const Execution& how) {
                    return core().barrier_direction(rows.view, b.state, dw.data(), db, how);
                });
            },
            "rows"_a, "dw"_a.noconvert(), "db"_a, "n_threads"_a, "watch"_a.none() = nb::none())
        .def("complementarity",
             [](const Barrier& b, double step, int n_threads) {
                 return run(n_threads, nullptr, [&](const Execution& how) {
                     return core().barrier_complementarity(b.state, step, how);
                 });
             })
        .def("second_order",
             [](const Barrier& b, double mu, int n_threads) {
                 run(n_threads, nullptr,
                     [&](const Execution& how) { core().barrier_second_order(b.state, mu, how); });
             })
        .def("recentre",
             [](const Barrier& b, double step, double mu, int n_threads) {
                 run(n_threads, nullptr,
                     [&](const Execution& how) { core().barrier_recentre(b.state, step, mu, how); });
             })
        .def("move", [](const Barrier& b, double step, int n_threads) {
            run(n_threads, nullptr, [&](const Execution& how) { core().barrier_move(b.state, step, how); });
        });
    bind_joint(m);
    nb::class_<Descent>(m, "Descent")
        .def(nb::init<In, In, In, In, double, In, In, Out, Out, double, double, double, std::uint64_t,
                      index_t, index_t, bool>(),
             "y"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(), "diagonal"_a.noconvert(),
             "tube"_a, "target"_a.noconvert(), "sq_norm"_a.noconvert(), "alpha"_a.noconvert(),
             "w"_a.noconvert(), "bias_center"_a, "bias_gain"_a, "signed_sum"_a, "seed"_a, "workers"_a = 1,
             "exchanges"_a = 1, "entropy"_a = false)
        .def("epoch", &Descent::epoch, "rows"_a, "watch"_a.none() = nb::none(), "n_threads"_a = 1)
        .def_prop_ro("n_halved", [](const Descent& q) { return q.n_halved; })
        .def("unshrink", &Descent::unshrink)
        .def_prop_ro("n_active", [](const Descent& q) { return q.state.visits.n_active; })
        .def_prop_rw(
            "bias_center", [](const Descent& q) { return q.state.bias_center; },
            [](Descent& q, double b) { q.state.bias_center = b; })
        .def_prop_ro("bias", [](const Descent& q) {
            return q.state.bias_center + q.state.bias_gain * q.state.signed_sum;
        });
}

}  // namespace
}  // namespace maxmargin
