// The Python face of the core: checks every array's type, shape and length, releases the GIL, calls a kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "kernels.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace maxmargin {
namespace {

template <class T, int dims>
using Array = nb::ndarray<T, nb::ndim<dims>, nb::c_contig, nb::device::cpu>;
using In = Array<const double, 1>;
using Out = Array<double, 1>;

bool baseline_forced() {
    const char* wish = std::getenv("MAXMARGIN_BASELINE");
    return wish != nullptr && *wish != '\0' && std::strcmp(wish, "0") != 0;
}

std::atomic<const Kernels*> active{&kernels_for(choose_isa(baseline_forced()))};
const Kernels& core() { return *active.load(); }

void expect(bool holds, const std::string& what) {
    if (!holds) throw nb::value_error(what.c_str());
}

// --- rows -------------------------------------------------------------------------------------------------

struct Rows {
    RowsView view;
    nb::object owner;  // keeps the arrays alive
};

template <class T>
Rows dense_rows(Array<const T, 2> X) {
    Rows rows;
    rows.view.single = sizeof(T) == 4;
    rows.view.values = X.data();
    rows.view.n_rows = static_cast<index_t>(X.shape(0));
    rows.view.n_cols = static_cast<index_t>(X.shape(1));
    rows.owner = nb::cast(X);
    return rows;
}

// Positions of a CSR matrix must be valid before any kernel trusts them.
template <class I>
void check_csr(const I* indices, const I* indptr, index_t n_rows, index_t n_cols, index_t nnz) {
    expect(indptr[0] == 0, "sparse X: indptr must start at 0");
    for (index_t i = 0; i < n_rows; ++i) {
        const index_t begin = indptr[i], end = indptr[i + 1];
        if (begin > end || end > nnz)
            throw nb::value_error(
                ("sparse X: indptr falls or leaves the data at row " + std::to_string(i)).c_str());
        index_t before = -1;
        for (index_t k = begin; k < end; ++k) {
            const index_t column = indices[k];
            if (column <= before || column >= n_cols)
                throw nb::value_error(("sparse X: row " + std::to_string(i) + " names column " +
                                       std::to_string(column) + " after column " + std::to_string(before) +
                                       "; columns must increase from 0 to " + std::to_string(n_cols - 1))
                                          .c_str());
            before = column;
        }
    }
}

template <class T, class I>
Rows csr_rows(Array<const T, 1> data, Array<const I, 1> indices, Array<const I, 1> indptr, index_t n_cols) {
    expect(indptr.size() >= 1 && data.size() == indices.size() && n_cols >= 0,
           "sparse X: data and indices must have the same length and indptr at least one entry");
    Rows rows;
    rows.view = {RowsView::Layout::csr,
                 sizeof(T) == 4,
                 sizeof(I) == 8,
                 data.data(),
                 indices.data(),
                 indptr.data(),
                 static_cast<index_t>(indptr.size()) - 1,
                 n_cols};
    check_csr(indices.data(), indptr.data(), rows.view.n_rows, n_cols, static_cast<index_t>(data.size()));
    rows.owner = nb::make_tuple(data, indices, indptr);
    return rows;
}

// --- watch ------------------------------------------------------------------------------------------------

struct PyWatch {
    Watch watch;
    std::optional<double> deadline;  // seconds from construction
    Watch::clock::time_point start = Watch::clock::now();
    bool past_deadline() const {
        return deadline && std::chrono::duration<double>(Watch::clock::now() - start).count() >= *deadline;
    }
    PyWatch(double interval, std::optional<double> limit)
        : watch(&PyWatch::poll, this, interval), deadline(limit) {}
    static bool poll(void* self) {
        nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0 || static_cast<PyWatch*>(self)->past_deadline();
    }
};

struct DeadlineReached : std::runtime_error {
    DeadlineReached() : std::runtime_error("the deadline was reached") {}
};

// The cause of a stop as a Python exception; a watch that was interrupted once stays so.
[[noreturn]] void raise_stop(const PyWatch& watch) {
    if (PyErr_Occurred() == nullptr) {
        if (watch.past_deadline()) throw DeadlineReached();
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
    throw nb::python_error();
}

// Runs a kernel without the GIL.
template <class Body>
auto run(int n_threads, PyWatch* watch, Body body) {
    expect(n_threads >= 1, "n_threads must be at least 1");
    try {
        nb::gil_scoped_release nogil;
        return body(Execution{n_threads, watch != nullptr ? &watch->watch : nullptr});
    } catch (const Interrupted&) {
        raise_stop(*watch);
    }
}

// --- BLAS -------------------------------------------------------------------------------------------------

// SciPy's capsule carries the C signature as its name: 64-bit integers would corrupt memory, so check it.
Blas borrow_blas(nb::handle dsyrk) {
    const char* signature = PyCapsule_GetName(dsyrk.ptr());
    if (signature == nullptr) throw nb::python_error();
    const std::string text = signature;
    const bool plain = text.rfind("void (char *, char *, int *, int *, ", 0) == 0 &&
                       std::count(text.begin(), text.end(), '*') == 10 && text.ends_with(" *, int *)");
    if (!plain) throw std::runtime_error(std::string("unexpected signature of SciPy's dsyrk: ") + signature);
    Blas blas;
    blas.dsyrk = reinterpret_cast<DsyrkPointer>(PyCapsule_GetPointer(dsyrk.ptr(), signature));
    if (blas.dsyrk == nullptr) throw nb::python_error();
    return blas;
}

// --- states -----------------------------------------------------------------------------------------------

const double* at(const In& a, index_t n, const char* name) {
    expect(static_cast<index_t>(a.size()) == n, std::string(name) + " has a wrong length");
    return a.data();
}
double* at(const Out& a, index_t n, const char* name) {
    expect(static_cast<index_t>(a.size()) == n, std::string(name) + " has a wrong length");
    return a.data();
}

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

struct Descent {
    DescentState state;
    index_t n_weights = 0;
    nb::object owner;
    Descent(In y, In upper, In diagonal, In target, In sq_norm, Out alpha, Out w,
            Array<std::int32_t, 1> order, double bias_center, double bias_gain, double signed_sum,
            std::uint64_t seed) {
        const auto n = static_cast<index_t>(y.size());
        expect(static_cast<index_t>(order.size()) == n, "order has a wrong length");
        for (index_t i = 0; i < n; ++i)
            expect(order.data()[i] >= 0 && order.data()[i] < n, "order leaves the rows");
        state.n = state.n_active = n;
        state.y = y.data();
        state.upper = at(upper, n, "upper");
        state.diagonal = at(diagonal, n, "diagonal");
        state.target = at(target, n, "target");
        state.sq_norm = at(sq_norm, n, "sq_norm");
        state.alpha = at(alpha, n, "alpha");
        state.w = w.data();
        n_weights = static_cast<index_t>(w.size());
        state.order = order.data();
        state.bias_center = bias_center;
        state.bias_gain = bias_gain;
        state.signed_sum = signed_sum;
        state.random = seed;
        unshrink();
        owner = nb::make_tuple(y, upper, diagonal, target, sq_norm, alpha, w, order);
    }
    void unshrink() {
        state.n_active = state.n;
        state.shrink_high = __builtin_inf();
        state.shrink_low = -__builtin_inf();
    }
    // Largest difference between two projected gradients of the epoch: 0 at the optimum of the active rows.
    double epoch(const Rows& rows, PyWatch* watch) {
        expect(rows.view.n_rows == state.n, "rows and state differ in length");
        expect(rows.view.n_cols == n_weights, "rows and w differ in length");
        EpochReport report;
        {
            nb::gil_scoped_release nogil;
            report = core().descent_epoch(rows.view, state, watch != nullptr ? &watch->watch : nullptr);
        }
        if (report.stopped) raise_stop(*watch);
        const double high = report.violation_high, low = report.violation_low;
        state.shrink_high = high > 0.0 ? high : __builtin_inf();
        state.shrink_low = low < 0.0 ? low : -__builtin_inf();
        return high >= low ? high - low : 0.0;
    }
};

nb::dict info() {
    nb::dict out;
    out["version"] = MAXMARGIN_VERSION;
    out["instruction_set"] = core().name;
    out["compiler"] = __VERSION__;
    return out;
}

void use_isa(const std::string& name) {
    const Kernels& table = kernels_for(name.c_str());
    expect(name == table.name && (name == "baseline" || name == choose_isa(false)),
           "instruction set '" + name + "' is not available on this machine");
    active = &table;
}

void bind_products(nb::module_& m) {
    m.def(
        "scores",
        [](const Rows& rows, In w, double bias, Out out, int n_threads, PyWatch* watch) {
            at(w, rows.view.n_cols, "w"), at(out, rows.view.n_rows, "out");
            run(n_threads, watch,
                [&](const Execution& how) { core().scores(rows.view, w.data(), bias, out.data(), how); });
        },
        "rows"_a, "w"_a.noconvert(), "bias"_a, "out"_a.noconvert(), "n_threads"_a,
        "watch"_a.none() = nb::none());
    m.def(
        "combine",
        [](const Rows& rows, In c, Out out, int n_threads, PyWatch* watch) {
            at(c, rows.view.n_rows, "coefficient"), at(out, rows.view.n_cols, "out");
            run(n_threads, watch,
                [&](const Execution& how) { core().combine(rows.view, c.data(), out.data(), how); });
        },
        "rows"_a, "coefficient"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a,
        "watch"_a.none() = nb::none());
    m.def(
        "squared_norms",
        [](const Rows& rows, Out out, int n_threads) {
            at(out, rows.view.n_rows, "out");
            run(n_threads, nullptr,
                [&](const Execution& how) { core().squared_norms(rows.view, out.data(), how); });
        },
        "rows"_a, "out"_a.noconvert(), "n_threads"_a);
    m.def(
        "normal_matrix",
        [](const Rows& rows, In D, double bias, Array<double, 2> H, const Blas& blas, int n_threads,
           PyWatch* watch) {
            at(D, rows.view.n_rows, "D");
            const auto size = static_cast<std::size_t>(rows.view.n_cols + (bias != 0.0));
            expect(H.shape(0) == size && H.shape(1) == size, "H has a wrong shape");
            run(n_threads, watch, [&](const Execution& how) {
                core().normal_matrix(rows.view, D.data(), BiasColumn{bias}, H.data(), blas, how);
            });
        },
        "rows"_a, "D"_a.noconvert(), "bias"_a, "H"_a.noconvert(), "blas"_a, "n_threads"_a,
        "watch"_a.none() = nb::none());
    m.def(
        "gram",
        [](const Rows& rows, Array<const std::int64_t, 1> chosen, Array<double, 2> G, int n_threads,
           PyWatch* watch) {
            const std::size_t n = chosen.size();
            expect(G.shape(0) == n && G.shape(1) == n, "G has a wrong shape");
            for (std::size_t k = 0; k < n; ++k)
                expect(chosen.data()[k] >= 0 && chosen.data()[k] < rows.view.n_rows,
                       "a chosen row does not exist");
            run(n_threads, watch, [&](const Execution& how) {
                core().gram(rows.view, chosen.data(), static_cast<index_t>(n), G.data(), how);
            });
        },
        "rows"_a, "chosen"_a.noconvert(), "G"_a.noconvert(), "n_threads"_a, "watch"_a.none() = nb::none());
    m.def(
        "clipped_slope",
        [](In z, In dm, In C, In sigma, double t) {
            const auto n = static_cast<index_t>(z.size());
            return core().clipped_slope(z.data(), at(dm, n, "dm"), at(C, n, "C"), at(sigma, n, "sigma"), t,
                                        n);
        },
        "z"_a.noconvert(), "dm"_a.noconvert(), "C"_a.noconvert(), "sigma"_a.noconvert(), "t"_a);
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
    nb::class_<Descent>(m, "Descent")
        .def(nb::init<In, In, In, In, In, Out, Out, Array<std::int32_t, 1>, double, double, double,
                      std::uint64_t>(),
             "y"_a.noconvert(), "upper"_a.noconvert(), "diagonal"_a.noconvert(), "target"_a.noconvert(),
             "sq_norm"_a.noconvert(), "alpha"_a.noconvert(), "w"_a.noconvert(), "order"_a.noconvert(),
             "bias_center"_a, "bias_gain"_a, "signed_sum"_a, "seed"_a)
        .def("epoch", &Descent::epoch, "rows"_a, "watch"_a.none() = nb::none())
        .def("unshrink", &Descent::unshrink)
        .def_prop_ro("n_active", [](const Descent& q) { return q.state.n_active; })
        .def_prop_rw(
            "bias_center", [](const Descent& q) { return q.state.bias_center; },
            [](Descent& q, double b) { q.state.bias_center = b; })
        .def_prop_ro("bias", [](const Descent& q) {
            return q.state.bias_center + q.state.bias_gain * q.state.signed_sum;
        });
}

}  // namespace
}  // namespace maxmargin

NB_MODULE(_core, m) {
    using namespace maxmargin;
    m.doc() = "The compiled core of maxmargin.";
    nb::set_leak_warnings(false);  // the borrowed BLAS lives as long as the process
    nb::class_<Rows>(m, "Rows")
        .def_prop_ro("shape", [](const Rows& r) { return nb::make_tuple(r.view.n_rows, r.view.n_cols); })
        .def_prop_ro("is_sparse", [](const Rows& r) { return r.view.layout == RowsView::Layout::csr; })
        .def_static("dense", &dense_rows<float>, "X"_a.noconvert())
        .def_static("dense", &dense_rows<double>, "X"_a.noconvert())
        .def_static("csr", &csr_rows<float, std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
                    "indptr"_a.noconvert(), "n_cols"_a)
        .def_static("csr", &csr_rows<double, std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
                    "indptr"_a.noconvert(), "n_cols"_a)
        .def_static("csr", &csr_rows<float, std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
                    "indptr"_a.noconvert(), "n_cols"_a)
        .def_static("csr", &csr_rows<double, std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
                    "indptr"_a.noconvert(), "n_cols"_a);
    nb::class_<PyWatch>(m, "Watch")
        .def(nb::init<double, std::optional<double>>(), "interval"_a = 0.05, "deadline"_a = nb::none())
        .def_prop_ro("past_deadline", &PyWatch::past_deadline)
        .def_prop_ro("n_polls", [](const PyWatch& w) { return w.watch.n_polls(); });
    nb::class_<Blas>(m, "Blas").def_static("borrow", &borrow_blas, "dsyrk"_a);
    nb::exception<DeadlineReached>(m, "DeadlineReached", PyExc_TimeoutError);
    bind_products(m);
    bind_states(m);
    m.def("info", &info);
    m.def("use_isa", &use_isa, "name"_a);
}
