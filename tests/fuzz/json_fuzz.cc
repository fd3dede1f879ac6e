/* tests/fuzz/json_fuzz.cc - whatever is written, python's parser reads it back as what was meant.
 * An input is a script for the writer (see play()); what each script meant and what the writer made
 * of it go into one file, which json_judge.py reads. */
#include "tests/fuzz/fuzz.h"

#include "shim/observe/json.h"
#include "tests/support/process.h"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace ag_fuzz
{
namespace
{

enum { BATCH = 2000 }; // documents in a file, so that a long run does not fill the memory

std::vector<Bytes> inputs; // of the batch
std::string batch;
uint64_t valid, misfits, deep, replaced;

std::string hex(const Bytes &text)
{
    std::string out;
    char two[3];
    for (const char c : text) {
        snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
        out += two;
    }
    return out + ".";
}

/* Plays a script into a writer and notes what a reader must find, one event a line. */
class Play
{
  public:
    Play(const Bytes &script, ag_json *j) : in_(script), j_(j)
    {
    }
    std::string events;
    bool fits = true; // every call had its place

    void run()
    {
        while (!in_.empty())
            step(in_.byte());
        while (!open_.empty() && open_.size() + 1 <= AG_JSON_DEPTH)
            end();
        fits = fits && done_;
    }

  private:
    // The key of the next member; sometimes there where none belongs, or missing.
    const char *key(const char *kind)
    {
        const bool keyed = !open_.empty() && open_.back() == '{';
        const bool wrong = wrong_;
        wrong_ = false;
        fits = fits && !wrong && !(open_.empty() && done_);
        key_ = in_.bytes(keyed ? in_.byte() % 16 : 0).c_str();
        events += kind;
        events += " " + (keyed ? hex(key_) : "-");
        done_ = done_ || open_.empty();
        return keyed != wrong ? key_.c_str() : nullptr;
    }
    void begin(char what)
    {
        const char *k = key(what == '{' ? "object" : "array");
        events += "\n";
        what == '{' ? ag_json_object(j_, k) : ag_json_array(j_, k);
        open_ += what;
        fits = fits && open_.size() < AG_JSON_DEPTH;
        deep += open_.size() == AG_JSON_DEPTH - 1;
    }
    void end()
    {
        ag_json_end(j_);
        fits = fits && !open_.empty();
        if (!open_.empty())
            open_.pop_back();
        events += "end\n";
    }
    uint64_t number()
    {
        uint64_t value = 0;
        const Bytes raw = in_.bytes(8);
        memcpy(&value, raw.data(), raw.size());
        return value;
    }
    void text()
    {
        const char *k = key("text");
        const Bytes value = in_.bytes(in_.byte()).c_str();
        events += " " + hex(value) + "\n";
        ag_json_text(j_, k, value.c_str());
    }
    void real()
    {
        const char *k = key("double");
        const uint64_t bits = number();
        double value;
        memcpy(&value, &bits, sizeof value);
        char shown[64];
        snprintf(shown, sizeof shown, " %a\n", value);
        events += shown;
        ag_json_double(j_, k, value);
    }
    void whole()
    {
        const char *k = key("u64");
        const uint64_t value = number();
        events += " " + std::to_string(value) + "\n";
        ag_json_u64(j_, k, value);
    }
    void truth(bool value)
    {
        const char *k = key("bool");
        events += value ? " 1\n" : " 0\n";
        ag_json_bool(j_, k, value);
    }
    void nothing()
    {
        const char *k = key("null");
        events += "\n";
        ag_json_null(j_, k);
    }
    void step(uint8_t what)
    {
        switch (what) {
        case '{':
        case '[':
            return begin(static_cast<char>(what));
        case '(': // deep
            for (int i = 0; i < 6; i++)
                begin('[');
            return;
        case '}':
        case ']':
            return end();
        case 'd':
            return real();
        case 'u':
            return whole();
        case 'b':
        case 'B':
            return truth(what == 'B');
        case 'n':
            return nothing();
        case '!': // the next member's key is where none belongs
            wrong_ = true;
            return;
        case 't':
            return text();
        default: // most bytes: a string member, and no end of the document
            if (!open_.empty())
                text();
        }
    }
    Reader in_;
    ag_json *j_;
    std::string open_;
    Bytes key_;
    bool wrong_ = false, done_ = false;
};

std::string document_of(int fd)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    std::string text(static_cast<size_t>(size), 0);
    EXPECT_EQ(pread(fd, &text[0], text.size(), 0), static_cast<ssize_t>(size));
    return text;
}

/* Everything of the batch is read back by another parser. */
void judge()
{
    const std::string dir = ag_test::make_dir("fuzz"), file = dir + "/batch";
    FILE *f = fopen(file.c_str(), "w");
    ASSERT_TRUE(f && fwrite(batch.data(), 1, batch.size(), f) == batch.size());
    ASSERT_EQ(fclose(f), 0);
    const ag_test::Run r = ag_test::run(
        {"/usr/bin/python3", ag_test::runfile("tests/fuzz/json_judge.py"), file}, {}, 120);
    ag_test::remove_dir(dir);
    if (r.status != 0) {
        const unsigned long at = strtoul(r.out.c_str(), nullptr, 10);
        ADD_FAILURE() << "document " << r.out << r.err << "its script:\n"
                      << (at < inputs.size() ? shown(inputs[at]) : "?");
    }
    inputs.clear();
    batch.clear();
}

} // namespace

const Target target = {"json",
                       15000,
                       1200,
                       {"{",
                        "[",
                        "(",
                        "((((((",
                        "}",
                        "]",
                        "]]]]]]",
                        "t",
                        "u",
                        "d",
                        "b",
                        "B",
                        "n",
                        "!",
                        "\xff\xff\xff\xff\xff\xff\xff\xff",
                        Bytes("\0\0\0\0\0\0\xf0\x7f", 8),
                        Bytes("\0\0\0\0\0\0\xf8\x7f", 8),
                        Bytes(8, '\0'),
                        Bytes("\1\0\0\0\0\0\0\0", 8),
                        "\xff\xff\xff\xff\xff\xff\xef\x7f",
                        Bytes("\0\0\0\0\0\0\x10\0", 8),
                        "\"",
                        "\\",
                        "\x7f",
                        "\x1f",
                        "\n",
                        "\xc3\xa9",
                        "\xed\xa0\x80",
                        "\xed\xb0\x80",
                        "\xf0\x9f\x98\x80",
                        "\xf4\x90\x80\x80",
                        "\xc0\x80",
                        "\xe2\x82",
                        "\xf0\x9f\x98",
                        "\xf0\x90\x80",
                        "\xef\xbf\xbf",
                        "\xe0\xa0\x80",
                        "\xe0\x9f\xbf"}};

void start(int, char **)
{
}

void one(const Bytes &input)
{
    static const int fd = memfd_create("json", MFD_CLOEXEC);
    ag_sink sink;
    ag_json j;
    ASSERT_EQ(ftruncate(fd, 0), 0);
    ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
    ag_sink_open(&sink, fd);
    ag_json_open(&j, &sink);
    Play play(input, &j);
    play.run();
    const int status = ag_json_close(&j);
    EXPECT_EQ(status, play.fits ? 0 : EINVAL);
    valid += status == 0;
    misfits += status != 0;
    if (status != 0)
        return;
    const std::string text = document_of(fd);
    replaced += text.find("\xef\xbf\xbd") != std::string::npos;
    batch += "document " + std::to_string(inputs.size()) + " " + std::to_string(text.size()) +
             "\n" + play.events + "json\n" + text;
    inputs.push_back(input);
    if (inputs.size() >= BATCH)
        judge();
}

void finish(bool enough)
{
    if (!inputs.empty())
        judge();
    EXPECT_TRUE(!enough || (valid > 1000 && misfits > 500 && deep > 20 && replaced > 100))
        << valid << " documents, " << misfits << " that do not fit, " << deep << " times deepest, "
        << replaced << " with bytes that are no UTF-8";
}

} // namespace ag_fuzz
