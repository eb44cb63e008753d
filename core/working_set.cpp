// Pair steps on many variables: the steps are made on a working set of the worst ones, whose block of the
// kernel matrix stays in the cache, and all slopes are brought up to date once for all of them (Joachims:
// Making large-scale SVM learning practical, 1999). Compiled once; the loops over numbers are those of the
// instruction set in use.
#include "working_set.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace maxmargin {
namespace {

struct Worst {
    double key;
    std::int32_t variable;
    bool operator<(const Worst& other) const {
        return key != other.key ? key < other.key : variable < other.variable;
    }
};

// Only the `wanted` smallest keys.
void take_smallest(std::vector<Worst>& all, std::size_t wanted) {
    if (wanted < all.size()) {
        std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end());
        all.resize(wanted);
    }
}

index_t begin_of(const PairProblem& q, index_t group) { return group == 0 ? 0 : q.group_end[group - 1]; }

}  // namespace

void WorkingSet::choose(const PairProblem& q, index_t size) {
    const auto n = static_cast<std::size_t>(q.n);
    mark_.assign(n, 0);
    // Half of the previous set stays: its latest members first, and of these the free ones.
    std::vector<std::int32_t> kept;
    const auto retained = static_cast<std::size_t>(size / 2);
    for (const bool free : {true, false})
        for (const std::int32_t v : previous_) {
            if (kept.size() >= retained) break;
            const bool is_free = q.beta[v] > q.lower[v] && q.beta[v] < q.upper[v];
            if (is_free == free && mark_[static_cast<std::size_t>(v)] == 0) {
                mark_[static_cast<std::size_t>(v)] = 1;
                kept.push_back(v);
            }
        }
    const auto wanted =
        (static_cast<std::size_t>(size) - kept.size()) / (2 * static_cast<std::size_t>(q.n_groups));
    std::vector<std::int32_t> fresh;
    std::vector<Worst> up, down;
    for (index_t g = 0; g < q.n_groups; ++g) {
        up.clear(), down.clear();
        double least = std::numeric_limits<double>::infinity(), most = -least;
        const index_t begin = begin_of(q, g);
        for (index_t i = begin; i < q.group_end[g]; ++i) {
            least = std::min(least, q.slope[i] + q.rise[i]);
            most = std::max(most, q.slope[i] + q.fall[i]);
        }
        for (index_t i = begin; i < q.group_end[g]; ++i) {
            if (mark_[static_cast<std::size_t>(i)] != 0) continue;
            const double rises = q.slope[i] + q.rise[i], falls = q.slope[i] + q.fall[i];
            if (rises < most) up.push_back({rises, static_cast<std::int32_t>(i)});
            if (falls > least) down.push_back({-falls, static_cast<std::int32_t>(i)});
        }
        take_smallest(up, wanted);
        for (const Worst& w : up) {
            mark_[static_cast<std::size_t>(w.variable)] = 1;
            fresh.push_back(w.variable);
        }
        std::erase_if(down, [&](const Worst& w) { return mark_[static_cast<std::size_t>(w.variable)] != 0; });
        take_smallest(down, wanted);
        for (const Worst& w : down) {
            mark_[static_cast<std::size_t>(w.variable)] = 1;
            fresh.push_back(w.variable);
        }
    }
    std::sort(fresh.begin(), fresh.end());
    previous_ = fresh;  // the latest first
    previous_.insert(previous_.end(), kept.begin(), kept.end());
    members = previous_;
    std::sort(members.begin(), members.end());
}

namespace {

struct Inner {
    std::vector<double> numbers;
    std::vector<index_t> group_end;
    PairProblem q;

    Inner(const PairProblem& all, const std::vector<std::int32_t>& members) {
        const auto m = members.size();
        numbers.resize(8 * m);
        double* at = numbers.data();
        const auto next = [&] {
            double* here = at;
            at += m;
            return here;
        };
        q.n = static_cast<index_t>(m);
        q.tube = all.tube;
        q.beta = next(), q.slope = next(), q.rise = next(), q.fall = next();
        double *lower = next(), *upper = next(), *own = next(), *ridge = next();
        for (std::size_t k = 0; k < m; ++k) {
            const auto v = members[k];
            q.beta[k] = all.beta[v], q.slope[k] = all.slope[v];
            lower[k] = all.lower[v], upper[k] = all.upper[v], own[k] = all.own[v];
            if (all.ridge != nullptr) ridge[k] = all.ridge[v];
        }
        q.lower = lower, q.upper = upper, q.own = own;
        q.ridge = all.ridge != nullptr ? ridge : nullptr;
        for (index_t g = 0; g < all.n_groups; ++g)
            group_end.push_back(std::lower_bound(members.begin(), members.end(), all.group_end[g]) -
                                members.begin());
        q.n_groups = all.n_groups;
        q.group_end = group_end.data();
    }
};

}  // namespace

PairReport WorkingSet::solve(const Kernels& core, PairProblem& q, const void* block, bool single, double stop,
                             index_t most_steps, Watch* watch) {
    Inner inner(q, members);
    const PairReport report =
        core.pair_loop(inner.q, block, single, static_cast<index_t>(members.size()), most_steps, stop, watch);
    changed.clear(), change.clear();
    for (std::size_t k = 0; k < members.size(); ++k) {
        const auto v = members[k];
        const double moved = inner.q.beta[k] - q.beta[v];
        if (moved == 0.0) continue;
        q.beta[v] = inner.q.beta[k];
        if (q.ridge != nullptr) q.slope[v] += q.ridge[v] * moved;
        changed.push_back(v), change.push_back(moved);
    }
    return report;
}

}  // namespace maxmargin
