/* tests/fuzz/options_fuzz.cc - any environment: what is accepted lies in its range, what is not
 * leaves the default and one line in the log. The judge reads the table's ranges and works them out
 * in another way than the parser.
 * An input is an environment, one NAME=VALUE a line; "\n" and "\xNN" stand for that byte. */
#include "tests/fuzz/fuzz.h"

#include "shim/observe/log.h"
#include "shim/observe/options.h"
#include "tests/support/process.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ag_fuzz
{
namespace
{

using Environment = std::vector<std::string>;

struct Met {
    uint64_t accepted[32], refused[32], unknown, crowded;
};
Met met;

int hex(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : nullptr;
    return at ? static_cast<int>(at - digits) : -1;
}

Environment environment_of(const Bytes &input)
{
    Environment all(1);
    for (size_t i = 0; i < input.size(); i++) {
        const Bytes next = input.substr(i, 4);
        if (input[i] == '\n') {
            all.emplace_back();
        } else if (next.compare(0, 2, "\\n") == 0) {
            all.back() += '\n';
            i++;
        } else if (next.size() == 4 && next.compare(0, 2, "\\x") == 0 && hex(next[2]) >= 0 &&
                   hex(next[3]) >= 0) {
            all.back() += static_cast<char>(hex(next[2]) * 16 + hex(next[3]));
            i += 3;
        } else {
            all.back() += input[i];
        }
    }
    for (std::string &entry : all) // an environment has C strings
        entry = entry.c_str();
    return all;
}

/* What the table says of a value, worked out by comparing decimal digits as text. */
bool digits_within(std::string digits, uint64_t least, uint64_t most)
{
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos)
        return false;
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
    const auto below = [](const std::string &a, const std::string &b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    };
    return !below(digits, std::to_string(least)) && !below(std::to_string(most), digits);
}

bool number_allowed(const ag_option_row &row, const std::string &text, uint64_t *out)
{
    uint64_t unit = 1;
    std::string digits = text;
    const std::string suffixes = "KMGkmg";
    const size_t suffix = text.empty() ? std::string::npos : suffixes.find(text.back());
    if (row.kind == AG_OPTION_BYTES && suffix != std::string::npos) {
        unit = uint64_t(1) << 10 * (suffix % 3 + 1);
        digits.pop_back();
    }
    if (!digits_within(digits, (row.least + unit - 1) / unit, row.most / unit))
        return false;
    *out = std::stoull(digits) * unit;
    return true;
}

bool word_allowed(const ag_option_row &row, const std::string &text, uint64_t *out)
{
    const std::string words = std::string("|") + row.words + "|";
    if (text.find_first_of("|,") != std::string::npos)
        return false;
    for (const char *before : {"|", ","})
        for (const char *after : {"|", ","}) {
            const size_t at = words.find(before + text + after);
            if (at == std::string::npos)
                continue;
            *out = static_cast<uint64_t>(std::count(words.begin(), words.begin() + long(at), '|')) -
                   (before[0] == ',');
            return true;
        }
    return false;
}

uint64_t number_in(const ag_options &o, const ag_option_row &row)
{
    const char *field = reinterpret_cast<const char *>(&o) + row.offset;
    return row.kind == AG_OPTION_CHOICE ? *reinterpret_cast<const uint32_t *>(field)
                                        : *reinterpret_cast<const uint64_t *>(field);
}

std::string text_in(const ag_options &o, const ag_option_row &row)
{
    const char *field = reinterpret_cast<const char *>(&o) + row.offset;
    EXPECT_LT(strnlen(field, AG_OPTION_PATH), size_t(AG_OPTION_PATH)) << row.env;
    return std::string(field, strnlen(field, AG_OPTION_PATH));
}

bool is_text(const ag_option_row &row)
{
    return row.kind == AG_OPTION_FILE || row.kind == AG_OPTION_DIRECTORY ||
           row.kind == AG_OPTION_LIST;
}

// The program's directory as it stands in a path: a '%' of it is not a pattern in a file name.
std::string here(bool pattern)
{
    char cwd[AG_OPTION_PATH];
    std::string text;
    for (const char *c = getcwd(cwd, sizeof cwd); c && *c; c++)
        text += *c == '%' && pattern ? "%%" : std::string(1, *c);
    return text + "/";
}

bool text_allowed(const ag_option_row &row, const std::string &text, std::string *out)
{
    *out = text;
    if (row.kind == AG_OPTION_LIST)
        return out->size() < AG_OPTION_PATH;
    if (row.words[0] && text == row.words && strcmp(row.env, "AUTOGRAPH_STATS") == 0)
        *out = here(true) + "autograph-stats.%h.%p.%t.json";
    else if (text[0] != '/' && !(row.words[0] && text == row.words))
        *out = here(row.kind == AG_OPTION_FILE) + text;
    return out->size() < AG_OPTION_PATH;
}

// The first value that the environment has for the name; null: none, or an empty one.
const char *given(const Environment &all, const std::string &name)
{
    for (const std::string &entry : all)
        if (entry.compare(0, name.size() + 1, name + "=") == 0)
            return entry.size() == name.size() + 1 ? nullptr : entry.c_str() + name.size() + 1;
    return nullptr;
}

// One option; returns the problems that there must be about it.
unsigned judge_row(const ag_options &o, const ag_options &usual, const ag_option_row &row,
                   size_t index, const char *text)
{
    uint64_t number = 0;
    std::string path;
    const bool allowed =
        text && (is_text(row)                   ? text_allowed(row, text, &path)
                 : row.kind == AG_OPTION_CHOICE ? word_allowed(row, text, &number)
                                                : number_allowed(row, text, &number));
    EXPECT_EQ((o.given >> index & 1) != 0, allowed) << row.env << "=" << (text ? text : "");
    if (is_text(row))
        EXPECT_EQ(text_in(o, row), allowed ? path : text_in(usual, row)) << row.env;
    else
        EXPECT_EQ(number_in(o, row), allowed ? number : number_in(usual, row)) << row.env;
    met.accepted[index] += allowed;
    met.refused[index] += text && !allowed;
    return text && !allowed;
}

unsigned unknown_names(const Environment &all)
{
    size_t count;
    const ag_option_row *rows = ag_options_rows(&count);
    unsigned unknown = 0;
    for (const std::string &entry : all) {
        const std::string name = entry.substr(0, entry.find('='));
        bool known = name == entry || name.compare(0, 10, "AUTOGRAPH_") != 0;
        for (size_t i = 0; i < count; i++)
            known |= name == rows[i].env;
        unknown += !known;
    }
    return unknown;
}

/* One line each, whatever bytes the values have; the first few in words. */
void judge_log(const ag_options &o)
{
    static const std::string dir = ag_test::make_dir("fuzz"), file = dir + "/log";
    static ag_options shown_options;
    ag_identity id = {};
    shown_options = o;
    shown_options.log_level = AG_LEVEL_WARN;
    snprintf(shown_options.log, sizeof shown_options.log, "%s", file.c_str());
    ASSERT_TRUE(ag_log_open(&shown_options, &id));
    ag_log_close();
    const std::string text = ag_test::read_file(file);
    unlink(file.c_str());
    const size_t kept = std::min<size_t>(o.problem_count, AG_OPTION_PROBLEMS);
    EXPECT_EQ(size_t(std::count(text.begin(), text.end(), '\n')), kept + (o.problem_count > kept));
    size_t at = 0;
    for (; at < text.size(); at = text.find('\n', at) + 1)
        EXPECT_EQ(text.compare(at, 17, "autograph: warn: "), 0) << shown(text.substr(at));
    for (const char c : text)
        EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f))
            << shown(text);
}

void judge_texts(const ag_options &o)
{
    size_t count;
    const ag_option_row *rows = ag_options_rows(&count);
    char text[16];
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(ag_options_value(&o, &rows[i], text, sizeof text), text);
        EXPECT_LT(strnlen(text, sizeof text), sizeof text);
    }
    for (size_t i = 0; i < AG_OPTION_PROBLEMS; i++) {
        EXPECT_LT(strnlen(o.problems[i], AG_OPTION_PROBLEM), size_t(AG_OPTION_PROBLEM));
        EXPECT_EQ(o.problems[i][0] != 0, i < o.problem_count);
        EXPECT_TRUE(!o.problems[i][0] || strncmp(o.problems[i], "AUTOGRAPH", 9) == 0);
    }
}

} // namespace

const Target target = {"options",
                       20000,
                       9000,
                       {"AUTOGRAPH=",
                        "AUTOGRAPH_LOG=",
                        "AUTOGRAPH_LOG_LEVEL=",
                        "AUTOGRAPH_STATS=",
                        "AUTOGRAPH_DUMP=",
                        "AUTOGRAPH_FLUSH_US=",
                        "AUTOGRAPH_PACE=",
                        "AUTOGRAPH_MIN_SEEN=",
                        "AUTOGRAPH_MAX_SEGMENT=",
                        "AUTOGRAPH_MAX_BYTES=",
                        "AUTOGRAPH_PROGRAMS=",
                        "AUTOGRAPH_KERNELS=",
                        "AUTOGRAPH_STOP_FILE=",
                        "AUTOGRAPH_VERIFY=",
                        "\n",
                        "\n\n",
                        "=",
                        "_",
                        "|",
                        ",",
                        "on",
                        "off",
                        "observe",
                        "1",
                        "0",
                        "stderr",
                        "error",
                        "debug",
                        "auto",
                        "prompt",
                        "patient",
                        "eager",
                        "18446744073709551615",
                        "18446744073709551616",
                        "9",
                        "100000",
                        "100001",
                        "4096",
                        "4097",
                        "65535",
                        "65536",
                        "1024G",
                        "1025G",
                        "64K",
                        "63K",
                        "17592186044416M",
                        "M",
                        "K",
                        "g",
                        "%h",
                        "%p",
                        "%%",
                        "/",
                        "\\n",
                        "\\x7f",
                        "\\xff",
                        "\\x1b[2J",
                        "-1",
                        "+1",
                        "0x10",
                        " 10",
                        "10 ",
                        "00000000000000000000000000000100",
                        Bytes(300, 'a'),
                        "/" + Bytes(4093, 'b'),
                        Bytes(4100, 'c')}};

void start(int, char **)
{
}

void one(const Bytes &input)
{
    Environment all = environment_of(input);
    std::vector<char *> list;
    for (std::string &entry : all)
        list.push_back(&entry[0]);
    list.push_back(nullptr);
    static ag_options o, usual;
    ag_options_load_as(&usual, nullptr, false);
    memset(static_cast<void *>(&o), 0x5a, sizeof o);
    errno = 77;
    ag_options_load_as(&o, list.data(), false);
    EXPECT_EQ(errno, 77);

    size_t count;
    const ag_option_row *rows = ag_options_rows(&count);
    unsigned problems = unknown_names(all);
    met.unknown += problems;
    for (size_t i = 0; i < count; i++)
        problems += judge_row(o, usual, rows[i], i, given(all, rows[i].env));
    EXPECT_EQ(o.problem_count, problems);
    met.crowded += problems > AG_OPTION_PROBLEMS;
    judge_texts(o);
    if (problems)
        judge_log(o);
}

void finish(bool enough)
{
    size_t count;
    const ag_option_row *rows = ag_options_rows(&count);
    for (size_t i = 0; enough && i < count; i++) {
        EXPECT_GT(met.accepted[i], 20u) << rows[i].env;
        EXPECT_GT(met.refused[i], is_text(rows[i]) ? 2u : 20u) << rows[i].env;
    }
    EXPECT_TRUE(!enough || (met.unknown > 100 && met.crowded > 5))
        << met.unknown << " " << met.crowded;
}

} // namespace ag_fuzz
