// Products of rows in twice the working precision, for what is claimed about a fit: two roundings are kept
// apart from every sum (Ogita, Rump, Oishi: Accurate sum and dot product, 2005). Compiled without contraction
// of products and sums, which would break the error-free transformations.
#pragma once
#include "kernels.hpp"

namespace maxmargin::MAXMARGIN_ISA {

// high_i + low_i = <x_i, w>
void compensated_scores(const RowsView&, const double* w, double* high, double* low, const Execution&);
// out = Σ c_i x_i, rounded once
void compensated_combine(const RowsView&, const double* c, double* out, const Execution&);

}  // namespace maxmargin::MAXMARGIN_ISA
