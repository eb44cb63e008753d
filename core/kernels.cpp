// Compiled once per instruction set; MAXMARGIN_ISA names the namespace.
#include "kernels.hpp"

#include "cholesky.hpp"
#include "clipped.hpp"
#include "compensated.hpp"
#include "dual_cd.hpp"
#include "interior_point.hpp"
#include "joint_cd.hpp"
#include "lasso_cd.hpp"
#include "multiclass_perceptron.hpp"
#include "pair_steps.hpp"
#include "pocket.hpp"
#include "products.hpp"
#include "survey.hpp"
#include "winnow.hpp"

#define MAXMARGIN_TEXT2(x) #x
#define MAXMARGIN_TEXT(x) MAXMARGIN_TEXT2(x)

namespace maxmargin::MAXMARGIN_ISA {

namespace {

void block_of_any(const KernelFunction& kernel, const TileRows& left, const std::int64_t* lines,
                  index_t n_lines, const TileRows& right, void* out, index_t stride, const Blas& blas,
                  const Execution& how) {
    if (right.packed.single)
        kernel_block(kernel, left, lines, n_lines, right, static_cast<float*>(out), stride, blas, how);
    else
        kernel_block(kernel, left, lines, n_lines, right, static_cast<double*>(out), stride, blas, how);
}

void gram_of_any(const KernelFunction& kernel, const TileRows& rows, const double* own, void* out,
                 index_t stride, const Blas& blas, const Execution& how) {
    if (rows.packed.single)
        kernel_gram(kernel, rows, own, static_cast<float*>(out), stride, blas, how);
    else
        kernel_gram(kernel, rows, own, static_cast<double*>(out), stride, blas, how);
}

void scores_of_any(const KernelFunction& kernel, const TileRows& left, const std::int64_t* lines,
                   index_t n_lines, const TileRows& right, const double* coefficient, index_t n_machines,
                   double* out, double* sizes, const Blas& blas, const Execution& how) {
    if (right.packed.single)
        kernel_scores<float>(kernel, left, lines, n_lines, right, coefficient, n_machines, out, sizes, blas,
                             how);
    else
        kernel_scores<double>(kernel, left, lines, n_lines, right, coefficient, n_machines, out, sizes, blas,
                              how);
}

PairReport loop_of_any(PairProblem& q, const void* K, bool single, index_t stride, index_t most_steps,
                       double stop, Watch* watch) {
    return single ? pair_loop(q, static_cast<const float*>(K), stride, most_steps, stop, watch)
                  : pair_loop(q, static_cast<const double*>(K), stride, most_steps, stop, watch);
}

void add_lines_of_any(const Segments& m, const void* const* lines, bool single, const double* change,
                      index_t n_lines, double* slope, index_t n, const Execution& how) {
    if (single)
        add_lines(m, reinterpret_cast<const float* const*>(lines), change, n_lines, slope, n, how);
    else
        add_lines(m, reinterpret_cast<const double* const*>(lines), change, n_lines, slope, n, how);
}

bool cholesky_of_any(void* A, bool single, index_t n, const Blas& blas, const Execution& how) {
    return single ? cholesky(static_cast<float*>(A), n, blas, how)
                  : cholesky(static_cast<double*>(A), n, blas, how);
}

}  // namespace

const Kernels& kernels() {
    static constexpr Kernels table{MAXMARGIN_TEXT(MAXMARGIN_ISA),
                                   scores,
                                   combine,
                                   squared_norms,
                                   compensated_scores,
                                   compensated_combine,
                                   normal_matrix,
                                   gram,
                                   gram_block,
                                   barrier_scale,
                                   barrier_coefficient,
                                   barrier_direction,
                                   barrier_complementarity,
                                   barrier_second_order,
                                   barrier_recentre,
                                   barrier_move,
                                   descent_epoch,
                                   clipped_slope,
                                   clipped_point,
                                   joint_epoch,
                                   lasso_sweeps,
                                   survey,
                                   digest,
                                   online_rows,
                                   online_settle,
                                   pocket_rows,
                                   pack_rows,
                                   count_errors,
                                   winnow_rows,
                                   multiclass_rows,
                                   dual_row,
                                   block_of_any,
                                   gram_of_any,
                                   scores_of_any,
                                   pair_ends,
                                   loop_of_any,
                                   add_lines_of_any,
                                   cholesky_of_any};
    return table;
}

}  // namespace maxmargin::MAXMARGIN_ISA
