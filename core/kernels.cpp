// Compiled once per instruction set; MAXMARGIN_ISA names the namespace.
#include "kernels.hpp"

#include "dual_cd.hpp"
#include "interior_point.hpp"
#include "joint_cd.hpp"
#include "lasso_cd.hpp"
#include "multiclass_perceptron.hpp"
#include "pocket.hpp"
#include "products.hpp"
#include "winnow.hpp"

#define MAXMARGIN_TEXT2(x) #x
#define MAXMARGIN_TEXT(x) MAXMARGIN_TEXT2(x)

namespace maxmargin::MAXMARGIN_ISA {

inline double clipped_slope(const ClippedLine& q, double t) {
    double sum[lanes] = {};
    const auto term = [&q, t](index_t i) {
        const double moved = q.z[i] - t * q.sigma[i] * q.dm[i], width = q.kink * q.sigma[i];
        const double shrunk = moved - smaller(larger(moved, -width), width);
        return smaller(larger(shrunk, q.lower[i]), q.upper[i]) * q.dm[i];
    };
    index_t i = 0;
    for (; i + lanes <= q.n; i += lanes)
        for (int k = 0; k < lanes; ++k) sum[k] += term(i + k);
    for (int k = 0; i < q.n; ++i, ++k) sum[k] += term(i);
    return fold(sum);
}

const Kernels& kernels() {
    static constexpr Kernels table{MAXMARGIN_TEXT(MAXMARGIN_ISA),
                                   scores,
                                   combine,
                                   squared_norms,
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
                                   joint_epoch,
                                   lasso_sweeps,
                                   all_finite,
                                   online_rows,
                                   online_settle,
                                   pocket_rows,
                                   pack_rows,
                                   count_errors,
                                   winnow_rows,
                                   multiclass_rows,
                                   dual_row};
    return table;
}

}  // namespace maxmargin::MAXMARGIN_ISA
