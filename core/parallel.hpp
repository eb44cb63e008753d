// A deterministic parallel-for: tasks are fixed by the problem, never by the number of threads, and each task
// writes only its own output, so the bits are the same for any number of threads. Threads live only inside
// one call: nothing survives that a fork could break.
#pragma once
#include <memory>

#include "rows.hpp"
#include "watch.hpp"

namespace maxmargin {

struct Execution {
    int n_threads = 1;
    Watch* watch = nullptr;
};

using TaskBody = void (*)(void* context, index_t task);

// Runs body(context, task) for task = 0 … n_tasks − 1. Throws Interrupted when the watch says stop, and
// rethrows the first exception of a task.
void run_tasks(index_t n_tasks, const Execution& how, TaskBody body, void* context);

// Zeroed doubles. Allocated outside the per-instruction-set objects so that these instantiate no library
// code.
class Buffer {
  public:
    explicit Buffer(index_t size);
    double* data() { return data_.get(); }
    double* operator+(index_t offset) { return data_.get() + offset; }

  private:
    struct Free {
        void operator()(double* p) const noexcept;
    };
    std::unique_ptr<double, Free> data_;
};

}  // namespace maxmargin
