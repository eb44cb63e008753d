// Leaving the GIL and taking it back, safe while the interpreter ends.
//
// Before 3.14, Python ends a daemon thread that asks for the GIL of an ending interpreter by unwinding its
// stack. Through the frames here and those of nanobind that would run destructors which need the GIL and
// functions that nothing may leave, and helpers may still work on that stack. Such a thread sleeps until the
// process is gone instead, as Python itself lets it from 3.14 on.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace maxmargin {
namespace {

[[noreturn]] inline void sleep_until_the_process_ends() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// The calling thread works without the GIL during this object's life.
class WithoutGil {
  public:
    WithoutGil() : ends_the_interpreter_(!Py_IsInitialized()), before_(innermost_) {
        state_ = PyEval_SaveThread();
        innermost_ = this;
    }
    ~WithoutGil() {
        innermost_ = before_;
        take();
    }
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

    // Runs body() with the GIL, within a block of the same thread that is without it.
    template <class Body>
    static auto interrupted_by(Body body) {
        WithoutGil& here = *innermost_;
        here.take();
        try {
            const auto result = body();
            here.state_ = PyEval_SaveThread();
            return result;
        } catch (...) {  // body() calls Python's C functions only: this is the unwinding of a thread's end
            sleep_until_the_process_ends();
        }
    }

  private:
    // Returns with the GIL, or never. The thread that ends the interpreter had the GIL while it was ending
    // already.
    void take() noexcept {
        if (!ends_the_interpreter_ && !Py_IsInitialized()) sleep_until_the_process_ends();
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {
            sleep_until_the_process_ends();
        }
    }

    static thread_local WithoutGil* innermost_;
    const bool ends_the_interpreter_;
    WithoutGil* const before_;
    PyThreadState* state_ = nullptr;
};

thread_local WithoutGil* WithoutGil::innermost_ = nullptr;

}  // namespace
}  // namespace maxmargin
