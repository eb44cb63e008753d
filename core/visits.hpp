// The order in which an epoch takes its active rows: blocks of neighbours in random order, shuffled inside.
// A block lies together in memory: on large data three times as fast as rows in random order.
#pragma once
#include "row_types.hpp"

namespace maxmargin::MAXMARGIN_ISA {

inline std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

inline void shuffle(std::int32_t* entry, index_t n, std::uint64_t& random) {
    for (index_t k = n - 1; k > 0; --k) {
        const auto j =
            static_cast<index_t>((next_random(random) >> 32) * static_cast<std::uint64_t>(k + 1) >> 32);
        const std::int32_t held = entry[k];
        entry[k] = entry[j];
        entry[j] = held;
    }
}

// Removes the rows that left, marked by their complement; the others stay in rising order.
inline void compact(Visits& v) {
    index_t kept = 0;
    for (index_t k = 0; k < v.n_active; ++k)
        if (v.rows[k] >= 0) v.rows[kept++] = v.rows[k];
    v.n_active = kept;
}

// Shuffles the blocks of the active rows; how many there are.
inline index_t shuffle_blocks(Visits& v) {
    const index_t size = visit_block(v.n_active), n_blocks = (v.n_active + size - 1) / size;
    for (index_t b = 0; b < n_blocks; ++b) v.blocks[b] = static_cast<std::int32_t>(b);
    shuffle(v.blocks, n_blocks, v.random);
    return n_blocks;
}

// Calls step(row) for each row of a block, in an order of its own; a row whose step returns false is marked.
template <class Step>
void visit_rows(const Visits& v, index_t block, Step step) {
    const index_t size = visit_block(v.n_active), begin = block * size, n = smaller(size, v.n_active - begin);
    std::uint64_t random = v.random + static_cast<std::uint64_t>(block);
    std::int32_t turn[largest_visit_block];
    for (index_t k = 0; k < n; ++k) turn[k] = static_cast<std::int32_t>(k);
    shuffle(turn, n, random);
    for (index_t k = 0; k < n; ++k) {
        std::int32_t& row = v.rows[begin + turn[k]];
        if (!step(static_cast<index_t>(row))) row = ~row;
    }
}

// Calls step(row) once for each active row; a row whose step returns false is left out from the next epoch
// on. Whether the watch stopped it.
template <class Step>
bool visit_active(Visits& v, Watch* watch, Step step) {
    const index_t n_blocks = shuffle_blocks(v);
    bool stopped = false;
    for (index_t b = 0; b < n_blocks && !stopped; ++b) {
        stopped = watch != nullptr && watch->stop();
        if (!stopped) visit_rows(v, v.blocks[b], step);
    }
    compact(v);
    return stopped;
}

}  // namespace maxmargin::MAXMARGIN_ISA
