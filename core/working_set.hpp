// Which variables are worked on together, and steps among them.
#pragma once
#include <vector>

#include "kernels.hpp"

namespace maxmargin {

class WorkingSet {
  public:
    std::vector<std::int32_t> members;  // rising
    std::vector<std::int32_t> changed;  // of the last solve, rising
    std::vector<double> change;         // of their beta

    // About `size` variables: half of the previous set, and of every group those that violate optimality
    // most. The ends of all slopes are known.
    void choose(const PairProblem& q, index_t size);

    // Steps among the members, whose block of the kernel matrix is given. The slopes of all variables still
    // lack what `changed` has changed.
    PairReport solve(const Kernels& core, PairProblem& q, const void* block, bool single, double stop,
                     index_t most_steps, Watch* watch);

  private:
    std::vector<std::int32_t> previous_;
    std::vector<char> mark_;
};

}  // namespace maxmargin
