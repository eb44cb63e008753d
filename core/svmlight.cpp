#include "svmlight.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace maxmargin {
namespace {

constexpr std::size_t smallest_part = 1 << 16;  // bytes; below, a thread costs more than it brings
constexpr int most_digits = 19;                 // every number of so many digits fits in 64 bits
constexpr index_t most_exponent = 100'000'000'000'000'000;  // no file has so many digits to make up for it
constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
bool ends_token(char c) { return is_blank(c) || c == '#'; }

const char* skip_blanks(const char* p, const char* end) {
    while (p < end && is_blank(*p)) ++p;
    return p;
}

const char* token_end(const char* p, const char* end) {
    while (p < end && !ends_token(*p)) ++p;
    return p;
}

// The token for a message: shortened, with anything unprintable as \xNN.
std::string shown(const char* p, const char* end) {
    constexpr int longest = 40;
    std::string out = "'";
    for (; p < end && out.size() < longest; ++p) {
        const auto byte = static_cast<unsigned char>(*p);
        if (byte >= 0x20 && byte < 0x7f) {
            out += *p;
        } else {
            constexpr char hex[] = "0123456789abcdef";
            out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
    }
    return out + (p < end ? "…'" : "'");
}

enum class Number { good, not_a_number, too_large };

struct Parsed {
    const char* next;
    Number kind;
};

// Numbers the fast path below cannot round exactly; `p` is behind the sign.
Parsed parse_hard(const char* p, const char* end, index_t magnitude, double& out) {
    const auto [next, failure] = std::from_chars(p, end, out);
    if (failure == std::errc::result_out_of_range) {
        if (magnitude > 0) return {next, Number::too_large};
        out = 0.0;
    }
    return {next, Number::good};
}

// A decimal number, correctly rounded. Up to 2⁵³ and with a power of ten up to 22, one exact multiplication
// or division rounds correctly (Clinger, How to read floating point numbers accurately, 1990).
Parsed parse_number(const char* p, const char* end, double& out) {
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    const char* const begin = p;
    std::uint64_t mantissa = 0;
    index_t n_digits = 0, exponent = 0;  // a token may be as long as the file
    bool any = false;
    for (; p < end && is_digit(*p); ++p) {
        any = true;
        n_digits += n_digits > 0 || *p != '0';
        if (n_digits <= most_digits) mantissa = 10 * mantissa + static_cast<unsigned>(*p - '0');
    }
    index_t magnitude = n_digits;  // 10^magnitude is above the number
    if (p < end && *p == '.') {
        for (++p; p < end && is_digit(*p); ++p) {
            any = true;
            n_digits += n_digits > 0 || *p != '0';
            if (n_digits == 0) --magnitude;
            if (n_digits <= most_digits) {
                mantissa = 10 * mantissa + static_cast<unsigned>(*p - '0');
                --exponent;
            }
        }
    }
    if (!any) return {begin, Number::not_a_number};
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char* q = p + 1;
        const bool minus = q < end && *q == '-';
        if (q < end && (*q == '-' || *q == '+')) ++q;
        if (q == end || !is_digit(*q)) return {p, Number::not_a_number};
        index_t power = 0;
        for (; q < end && is_digit(*q); ++q) power = std::min(most_exponent, 10 * power + (*q - '0'));
        exponent += minus ? -power : power;
        magnitude += minus ? -power : power;
        p = q;
    }
    if (n_digits <= most_digits && mantissa <= (1ULL << 53) && exponent >= -22 && exponent <= 22) {
        out = static_cast<double>(mantissa);
        out = exponent < 0 ? out / powers[-exponent] : out * powers[exponent];
    } else {
        double hard = 0.0;
        const Parsed parsed = mantissa == 0 ? Parsed{p, Number::good} : parse_hard(begin, p, magnitude, hard);
        if (parsed.kind != Number::good) return parsed;
        out = hard;
    }
    if (negative) out = -out;
    return {p, Number::good};
}

class LineParser {
  public:
    LineParser(SparseText& out, bool keep_lines) : out_(out), keep_lines_(keep_lines) {}

    // One line without its line end; false on an error.
    bool parse(const char* line, const char* end) {
        line_ = line;
        ++out_.n_lines;
        const char* p = skip_blanks(line, end);
        if (p == end || *p == '#') return true;
        const std::size_t before = out_.values.size();
        if (label(p, end) && features(p, end)) {
            out_.row_ends.push(static_cast<std::int64_t>(out_.values.size()));
            if (keep_lines_) out_.lines.push(out_.n_lines);
            return true;
        }
        out_.values.truncate(before);
        out_.columns.truncate(before);
        out_.labels.truncate(out_.row_ends.size());
        return false;
    }

  private:
    bool fail(const char* at, std::string message) {
        out_.error = {out_.n_lines, at - line_ + 1, std::move(message)};
        return false;
    }

    bool label(const char*& p, const char* end) {
        double value = 0.0;
        const auto [next, kind] = parse_number(p, end, value);
        const char* token = token_end(p, end);
        if (kind == Number::good && next == token) {
            out_.labels.push(value);
            p = token;
            return true;
        }
        const std::string text = shown(p, token);
        if (kind == Number::too_large) return fail(p, "the label " + text + " is too large for a float64");
        if (std::memchr(p, ':', static_cast<std::size_t>(token - p)) != nullptr)
            return fail(p, "a row starts with its label, but this one with " + text);
        if (kind == Number::good && *next == ',')
            return fail(p, "several labels in one row, " + text + ", are not supported; keep one");
        return fail(p, "the label " + text +
                           " is not a number; svmlight files hold numeric labels (write text labels as CSV)");
    }

    bool features(const char*& p, const char* end) {
        std::int64_t before = -1;
        const std::size_t first = out_.columns.size();
        for (p = skip_blanks(p, end); p < end && *p != '#'; p = skip_blanks(p, end)) {
            std::int64_t column = 0;
            const char* const start = p;
            for (; p < end && is_digit(*p); ++p)
                if (column <= INT32_MAX) column = 10 * column + (*p - '0');
            if (p == start || p == end || *p != ':') return bad_column(start, end);
            if (column >= INT32_MAX)
                return fail(start, "column " + shown(start, p) + " is above the largest allowed, 2147483646");
            if (column == before)
                return fail(start,
                            "column " + std::to_string(column) + " occurs twice in this row; keep one");
            if (column < before)
                return fail(start, "column " + std::to_string(column) + " comes after column " +
                                       std::to_string(before) + "; columns must increase within a row");
            double value = 0.0;
            const char* const number = ++p;
            const auto [next, kind] = parse_number(p, end, value);
            if (kind != Number::good || (next < end && !ends_token(*next)))
                return bad_value(kind, column, number, end);
            p = next;
            before = column;
            out_.columns.push(static_cast<std::int32_t>(column));
            out_.values.push(value);
        }
        if (before < 0) return true;
        // Only rows that are kept count, and their columns increase.
        out_.smallest = std::min(out_.smallest, out_.columns.data()[first]);
        out_.largest = std::max(out_.largest, static_cast<std::int32_t>(before));
        return true;
    }

    bool bad_column(const char* start, const char* end) {
        const std::string text = shown(start, token_end(start, end));
        if (end - start >= 4 && std::memcmp(start, "qid:", 4) == 0)
            return fail(start,
                        "query ids (" + text +
                            ") are for ranking, which is not supported; remove them, for example with sed "
                            "'s/ qid:[0-9]*//'");
        return fail(start, "expected column:value with a whole number as column, found " + text);
    }

    bool bad_value(Number kind, std::int64_t column, const char* number, const char* end) {
        const char* token = token_end(number, end);
        const std::string name = "the value of column " + std::to_string(column);
        if (token == number) return fail(number, name + " is missing; leave the column out if it is zero");
        const std::string text = shown(number, token);
        if (kind == Number::too_large)
            return fail(number, name + ", " + text + ", is too large for a float64");
        return fail(number, name + ", " + text +
                                ", is not a finite number; correct it, or leave the column out of this row");
    }

    SparseText& out_;
    const bool keep_lines_;
    const char* line_ = nullptr;
};

// Parses lines until the end or the first error, and returns the bytes used.
std::size_t parse_lines(std::string_view text, bool keep_lines, SparseText& out) {
    LineParser parser(out, keep_lines);
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
        const void* found = std::memchr(p, '\n', static_cast<std::size_t>(end - p));
        const char* stop = found != nullptr ? static_cast<const char*>(found) : end;
        const bool good = parser.parse(p, stop);
        p = stop < end ? stop + 1 : end;
        if (!good) break;
    }
    return static_cast<std::size_t>(p - text.data());
}

// `text` cut into at most `n` parts that end with a line end (the last one: with the text).
std::vector<std::string_view> cut(std::string_view text, std::size_t n) {
    std::vector<std::string_view> parts;
    n = std::max<std::size_t>(1, std::min(n, text.size() / smallest_part));
    while (n > 1 && !text.empty()) {
        std::size_t stop = text.find('\n', text.size() / n);
        stop = stop == std::string_view::npos ? text.size() : stop + 1;
        parts.push_back(text.substr(0, stop));
        text.remove_prefix(stop);
        --n;
    }
    if (!text.empty()) parts.push_back(text);
    return parts;
}

}  // namespace

void SparseText::clear() {
    values.clear(), labels.clear(), columns.clear(), row_ends.clear(), lines.clear();
    smallest = INT32_MAX, largest = -1, n_lines = 0;
    error = {};
}

void SparseText::append(const SparseText& other) {
    const auto entries = static_cast<std::int64_t>(values.size());
    const std::size_t rows = row_ends.size(), placed = lines.size();
    values.append(other.values), labels.append(other.labels), columns.append(other.columns);
    row_ends.append(other.row_ends), lines.append(other.lines);
    for (std::size_t i = rows; i < row_ends.size(); ++i) row_ends.data()[i] += entries;
    for (std::size_t i = placed; i < lines.size(); ++i) lines.data()[i] += n_lines;
    smallest = std::min(smallest, other.smallest), largest = std::max(largest, other.largest);
    if (other.error.line > 0) {
        error = other.error;
        error.line += n_lines;
    }
    n_lines += other.n_lines;
}

std::size_t SvmlightParser::feed(std::string_view text, bool last, const Execution& how) {
    if (!last) {
        const std::size_t stop = text.rfind('\n');
        text = text.substr(0, stop == std::string_view::npos ? 0 : stop + 1);
    }
    constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";
    const std::size_t marked = found_.n_lines == 0 && text.starts_with(utf8_mark) ? utf8_mark.size() : 0;
    text.remove_prefix(marked);
    const std::vector<std::string_view> cuts = cut(text, static_cast<std::size_t>(how.n_threads));
    parts_.resize(std::max(parts_.size(), cuts.size()));
    std::vector<std::size_t> used(cuts.size());
    struct Work {
        const std::vector<std::string_view>& cuts;
        std::vector<std::size_t>& used;
        std::vector<SparseText>& parts;
        bool keep_lines;
    } work{cuts, used, parts_, keep_lines_};
    run_tasks(
        static_cast<index_t>(cuts.size()), how,
        [](void* context, index_t k) {
            Work& work = *static_cast<Work*>(context);
            const auto i = static_cast<std::size_t>(k);
            work.parts[i].clear();
            work.used[i] = parse_lines(work.cuts[i], work.keep_lines, work.parts[i]);
        },
        &work);
    std::size_t total = marked;
    for (std::size_t i = 0; i < cuts.size(); ++i) {
        found_.append(parts_[i]);
        total += used[i];
        if (found_.error.line > 0) break;
    }
    return total;
}

}  // namespace maxmargin
