// The Python face of the core: checks every array's type, shape and length, releases the GIL, calls a kernel.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>

#include "bind_kernels.hpp"
#include "bind_memory.hpp"
#include "bind_online.hpp"
#include "bind_states.hpp"
#include "bind_text.hpp"
#include "bind_views.hpp"

namespace maxmargin {
namespace {

// --- BLAS -------------------------------------------------------------------------------------------------

// SciPy's capsule carries the C signature as its name: 64-bit integers would corrupt memory, so check it.
template <class Pointer>
Pointer borrow(nb::handle capsule, const char* name, const std::string& begin, int n_arguments) {
    const char* signature = PyCapsule_GetName(capsule.ptr());
    if (signature == nullptr) throw nb::python_error();
    const std::string text = signature;
    const bool plain = text.rfind(begin, 0) == 0 &&
                       std::count(text.begin(), text.end(), '*') == n_arguments &&
                       text.ends_with(" *, int *)");
    if (!plain)
        throw std::runtime_error(std::string("unexpected signature of SciPy's ") + name + ": " + signature);
    const auto pointer = reinterpret_cast<Pointer>(PyCapsule_GetPointer(capsule.ptr(), signature));
    if (pointer == nullptr) throw nb::python_error();
    return pointer;
}

Blas borrow_blas(const nb::dict& capsules) {
    const std::string begin = "void (char *, char *, int *, int *, ";
    const auto take = [&](const char* name) { return nb::handle(capsules[name]); };
    Blas blas;
    blas.dsyrk = borrow<DsyrkPointer>(take("dsyrk"), "dsyrk", begin, 10);
    blas.ssyrk = borrow<SsyrkPointer>(take("ssyrk"), "ssyrk", begin, 10);
    blas.dgemm = borrow<DgemmPointer>(take("dgemm"), "dgemm", begin + "int *, ", 13);
    blas.sgemm = borrow<SgemmPointer>(take("sgemm"), "sgemm", begin + "int *, ", 13);
    const std::string four = "void (char *, char *, char *, char *, int *, int *, ";
    blas.dtrsm = borrow<TrsmPointer<double>>(take("dtrsm"), "dtrsm", four, 11);
    blas.strsm = borrow<TrsmPointer<float>>(take("strsm"), "strsm", four, 11);
    blas.dpotrf = borrow<PotrfPointer<double>>(take("dpotrf"), "dpotrf", "void (char *, int *, ", 5);
    blas.spotrf = borrow<PotrfPointer<float>>(take("spotrf"), "spotrf", "void (char *, int *, ", 5);
    return blas;
}

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
        "compensated_scores",
        [](const Rows& rows, In w, Out high, Out low, int n_threads) {
            at(w, rows.view.n_cols, "w"), at(high, rows.view.n_rows, "high"),
                at(low, rows.view.n_rows, "low");
            run(n_threads, nullptr, [&](const Execution& how) {
                core().compensated_scores(rows.view, w.data(), high.data(), low.data(), how);
            });
        },
        "rows"_a, "w"_a.noconvert(), "high"_a.noconvert(), "low"_a.noconvert(), "n_threads"_a);
    m.def(
        "compensated_combine",
        [](const Rows& rows, In c, Out out, int n_threads) {
            at(c, rows.view.n_rows, "coefficient"), at(out, rows.view.n_cols, "out");
            run(n_threads, nullptr, [&](const Execution& how) {
                core().compensated_combine(rows.view, c.data(), out.data(), how);
            });
        },
        "rows"_a, "coefficient"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    m.def(
        "roomiest",
        [](In alpha, In sign, In upper) {
            // The multiplier farthest from 0 and from its bound, that distance, the largest multiplier, and
            // Σ alpha sign.
            const auto n = static_cast<index_t>(alpha.size());
            const double *a = alpha.data(), *s = at(sign, n, "sign"), *u = at(upper, n, "upper");
            index_t roomiest = 0, largest = 0;
            double room = -1.0, size = -1.0, excess = 0.0;
            for (index_t i = 0; i < n; ++i) {
                const double own = std::abs(a[i]), free = std::min(own, u[i] - own);
                excess += a[i] * s[i];
                if (free > room) room = free, roomiest = i;
                if (own > size) size = own, largest = i;
            }
            return nb::make_tuple(roomiest, room, largest, excess);
        },
        "alpha"_a.noconvert(), "sign"_a.noconvert(), "upper"_a.noconvert());
    m.def(
        "to_grid",
        [](In alpha, In sign, double unit, Out out) {
            // Rounds towards zero to multiples of the unit, a power of two. Σ out sign is an exact whole
            // number of units, 2^26 high + low; the third is Σ |out − alpha|.
            const auto n = static_cast<index_t>(alpha.size());
            const double *a = alpha.data(), *s = at(sign, n, "sign");
            double *o = at(out, n, "out"), moved = 0.0;
            const double per_unit = 1.0 / unit, block = 67108864.0, whole = 9007199254740992.0;
            std::uint64_t high = 0, low = 0;  // may wrap on the way to a sum that is small
            for (index_t i = 0; i < n; ++i) {
                const double k = a[i] * per_unit;
                if (std::abs(k) < whole) {
                    const auto units = static_cast<std::int64_t>(k);
                    const std::int64_t signed_units = s[i] < 0.0 ? -units : units;
                    o[i] = static_cast<double>(units) * unit;
                    moved += std::abs(o[i] - a[i]);
                    high += static_cast<std::uint64_t>(signed_units >> 26);
                    low += static_cast<std::uint64_t>(signed_units & 67108863);
                } else {  // a whole number already, perhaps of more than 63 bits
                    const double upper = std::floor(k * s[i] / block);
                    o[i] = a[i];
                    high += static_cast<std::uint64_t>(static_cast<std::int64_t>(upper));
                    low += static_cast<std::uint64_t>(static_cast<std::int64_t>(k * s[i] - upper * block));
                }
            }
            return nb::make_tuple(static_cast<std::int64_t>(high), static_cast<std::int64_t>(low), moved);
        },
        "alpha"_a.noconvert(), "sign"_a.noconvert(), "unit"_a, "out"_a.noconvert());
    m.def(
        "squared_norms",
        [](const Rows& rows, Out out, int n_threads) {
            at(out, rows.view.n_rows, "out");
            run(n_threads, nullptr,
                [&](const Execution& how) { core().squared_norms(rows.view, out.data(), how); });
        },
        "rows"_a, "out"_a.noconvert(), "n_threads"_a);
    m.def(
        "survey",
        [](Rows& rows, Out squared_norms, Out column_squares, int n_threads) {
            const bool dense = rows.view.layout == RowsView::Layout::dense;
            at(squared_norms, rows.view.n_rows, "squared_norms");
            at(column_squares, dense ? rows.view.n_cols : 0, "column_squares");
            const Survey found = run(n_threads, nullptr, [&](const Execution& how) {
                return core().survey(rows.view, squared_norms.data(), column_squares.data(), how);
            });
            rows.digest = found.digest;
            return nb::make_tuple(found.finite, found.largest, found.longest_row);
        },
        "rows"_a, "squared_norms"_a.noconvert(), "column_squares"_a.noconvert(), "n_threads"_a);
    m.def(
        "normal_matrix",
        [](const Rows& rows, In D, double bias, Array<double, 2> H, const Blas& blas, int n_threads,
           PyWatch* watch, bool add) {
            at(D, rows.view.n_rows, "D");
            const auto size = static_cast<std::size_t>(rows.view.n_cols + (bias != 0.0));
            expect(H.shape(0) == size && H.shape(1) == size, "H has a wrong shape");
            run(n_threads, watch, [&](const Execution& how) {
                core().normal_matrix(rows.view, D.data(), BiasColumn{bias}, add, H.data(), blas, how);
            });
        },
        "rows"_a, "D"_a.noconvert(), "bias"_a, "H"_a.noconvert(), "blas"_a, "n_threads"_a,
        "watch"_a.none() = nb::none(), "add"_a = false);
    m.def(
        "gram",
        [](const Rows& rows, Array<const std::int64_t, 1> chosen, Array<double, 2> G, const Blas& blas,
           int n_threads, PyWatch* watch) {
            const std::size_t n = chosen.size();
            expect(G.shape(0) == n && G.shape(1) == n, "G has a wrong shape");
            for (std::size_t k = 0; k < n; ++k)
                expect(chosen.data()[k] >= 0 && chosen.data()[k] < rows.view.n_rows,
                       "a chosen row does not exist");
            run(n_threads, watch, [&](const Execution& how) {
                core().gram(rows.view, chosen.data(), static_cast<index_t>(n), G.data(), blas, how);
            });
        },
        "rows"_a, "chosen"_a.noconvert(), "G"_a.noconvert(), "blas"_a, "n_threads"_a,
        "watch"_a.none() = nb::none());
    m.def(
        "gram_block",
        [](const Rows& rows, Array<const std::int64_t, 1> lines, Array<const std::int64_t, 1> columns,
           Array<double, 2> G, int n_threads, PyWatch* watch) {
            expect(G.shape(0) == lines.size() && G.shape(1) == columns.size(), "G has a wrong shape");
            for (const auto& list : {lines, columns})
                for (std::size_t k = 0; k < list.size(); ++k)
                    expect(list.data()[k] >= 0 && list.data()[k] < rows.view.n_rows,
                           "a chosen row does not exist");
            run(n_threads, watch, [&](const Execution& how) {
                core().gram_block(rows.view, lines.data(), static_cast<index_t>(lines.size()), columns.data(),
                                  static_cast<index_t>(columns.size()), G.data(), how);
            });
        },
        "rows"_a, "lines"_a.noconvert(), "columns"_a.noconvert(), "G"_a.noconvert(), "n_threads"_a,
        "watch"_a.none() = nb::none());
    m.def(
        "clipped_slope",
        [](In z, In dm, In lower, In upper, In sigma, double tube, double t, int n_threads) {
            const auto n = static_cast<index_t>(z.size());
            const ClippedLine line{n,
                                   z.data(),
                                   at(dm, n, "dm"),
                                   at(lower, n, "lower"),
                                   at(upper, n, "upper"),
                                   at(sigma, n, "sigma"),
                                   tube};
            double slope = 0.0;
            run(n_threads, nullptr,
                [&](const Execution& how) { slope = core().clipped_slope(line, t, how); });
            return slope;
        },
        "z"_a.noconvert(), "dm"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(),
        "sigma"_a.noconvert(), "tube"_a, "t"_a, "n_threads"_a);
    m.def(
        "clipped_point",
        [](In scores, double b, In sign, In target, In anchor, In lower, In upper, In sigma, double tube,
           Out z, Out pi, Out signed_pi, Out D, int n_threads) {
            const auto n = static_cast<index_t>(scores.size());
            const ClippedPoint point{n,
                                     scores.data(),
                                     at(sign, n, "sign"),
                                     at(target, n, "target"),
                                     at(anchor, n, "anchor"),
                                     at(lower, n, "lower"),
                                     at(upper, n, "upper"),
                                     at(sigma, n, "sigma"),
                                     tube,
                                     at(z, n, "z"),
                                     at(pi, n, "pi"),
                                     at(signed_pi, n, "signed_pi"),
                                     at(D, n, "D")};
            ClippedSums sums;
            run(n_threads, nullptr,
                [&](const Execution& how) { sums = core().clipped_point(point, b, how); });
            return nb::make_tuple(sums.balance, sums.moved, sums.size, sums.curvature);
        },
        "scores"_a.noconvert(), "b"_a, "sign"_a.noconvert(), "target"_a.noconvert(), "anchor"_a.noconvert(),
        "lower"_a.noconvert(), "upper"_a.noconvert(), "sigma"_a.noconvert(), "tube"_a, "z"_a.noconvert(),
        "pi"_a.noconvert(), "signed_pi"_a.noconvert(), "D"_a.noconvert(), "n_threads"_a);
}

}  // namespace
}  // namespace maxmargin

NB_MODULE(_core, m) {
    using namespace maxmargin;
    m.doc() = "The compiled core of maxmargin.";
    nb::set_leak_warnings(false);  // the borrowed BLAS lives as long as the process
    nb::class_<Rows>(m, "Rows")
        .def_prop_ro("shape", [](const Rows& r) { return nb::make_tuple(r.view.n_rows, r.view.n_cols); })
        .def_prop_ro("nnz",
                     [](const Rows& r) {
                         const RowsView& v = r.view;
                         if (v.layout == RowsView::Layout::dense) return v.n_rows * v.n_cols;
                         return v.wide_indices
                                    ? static_cast<const std::int64_t*>(v.indptr)[v.n_rows]
                                    : index_t{static_cast<const std::int32_t*>(v.indptr)[v.n_rows]};
                     })
        .def_prop_ro("is_sparse", [](const Rows& r) { return r.view.layout == RowsView::Layout::csr; })
        .def(
            "unchanged",
            [](const Rows& r, int n_threads) {
                return !r.digest || run(n_threads, nullptr, [&](const Execution& how) {
                    return core().digest(r.view, how) == *r.digest;
                });
            },
            "n_threads"_a)
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
        .def("cancel", [](PyWatch& w) { w.watch.cancel(); })
        .def_prop_ro("n_polls", [](const PyWatch& w) { return w.watch.n_polls(); });
    nb::class_<Blas>(m, "Blas").def_static("borrow", &borrow_blas, "capsules"_a);
    nb::exception<DeadlineReached>(m, "DeadlineReached", PyExc_TimeoutError);
    bind_products(m);
    bind_kernels(m);
    bind_states(m);
    bind_online(m);
    bind_text(m);
    bind_memory(m);
    m.def("info", &info);
    m.def("use_isa", &use_isa, "name"_a);
}
