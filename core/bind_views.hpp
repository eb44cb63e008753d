// What all bindings share: array types, rows, the watch, and running a kernel without the GIL.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "bind_gil.hpp"
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
    nb::object owner;                     // keeps the arrays alive
    std::optional<std::uint64_t> digest;  // of the values, when they were surveyed
};

// Vector loads and references need aligned numbers; a view into bytes may start anywhere.
template <class T>
void expect_aligned(const T* data, const char* name) {
    expect(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0,
           std::string(name) + " is not aligned in memory");
}

template <class T>
Rows dense_rows(Array<const T, 2> X) {
    Rows rows;
    expect_aligned(X.data(), "X");
    rows.view.single = sizeof(T) == 4;
    rows.view.values = X.data();
    rows.view.n_rows = static_cast<index_t>(X.shape(0));
    rows.view.n_cols = static_cast<index_t>(X.shape(1));
    rows.owner = nb::cast(X);
    return rows;
}

// Whether all is well, without a word on what is not: loops that can be vectorised.
template <class I>
bool rising_csr(const I* indices, const I* indptr, index_t n_rows, index_t n_cols, index_t nnz) {
    for (index_t i = 0; i < n_rows; ++i) {
        const index_t begin = indptr[i], end = indptr[i + 1];
        if (begin > end || begin < 0 || end > nnz) return false;
        if (begin == end) continue;
        bool falls = false;
        for (index_t k = begin; k + 1 < end; ++k) falls |= indices[k] >= indices[k + 1];
        if (falls || indices[begin] < 0 || indices[end - 1] >= n_cols) return false;
    }
    return true;
}

// Positions of a CSR matrix must be valid before any kernel trusts them.
template <class I>
void check_csr(const I* indices, const I* indptr, index_t n_rows, index_t n_cols, index_t nnz) {
    expect(indptr[0] == 0, "sparse X: indptr must start at 0");
    if (rising_csr(indices, indptr, n_rows, n_cols, nnz)) return;
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
    expect_aligned(data.data(), "sparse X: data");
    expect_aligned(indices.data(), "sparse X: indices");
    expect_aligned(indptr.data(), "sparse X: indptr");
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
        const bool signalled = WithoutGil::interrupted_by([] { return PyErr_CheckSignals() != 0; });
        return signalled || static_cast<PyWatch*>(self)->past_deadline();
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
        const WithoutGil nogil;
        return body(Execution{n_threads, watch != nullptr ? &watch->watch : nullptr});
    } catch (const Interrupted&) {
        raise_stop(*watch);
    }
}

// --- lengths -----------------------------------------------------------------------------------------------

const double* at(const In& a, index_t n, const char* name) {
    expect(static_cast<index_t>(a.size()) == n, std::string(name) + " has a wrong length");
    return a.data();
}
double* at(const Out& a, index_t n, const char* name) {
    expect(static_cast<index_t>(a.size()) == n, std::string(name) + " has a wrong length");
    return a.data();
}

}  // namespace
}  // namespace maxmargin
