// Compiled once per instruction set; MAXMARGIN_ISA names the namespace.
#include "kernels.hpp"

#include "dual_cd.hpp"
#include "interior_point.hpp"
#include "products.hpp"

#define MAXMARGIN_TEXT2(x) #x
#define MAXMARGIN_TEXT(x) MAXMARGIN_TEXT2(x)

namespace maxmargin::MAXMARGIN_ISA {

inline double clipped_slope(const double* z, const double* dm, const double* C, const double* sigma, double t,
                            index_t n) {
    double sum[lanes] = {};
    index_t i = 0;
    for (; i + lanes <= n; i += lanes)
        for (int k = 0; k < lanes; ++k) {
            const double moved = z[i + k] - t * sigma[i + k] * dm[i + k];
            const double low = moved > 0.0 ? moved : 0.0;
            sum[k] += (low < C[i + k] ? low : C[i + k]) * dm[i + k];
        }
    for (int k = 0; i < n; ++i, ++k)
        sum[k] += smaller(larger(z[i] - t * sigma[i] * dm[i], 0.0), C[i]) * dm[i];
    return fold(sum);
}

const Kernels& kernels() {
    static constexpr Kernels table{MAXMARGIN_TEXT(MAXMARGIN_ISA),
                                   scores,
                                   combine,
                                   squared_norms,
                                   normal_matrix,
                                   gram,
                                   barrier_scale,
                                   barrier_coefficient,
                                   barrier_direction,
                                   barrier_complementarity,
                                   barrier_second_order,
                                   barrier_recentre,
                                   barrier_move,
                                   descent_epoch,
                                   clipped_slope};
    return table;
}

}  // namespace maxmargin::MAXMARGIN_ISA
