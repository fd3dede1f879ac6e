/* kernels/host.cc - runs the blocks of a host-compiled kernel.
 * Called by  tools/simcuda/sim_work.c through sim_host_run      Calls  the kernels
 * Threads    any; everything here is thread-local. A thread of a block that meets a barrier is a
 *            fiber of the calling thread; blocks without barriers are plain loops.
 * Promise    __syncthreads() is met by every thread of the block that has not returned
 * Start at   sim_host_run()                                                                  */
#include "kernels/host.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace
{

constexpr size_t FIBER_STACK = 64 * 1024;
constexpr unsigned MAX_FIBERS = 1024;
constexpr size_t MAX_SHARED = 256 * 1024;

struct fiber {
    ucontext_t context;
    char *stack;
    bool finished;
#if defined(__SANITIZE_THREAD__)
    void *tsan;
#endif
};

/* One per OS thread that ever ran a kernel. */
struct runner {
    const sim_host_launch *launch;
    char *shared;     /* dynamic shared memory of the running block */
    sigjmp_buf fault; /* where sim_host_fault leaves to */
    int code;         /* of that fault */
    bool in_fiber;    /* the kernel runs on a fiber's stack */
    fiber *fibers;    /* MAX_FIBERS of them, made on first use */
    fiber *current;
    ucontext_t scheduler;
#if defined(__SANITIZE_THREAD__)
    void *scheduler_tsan;
#endif
#if defined(__SANITIZE_ADDRESS__)
    const void *stack_bottom;
    size_t stack_size;
#endif
};

__thread runner *self;
pthread_key_t runner_key;
pthread_once_t runner_once = PTHREAD_ONCE_INIT;

void free_runner(void *p)
{
    runner *r = static_cast<runner *>(p);
    if (r->fibers)
        for (unsigned i = 0; i < MAX_FIBERS; i++) {
            if (r->fibers[i].stack)
                munmap(r->fibers[i].stack, FIBER_STACK);
#if defined(__SANITIZE_THREAD__)
            if (r->fibers[i].tsan)
                __tsan_destroy_fiber(r->fibers[i].tsan);
#endif
        }
    free(r->fibers);
    free(r->shared);
    free(r);
    self = nullptr;
}

void make_runner_key()
{
    pthread_key_create(&runner_key, free_runner);
}

runner *runner_get()
{
    if (!self) {
        pthread_once(&runner_once, make_runner_key);
        self = static_cast<runner *>(calloc(1, sizeof(runner)));
        self->shared = static_cast<char *>(aligned_alloc(128, MAX_SHARED));
        memset(self->shared, 0xEE, MAX_SHARED);
        pthread_setspecific(runner_key, self);
    }
    return self;
}

void set_thread(unsigned t)
{
    threadIdx.x = t % blockDim.x;
    threadIdx.y = t / blockDim.x % blockDim.y;
    threadIdx.z = t / blockDim.x / blockDim.y;
}

/* Both directions of a switch; `leaving` tells ASan that the old stack is not coming back. */
void switch_to(runner *r, ucontext_t *from, ucontext_t *to, fiber *target, bool leaving)
{
#if defined(__SANITIZE_ADDRESS__)
    void *fake = nullptr;
    const void *bottom = target ? target->stack : r->stack_bottom;
    __sanitizer_start_switch_fiber(leaving ? nullptr : &fake, bottom,
                                   target ? FIBER_STACK : r->stack_size);
#else
    (void)leaving;
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(target ? target->tsan : r->scheduler_tsan, 0);
#endif
    (void)r;
    (void)target;
    swapcontext(from, to);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, target ? &r->stack_bottom : nullptr,
                                    target ? &r->stack_size : nullptr);
#endif
}

#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize_thread))
#endif
void fiber_main()
{
    runner *r = self;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &r->stack_bottom, &r->stack_size);
#endif
    r->launch->kernel->call(r->launch->args);
    r->current->finished = true;
    switch_to(r, &r->current->context, &r->scheduler, nullptr, true);
    abort(); /* a finished fiber is never resumed */
}

void prepare_fiber(runner *r, fiber *f)
{
    if (!f->stack) {
        f->stack = static_cast<char *>(mmap(nullptr, FIBER_STACK, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (f->stack == MAP_FAILED)
            abort();
#if defined(__SANITIZE_THREAD__)
        f->tsan = __tsan_create_fiber(0);
#endif
    }
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = FIBER_STACK;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_main, 0);
    f->finished = false;
    (void)r;
}

/* Every thread runs to its next barrier before any passes it. */
void run_block_with_barriers(runner *r, unsigned threads)
{
    if (!r->fibers)
        r->fibers = static_cast<fiber *>(calloc(MAX_FIBERS, sizeof(fiber)));
#if defined(__SANITIZE_THREAD__)
    r->scheduler_tsan = __tsan_get_current_fiber();
#endif
    for (unsigned t = 0; t < threads; t++)
        prepare_fiber(r, &r->fibers[t]);
    for (unsigned left = threads; left && !r->code;)
        for (unsigned t = 0; t < threads && !r->code; t++) {
            fiber *f = &r->fibers[t];
            if (f->finished)
                continue;
            set_thread(t);
            r->current = f;
            r->in_fiber = true;
            switch_to(r, &r->scheduler, &f->context, f, false);
            r->in_fiber = false;
            if (f->finished)
                left--;
        }
}

void run_block(runner *r)
{
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    if (r->launch->kernel->has_barrier) {
        run_block_with_barriers(r, threads);
        return;
    }
    for (unsigned t = 0; t < threads; t++) {
        set_thread(t);
        r->launch->kernel->call(r->launch->args);
    }
}

} // namespace

void __syncthreads()
{
    runner *r = self;
    if (!r->in_fiber) {
        fprintf(stderr, "kernel %s calls __syncthreads(): register.awk did not see it\n",
                r->launch->kernel->name);
        abort();
    }
    switch_to(r, &r->current->context, &r->scheduler, nullptr, false);
}

void sim_host_pause()
{
    usleep(20);
}

void sim_host_fault(int code)
{
    runner *r = self;
    r->code = code;
    if (!r->in_fiber)
        siglongjmp(r->fault, 1);
    r->current->finished = true;
    switch_to(r, &r->current->context, &r->scheduler, nullptr, true);
    abort();
}

void *sim_host_dynamic_shared()
{
    return self->shared;
}

unsigned ag_dynamic_shared_bytes()
{
    return self->launch->dynamic_shared;
}

extern "C" int sim_host_run(const sim_host_launch *launch)
{
    runner *r = runner_get();
    r->launch = launch;
    r->code = 0;
    blockDim = {launch->block[0], launch->block[1], launch->block[2]};
    gridDim = {launch->grid[0], launch->grid[1], launch->grid[2]};
    if (sigsetjmp(r->fault, 0))
        return r->code;
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x && !r->code; x++) {
                blockIdx = {x, y, z};
                run_block(r);
            }
    return r->code;
}

extern "C" {
extern const sim_kernel *const __start_sim_kernels[], *const __stop_sim_kernels[];
extern const sim_constant *const __start_sim_constants[], *const __stop_sim_constants[];
}

extern "C" const sim_kernel *sim_host_find_kernel(const char *name)
{
    for (const sim_kernel *const *k = __start_sim_kernels; k < __stop_sim_kernels; k++)
        if (!strcmp((*k)->name, name))
            return *k;
    return nullptr;
}

extern "C" const sim_constant *sim_host_find_constant(const char *name)
{
    for (const sim_constant *const *c = __start_sim_constants; c < __stop_sim_constants; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    return nullptr;
}
