/* tests/conformance/facts.cc - the driver under test, the facts file, what the facts share.
 * Called by  the *_facts.cc files       Calls  dlopen, the driver
 * Threads    see facts.h
 * Promise    every test runs in a process of its own; a fact is in the file before the next is asked
 * Start at   main()                                                                         */
#include "tests/conformance/facts.h"

#include "kernels/images.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

conformance_driver drv;

static FILE *facts_file()
{
    static FILE *f = [] {
        const char *path = getenv("CONFORMANCE_OUT");
        return path && *path ? fopen(path, "a") : nullptr;
    }();
    return f;
}

void record_fact(const std::string &name, long long value)
{
    if (FILE *f = facts_file()) {
        fprintf(f, "%s = %lld\n", name.c_str(), value);
        fflush(f);
    }
}

void Facts::SetUp()
{
    NEED(drv.cuInit(0));
    NEED(drv.cuDevicePrimaryCtxRetain(&ctx, 0));
    NEED(drv.cuCtxSetCurrent(ctx));
    NEED(drv.cuMemHostAlloc(reinterpret_cast<void **>(&flag), 64, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(flag, 0, 64);
    next_flag = 1;
    store = function(ag_image_basic, "store");
    step = function(ag_image_chain, "step");
    chain = function(ag_image_chain, "chain");
    null_kernel = function(ag_image_chain, "null");
    wait_flag = function(ag_image_flag, "wait_flag");
    smem = function(ag_image_smem, "uses_dynamic_smem");
}

void Facts::TearDown()
{
    if (!flag)
        return;
    release();
    drv.cuCtxSynchronize();
    for (CUevent e : events_)
        drv.cuEventDestroy(e);
    for (CUstream s : streams_)
        drv.cuStreamDestroy(s);
    for (CUdeviceptr b : buffers_)
        drv.cuMemFree(b);
    for (CUmodule m : modules_)
        drv.cuModuleUnload(m);
    drv.cuMemFreeHost(flag);
    drv.cuDevicePrimaryCtxRelease(0);
}

CUfunction Facts::function(const unsigned char *image, const char *name)
{
    CUmodule m = nullptr;
    CUfunction f = nullptr;
    EXPECT_EQ(drv.cuModuleLoadData(&m, image), CUDA_SUCCESS);
    EXPECT_EQ(drv.cuModuleGetFunction(&f, m, name), CUDA_SUCCESS);
    modules_.push_back(m);
    return f;
}

CUstream Facts::stream(unsigned flags)
{
    CUstream s = nullptr;
    EXPECT_EQ(drv.cuStreamCreate(&s, flags), CUDA_SUCCESS);
    streams_.push_back(s);
    return s;
}

CUevent Facts::event(unsigned flags)
{
    CUevent e = nullptr;
    EXPECT_EQ(drv.cuEventCreate(&e, flags), CUDA_SUCCESS);
    events_.push_back(e);
    return e;
}

CUdeviceptr Facts::buffer(size_t bytes)
{
    CUdeviceptr p = 0;
    EXPECT_EQ(drv.cuMemAlloc(&p, bytes), CUDA_SUCCESS);
    EXPECT_EQ(drv.cuMemsetD8(p, 0, bytes), CUDA_SUCCESS);
    EXPECT_EQ(drv.cuCtxSynchronize(), CUDA_SUCCESS); // not ordered before a non-blocking stream
    buffers_.push_back(p);
    return p;
}

CUresult Facts::launch(CUfunction f, CUstream s, std::vector<void *> args, unsigned grid,
                       unsigned block, unsigned shared)
{
    return drv.cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, s, args.data(), nullptr);
}

int Facts::read(CUdeviceptr at, size_t index)
{
    int v = -1;
    EXPECT_EQ(drv.cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(drv.cuMemcpyDtoH(&v, at + 4 * index, 4), CUDA_SUCCESS);
    return v;
}

CUDA_MEMCPY3D Facts::row(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    CUDA_MEMCPY3D c = {};
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = src;
    c.dstDevice = dst;
    c.WidthInBytes = bytes;
    c.Height = c.Depth = 1;
    return c;
}

void Facts::hold(CUstream s)
{
    void *p = flag;
    EXPECT_EQ(launch(wait_flag, s, {&p, &next_flag}), CUDA_SUCCESS);
}

void Facts::release()
{
    __atomic_store_n(flag, next_flag++, __ATOMIC_RELEASE);
}

int Facts::waits_for_release(const std::function<void()> &call)
{
    std::atomic<bool> released{false}, returned{false};
    std::thread later([&] {
        usleep(300000);
        released = true;
        // Where the call is back, what it wrote comes before the release, for a sanitizer too.
        (void)returned.load();
        release();
    });
    call();
    const int waited = released;
    returned = true;
    later.join();
    return waited;
}

int Facts::blocks(CUstream s, const std::function<void()> &call)
{
    hold(s);
    const int waited = waits_for_release(call);
    EXPECT_EQ(drv.cuCtxSynchronize(), CUDA_SUCCESS);
    return waited;
}

static int load_driver(bool announce)
{
    drv.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!drv.library) {
        fprintf(stderr, "SKIP: %s\n", dlerror());
        return 77;
    }
#define NAME_OF(x) #x
#define X(name)                                                                                    \
    drv.name = reinterpret_cast<decltype(drv.name)>(dlsym(drv.library, NAME_OF(name)));            \
    if (!drv.name)                                                                                 \
        fprintf(stderr, "missing: %s\n", NAME_OF(name));
    CONFORMANCE_CALLS(X)
#undef X
    struct link_map *map = nullptr;
    dlinfo(drv.library, RTLD_DI_LINKMAP, &map);
    drv.path = map->l_name;
    if (!announce)
        return 0;
    int version = 0;
    drv.cuDriverGetVersion(&version);
    printf("driver under test: %s, version %d\n", drv.path.c_str(), version);
    return 0;
}

/* Each test has a process: one that crashes or hangs loses only its own later facts. How a test that
 * may crash (Isolated*) ended is a fact. */
static int run_alone(const std::string &test)
{
    fflush(nullptr);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CONFORMANCE_ALONE", "1", 1);
        alarm(60); /* survives exec */
        std::string filter = "--gtest_filter=" + test;
        execl("/proc/self/exe", "conformance", filter.c_str(), "--gtest_brief=1", nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (test.compare(0, 8, "Isolated") == 0) {
        record_fact(test + ".signal", signal);
        return signal ? 0 : WEXITSTATUS(status);
    }
    if (signal)
        printf("%s: ended by signal %d\n", test.c_str(), signal);
    return signal || WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    const bool alone = getenv("CONFORMANCE_ALONE") != nullptr;
    const bool chosen = argc > 1;
    if (!alone && getenv("CONFORMANCE_OUT"))
        (void)remove(getenv("CONFORMANCE_OUT"));
    ::testing::InitGoogleTest(&argc, argv);
    int failed = load_driver(!alone);
    if (failed)
        return failed;
    if (alone || chosen)
        return RUN_ALL_TESTS();
    const auto *unit = ::testing::UnitTest::GetInstance();
    int tests = 0, red = 0;
    for (int s = 0; s < unit->total_test_suite_count(); s++) {
        const auto *suite = unit->GetTestSuite(s);
        for (int t = 0; t < suite->total_test_count(); t++, tests++)
            red += run_alone(std::string(suite->name()) + "." + suite->GetTestInfo(t)->name()) != 0;
    }
    printf("CONFORMANCE: %d tests, %d not as expected\n", tests, red);
    return red != 0;
}
