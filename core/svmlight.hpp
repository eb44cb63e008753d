// A streaming parser for the svmlight/LIBSVM text format:
//     <label> <column>:<value> <column>:<value> ... # comment
// It is fed whole lines in pieces of any size, splits each piece among threads at line ends, and appends what
// they found in order: the result does not depend on pieces or threads. An error carries its line and column.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallel.hpp"

namespace maxmargin {

// Plain numbers that grow by realloc: the system moves pages instead of copying them, and memory that was
// never written is not resident, so the peak stays near the final size.
template <class T>
class Growing {
  public:
    Growing() = default;
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;
    Growing(Growing&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          room_(std::exchange(other.room_, 0)) {}
    ~Growing() { std::free(data_); }

    void push(T value) {
        if (size_ == room_) reserve(size_ + 1);
        data_[size_++] = value;
    }
    void append(const Growing& other) {
        reserve(size_ + other.size_);
        for (std::size_t k = 0; k < other.size_; ++k) data_[size_ + k] = other.data_[k];
        size_ += other.size_;
    }
    void clear() { size_ = 0; }
    void truncate(std::size_t size) { size_ = size; }
    std::size_t size() const { return size_; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T& back() { return data_[size_ - 1]; }

    // The memory itself, cut to size; the caller frees it.
    T* release() {
        if (size_ > 0 && size_ < room_)
            if (void* cut = std::realloc(data_, size_ * sizeof(T))) data_ = static_cast<T*>(cut);
        size_ = room_ = 0;
        return std::exchange(data_, nullptr);
    }

  private:
    void reserve(std::size_t wanted) {
        if (wanted <= room_) return;
        const std::size_t room = std::max<std::size_t>({wanted, room_ + room_ / 2, 256});
        void* grown = std::realloc(data_, room * sizeof(T));
        if (grown == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(grown);
        room_ = room;
    }
    T* data_ = nullptr;
    std::size_t size_ = 0, room_ = 0;
};

struct TextError {
    index_t line = 0;    // from 1; 0 means no error
    index_t column = 0;  // byte in the line, from 1
    std::string message;
};

// Rows in the order of the text. Columns are as written: the caller decides whether they count from 0 or 1.
struct SparseText {
    Growing<double> values, labels;
    Growing<std::int32_t> columns;
    Growing<std::int64_t> row_ends, lines;  // lines: where each row stood, only if it was asked for
    std::int32_t smallest = INT32_MAX, largest = -1;
    index_t n_lines = 0;
    TextError error;

    void clear();
    void append(const SparseText& other);
};

class SvmlightParser {
  public:
    explicit SvmlightParser(bool keep_lines) : keep_lines_(keep_lines) {}

    // Parses the whole lines in `text` (also a last one without line end if `last`) and returns the bytes
    // used. After an error, which `found().error` shows, everything before its line is kept, and the bytes
    // used end with its line: a caller that wants to see more errors calls `forgive` and goes on, with one
    // thread: others parse on.
    std::size_t feed(std::string_view text, bool last, const Execution& how);
    void forgive() { found_.error = {}; }
    SparseText& found() { return found_; }

  private:
    bool keep_lines_;
    SparseText found_;
    std::vector<SparseText> parts_;
};

}  // namespace maxmargin
