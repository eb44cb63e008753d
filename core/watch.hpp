// Lets the outside world look into a long loop: the core calls `poll` from the calling thread only, at most
// every `interval` seconds, and stops as soon as it answers true. What a poll does (signals, deadlines) is
// the caller's business, so the core stays free of Python.
#pragma once
#include <atomic>
#include <chrono>
#include <stdexcept>

namespace maxmargin {

// Thrown out of a pass whose results are scratch; the iterate itself is never half-written.
struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("interrupted") {}
};

class Watch {
  public:
    using clock = std::chrono::steady_clock;
    using Poll = bool (*)(void* context);

    Watch() = default;
    Watch(Poll poll, void* context, double interval)
        : poll_(poll), context_(context), interval_(interval), last_(clock::now()) {}

    // True when the work should stop. Cheap: reads the clock, polls only when the interval has passed.
    bool stop();
    void cancel() { stopped_.store(true, std::memory_order_relaxed); }  // from any thread
    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
    long n_polls() const { return n_polls_; }

  private:
    Poll poll_ = nullptr;
    void* context_ = nullptr;
    double interval_ = 0.05;
    clock::time_point last_{};
    std::atomic<bool> stopped_{false};
    long n_polls_ = 0;
};

}  // namespace maxmargin
