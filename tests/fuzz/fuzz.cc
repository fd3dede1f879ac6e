/* tests/fuzz/fuzz.cc - see fuzz.h: corpus, mutations, and the program of each fuzzer. */
#include "tests/fuzz/fuzz.h"

#include "tests/support/process.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ag_fuzz
{
namespace
{

/* A build for a sanitizer, without optimisation, is up to twenty times as slow. */
#ifdef NDEBUG
enum { SLOWER = 1 };
#else
enum { SLOWER = 16 };
#endif

struct Settings {
    uint64_t seed = 1;
    uint64_t runs = 0;
    std::string input; // only this one
};
Settings settings;

std::string folder_for_findings()
{
    for (const char *name : {"TEST_UNDECLARED_OUTPUTS_DIR", "TEST_TMPDIR", "TMPDIR"})
        if (const char *folder = getenv(name))
            return folder;
    return "/tmp";
}

/* The input under test, in a file that outlives the process. */
class LastInput
{
  public:
    LastInput() : path(folder_for_findings() + "/" + target.name + "_fuzz.input")
    {
        const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(target.longest)) != 0)
            return;
        void *p = mmap(nullptr, target.longest, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        map_ = p == MAP_FAILED ? nullptr : static_cast<char *>(p);
        fd_ = fd;
    }
    void set(const Bytes &input)
    {
        if (!map_)
            return;
        memcpy(map_, input.data(), input.size());
        memset(map_ + input.size(), 0, target.longest - input.size());
        size_ = input.size();
    }
    // It failed but lives: the file ends where the input does.
    void keep() const
    {
        EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size_)), 0);
    }
    void forget() const
    {
        unlink(path.c_str());
    }
    const std::string path;

  private:
    int fd_ = -1;
    char *map_ = nullptr;
    size_t size_ = 0;
};

std::vector<Bytes> corpus()
{
    const std::string folder =
        ag_test::runfile(std::string("tests/fuzz/corpus/") + target.name) + "/";
    std::vector<std::string> names;
    if (DIR *d = opendir(folder.c_str())) {
        while (dirent *e = readdir(d))
            if (e->d_name[0] != '.')
                names.push_back(e->d_name);
        closedir(d);
    }
    std::sort(names.begin(), names.end());
    std::vector<Bytes> all;
    for (const std::string &name : names)
        all.push_back(ag_test::read_file(folder + name).substr(0, target.longest));
    return all;
}

/* Changes inputs, driven by one random number generator: no distribution of the library, whose
 * results differ between libraries. */
class Mutator
{
  public:
    Mutator(uint64_t seed, std::vector<Bytes> inputs) : random_(seed), pool_(std::move(inputs))
    {
        kept_ = pool_.size();
    }
    Bytes next()
    {
        Bytes input = pool_[below(pool_.size())];
        for (size_t n = 1 + below(6); n > 0; n--)
            change(input);
        input.resize(std::min(input.size(), target.longest));
        remember(input);
        return input;
    }

  private:
    size_t below(size_t n)
    {
        return n ? static_cast<size_t>(random_() % n) : 0;
    }
    Bytes piece_of(const Bytes &from)
    {
        const size_t at = below(from.size() + 1);
        return from.substr(at, 1 + below(std::min<size_t>(from.size(), 40)));
    }
    void change(Bytes &input)
    {
        const size_t at = below(input.size() + 1);
        switch (below(8)) {
        case 0: // one bit
            if (at < input.size())
                input[at] = static_cast<char>(input[at] ^ 1 << below(8));
            break;
        case 1: // one byte
            if (at < input.size())
                input[at] = static_cast<char>(random_());
            break;
        case 2:
            input.insert(at, 1, static_cast<char>(random_()));
            break;
        case 3: // a word
            if (!target.words.empty())
                input.insert(at, target.words[below(target.words.size())]);
            break;
        case 4: // a piece of another one
            input.insert(at, piece_of(pool_[below(pool_.size())]));
            break;
        case 5: // a piece of its own again
            input.insert(at, piece_of(input));
            break;
        case 6: // less
            input.erase(at, 1 + below(below(2) ? 4 : 40));
            break;
        case 7: // a digit or a letter next to it
            if (at < input.size())
                input[at] = static_cast<char>(input[at] + (below(2) ? 1 : -1));
            break;
        }
    }
    // Some mutations are mutated in turn; the corpus itself stays.
    void remember(const Bytes &input)
    {
        if (pool_.size() < kept_ + 64)
            pool_.push_back(input);
        else if (below(4) == 0)
            pool_[kept_ + below(64)] = input;
    }
    std::mt19937_64 random_;
    std::vector<Bytes> pool_;
    size_t kept_;
};

LastInput &last_input()
{
    static LastInput last;
    return last;
}

// False when the input failed.
bool try_one(const Bytes &input, const std::string &what)
{
    last_input().set(input);
    one(input);
    if (!testing::Test::HasFailure())
        return true;
    last_input().keep();
    ADD_FAILURE() << what << " failed; it lies in " << last_input().path << ":\n" << shown(input);
    return false;
}

TEST(Fuzz, EveryInputOfTheCorpusIsJudgedSound)
{
    if (!settings.input.empty()) {
        try_one(ag_test::read_file(settings.input).substr(0, target.longest), settings.input);
        finish(false);
        return;
    }
    const std::vector<Bytes> all = corpus();
    ASSERT_GT(all.size(), 2u) << "no corpus";
    for (size_t i = 0; i < all.size(); i++)
        if (!try_one(all[i], "input " + std::to_string(i) + " of the corpus"))
            return;
    finish(false);
    last_input().forget();
}

TEST(Fuzz, EveryMutationOfItIsJudgedSound)
{
    if (!settings.input.empty())
        GTEST_SKIP() << "one input was asked for";
    const uint64_t runs = settings.runs ? settings.runs : target.runs / SLOWER;
    Mutator mutator(settings.seed, corpus());
    for (uint64_t run = 0; run < runs; run++)
        if (!try_one(mutator.next(),
                     "seed " + std::to_string(settings.seed) + ", run " + std::to_string(run)))
            return;
    finish(runs >= target.runs);
    last_input().forget();
}

bool take(const char *argument, const char *name, std::string *out)
{
    const size_t size = strlen(name);
    if (strncmp(argument, name, size) != 0)
        return false;
    *out = argument + size;
    return true;
}

bool read_arguments(int argc, char **argv)
{
    std::string value;
    for (int i = 1; i < argc; i++) {
        if (take(argv[i], "--seed=", &value))
            settings.seed = strtoull(value.c_str(), nullptr, 10);
        else if (take(argv[i], "--runs=", &value))
            settings.runs = strtoull(value.c_str(), nullptr, 10);
        else if (!take(argv[i], "--input=", &settings.input))
            return false;
    }
    return true;
}

} // namespace

std::string shown(const Bytes &text)
{
    std::string out;
    for (const char c : text) {
        const auto u = static_cast<unsigned char>(c);
        char escaped[8];
        snprintf(escaped, sizeof escaped, "\\%03o", u);
        out += c == '\n'                                        ? "\\n\n"
               : u >= 0x20 && u < 0x7f && c != '\\' && c != '"' ? std::string(1, c)
                                                                : std::string(escaped);
    }
    return out;
}

} // namespace ag_fuzz

int main(int argc, char **argv)
{
    ag_fuzz::start(argc, argv);
    testing::InitGoogleTest(&argc, argv);
    if (!ag_fuzz::read_arguments(argc, argv)) {
        fprintf(stderr, "usage: %s [--runs=N] [--seed=N] [--input=FILE]\n", argv[0]);
        return 2;
    }
    return RUN_ALL_TESTS();
}
