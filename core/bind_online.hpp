// The machines that learn row by row as Python objects: pointers into NumPy arrays that they keep alive.
#pragma once
#include <utility>
#include <vector>

#include "bind_views.hpp"

namespace maxmargin {
namespace {

using Order = std::optional<Array<const std::int64_t, 1>>;

// Positions of rows that exist, or all rows from begin to end in their order.
const std::int64_t* order_of(const Order& order, index_t n_rows, index_t begin, index_t end) {
    const index_t n = order ? static_cast<index_t>(order->size()) : n_rows;
    expect(begin >= 0 && begin <= end && end <= n, "begin or end out of range");
    if (!order) return nullptr;
    for (index_t k = begin; k < end; ++k)
        expect(order->data()[k] >= 0 && order->data()[k] < n_rows, "order names a row that does not exist");
    return order->data();
}

// Runs a pass without the GIL; where it stopped. A stop by the watch becomes a Python exception.
template <class Body>
index_t run_pass(index_t end, PyWatch* watch, Body body) {
    index_t reached = end;
    {
        const WithoutGil nogil;
        reached = body(watch != nullptr ? &watch->watch : nullptr);
    }
    if (reached < end && watch != nullptr && watch->watch.stopped()) raise_stop(*watch);
    return reached;
}

template <class State>
struct Learner {
    State state;
    index_t n_cols = 0;
    std::vector<nb::object> owners;
    std::vector<double> scratch;

    template <class A>
    auto* keep(const A& array, index_t n, const char* name) {
        expect(static_cast<index_t>(array.size()) == n, std::string(name) + " has a wrong length");
        owners.push_back(nb::cast(array));
        return array.data();
    }
    void expect_rows(const Rows& rows, index_t n_labels) const {
        expect(rows.view.n_cols == n_cols, "rows and weights differ in length");
        expect(n_labels == rows.view.n_rows, "there must be one label per row");
    }
};

using Labels = In;

struct Online : Learner<OnlineState> {
    Online(const std::string& rule, Out v, index_t batch) {
        static constexpr std::pair<const char*, OnlineRule> names[] = {
            {"perceptron", OnlineRule::perceptron},
            {"hinge", OnlineRule::hinge},
            {"logistic", OnlineRule::logistic},
            {"exponential", OnlineRule::exponential},
            {"tube", OnlineRule::tube},
            {"squared_tube", OnlineRule::squared_tube},
            {"squares", OnlineRule::squares},
            {"relaxation", OnlineRule::relaxation},
            {"hebb", OnlineRule::hebb},
            {"oja", OnlineRule::oja}};
        bool known = false;
        for (const auto& [name, value] : names)
            if (rule == name) state.rule = value, known = true;
        expect(known, "no rule '" + rule + "'");
        expect(batch >= 1, "batch must be at least 1");
        n_cols = static_cast<index_t>(v.size());
        state.v = keep(v, n_cols, "v");
        state.batch = batch;
        scratch.resize(static_cast<std::size_t>(batch));
        state.correction = scratch.data();
    }
    void average(Out sum) { state.sum = keep(sum, n_cols, "sum"); }
    void thin(double l1, Out done) {
        state.l1_done = keep(done, n_cols, "done");
        state.l1 = l1;
    }
    void extend(Out own, double delta) {
        state.own = keep(own, static_cast<index_t>(own.size()), "own");
        n_own = static_cast<index_t>(own.size());
        state.delta = delta;
    }
    index_t n_own = -1;
    index_t pass(const Rows& rows, Labels y, const Order& order, index_t begin, index_t end, PyWatch* watch) {
        expect_rows(rows, static_cast<index_t>(y.size()));
        expect(n_own < 0 || n_own == rows.view.n_rows, "own has a wrong length");
        const std::int64_t* turn = order_of(order, rows.view.n_rows, begin, end);
        return run_pass(end, watch, [&](Watch* w) {
            return core().online_rows(rows.view, y.data(), turn, begin, end, state, w);
        });
    }
};

struct Pocket : Learner<PocketState> {
    Pocket(const std::string& rule, Out w, Out best_w) {
        expect(rule == "error" || rule == "ratchet" || rule == "run", "no rule '" + rule + "'");
        state.rule = rule == "error"     ? PocketRule::error
                     : rule == "ratchet" ? PocketRule::ratchet
                                         : PocketRule::run;
        n_cols = static_cast<index_t>(w.size());
        state.w = keep(w, n_cols, "w");
        state.best_w = keep(best_w, n_cols, "best_w");
    }
    // Counts become so much quicker that a pass that counts pays for it at once. `reach` is the largest ‖(x,
    // 1)‖.
    void pack(const Rows& rows, Labels y, double reach) {
        expect_rows(rows, static_cast<index_t>(y.size()));
        expect(rows.view.layout == RowsView::Layout::dense, "only dense rows can be packed");
        const index_t size = packed_blocks(rows.view.n_rows) * packed_rows * (n_cols + 1);
        packed.resize(static_cast<std::size_t>(size + n_cols + 1));
        core().pack_rows(rows.view, y.data(), packed.data());
        state.packed = {packed.data(), packed.data() + size, reach};
        packed_of = rows.view.values;
        owners.push_back(rows.owner);
    }
    std::vector<float> packed;
    const void* packed_of = nullptr;
    index_t pass(const Rows& rows, Labels y, const Order& order, index_t begin, index_t end, PyWatch* watch) {
        expect_rows(rows, static_cast<index_t>(y.size()));
        expect(packed_of == nullptr || packed_of == rows.view.values, "other rows were packed");
        const std::int64_t* turn = order_of(order, rows.view.n_rows, begin, end);
        return run_pass(end, watch, [&](Watch* w) {
            return core().pocket_rows(rows.view, y.data(), turn, begin, end, state, w);
        });
    }
};

struct Winnower : Learner<WinnowState> {
    Winnower(bool balanced, Out s, Out w) {
        n_cols = static_cast<index_t>(s.size());
        state.balanced = balanced;
        state.s = keep(s, n_cols, "s");
        state.w = keep(w, n_cols, "w");
    }
    index_t pass(const Rows& rows, Labels y, const Order& order, index_t begin, index_t end, PyWatch* watch) {
        expect_rows(rows, static_cast<index_t>(y.size()));
        const std::int64_t* turn = order_of(order, rows.view.n_rows, begin, end);
        return run_pass(end, watch, [&](Watch* w) {
            return core().winnow_rows(rows.view, y.data(), turn, begin, end, state, w);
        });
    }
};

struct Multiclass : Learner<MulticlassState> {
    Multiclass(Array<double, 2> W, Out b) {
        n_cols = static_cast<index_t>(W.shape(0));
        state.n_classes = static_cast<index_t>(W.shape(1));
        expect(state.n_classes >= 2, "there must be two classes");
        state.W = keep(W, n_cols * state.n_classes, "W");
        state.b = keep(b, state.n_classes, "b");
        scratch.resize(static_cast<std::size_t>(state.n_classes));
        state.scores = scratch.data();
    }
    void average(Array<double, 2> sum_W, Out sum_b) {
        state.sum_W = keep(sum_W, n_cols * state.n_classes, "sum_W");
        state.sum_b = keep(sum_b, state.n_classes, "sum_b");
    }
    index_t pass(const Rows& rows, Array<const std::int32_t, 1> label, const Order& order, index_t begin,
                 index_t end, PyWatch* watch) {
        expect_rows(rows, static_cast<index_t>(label.size()));
        for (std::size_t i = 0; i < label.size(); ++i)
            expect(label.data()[i] >= 0 && label.data()[i] < state.n_classes, "a label does not exist");
        const std::int64_t* turn = order_of(order, rows.view.n_rows, begin, end);
        return run_pass(end, watch, [&](Watch* w) {
            return core().multiclass_rows(rows.view, label.data(), turn, begin, end, state, w);
        });
    }
};

struct Dual : Learner<DualState> {
    Dual(bool squares, Out coefficient, Out score) {
        state.squares = squares;
        state.n = static_cast<index_t>(coefficient.size());
        state.coefficient = keep(coefficient, state.n, "coefficient");
        state.score = keep(score, state.n, "score");
    }
    // The next row from begin on that wants a correction; the others only count.
    index_t skip(Labels y, Array<const std::int64_t, 1> order, index_t begin) {
        expect(static_cast<index_t>(y.size()) == state.n, "there must be one label per row");
        const auto n = static_cast<index_t>(order.size());
        order_of(order, state.n, begin, n);
        index_t t = begin;
        for (; t < n; ++t) {
            const index_t i = order.data()[t];
            const double f = state.score[i] + state.b;
            if (state.squares || y.data()[i] * f <= state.margin) break;
            state.counts.n_mistakes += y.data()[i] * f <= 0.0;
            ++state.counts.n_seen;
            ++state.counts.n_steps;
        }
        return t;
    }
    bool row(In K, index_t i, double y) {
        expect(static_cast<index_t>(K.size()) == state.n && i >= 0 && i < state.n, "K or i out of range");
        return core().dual_row(K.data(), i, y, state);
    }
};

// A field of the state as a property that can be read and set.
#define MAXMARGIN_FIELD(Machine, field)                         \
    def_prop_rw(                                                \
        #field, [](const Machine& m) { return m.state.field; }, \
        [](Machine& m, decltype(std::declval<Machine>().state.field) v) { m.state.field = v; })
#define MAXMARGIN_COUNT(Machine, field)                                \
    def_prop_rw(                                                       \
        #field, [](const Machine& m) { return m.state.counts.field; }, \
        [](Machine& m, decltype(OnlineCounts::field) v) { m.state.counts.field = v; })
#define MAXMARGIN_COUNTS(Machine)             \
    MAXMARGIN_COUNT(Machine, n_seen)          \
        .MAXMARGIN_COUNT(Machine, n_steps)    \
        .MAXMARGIN_COUNT(Machine, n_mistakes) \
        .MAXMARGIN_COUNT(Machine, pause)      \
        .MAXMARGIN_COUNT(Machine, n_corrections)

void bind_online_rule(nb::module_& m) {
    nb::class_<Online>(m, "Online")
        .def(nb::init<std::string, Out, index_t>(), "rule"_a, "v"_a.noconvert(), "batch"_a = 1)
        .def("average", &Online::average, "sum"_a.noconvert())
        .def("thin", &Online::thin, "l1"_a, "done"_a.noconvert())
        .def("extend", &Online::extend, "own"_a.noconvert(), "delta"_a)
        .def("run", &Online::pass, "rows"_a, "y"_a.noconvert(), "order"_a.none(), "begin"_a, "end"_a,
             "watch"_a.none() = nb::none())
        .def("settle", [](Online& q) { core().online_settle(q.n_cols, q.state); })
        .MAXMARGIN_FIELD(Online, scale)
        .MAXMARGIN_FIELD(Online, b)
        .MAXMARGIN_FIELD(Online, bias_gain)
        .MAXMARGIN_FIELD(Online, margin)
        .MAXMARGIN_FIELD(Online, rate)
        .MAXMARGIN_FIELD(Online, offset)
        .MAXMARGIN_FIELD(Online, power)
        .MAXMARGIN_FIELD(Online, count_corrections)
        .MAXMARGIN_FIELD(Online, by_performance)
        .MAXMARGIN_FIELD(Online, recent)
        .MAXMARGIN_FIELD(Online, k)
        .MAXMARGIN_FIELD(Online, rho)
        .MAXMARGIN_FIELD(Online, l1_total)
        .MAXMARGIN_FIELD(Online, mean)
        .MAXMARGIN_FIELD(Online, sum_scale)
        .MAXMARGIN_FIELD(Online, sum_b)
        .MAXMARGIN_FIELD(Online, diverged)
        .MAXMARGIN_COUNTS(Online);
}

void bind_online(nb::module_& m) {
    bind_online_rule(m);
    nb::class_<Pocket>(m, "Pocket")
        .def(nb::init<std::string, Out, Out>(), "rule"_a, "w"_a.noconvert(), "best_w"_a.noconvert())
        .def("pack", &Pocket::pack, "rows"_a, "y"_a.noconvert(), "reach"_a)
        .def("run", &Pocket::pass, "rows"_a, "y"_a.noconvert(), "order"_a.none(), "begin"_a, "end"_a,
             "watch"_a.none() = nb::none())
        .MAXMARGIN_FIELD(Pocket, b)
        .MAXMARGIN_FIELD(Pocket, bias_gain)
        .MAXMARGIN_FIELD(Pocket, rate)
        .MAXMARGIN_FIELD(Pocket, best_b)
        .MAXMARGIN_FIELD(Pocket, best_errors)
        .MAXMARGIN_FIELD(Pocket, best_run)
        .MAXMARGIN_FIELD(Pocket, run_length)
        .MAXMARGIN_FIELD(Pocket, judged)
        .MAXMARGIN_FIELD(Pocket, patience)
        .MAXMARGIN_FIELD(Pocket, since_change)
        .MAXMARGIN_FIELD(Pocket, n_evaluations)
        .MAXMARGIN_COUNTS(Pocket);
    nb::class_<Winnower>(m, "Winnower")
        .def(nb::init<bool, Out, Out>(), "balanced"_a, "s"_a.noconvert(), "w"_a.noconvert())
        .def("run", &Winnower::pass, "rows"_a, "y"_a.noconvert(), "order"_a.none(), "begin"_a, "end"_a,
             "watch"_a.none() = nb::none())
        .MAXMARGIN_FIELD(Winnower, s_bias)
        .MAXMARGIN_FIELD(Winnower, w_bias)
        .MAXMARGIN_FIELD(Winnower, log_base)
        .MAXMARGIN_FIELD(Winnower, bias_input)
        .MAXMARGIN_FIELD(Winnower, threshold)
        .MAXMARGIN_FIELD(Winnower, shift)
        .MAXMARGIN_COUNTS(Winnower);
    nb::class_<Multiclass>(m, "Multiclass")
        .def(nb::init<Array<double, 2>, Out>(), "W"_a.noconvert(), "b"_a.noconvert())
        .def("average", &Multiclass::average, "sum_W"_a.noconvert(), "sum_b"_a.noconvert())
        .def("run", &Multiclass::pass, "rows"_a, "label"_a.noconvert(), "order"_a.none(), "begin"_a, "end"_a,
             "watch"_a.none() = nb::none())
        .MAXMARGIN_FIELD(Multiclass, bias_gain)
        .MAXMARGIN_FIELD(Multiclass, rate)
        .MAXMARGIN_FIELD(Multiclass, margin)
        .MAXMARGIN_COUNTS(Multiclass);
    nb::class_<Dual>(m, "Dual")
        .def(nb::init<bool, Out, Out>(), "squares"_a, "coefficient"_a.noconvert(), "score"_a.noconvert())
        .def("skip", &Dual::skip, "y"_a.noconvert(), "order"_a.noconvert(), "begin"_a)
        .def("row", &Dual::row, "K"_a.noconvert(), "i"_a, "y"_a)
        .MAXMARGIN_FIELD(Dual, b)
        .MAXMARGIN_FIELD(Dual, bias_gain)
        .MAXMARGIN_FIELD(Dual, rate)
        .MAXMARGIN_FIELD(Dual, margin)
        .MAXMARGIN_COUNTS(Dual);
    m.def(
        "count_errors",
        [](const Rows& rows, In y, In w, double b) {
            at(y, rows.view.n_rows, "y"), at(w, rows.view.n_cols, "w");
            const WithoutGil nogil;
            return core().count_errors(rows.view, y.data(), w.data(), b, rows.view.n_rows + 1);
        },
        "rows"_a, "y"_a.noconvert(), "w"_a.noconvert(), "b"_a);
}

#undef MAXMARGIN_FIELD
#undef MAXMARGIN_COUNT
#undef MAXMARGIN_COUNTS

}  // namespace
}  // namespace maxmargin
