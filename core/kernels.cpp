// Compiled once per instruction set; MAXMARGIN_ISA names the namespace.
#include "kernels.hpp"

#include "clipped.hpp"
#include "compensated.hpp"
#include "dual_cd.hpp"
#include "interior_point.hpp"
#include "joint_cd.hpp"
#include "lasso_cd.hpp"
#include "multiclass_perceptron.hpp"
#include "pocket.hpp"
#include "products.hpp"
#include "survey.hpp"
#include "winnow.hpp"

#define MAXMARGIN_TEXT2(x) #x
#define MAXMARGIN_TEXT(x) MAXMARGIN_TEXT2(x)

namespace maxmargin::MAXMARGIN_ISA {

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
                                   dual_row};
    return table;
}

}  // namespace maxmargin::MAXMARGIN_ISA
