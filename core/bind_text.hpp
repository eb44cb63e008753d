// The svmlight parser for Python: bytes in, NumPy arrays out that own the parser's memory.
#pragma once
#include "bind_views.hpp"
#include "svmlight.hpp"

namespace maxmargin {
namespace {

template <class T>
nb::object hand_over(Growing<T>& numbers) {
    const std::size_t size = numbers.size();
    T* data = numbers.release();
    if (data == nullptr) data = static_cast<T*>(std::malloc(sizeof(T)));  // an empty array needs an address
    if (data == nullptr) throw std::bad_alloc();
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

void bind_text(nb::module_& m) {
    nb::class_<SvmlightParser>(m, "SvmlightParser")
        .def(nb::init<bool>(), "keep_lines"_a = false)
        .def(
            "feed",
            [](SvmlightParser& parser, Array<const std::uint8_t, 1> bytes, bool last, int n_threads) {
                const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                return run(n_threads, nullptr,
                           [&](const Execution& how) { return parser.feed(text, last, how); });
            },
            "bytes"_a.noconvert(), "last"_a, "n_threads"_a)
        .def("forgive", &SvmlightParser::forgive)
        .def_prop_ro("error",
                     [](SvmlightParser& parser) -> nb::object {
                         const TextError& error = parser.found().error;
                         if (error.line == 0) return nb::none();
                         return nb::make_tuple(error.line, error.column, error.message);
                     })
        .def_prop_ro("n_lines", [](SvmlightParser& parser) { return parser.found().n_lines; })
        .def_prop_ro("n_rows", [](SvmlightParser& parser) { return parser.found().row_ends.size(); })
        .def_prop_ro("smallest_column", [](SvmlightParser& parser) { return parser.found().smallest; })
        .def_prop_ro("largest_column", [](SvmlightParser& parser) { return parser.found().largest; })
        .def("take", [](SvmlightParser& parser) {
            SparseText& found = parser.found();
            return nb::make_tuple(hand_over(found.values), hand_over(found.columns),
                                  hand_over(found.row_ends), hand_over(found.labels), hand_over(found.lines));
        });
}

}  // namespace
}  // namespace maxmargin
