// The svmlight parser without Python: against an obvious parser, strtod, and itself in other pieces and
// threads.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "svmlight.hpp"

using namespace maxmargin;

namespace {

long n_passed = 0, n_failed = 0;
std::string where;
void check(bool holds, const char* text, int line) {
    ++(holds ? n_passed : n_failed);
    if (!holds && n_failed <= 20) std::printf("%s:%d: %s: %s\n", __FILE__, line, where.c_str(), text);
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

std::mt19937_64 engine(1);
int below(int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); }
bool chance(int percent) { return below(100) < percent; }
template <class Choices>
auto pick(const Choices& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<int>(std::size(choices))))];
}
std::string digits(int n) {
    std::string out;
    for (int k = 0; k < n; ++k) out += static_cast<char>('0' + below(10));
    return out;
}
bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// What a parser found, as vectors that can be compared.
struct Found {
    std::vector<double> labels, values;
    std::vector<std::int32_t> columns;
    std::vector<std::int64_t> row_ends, lines;
    std::int32_t smallest, largest;
    index_t n_lines, error_line, error_column;
    std::string message;
    bool operator==(const Found& other) const {
        const auto equal = [](const std::vector<double>& a, const std::vector<double>& b) {
            return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
        };
        return equal(labels, other.labels) && equal(values, other.values) && columns == other.columns &&
               row_ends == other.row_ends && lines == other.lines && smallest == other.smallest &&
               largest == other.largest && n_lines == other.n_lines && error_line == other.error_line &&
               error_column == other.error_column && message == other.message;
    }
};
template <class T>
std::vector<T> copied(const Growing<T>& numbers) {
    return {numbers.data(), numbers.data() + numbers.size()};
}
Found found_by(SvmlightParser& parser) {
    const SparseText& text = parser.found();
    return {copied(text.labels), copied(text.values), copied(text.columns), copied(text.row_ends),
            copied(text.lines),  text.smallest,       text.largest,         text.n_lines,
            text.error.line,     text.error.column,   text.error.message};
}

// Feeds pieces of `piece` bytes, each in memory of exactly its size, so that a sanitizer sees reads behind
// it. Stops at the first error, or forgives all of them.
Found parse(const std::string& text, int n_threads = 1, std::size_t piece = std::string::npos,
            bool forgive = false) {
    SvmlightParser parser(true);
    const Execution how{n_threads, nullptr};
    std::size_t done = 0, have = 0;
    for (bool last = false; !last;) {
        have = std::min(text.size(), have + std::min(piece, text.size()));
        last = have == text.size();
        const std::size_t bound = have - done + 1;  // each turn but the final one uses a line
        for (std::size_t turn = 0; turn <= bound; ++turn) {
            const std::unique_ptr<char[]> exact(new char[have - done]);
            std::memcpy(exact.get(), text.data() + done, have - done);
            const std::size_t used = parser.feed({exact.get(), have - done}, last, how);
            CHECK(used <= have - done);
            done += used;
            if (parser.found().error.line == 0) break;
            if (!forgive) return found_by(parser);
            parser.forgive();
        }
    }
    CHECK(done == text.size());
    return found_by(parser);
}

// The obvious parser, for text without errors.
Found slowly(const std::string& text) {
    Found out{{}, {}, {}, {}, {}, INT32_MAX, -1, 0, 0, 0, ""};
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        ++out.n_lines;
        std::replace_if(
            line.begin(), line.end(), [](char c) { return c == '\r' || c == '\f' || c == '\v'; }, ' ');
        std::istringstream tokens(line.substr(0, line.find('#')));
        std::string token;
        if (!(tokens >> token)) continue;
        out.labels.push_back(std::strtod(token.c_str(), nullptr));
        while (tokens >> token) {
            const std::size_t colon = token.find(':');
            out.columns.push_back(static_cast<std::int32_t>(std::atol(token.substr(0, colon).c_str())));
            out.values.push_back(std::strtod(token.c_str() + colon + 1, nullptr));
            out.smallest = std::min(out.smallest, out.columns.back());
            out.largest = std::max(out.largest, out.columns.back());
        }
        out.row_ends.push_back(static_cast<std::int64_t>(out.values.size()));
        out.lines.push_back(out.n_lines);
    }
    return out;
}

std::string random_number() {
    std::string out = pick(std::vector<std::string>{"", "", "-", "+"});
    const int kind = below(10);
    if (kind < 3) return out + digits(1 + below(6));
    if (kind < 5) return out + digits(below(4)) + "." + digits(1 + below(5));
    if (kind == 5) return out + digits(1 + below(3)) + ".";
    out += std::string(static_cast<std::size_t>(below(4)), '0') + digits(1 + below(30));
    if (chance(60)) out += "." + digits(below(25));
    if (chance(60))
        out += pick(std::vector<std::string>{"e", "E"}) + pick(std::vector<std::string>{"", "+", "-"}) +
               digits(1 + below(2));
    return out;
}

std::string random_line(int most_columns) {
    const std::vector<std::string> blanks{" ", " ", " ", "  ", "\t", " \t ", "\f", "\v"};
    std::string out = chance(10) ? pick(blanks) : "";
    const int kind = below(20);
    if (kind == 0) return out;
    if (kind == 1) return out + "# nothing 1:2 here";
    out += random_number();
    int column = below(3);
    for (int k = below(most_columns + 1); k > 0; --k, column += 1 + below(5) * below(200))
        out += pick(blanks) + (chance(5) ? "00" : "") + std::to_string(column) + ":" + random_number();
    if (chance(10)) out += pick(blanks);
    if (chance(10)) out += "# 7:x";
    return out;
}

std::string random_text(int n_lines, int most_columns) {
    std::string out;
    for (int k = 0; k < n_lines; ++k) out += random_line(most_columns) + (chance(20) ? "\r\n" : "\n");
    if (!out.empty() && chance(30)) out.pop_back();
    return out;
}

void test_numbers() {
    where = "numbers";
    const auto value_of = [](const std::string& number) {
        const Found found = parse(number + " 1:" + number);
        CHECK(found.error_line == 0 && found.labels.size() == 1 && found.values.size() == 1);
        CHECK(found.error_line != 0 || same_bits(found.labels[0], found.values[0]));
        return found.error_line == 0 ? found.values[0] : std::nan("");
    };
    const auto agrees = [&](const std::string& number) {
        where = "number " + number.substr(0, 60);
        CHECK(same_bits(value_of(number), std::strtod(number.c_str(), nullptr)));
    };
    for (int k = 0; k < 20000; ++k) agrees(random_number());
    for (int k = 0; k < 20000; ++k) {  // all magnitudes, subnormal ones too
        std::string number =
            digits(1) + "." + digits(16 + below(24)) + "e" + std::to_string(below(700) - 380);
        if (std::isinf(std::strtod(number.c_str(), nullptr))) continue;
        agrees(number);
    }
    for (int k = 0; k < 5000; ++k) {  // halfway between neighbours, and a hair beside
        const std::uint64_t odd = (1ULL << 53) + 2 * (engine() % (1ULL << 52)) + 1;
        for (const char* tail : {"", ".0", ".00000000000000000000001", "e0", "000e-3"})
            agrees(std::to_string(odd) + tail);
        agrees(std::to_string(odd - 1) + ".99999999999999999999999");
    }
    for (const char* number : {"0",
                               "-0",
                               "+0.0",
                               "0e999999999999",
                               ".5",
                               "5.",
                               "00012",
                               "1e22",
                               "1e23",
                               "1e-22",
                               "1e-23",
                               "9007199254740993",
                               "9007199254740992",
                               "18446744073709551615",
                               "18446744073709551616",
                               "123456789012345678901234567890",
                               "4.9406564584124654e-324",
                               "2.4703282292062327e-324",
                               "2.4703282292062328e-324",
                               "2.2250738585072011e-308",
                               "2.2250738585072014e-308",
                               "1.7976931348623157e308",
                               "1.7976931348623158e308",
                               "1e-400",
                               "1e-99999999999",
                               "0.00000000000000000000000000000000000000000000000001e50",
                               "1000000000000000000000000000000e-30"})
        agrees(number);
    agrees("0." + std::string(400, '0') + "17e403");
    agrees("17" + std::string(400, '0') + "e-401");
    agrees("0." + std::string(1000, '0') + "1");
    for (const char* number : {"1e-4294967297", "7e-4294967296", "7e-18446744073709551616", "0e4294967297"})
        agrees(number);                             // exponents that wrap in 32 or 64 bits
    agrees("0." + std::string(400, '0') + "1e60");  // underflow, though the exponent is positive
    agrees("17" + std::string(400, '0') + "e-900");
    agrees(std::string(5000, '0') + "1.5");
    // Digits and exponent cancel, both far beyond the range of a double.
    agrees("0." + std::string(30001, '0') + "1e30001");
    agrees("0." + std::string(100001, '0') + "1e100001");
    agrees("1" + std::string(200000, '0') + "e-300000");
    CHECK(parse("1 1:0." + std::string(100001, '0') + "1e300001").message.find("too large") !=
          std::string::npos);
    for (const std::string number : {"1e309", "1.7976931348623159e308", "1e4294967297",
                                     "1e18446744073709551617", "1e99999999999", "-1e400", "0.001e312"}) {
        where = "number " + number.substr(0, 60);
        CHECK(parse("1 1:" + number).message.find("too large") != std::string::npos);
        CHECK(parse(number).message.find("too large") != std::string::npos);
    }
    CHECK(parse("1 1:" + std::string(400, '9')).message.find("too large") != std::string::npos);
    for (const std::string number :
         {"",      "x",    "-",   "+",   ".",   "e5",   "1e",  "1e+", "--1",  "+-1",
          "1.2.3", "0x10", "1,5", "inf", "nan", "-inf", "1_0", "1d5", "\xff", "1e5.5"}) {
        where = "no number " + number;
        CHECK(parse("1 1:" + number).error_line == 1);
        CHECK(number.empty() || parse(number).error_line == 1);
    }
    CHECK(parse(std::string("1\0 1:2", 6)).error_line == 1 &&
          parse(std::string("1 1:2\0", 6)).error_line == 1);
}

void test_grammar() {
    for (int seed = 0; seed < 400; ++seed) {
        where = "random text " + std::to_string(seed);
        const std::string text = random_text(below(30), below(12));
        const Found expected = slowly(text);
        for (const std::size_t piece : {std::string::npos, std::size_t{1}, std::size_t{7}, std::size_t{64}})
            CHECK(parse(text, 1, piece) == expected);
        CHECK(parse(text, 3, 50, true) == expected);
    }
    where = "no rows";
    for (const char* text : {"", "\n", "\n\n\r\n", "# a\n#b", "   \t\n"}) {
        const Found found = parse(text);
        CHECK(found.labels.empty() && found.row_ends.empty() && found.smallest == INT32_MAX &&
              found.largest == -1);
    }
    where = "a row without columns";
    CHECK(parse("1\n-1 # x\n").row_ends == std::vector<std::int64_t>{0, 0});
    where = "comments";
    CHECK(parse("1#x\n2 1:2#3:4\n") == slowly("1\n2 1:2\n"));
}

struct Mistake {
    std::string line;
    index_t column;
    std::string words;
};
const std::vector<Mistake> mistakes{
    {"x 1:2", 1, "the label 'x' is not a number"},
    {"  nan 1:2", 3, "the label 'nan' is not a number"},
    {"1e999 1:2", 1, "the label '1e999' is too large"},
    {"1,2 1:2", 1, "several labels"},
    {"1:2 3:4", 1, "a row starts with its label, but this one with '1:2'"},
    {"1 2:3 x", 7, "found 'x'"},
    {"1 2:3\t7", 7, "found '7'"},
    {"1 -1:3", 3, "found '-1:3'"},
    {"1 +1:3", 3, "found '+1:3'"},
    {"1 1.5:3", 3, "found '1.5:3'"},
    {"1 :3", 3, "found ':3'"},
    {"1 qid:3 1:2", 3, "query ids ('qid:3')"},
    {"1 2:3 2:4", 7, "column 2 occurs twice in this row"},
    {"1 12:3  2:4", 9, "column 2 comes after column 12"},
    {"1 2147483647:3", 3, "'2147483647' is above the largest"},
    {"1 99999999999999999999999:3", 3, "is above the largest"},
    {"1 2:3 4:", 9, "the value of column 4 is missing"},
    {"1 2:3 4: 5", 9, "the value of column 4 is missing"},
    {"1 4:#5", 5, "the value of column 4 is missing"},
    {"1 4:abc", 5, "'abc', is not a finite number"},
    {"1 4:1:2", 5, "'1:2', is not a finite number"},
    {"1 4:inf", 5, "'inf', is not a finite number"},
    {"1 4:1e999 5:1", 5, "'1e999', is too large"},
    {"1 4:\x01\xff", 5, "'\\x01\\xff', is not a finite number"},
    {"1 4:" + std::string(100, 'y') + " 5:1", 5, "yyy…', is not a finite number"},
};

void test_errors() {
    for (const Mistake& mistake : mistakes)
        for (const char* before : {"", "1 1:1\n", "# c\n\n\r\n-1 1:1 2:2\n"})
            for (const char* after : {"", "\n", "\r\n", "\n1 1:1\n", "\ny\n"}) {
                where = "error " + mistake.line;
                const std::string text = before + mistake.line + after;
                const Found good = slowly(before), found = parse(text);
                CHECK(found.error_line == good.n_lines + 1 && found.error_column == mistake.column);
                CHECK(found.message.find(mistake.words) != std::string::npos);
                CHECK(found.labels == good.labels && found.values == good.values &&
                      found.row_ends == good.row_ends);
                CHECK(found.n_lines == found.error_line && found.largest == good.largest);
                for (const std::size_t piece : {std::size_t{1}, std::size_t{16}})
                    CHECK(parse(text, 2, piece) == found);
            }
}

// Large enough to be split among threads, with an error in one or many places.
void test_threads() {
    std::string text;
    while (text.size() < 600000) text += random_text(100, 40) + "\n";
    where = "threads";
    const Found expected = slowly(text);
    for (const int n_threads : {1, 2, 3, 4, 8})
        for (const std::size_t piece : {std::string::npos, std::size_t{100000}, std::size_t{200001}})
            CHECK(parse(text, n_threads, piece) == expected);
    for (int k = 0; k < 12; ++k) {
        where = "error in part " + std::to_string(k);
        const std::size_t at = text.find('\n', text.size() / 12 * static_cast<std::size_t>(k)) + 1;
        const Mistake& mistake = mistakes[static_cast<std::size_t>(k)];
        const std::string broken = text.substr(0, at) + mistake.line + "\n" + text.substr(at);
        const Found one = parse(broken), good = slowly(text.substr(0, at));
        CHECK(one.error_line == good.n_lines + 1 && one.error_column == mistake.column);
        CHECK(one.values.size() == good.values.size() && one.labels.size() == good.labels.size());
        for (const int n_threads : {2, 4, 7}) CHECK(parse(broken, n_threads) == one);
        const Found rest = parse(broken, 4, std::string::npos, true);
        CHECK(rest.labels.size() == expected.labels.size() && rest.values.size() == expected.values.size());
    }
    where = "many errors";
    std::string broken;
    std::vector<std::int64_t> lines;  // of the good rows
    std::int64_t n_lines = 0;
    for (int k = 0; k < 8000; ++k, ++n_lines) {
        const bool bad = chance(1);
        broken += bad ? pick(mistakes).line + "\n"
                      : "1 2:3 " + std::to_string(3 + k) + ":0.5 # " + digits(30) + "\n";
        if (!bad) lines.push_back(n_lines + 1);
    }
    const Found all = parse(broken, 1, std::string::npos, true);
    CHECK(all.lines == lines && all.n_lines == n_lines && all.error_line == 0);
    CHECK(all.values.size() == 2 * lines.size() && all.labels.size() == lines.size());
    for (const int n_threads : {2, 5})
        for (const std::size_t piece : {std::string::npos, std::size_t{150000}})
            CHECK(parse(broken, n_threads, piece, true) == all);
}

void test_any_bytes() {
    const std::string common = "0123456789 :#.\n\r-+eE\t";
    for (int seed = 0; seed < 3000; ++seed) {
        where = "bytes " + std::to_string(seed);
        std::string text;
        for (int k = below(60); k > 0; --k) text += chance(95) ? pick(common) : static_cast<char>(below(256));
        const Found one = parse(text, 1, std::string::npos, true);
        CHECK(parse(text, 2, static_cast<std::size_t>(1 + below(20)), true) == one);
        CHECK(one.labels.size() == one.row_ends.size() && one.columns.size() == one.values.size());
        for (const double v : one.values) CHECK(std::isfinite(v));
    }
}

void test_growing() {
    where = "growing";
    Growing<std::int32_t> numbers, more;
    for (int k = 0; k < 1000; ++k) numbers.push(k);
    numbers.truncate(300);
    for (int k = 0; k < 500; ++k) more.push(1000 + k);
    numbers.append(more);
    CHECK(numbers.size() == 800 && numbers.data()[299] == 299 && numbers.data()[300] == 1000 &&
          numbers.back() == 1499);
    Growing<std::int32_t> moved(std::move(numbers));
    CHECK(moved.size() == 800 && numbers.size() == 0);
    std::int32_t* owned = moved.release();
    CHECK(moved.size() == 0 && moved.data() == nullptr && owned[799] == 1499);
    std::free(owned);
    moved.push(5);
    CHECK(moved.size() == 1 && moved.back() == 5);
    moved.clear();
    moved.append(Growing<std::int32_t>());
    CHECK(moved.size() == 0);
}

}  // namespace

int main() {
    test_growing();
    test_numbers();
    test_grammar();
    test_errors();
    test_threads();
    test_any_bytes();
    std::printf("%ld passed, %ld failed\n", n_passed, n_failed);
    return n_failed == 0 ? 0 : 1;
}
