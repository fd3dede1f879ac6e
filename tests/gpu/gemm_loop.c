/* tests/gpu/gemm_loop.c - a loop of small cuBLAS products, as a program on the driver API makes it.
 * Calls      libcuda.so.1; libcublas.so.13, opened when it runs, so that it builds without it
 * Usage      gemm_loop [-n SIZE] [-i ITERATIONS] [-b BLOCKS] [-t f32|tf32|f16|bf16] [-s]
 *            -t kind of numbers (the tensor-core kernels are launched in another way than the plain
 *            ones); -s waits after each iteration
 * Promise    the same products on every run; standard output holds the result only, the time of
 *            an iteration (median over blocks) goes to standard error as a JSON line
 * Start at   iteration()                                                        */
#include <cublas_v2.h>
#include <cuda.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MATRICES = 4, MAX_BLOCKS = 1000 };

struct blas {
    cublasStatus_t (*create)(cublasHandle_t *);
    cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t);
    cublasStatus_t (*sgemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                            const float *, const float *, int, const float *, int, const float *,
                            float *, int);
    cublasStatus_t (*gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const void *, const void *, cudaDataType, int, const void *,
                              cudaDataType, int, const void *, void *, cudaDataType, int,
                              cublasComputeType_t, cublasGemmAlgo_t);
    cublasHandle_t handle;
};

/* What -t names. `pattern` and `mask` make a 16-bit number between a half and one of random bits. */
static const struct kind {
    const char *name;
    cudaDataType type;
    cublasComputeType_t compute;
    unsigned bytes, pattern, mask;
} kinds[] = {
    {"f32", CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, 0, 0},
    {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 0, 0},
    {"f16", CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, 0x3800, 0x3ff},
    {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 0x3f00, 0x7f},
};

struct loop {
    struct blas blas;
    const struct kind *kind;
    CUstream stream;
    int size;
    CUdeviceptr m[MATRICES];
};

static void check(CUresult ret, const char *what)
{
    if (ret == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, (int)ret);
    exit(1);
}

static void check_blas(cublasStatus_t ret, const char *what)
{
    if (ret == CUBLAS_STATUS_SUCCESS)
        return;
    fprintf(stderr, "%s: status %d\n", what, (int)ret);
    exit(1);
}

static void open_blas(struct blas *b)
{
    void *lib = dlopen("libcublas.so.13", RTLD_NOW);
    if (!lib)
        lib = dlopen("libcublas.so.12", RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "gemm_loop: %s\n", dlerror());
        exit(1);
    }
    b->create = dlsym(lib, "cublasCreate_v2");
    b->set_stream = dlsym(lib, "cublasSetStream_v2");
    b->sgemm = dlsym(lib, "cublasSgemm_v2");
    b->gemm_ex = dlsym(lib, "cublasGemmEx");
    if (!b->create || !b->set_stream || !b->sgemm || !b->gemm_ex) {
        fputs("gemm_loop: this libcublas lacks a function\n", stderr);
        exit(1);
    }
    check_blas(b->create(&b->handle), "cublasCreate");
}

static void open_loop(struct loop *l, int size)
{
    size_t cells = (size_t)size * (size_t)size;
    CUdevice device;
    CUcontext ctx;
    float *start = malloc(cells * sizeof *start);
    uint16_t *half = (uint16_t *)start;
    if (!start)
        exit(1);
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&ctx, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
    check(cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    l->size = size;
    for (unsigned k = 0; k < MATRICES; k++) {
        for (size_t i = 0; i < cells; i++) {
            unsigned word = (unsigned)((i * 2654435761u + k * 40503u) >> 8);
            if (l->kind->bytes == 4)
                start[i] = (float)(word & 1023) / 512.0f - 1.0f;
            else
                half[i] = (uint16_t)(l->kind->pattern | (word & l->kind->mask));
        }
        check(cuMemAlloc(&l->m[k], cells * l->kind->bytes), "cuMemAlloc");
        check(cuMemcpyHtoD(l->m[k], start, cells * l->kind->bytes), "cuMemcpyHtoD");
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    free(start);
    open_blas(&l->blas);
    check_blas(l->blas.set_stream(l->blas.handle, (cudaStream_t)l->stream), "cublasSetStream");
}

/* m[c] = alpha m[a] m[b] + beta m[c], with factors that keep the values bounded. */
static void product(struct loop *l, int a, int b, int c, unsigned long i)
{
    float alpha = (1.0f + (float)(i & 3) * 0.25f) / (float)l->size;
    float beta = 0.5f;
    const struct kind *k = l->kind;
    if (k != kinds) {
        check_blas(l->blas.gemm_ex(l->blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, l->size, l->size,
                                   l->size, &alpha, (const void *)(uintptr_t)l->m[a], k->type,
                                   l->size, (const void *)(uintptr_t)l->m[b], k->type, l->size,
                                   &beta, (void *)(uintptr_t)l->m[c], k->type, l->size, k->compute,
                                   CUBLAS_GEMM_DEFAULT),
                   "cublasGemmEx");
        return;
    }
    check_blas(l->blas.sgemm(l->blas.handle, CUBLAS_OP_N, CUBLAS_OP_N, l->size, l->size, l->size,
                             &alpha, (const float *)(uintptr_t)l->m[a], l->size,
                             (const float *)(uintptr_t)l->m[b], l->size, &beta,
                             (float *)(uintptr_t)l->m[c], l->size),
               "cublasSgemm");
}

static void iteration(struct loop *l, unsigned long i)
{
    for (int k = 0; k < 6; k++) {
        product(l, 0, 1, 2, i);
        product(l, 1, 2, 3, i);
        product(l, 0, 3, 2, i);
        product(l, 1, 0, 3, i);
    }
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void result(const struct loop *l)
{
    size_t bytes = (size_t)l->size * (size_t)l->size * l->kind->bytes;
    unsigned char *end = malloc(bytes);
    uint64_t hash = 14695981039346656037ull;
    if (!end)
        exit(1);
    for (int k = 2; k < MATRICES; k++) {
        check(cuMemcpyDtoH(end, l->m[k], bytes), "cuMemcpyDtoH");
        for (size_t i = 0; i < bytes; i++)
            hash = (hash ^ end[i]) * 1099511628211ull;
    }
    free(end);
    printf("gemm_loop: checksum %016" PRIx64 "\n", hash);
}

static const struct kind *kind_named(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

int main(int argc, char **argv)
{
    static struct loop l;
    static double samples[MAX_BLOCKS];
    int size = 128, iterations = 40, blocks = 15, wait = 0, c;
    unsigned long done = 0;
    l.kind = kinds;
    while ((c = getopt(argc, argv, "n:i:b:t:s")) != -1) {
        if (c == 'n')
            size = atoi(optarg);
        else if (c == 'i')
            iterations = atoi(optarg);
        else if (c == 'b')
            blocks = atoi(optarg);
        else if (c == 't')
            l.kind = kind_named(optarg);
        else if (c == 's')
            wait = 1;
        else
            return 2;
    }
    if (!l.kind || size < 1 || size > 8192 || iterations < 1 || blocks < 1 || blocks > MAX_BLOCKS)
        return 2;
    open_loop(&l, size);
    for (int b = -3; b < blocks; b++) { /* three blocks to warm up */
        double began = now_us();
        for (int i = 0; i < iterations; i++) {
            iteration(&l, done++);
            if (wait)
                check(cuStreamSynchronize(l.stream), "cuStreamSynchronize");
        }
        check(cuStreamSynchronize(l.stream), "cuStreamSynchronize");
        if (b >= 0)
            samples[b] = (now_us() - began) / iterations;
    }
    result(&l);
    qsort(samples, (size_t)blocks, sizeof *samples, by_value);
    fprintf(stderr, "{\"bench\": \"gemm_loop\", \"unit\": \"us per 24 products\", \"size\": %d, ",
            size);
    fprintf(stderr, "\"median\": %.3f}\n", samples[blocks / 2]);
    return 0;
}
