// Steps on pairs of variables for
//
//     minimise  ½ βᵀKβ + ½ Σ ridge_i β_i² + Σ linear_i β_i + tube Σ |β_i|
//     subject to  lower ≤ β ≤ upper,  and the sum of every group of neighbouring variables stays what it is.
//
// A step raises the variable with the smallest slope upwards and lowers the one that promises the largest
// decrease to second order (Fan, Chen, Lin: Working set selection using second order information, 2005).
// Values of the kernel may be float; slopes, multipliers and everything that decides are double.
#pragma once
#include "kernel_tiles.hpp"
#include "kernels.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline constexpr double no_curvature = 1e-12;      // of a pair, relative to its two diagonal entries
inline constexpr double negative = 1e-5;           // likewise: more than values of the kernel may be wrong
inline constexpr double least_curvature = 1e-300;  // where diagonal entries are not positive

// Upper and lower ends of the slopes: a variable at a bound cannot move on, and a tube has two slopes at 0.
inline void set_ends(const PairProblem& q, index_t i) {
    const double b = q.beta[i];
    q.rise[i] = b < q.upper[i] ? (b >= 0.0 ? q.tube : -q.tube) : __builtin_inf();
    q.fall[i] = b > q.lower[i] ? (b > 0.0 ? q.tube : -q.tube) : -__builtin_inf();
}

struct Extremes {
    double least = __builtin_inf(), most = -__builtin_inf();
    index_t at_least = -1;
};

inline constexpr int vw = width<double>;

inline Doubles count_from(index_t begin) {
    Doubles v{};
    for (int k = 0; k < vw; ++k) v[k] = static_cast<double>(begin + k);
    return v;
}

// The smallest slope upwards, where it is, and the largest slope downwards, of variables begin … end − 1. The
// slopes are first moved by step·(left − right).
template <class T>
Extremes move_and_look(double* slope, const double* rise, const double* fall, double step, const T* left,
                       const T* right, index_t begin, index_t end) {
    Doubles least = all(__builtin_inf()), most = -least, place = all(-1.0), at = count_from(begin);
    const Doubles steps = all(step), next = all(static_cast<double>(vw));
    index_t j = begin;
    for (; j + vw <= end; j += vw) {
        const Doubles g = load(slope + j) + steps * (load_doubles(left + j) - load_doubles(right + j));
        store(slope + j, g);
        const Doubles up = g + load(rise + j), down = g + load(fall + j);
        place = up < least ? at : place;
        least = up < least ? up : least;
        most = down > most ? down : most;
        at += next;
    }
    Extremes found;
    const auto take = [&](double low, index_t where, double high) {
        if (low < found.least || (low == found.least && where < found.at_least))
            found.least = low, found.at_least = where;
        if (high > found.most) found.most = high;
    };
    for (int k = 0; k < vw; ++k) take(least[k], static_cast<index_t>(place[k]), most[k]);
    for (; j < end; ++j) {
        slope[j] += step * (static_cast<double>(left[j]) - static_cast<double>(right[j]));
        take(slope[j] + rise[j], j, slope[j] + fall[j]);
    }
    return found;
}

// Of a pair with that sum of diagonal entries and that value beside them.
inline double usable_curvature(double sum, double beside) {
    return larger(sum - 2.0 * beside, larger(no_curvature * sum, least_curvature));
}

// Among variables that may fall: the one with the largest (difference of slopes)² / curvature beside variable
// i.
template <class T>
index_t best_partner(const double* slope, const double* fall, const double* own, const T* line, double least,
                     double own_i, index_t begin, index_t end) {
    Doubles gain{}, place = all(-1.0), at = count_from(begin);
    const Doubles zero{}, from = all(least), mine = all(own_i), next = all(static_cast<double>(vw));
    const Doubles flat = all(no_curvature), lowest = all(least_curvature);
    index_t j = begin;
    for (; j + vw <= end; j += vw) {
        Doubles apart = load(slope + j) + load(fall + j) - from;
        apart = apart > zero ? apart : zero;
        const Doubles sum = mine + load(own + j);
        Doubles curvature = sum - 2.0 * load_doubles(line + j), floor = flat * sum;
        floor = floor > lowest ? floor : lowest;
        curvature = curvature > floor ? curvature : floor;
        const Doubles value = apart * apart / curvature;
        place = value > gain ? at : place;
        gain = value > gain ? value : gain;
        at += next;
    }
    double best = 0.0;
    index_t found = -1;
    const auto take = [&](double value, index_t where) {
        if (where >= 0 && (value > best || (value == best && where < found))) best = value, found = where;
    };
    for (int k = 0; k < vw; ++k) take(gain[k], static_cast<index_t>(place[k]));
    for (; j < end; ++j) {
        const double apart = slope[j] + fall[j] - least;
        if (!(apart > 0.0)) continue;
        take(apart * apart / usable_curvature(own_i + own[j], static_cast<double>(line[j])), j);
    }
    return found;
}

// How far variable i may rise while j falls: to a bound, or to 0 where a tube changes the slope.
inline double room_of(const PairProblem& q, index_t i, index_t j) {
    double room = smaller(q.upper[i] - q.beta[i], q.beta[j] - q.lower[j]);
    if (q.tube > 0.0) {
        if (q.beta[i] < 0.0) room = smaller(room, -q.beta[i]);
        if (q.beta[j] > 0.0) room = smaller(room, q.beta[j]);
    }
    return room;
}

// Moves the pair; the bound that stops a step is met exactly.
inline double move_pair(const PairProblem& q, index_t i, index_t j, double wanted) {
    const double room = room_of(q, i, j);
    const double step = wanted < room ? wanted : room;
    double to_i = q.beta[i] + step, to_j = q.beta[j] - step;
    if (step == room) {
        if (step == q.upper[i] - q.beta[i]) to_i = q.upper[i];
        if (step == q.beta[j] - q.lower[j]) to_j = q.lower[j];
        if (q.tube > 0.0 && q.beta[i] < 0.0 && step == -q.beta[i]) to_i = 0.0;
        if (q.tube > 0.0 && q.beta[j] > 0.0 && step == q.beta[j]) to_j = 0.0;
    }
    q.beta[i] = smaller(to_i, q.upper[i]);
    q.beta[j] = larger(to_j, q.lower[j]);
    set_ends(q, i);
    set_ends(q, j);
    return step;
}

// Sets the ends of all slopes; the largest violation of optimality.
inline double pair_ends(PairProblem& q) {
    double worst = 0.0;
    for (index_t g = 0; g < q.n_groups; ++g) {
        double least = __builtin_inf(), most = -__builtin_inf();
        for (index_t i = g == 0 ? 0 : q.group_end[g - 1]; i < q.group_end[g]; ++i) {
            set_ends(q, i);
            least = smaller(least, q.slope[i] + q.rise[i]);
            most = larger(most, q.slope[i] + q.fall[i]);
        }
        worst = larger(worst, most - least);
    }
    return worst;
}

// At most `most_steps` steps on variables whose kernel matrix is at hand, lines `stride` apart; until no two
// slopes are farther apart than `stop`.
template <class T>
PairReport pair_loop(PairProblem& q, const T* K, index_t stride, index_t most_steps, double stop,
                     Watch* watch) {
    PairReport report;
    for (index_t i = 0; i < q.n; ++i) set_ends(q, i);
    const T *left = K, *right = K;
    double step = 0.0;
    for (;;) {
        Extremes best;
        index_t group = 0;
        double apart = -1.0;
        for (index_t g = 0; g < q.n_groups; ++g) {
            const index_t begin = g == 0 ? 0 : q.group_end[g - 1];
            const Extremes found =
                move_and_look(q.slope, q.rise, q.fall, step, left, right, begin, q.group_end[g]);
            if (found.most - found.least > apart) apart = found.most - found.least, best = found, group = g;
        }
        step = 0.0;
        report.violation = larger(apart, 0.0);
        if (!(apart > stop) || report.n_steps >= most_steps) break;
        if (watch != nullptr && (report.n_steps & 255) == 255 && watch->stop()) {
            report.stopped = true;
            break;
        }
        const index_t i = best.at_least, begin = group == 0 ? 0 : q.group_end[group - 1];
        left = K + i * stride;
        const index_t j =
            best_partner(q.slope, q.fall, q.own, left, best.least, q.own[i], begin, q.group_end[group]);
        if (j < 0 || j == i) break;
        right = K + j * stride;
        const double sum = q.own[i] + q.own[j], curvature = sum - 2.0 * static_cast<double>(left[j]);
        report.n_negative += curvature < -negative * larger(sum, -sum);
        const double before_i = q.beta[i], before_j = q.beta[j];
        const double usable = usable_curvature(sum, static_cast<double>(left[j]));
        step = move_pair(q, i, j, (q.slope[j] + q.fall[j] - best.least) / usable);
        if (q.ridge != nullptr) {
            q.slope[i] += q.ridge[i] * (q.beta[i] - before_i);
            q.slope[j] += q.ridge[j] * (q.beta[j] - before_j);
        }
        ++report.n_steps;
        if (step == 0.0 && q.beta[i] == before_i && q.beta[j] == before_j) break;  // rounding forbids more
    }
    return report;
}

// slope += Σ_k change_k K[line_k], where a variable's column of the matrix is given by segments.
template <class T>
void add_lines(const Segments& m, const T* const* lines, const double* change, index_t n_lines, double* slope,
               index_t n, const Execution& how) {
    constexpr index_t chunk = 1024;
    for_tasks(pieces(n, chunk), worth(how, n * n_lines), [&](index_t task) {
        const index_t begin = task * chunk, end = smaller(n, begin + chunk);
        index_t first = 0;  // variable where the segment begins
        for (index_t s = 0; s < m.n; first += m.length[s], ++s) {
            const index_t from = larger(begin, first), to = smaller(end, first + m.length[s]);
            if (from >= to) continue;
            const index_t column = m.begin[s] + from - first;
            double* out = slope + from;
            index_t k = 0;
            for (; k + 4 <= n_lines; k += 4) {
                const T* x[4] = {lines[k] + column, lines[k + 1] + column, lines[k + 2] + column,
                                 lines[k + 3] + column};
                dense_axpy4(change + k, x, out, to - from);
            }
            for (; k < n_lines; ++k) dense_axpy(change[k], lines[k] + column, out, to - from);
        }
    });
}

}  // namespace maxmargin::MAXMARGIN_ISA
