// Memory of NumPy arrays that are made during a fit, kept for the next ones.
//
// A fit makes and drops many arrays of a few hundred kilobytes. A C library gives such blocks back to the
// system and gets new pages for the next ones, which takes a third of a fit of some milliseconds. Large
// blocks are kept here instead, by the thread that frees them, and NumPy asks here first while a fit runs in
// the calling context (NEP 49). The allocator of everybody else is not touched.
#pragma once
#include <nanobind/nanobind.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace nb = nanobind;

namespace maxmargin {
namespace {

// The layout of NumPy's PyDataMem_Handler, version 1.
struct MemoryHandler {
    char name[127];
    std::uint8_t version;
    struct {
        void* context;
        void* (*malloc)(void*, std::size_t);
        void* (*calloc)(void*, std::size_t, std::size_t);
        void* (*realloc)(void*, void*, std::size_t);
        void (*free)(void*, void*, std::size_t);
    } allocator;
};

constexpr std::size_t least_kept = std::size_t{1} << 16;  // bytes of a block that is worth keeping
constexpr std::size_t most_kept = std::size_t{1} << 26;   // bytes that a thread keeps in all
constexpr int per_octave = 8;                             // sizes, so that an eighth is wasted at most
constexpr int n_octaves = 10, n_sizes = n_octaves * per_octave, per_size = 24;

// Which of the sizes holds so many bytes, and how many that is; −1 for blocks that are never kept.
struct BlockSize {
    int index = -1;
    std::size_t bytes = 0;
};

inline BlockSize size_of(std::size_t bytes) {
    if (bytes < least_kept || bytes > most_kept) return {-1, bytes};
    const int octave = std::bit_width(bytes) - 1;
    const std::size_t base = std::size_t{1} << octave, step = base / per_octave;
    const std::size_t steps = (bytes - base + step - 1) / step;
    const int index = (octave - std::bit_width(least_kept) + 1) * per_octave + static_cast<int>(steps);
    if (index >= n_sizes) return {-1, bytes};
    return {index, base + steps * step};
}

// Large blocks want large pages, as NumPy asks for them.
constexpr std::size_t least_advised = std::size_t{1} << 22, page = 4096;

inline void* advised(void* block, std::size_t bytes) {
#ifdef __linux__
    if (block != nullptr && bytes >= least_advised) {
        const auto place = reinterpret_cast<std::uintptr_t>(block);
        const std::uintptr_t first = (place + page - 1) / page * page, last = (place + bytes) / page * page;
        madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
    }
#else
    (void)bytes;
#endif
    return block;
}

thread_local bool pool_is_gone = false;  // the thread ends; what is freed from now on is not kept

struct Pool {
    void* blocks[n_sizes][per_size];
    int count[n_sizes] = {};
    std::size_t kept = 0;

    void* take(const BlockSize& size) {
        if (size.index < 0 || count[size.index] == 0) return nullptr;
        kept -= size.bytes;
        return blocks[size.index][--count[size.index]];
    }
    bool keep(void* block, const BlockSize& size) {
        if (size.index < 0 || count[size.index] == per_size || kept + size.bytes > most_kept) return false;
        blocks[size.index][count[size.index]++] = block;
        kept += size.bytes;
        return true;
    }
    void release() {
        for (int k = 0; k < n_sizes; ++k)
            while (count[k] > 0) std::free(blocks[k][--count[k]]);
        kept = 0;
#ifdef __GLIBC__
        malloc_trim(0);
#endif
    }
    ~Pool() {
        pool_is_gone = true;
        release();
    }
};

inline Pool* pool() {
    static thread_local Pool own;
    return pool_is_gone ? nullptr : &own;
}

// Every block whose size NumPy knows as `bytes` has room for size_of(bytes).bytes.
inline void* pool_malloc(void*, std::size_t bytes) {
    const BlockSize size = size_of(bytes);
    Pool* own = size.index < 0 ? nullptr : pool();
    void* block = own != nullptr ? own->take(size) : nullptr;
    return block != nullptr ? block : advised(std::malloc(size.bytes > 0 ? size.bytes : 1), size.bytes);
}
inline void* pool_calloc(void*, std::size_t n, std::size_t each) {
    if (each != 0 && n > static_cast<std::size_t>(-1) / each) return nullptr;
    const BlockSize size = size_of(n * each);
    Pool* own = size.index < 0 ? nullptr : pool();
    void* block = own != nullptr ? own->take(size) : nullptr;
    if (block != nullptr) return std::memset(block, 0, n * each);
    return advised(std::calloc(size.bytes > 0 ? size.bytes : 1, 1), size.bytes);
}
inline void* pool_realloc(void*, void* block, std::size_t bytes) {
    const BlockSize size = size_of(bytes);
    return advised(std::realloc(block, size.bytes > 0 ? size.bytes : 1), size.bytes);
}
inline void pool_free(void*, void* block, std::size_t bytes) {
    if (block == nullptr) return;
    const BlockSize size = size_of(bytes);
    Pool* own = size.index < 0 ? nullptr : pool();
    if (own == nullptr || !own->keep(block, size)) std::free(block);
}

MemoryHandler pool_handler = {"maxmargin", 1, {nullptr, pool_malloc, pool_calloc, pool_realloc, pool_free}};

using SetHandler = PyObject* (*)(PyObject*);
SetHandler numpy_set_handler = nullptr;
constexpr int set_handler_index = 304;  // of PyDataMem_SetHandler in NumPy's stable table of C functions

void bind_memory(nb::module_& m) {
    m.def("pool_connect", [](nb::handle array_api) {
        void** table = static_cast<void**>(PyCapsule_GetPointer(array_api.ptr(), nullptr));
        if (table == nullptr) throw nb::python_error();
        numpy_set_handler = reinterpret_cast<SetHandler>(table[set_handler_index]);
    });
    // Arrays that are made from now on in the calling context take their memory here; returns who gave it
    // before.
    m.def("pool_enter", []() -> nb::object {
        if (numpy_set_handler == nullptr) return nb::none();
        static PyObject* own = PyCapsule_New(&pool_handler, "mem_handler", nullptr);
        PyObject* before = own == nullptr ? nullptr : numpy_set_handler(own);
        if (before == nullptr) throw nb::python_error();
        return nb::steal(before);
    });
    m.def(
        "pool_leave",
        [](nb::handle before) {
            if (before.is_none()) return;
            PyObject* own = numpy_set_handler(before.ptr());
            if (own == nullptr) throw nb::python_error();
            Py_DECREF(own);
        },
        nb::arg("before").none());
    // Bytes that the calling thread keeps; they are given back to the system where that is asked for.
    m.def(
        "pool_kept",
        [](bool release) {
            Pool* own = pool();
            const std::size_t kept = own == nullptr ? 0 : own->kept;
            if (own != nullptr && release) own->release();
            return kept;
        },
        nb::arg("release") = false);
}

}  // namespace
}  // namespace maxmargin
