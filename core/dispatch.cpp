// What must not be compiled twice: threads, memory, and the choice of the instruction set.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "kernels.hpp"
#include "parallel.hpp"

namespace maxmargin {

bool Watch::stop() {
    if (poll_ == nullptr || stopped()) return stopped();
    const auto now = clock::now();
    if (std::chrono::duration<double>(now - last_).count() < interval_) return false;
    last_ = now;
    ++n_polls_;
    if (poll_(context_)) stopped_ = true;
    return stopped();
}

namespace {

// Helpers work on the stack of the thread that called them, so they end before it leaves, whatever makes it
// leave.
struct Helpers {
    std::atomic<bool>& stop;
    std::vector<std::thread> threads{};
    ~Helpers() {
        stop = true;
        join();
    }
    void join() {
        for (auto& thread : threads)
            if (thread.joinable()) thread.join();
    }
};

}  // namespace

void run_tasks(index_t n_tasks, const Execution& how, TaskBody body, void* context) {
    std::atomic<index_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_lock;

    auto work = [&](Watch* watch) {
        try {
            while (!stop.load(std::memory_order_relaxed)) {
                const index_t task = next.fetch_add(1, std::memory_order_relaxed);
                if (task >= n_tasks) return;
                body(context, task);
                if (watch != nullptr && watch->stop()) stop = true;
            }
        } catch (const std::exception&) {  // never `...`: what unwinds a thread that is ended must go on
            const std::lock_guard<std::mutex> hold(failure_lock);
            if (!failure) failure = std::current_exception();
            stop = true;
        }
    };

    Helpers helpers{stop};
    const index_t wanted = std::min<index_t>(how.n_threads, n_tasks) - 1;
    try {
        helpers.threads.reserve(static_cast<std::size_t>(wanted > 0 ? wanted : 0));
        for (index_t i = 0; i < wanted; ++i) helpers.threads.emplace_back(work, nullptr);
    } catch (const std::exception&) {
        // No more threads or memory to be had: the ones there are, at worst only this one, do all tasks.
    }
    work(how.watch);
    helpers.join();
    if (failure) std::rethrow_exception(failure);
    if (how.watch != nullptr && how.watch->stopped()) throw Interrupted();
}

Buffer::Buffer(index_t size)
    : data_(
          static_cast<double*>(std::calloc(static_cast<std::size_t>(size > 0 ? size : 1), sizeof(double)))) {
    if (!data_) throw std::bad_alloc();
}

void Buffer::Free::operator()(double* p) const noexcept { std::free(p); }

const char* choose_isa(bool force_baseline) {
#ifdef MAXMARGIN_HAS_AVX2
    if (!force_baseline && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#else
    (void)force_baseline;
#endif
    return "baseline";
}

const Kernels& kernels_for(const char* isa) {
#ifdef MAXMARGIN_HAS_AVX2
    if (std::strcmp(isa, "avx2") == 0) return avx2::kernels();
#endif
    (void)isa;
    return baseline::kernels();
}

}  // namespace maxmargin
