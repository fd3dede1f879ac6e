/* tests/fuzz/names_fuzz.cc - names near those of the driver, asked for by dlsym and cuGetProcAddress
 * under the shim: a known one gives its export, another function of the driver one numbered thunk
 * (the bare function when there are no more), and nothing else is touched.
 * Runs under LD_PRELOAD with the fake driver of tests/resolver; the real dlsym, reached through
 * dlvsym, says what the program would get without the shim.
 * An input is one question a line: NAME, or NAME VERSION FLAGS. */
#include "tests/fuzz/fuzz.h"

#include "tests/resolver/fake_libcuda.h"
#include "tests/support/process.h"

#include <cstring>
#include <dlfcn.h>
#include <map>
#include <set>
#include <unistd.h>

namespace ag_fuzz
{
namespace
{

using Dlsym = void *(*)(void *, const char *);
using Ask = int (*)(const char *, void **, int, uint64_t, int *);

const std::vector<Bytes> known_names = {
#define AG_HOOK(symbol, class) #symbol,
#include "shim/hooks.def"
#undef AG_HOOK
};

enum { POOL = 256 }; // numbered thunks, as docs/ARCHITECTURE.md says
enum { BELOW = 0x5a5a };

struct Met {
    uint64_t exports, thunks, bare, nothing, foreign, asked, reached;
};
Met met;

/* What the process is made of: the driver, the shim, and which of our pointers stands for which
 * function of the driver. */
struct World {
    void *cuda, *shim;
    const struct fake_api *fake;
    Dlsym real;
    Ask real_ask;
    std::map<void *, std::string> bare; // every function of the driver
    std::map<void *, void *> export_of; // of a known one
    std::map<void *, void *> thunk_of;  // of another one that was asked for
    std::set<void *> ours;              // exports and thunks handed out
};

Dlsym find_real_dlsym()
{
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *found = nullptr;
    for (const char *version : {"GLIBC_2.34", "GLIBC_2.2.5"})
        found = found ? found : dlvsym(libc, "dlsym", version);
    return reinterpret_cast<Dlsym>(found);
}

World make_world()
{
    World w = {};
    w.real = find_real_dlsym();
    w.cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    w.shim = dlopen(ag_test::runfile("libautograph.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (!w.real || !w.cuda || !w.shim) {
        fprintf(stderr, "names_fuzz: %s\n", dlerror());
        _exit(3);
    }
    w.fake = reinterpret_cast<const struct fake_api *(*)()>(w.real(w.cuda, "fake_api"))();
    w.real_ask = reinterpret_cast<Ask>(w.real(w.cuda, "cuGetProcAddress_v2"));
    for (int row = 0; row < FAKE_ROWS; row++)
        if (void *address = w.real(w.cuda, w.fake->names[row]))
            w.bare[address] = w.fake->names[row];
    for (const Bytes &name : known_names) {
        void *const address = w.real(w.cuda, name.c_str());
        void *const hook = w.real(w.shim, name.c_str());
        Dl_info info;
        EXPECT_TRUE(hook && dladdr(hook, &info) && strstr(info.dli_fname, "libautograph.so"))
            << name;
        if (address)
            w.export_of[address] = hook;
        w.ours.insert(hook);
    }
    return w;
}

World &world()
{
    static World w = make_world();
    return w;
}

bool in_shim(void *address)
{
    Dl_info info;
    return dladdr(address, &info) && strstr(info.dli_fname, "libautograph.so");
}

/* The first time that a pointer of ours is seen it is called: the call has to arrive where the bare
 * one would. A look-up is known by its argument, others by their answer. */
void expect_reaches(void *found, const std::string &name)
{
    static char zeros[FAKE_ARGS][4096];
    using Eleven = int (*)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                           void *, void *);
    const unsigned before = world().fake->calls();
    reinterpret_cast<Eleven>(found)(zeros[0], zeros[1], zeros[2], zeros[3], zeros[4], zeros[5],
                                    zeros[6], zeros[7], zeros[8], zeros[9], zeros[10]);
    bool arrived = false;
    for (unsigned i = before; i < world().fake->calls(); i++)
        arrived |= world().fake->names[world().fake->call(i)->row] == name;
    world().fake->forget();
    EXPECT_TRUE(arrived) << name;
    met.reached += arrived;
}

/* What a function of the driver may be handed out as. */
void judge_driver(void *bare, void *found)
{
    World &w = world();
    const auto known = w.export_of.find(bare);
    if (known != w.export_of.end()) {
        EXPECT_EQ(found, known->second) << w.bare[bare];
        met.exports++;
        return;
    }
    const auto before = w.thunk_of.find(bare);
    if (before != w.thunk_of.end()) {
        EXPECT_EQ(found, before->second) << w.bare[bare] << " has another thunk now";
        met.thunks++;
    } else if (w.thunk_of.size() < POOL) {
        EXPECT_TRUE(in_shim(found)) << w.bare[bare] << " by-passes the shim";
        EXPECT_TRUE(w.ours.insert(found).second) << w.bare[bare] << " shares a thunk";
        w.thunk_of[bare] = found;
        expect_reaches(found, w.bare[bare]);
        met.thunks++;
    } else {
        EXPECT_EQ(found, bare) << w.bare[bare] << " after the last thunk";
        met.bare++;
    }
}

std::string error_text()
{
    const char *text = dlerror();
    return text ? text : "";
}

/* `native`: what the look-up gives without the shim, and the message that it leaves. */
void judge_answer(void *native, void *found, const std::string &name)
{
    if (native && world().bare.count(native))
        return judge_driver(native, found);
    EXPECT_EQ(found, native) << name;
    met.nothing += !native;
    met.foreign += native != nullptr;
}

void by_handle(const std::string &name)
{
    error_text();
    void *const native = world().real(world().cuda, name.c_str());
    const std::string said = error_text();
    void *const found = dlsym(world().cuda, name.c_str());
    EXPECT_EQ(error_text(), said) << name;
    judge_answer(native, found, name);
}

// The real one finds our export first, which is right where the driver has the function.
void by_default(const std::string &name)
{
    void *const bare = world().real(world().cuda, name.c_str());
    void *const native =
        bare && world().bare.count(bare) ? bare : world().real(RTLD_DEFAULT, name.c_str());
    const bool lacking = native && native != bare && in_shim(native) && name != "dlsym";
    error_text();
    void *const found = dlsym(RTLD_DEFAULT, name.c_str());
    EXPECT_EQ(error_text().empty(), found != nullptr) << name;
    judge_answer(lacking ? nullptr : native, found, name);
}

void by_version(const std::string &name, int version, uint64_t flags)
{
    World &w = world();
    static const Ask ask = reinterpret_cast<Ask>(dlsym(w.cuda, "cuGetProcAddress_v2"));
    void *const untouched = &w;
    void *native = untouched, *found = untouched;
    int native_status = BELOW, status = BELOW;
    const int result = w.real_ask(name.c_str(), &native, version, flags, &native_status);
    EXPECT_EQ(ask(name.c_str(), &found, version, flags, &status), result) << name;
    EXPECT_EQ(status, native_status) << name;
    w.fake->forget();
    met.asked++;
    judge_answer(native, found, name);
}

std::vector<Bytes> the_words()
{
    std::vector<Bytes> all = known_names;
    for (int i = 2; i <= 300; i++) // the fake driver's functions that the table lacks
        all.push_back("cuFutureOp" + std::to_string(i));
    for (size_t i = all.size(); i-- > 0;) // as a question of its own, and not only inside others
        for (int n = i < known_names.size() ? 1 : 5; n > 0; n--)
            all.push_back("\n" + all[i] + "\n");
    for (int i = 0; i < 60; i++)
        for (const char *word : {"\n", "_v2", "_v3", "_ptsz", "_ptds", "cu", "cuda", " 12000 0",
                                 " 13000 2", " 2000 1", "cuFutureOp"})
            all.push_back(word);
    for (const char *word : {"malloc", "dlsym", "fake_api", "cublasCreate_v2", "cuteThing", "main"})
        all.push_back(word);
    return all;
}

} // namespace

const Target target = {"names", 12000, 400, the_words()};

/* Again, under the shim and with a driver to be found. */
void start(int, char **argv)
{
    if (getenv("NAMES_FUZZ_PRELOADED"))
        return;
    const std::string driver = ag_test::runfile("tests/resolver/" FAKE_DRIVER "/libcuda.so.1");
    setenv("NAMES_FUZZ_PRELOADED", "1", 1);
    setenv("LD_LIBRARY_PATH", driver.substr(0, driver.rfind('/')).c_str(), 1);
    setenv("LD_PRELOAD", ag_test::preload(ag_test::runfile("libautograph.so")).c_str(), 1);
    // With statistics look-ups stay ours when holding is off, which it is without thunks.
    setenv("AUTOGRAPH_STATS", (ag_test::make_dir("names") + "/stats.json").c_str(), 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    execv("/proc/self/exe", argv);
    _exit(3);
}

void one(const Bytes &input)
{
    for (size_t at = 0; at < input.size();) {
        const size_t end = std::min(input.find('\n', at), input.size());
        const std::string line = input.substr(at, end - at).c_str();
        at = end + 1;
        const std::string name = line.substr(0, line.find(' '));
        int version = 13000;
        unsigned flags = 0;
        if (name != line)
            sscanf(line.c_str() + name.size(), "%9d %9u", &version, &flags);
        by_handle(name);
        by_default(name);
        by_version(name, version, flags);
    }
}

void finish(bool enough)
{
    if (!enough)
        return;
    EXPECT_GT(met.exports, 1000u);
    EXPECT_GT(met.nothing, 1000u);
    EXPECT_GT(met.foreign, 10u);
    EXPECT_GT(met.asked, 1000u);
    EXPECT_EQ(world().thunk_of.size(), size_t(POOL)) << "of functions that the table lacks";
    EXPECT_EQ(met.reached, uint64_t(POOL));
    EXPECT_GT(met.bare, 10u);
}

} // namespace ag_fuzz
