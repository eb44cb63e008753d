// Kernel values, pair steps and Cholesky factors as Python sees them.
#pragma once
#include <vector>

#include "bind_views.hpp"
#include "working_set.hpp"

namespace maxmargin {
namespace {

struct Tiles {
    TileRows rows;
    nb::object owner;
    Tiles(const nb::object& packed, const nb::object& given, In squares) {
        rows.packed = nb::cast<const Rows&>(packed).view;
        rows.given = nb::cast<const Rows&>(given).view;
        const RowsView &p = rows.packed, &g = rows.given;
        expect(p.n_rows == g.n_rows && p.n_cols == g.n_cols && p.layout == g.layout,
               "packed rows are other ones than the given");
        rows.squares = at(squares, p.n_rows, "squares");
        owner = nb::make_tuple(packed, given, squares);
    }
};

void expect_alike(const Tiles& left, const Tiles& right) {
    const RowsView &a = left.rows.packed, &b = right.rows.packed;
    expect(a.n_cols == b.n_cols && a.layout == b.layout && a.single == b.single,
           "both sides of a kernel need the same columns, layout and type");
}

void expect_lines(const Tiles& left, const Array<const std::int64_t, 1>& lines) {
    for (std::size_t k = 0; k < lines.size(); ++k)
        expect(lines.data()[k] >= 0 && lines.data()[k] < left.rows.packed.n_rows,
               "a chosen row does not exist");
}

template <class T>
void bind_kernel_values(nb::module_& m) {
    m.def(
        "kernel_block",
        [](const KernelFunction& kernel, const Tiles& left, Array<const std::int64_t, 1> lines,
           const Tiles& right, Array<T, 2> out, index_t column, const Blas& blas, int n_threads,
           PyWatch* watch) {
            expect_alike(left, right);
            expect_lines(left, lines);
            const auto stride = static_cast<index_t>(out.shape(1));
            expect(right.rows.packed.single == (sizeof(T) == 4) && out.shape(0) == lines.size() &&
                       column >= 0 && column + right.rows.packed.n_rows <= stride,
                   "out has a wrong type or shape");
            run(n_threads, watch, [&](const Execution& how) {
                core().kernel_block(kernel, left.rows, lines.data(), static_cast<index_t>(lines.size()),
                                    right.rows, out.data() + column, stride, blas, how);
            });
        },
        "kernel"_a, "left"_a, "lines"_a.noconvert(), "right"_a, "out"_a.noconvert(), "column"_a, "blas"_a,
        "n_threads"_a, "watch"_a.none() = nb::none());
    m.def(
        "kernel_gram",
        [](const KernelFunction& kernel, const Tiles& rows, In own, Array<T, 2> out, const Blas& blas,
           int n_threads, PyWatch* watch) {
            const index_t n = rows.rows.packed.n_rows;
            at(own, n, "own");
            expect(rows.rows.packed.single == (sizeof(T) == 4) && static_cast<index_t>(out.shape(0)) == n &&
                       static_cast<index_t>(out.shape(1)) == n,
                   "out has a wrong type or shape");
            run(n_threads, watch, [&](const Execution& how) {
                core().kernel_gram(kernel, rows.rows, own.data(), out.data(), n, blas, how);
            });
        },
        "kernel"_a, "rows"_a, "own"_a.noconvert(), "out"_a.noconvert(), "blas"_a, "n_threads"_a,
        "watch"_a.none() = nb::none());
    m.def(
        "cholesky",
        [](Array<T, 2> A, const Blas& blas, int n_threads, PyWatch* watch) {
            expect(A.shape(0) == A.shape(1), "A is not square");
            return run(n_threads, watch, [&](const Execution& how) {
                return core().cholesky(A.data(), sizeof(T) == 4, static_cast<index_t>(A.shape(0)), blas, how);
            });
        },
        "A"_a.noconvert(), "blas"_a, "n_threads"_a, "watch"_a.none() = nb::none());
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> copied(const std::vector<T>& from) {
    T* data = new T[from.size() + 1];
    std::copy(from.begin(), from.end(), data);
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {from.size()}, owner);
}

// A pair problem and its working set; keeps all arrays alive.
struct PairSteps {
    PairProblem problem;
    WorkingSet set;
    std::vector<double> scratch;
    std::vector<index_t> group_end;
    nb::object owner;

    PairSteps(In lower, In upper, In own, std::optional<In> ridge, Out beta, Out slope,
              Array<const std::int64_t, 1> ends, double tube) {
        const auto n = static_cast<index_t>(beta.size());
        expect(n < (index_t{1} << 31), "too many variables");
        problem.n = n, problem.tube = tube;
        problem.lower = at(lower, n, "lower"), problem.upper = at(upper, n, "upper");
        problem.own = at(own, n, "own"), problem.ridge = ridge ? at(*ridge, n, "ridge") : nullptr;
        problem.beta = beta.data(), problem.slope = at(slope, n, "slope");
        scratch.resize(2 * static_cast<std::size_t>(n));
        problem.rise = scratch.data(), problem.fall = scratch.data() + n;
        group_end.assign(ends.data(), ends.data() + ends.size());
        expect(!group_end.empty() && group_end.back() == n && group_end.front() >= 0 &&
                   std::is_sorted(group_end.begin(), group_end.end()),
               "groups must be neighbours that end with the last variable");
        problem.n_groups = static_cast<index_t>(group_end.size()), problem.group_end = group_end.data();
        owner = nb::make_tuple(lower, upper, own, ridge ? nb::cast(*ridge) : nb::none(), beta, slope);
    }

    // Steps on all variables, whose kernel matrix is at hand.
    template <class T>
    PairReport loop(Array<const T, 2> K, index_t most_steps, double stop, PyWatch* watch) {
        expect(static_cast<index_t>(K.shape(0)) == problem.n && static_cast<index_t>(K.shape(1)) == problem.n,
               "K has a wrong shape");
        const PairReport report = run(1, watch, [&](const Execution& how) {
            return core().pair_loop(problem, K.data(), sizeof(T) == 4, problem.n, most_steps, stop,
                                    how.watch);
        });
        if (report.stopped) raise_stop(*watch);
        return report;
    }

    // A new working set; the largest violation of all variables is computed on the way.
    nb::tuple choose(index_t size) {
        expect(size >= 4, "a working set needs four variables at least");
        const double violation = run(1, nullptr, [&](const Execution&) {
            const double found = core().pair_ends(problem);
            set.choose(problem, size);
            return found;
        });
        return nb::make_tuple(violation, copied(set.members));
    }

    template <class T>
    nb::tuple solve(Array<const T, 2> block, index_t most_steps, double stop, PyWatch* watch) {
        const std::size_t m = set.members.size();
        expect(block.shape(0) == m && block.shape(1) == m, "block has a wrong shape");
        const PairReport report = run(1, watch, [&](const Execution& how) {
            return set.solve(core(), problem, block.data(), sizeof(T) == 4, stop, most_steps, how.watch);
        });
        if (report.stopped) raise_stop(*watch);
        return nb::make_tuple(report, copied(set.changed), copied(set.change));
    }

    template <class T>
    void add(Array<const T, 2> values, Array<const std::int64_t, 1> places, In change,
             Array<const std::int64_t, 2> segments, int n_threads) {
        const std::size_t n_lines = places.size(), n_segments = segments.shape(0);
        at(change, static_cast<index_t>(n_lines), "change");
        expect(segments.shape(1) == 2, "segments have a wrong shape");
        const auto height = static_cast<index_t>(values.shape(0)),
                   width = static_cast<index_t>(values.shape(1));
        std::vector<index_t> begin(n_segments), length(n_segments);
        index_t total = 0;
        for (std::size_t s = 0; s < n_segments; ++s) {
            begin[s] = segments.data()[2 * s], length[s] = segments.data()[2 * s + 1];
            expect(begin[s] >= 0 && length[s] >= 0 && begin[s] + length[s] <= width,
                   "a segment leaves the matrix");
            total += length[s];
        }
        expect(total == problem.n, "segments must hold every variable");
        std::vector<const void*> lines(n_lines);
        for (std::size_t k = 0; k < n_lines; ++k) {
            const index_t place = places.data()[k];
            expect(place >= 0 && place < height, "a place does not exist");
            lines[k] = values.data() + place * width;
        }
        const Segments where{static_cast<index_t>(n_segments), begin.data(), length.data()};
        run(n_threads, nullptr, [&](const Execution& how) {
            core().add_lines(where, lines.data(), sizeof(T) == 4, change.data(),
                             static_cast<index_t>(n_lines), problem.slope, problem.n, how);
        });
    }
};

void bind_pair_steps(nb::module_& m) {
    nb::class_<PairReport>(m, "PairReport")
        .def_ro("n_steps", &PairReport::n_steps)
        .def_ro("n_negative", &PairReport::n_negative)
        .def_ro("violation", &PairReport::violation)
        .def_ro("stopped", &PairReport::stopped);
    nb::class_<PairSteps>(m, "PairSteps")
        .def(nb::init<In, In, In, std::optional<In>, Out, Out, Array<const std::int64_t, 1>, double>(),
             "lower"_a.noconvert(), "upper"_a.noconvert(), "own"_a.noconvert(), "ridge"_a.none().noconvert(),
             "beta"_a.noconvert(), "slope"_a.noconvert(), "group_end"_a.noconvert(), "tube"_a)
        .def("loop", &PairSteps::loop<float>, "K"_a.noconvert(), "most_steps"_a, "stop"_a,
             "watch"_a.none() = nb::none())
        .def("loop", &PairSteps::loop<double>, "K"_a.noconvert(), "most_steps"_a, "stop"_a,
             "watch"_a.none() = nb::none())
        .def("choose", &PairSteps::choose, "size"_a)
        .def("solve", &PairSteps::solve<float>, "block"_a.noconvert(), "most_steps"_a, "stop"_a,
             "watch"_a.none() = nb::none())
        .def("solve", &PairSteps::solve<double>, "block"_a.noconvert(), "most_steps"_a, "stop"_a,
             "watch"_a.none() = nb::none())
        .def("add", &PairSteps::add<float>, "values"_a.noconvert(), "places"_a.noconvert(),
             "change"_a.noconvert(), "segments"_a.noconvert(), "n_threads"_a)
        .def("add", &PairSteps::add<double>, "values"_a.noconvert(), "places"_a.noconvert(),
             "change"_a.noconvert(), "segments"_a.noconvert(), "n_threads"_a)
        .def("violation", [](PairSteps& s) { return core().pair_ends(s.problem); });
}

void bind_kernels(nb::module_& m) {
    nb::class_<KernelFunction>(m, "KernelFunction")
        .def(
            "__init__",
            [](KernelFunction* self, int kind, double gamma, double coef0, double degree) {
                expect(kind >= 0 && kind <= static_cast<int>(KernelKind::sigmoid), "no such kernel");
                new (self) KernelFunction{static_cast<KernelKind>(kind), gamma, coef0, degree};
            },
            "kind"_a, "gamma"_a, "coef0"_a, "degree"_a);
    nb::class_<Tiles>(m, "Tiles")
        .def(nb::init<const nb::object&, const nb::object&, In>(), "packed"_a, "given"_a,
             "squares"_a.noconvert());
    bind_kernel_values<float>(m);
    bind_kernel_values<double>(m);
    m.def(
        "kernel_scores",
        [](const KernelFunction& kernel, const Tiles& left, std::optional<Array<const std::int64_t, 1>> lines,
           const Tiles& right, Array<const double, 2> coefficient, Array<double, 2> out,
           std::optional<Out> sizes, const Blas& blas, int n_threads, PyWatch* watch) {
            expect_alike(left, right);
            if (lines) expect_lines(left, *lines);
            const auto machines = static_cast<index_t>(coefficient.shape(0));
            const index_t n = lines ? static_cast<index_t>(lines->size()) : left.rows.packed.n_rows;
            expect(static_cast<index_t>(coefficient.shape(1)) == right.rows.packed.n_rows,
                   "coefficient has a wrong shape");
            expect(static_cast<index_t>(out.shape(0)) == n && static_cast<index_t>(out.shape(1)) == machines,
                   "out has a wrong shape");
            double* size = sizes ? at(*sizes, n, "sizes") : nullptr;
            run(n_threads, watch, [&](const Execution& how) {
                core().kernel_scores(kernel, left.rows, lines ? lines->data() : nullptr, n, right.rows,
                                     coefficient.data(), machines, out.data(), size, blas, how);
            });
        },
        "kernel"_a, "left"_a, "lines"_a.none().noconvert(), "right"_a, "coefficient"_a.noconvert(),
        "out"_a.noconvert(), "sizes"_a.none().noconvert(), "blas"_a, "n_threads"_a,
        "watch"_a.none() = nb::none());
    bind_pair_steps(m);
}

}  // namespace
}  // namespace maxmargin
