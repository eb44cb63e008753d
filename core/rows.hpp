// Read-only views over the rows of a matrix. A view owns nothing and copies nothing.
#pragma once
#include <cstdint>

namespace maxmargin {

using index_t = std::int64_t;

// What the bindings hand over: pointers and their types, decided once per call.
struct RowsView {
    enum class Layout { dense, csr } layout = Layout::dense;
    bool single = false;        // values are float32, else float64
    bool wide_indices = false;  // CSR indices and indptr are int64, else int32
    const void* values = nullptr;
    const void* indices = nullptr;
    const void* indptr = nullptr;
    index_t n_rows = 0;
    index_t n_cols = 0;
};

// The implicit last column: every row ends in `value` (0: there is none).
struct BiasColumn {
    double value = 0.0;
};

}  // namespace maxmargin
