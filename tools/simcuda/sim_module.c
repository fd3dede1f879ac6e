/* tools/simcuda/sim_module.c - modules and libraries: images bound to host-built kernels.
 * Called by  programs                   Calls  sim_image.c, kernels/host.cc, sim_memory.c
 * Threads    bodies hold sim_lock
 * Promise    an image with a kernel that has no host build is refused at load, by name
 * Start at   make_module()                                                                  */
#define _GNU_SOURCE
#include "tools/simcuda/sim_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/simcuda/sim_context.h"
#include "tools/simcuda/sim_image.h"
#include "tools/simcuda/sim_memory.h"

static void free_function(struct sim_object *self)
{
    struct sim_function *f = (struct sim_function *)self;
    free(f->name);
    sim_unref(f->module);
}

static void free_module(struct sim_object *self)
{
    struct sim_module *m = (struct sim_module *)self;
    free(m->functions);
    free(m->constants);
}

void sim_module_bring_constants(struct sim_module *m)
{
    for (size_t i = 0; i < m->nconstants; i++)
        memcpy(m->constants[i].host->address(), (const void *)m->constants[i].at,
               m->constants[i].host->bytes);
}

static CUresult check_image(const struct sim_image *image)
{
    for (size_t i = 0; i < image->nkernels; i++)
        if (!sim_host_find_kernel(image->kernels[i].name)) {
            fprintf(stderr, "simcuda: kernel %s has no host build\n", image->kernels[i].name);
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
        }
    return CUDA_SUCCESS;
}

static struct sim_function *make_function(struct sim_module *m, const struct sim_image_kernel *k)
{
    struct sim_function *f = sim_object_new(sizeof *f, SIM_FUNCTION, m->object.ctx, free_function);
    f->host = sim_host_find_kernel(k->name);
    f->name = strdup(k->name);
    f->module = sim_ref(m);
    f->static_shared = k->static_shared;
    f->max_dynamic = SIM_DEFAULT_DYNAMIC_SHARED - (int)k->static_shared;
    f->carveout = -1;
    f->loaded = true;
    return f;
}

static CUresult make_module(const struct sim_image *image, struct sim_context *ctx,
                            struct sim_module **out)
{
    struct sim_module *m = sim_object_new(sizeof *m, SIM_MODULE, ctx, free_module);
    m->functions = sim_new(image->nkernels * sizeof *m->functions);
    m->constants = sim_new(image->nglobals * sizeof *m->constants);
    for (size_t i = 0; i < image->nkernels; i++)
        m->functions[m->nfunctions++] = make_function(m, &image->kernels[i]);
    for (size_t i = 0; i < image->nglobals; i++) {
        const struct sim_constant *c = sim_host_find_constant(image->globals[i]);
        struct sim_range *r = c ? sim_memory_make(ctx, SIM_MEMORY_CONSTANT, c->bytes) : NULL;
        if (!r)
            continue; /* not ours to know: cuModuleGetGlobal says NOT_FOUND */
        memset((void *)r->base, 0, c->bytes);
        m->constants[m->nconstants++] = (struct sim_constant_copy){c, r, r->base};
    }
    *out = m;
    return CUDA_SUCCESS;
}

void sim_module_retire(struct sim_module *m)
{
    for (size_t i = 0; i < m->nfunctions; i++) {
        sim_handle_drop(m->functions[i]);
        sim_unref(m->functions[i]);
    }
    m->nfunctions = 0;
    for (size_t i = 0; i < m->nconstants; i++)
        if (sim_memory_at(m->constants[i].at) == m->constants[i].range)
            sim_memory_release(m->constants[i].range);
    m->nconstants = 0;
    sim_handle_drop(m);
    sim_unref(m);
}

static CUresult load(CUmodule *out, const void *bytes)
{
    struct sim_image *image = sim_new(sizeof *image);
    struct sim_module *m = NULL;
    if (!out || !bytes) {
        free(image);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult ret = (CUresult)sim_image_read(bytes, image);
    if (!ret)
        ret = check_image(image);
    /* Loading waits for the context's work, as unloading does, and lets nobody launch meanwhile. */
    struct sim_context *ctx = sim_ref(sim_context_current());
    if (!ret)
        ret = sim_context_drain_shut(ctx);
    if (!ret && ctx->destroyed) /* meanwhile: the lock was open */
        ret = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!ret)
        ret = make_module(image, ctx, &m);
    sim_unref(ctx);
    if (!ret)
        *out = sim_handle_make(m); /* the object's first reference stays with the handle's life */
    free(image);
    return ret;
}

SIM_API(cuModuleLoadData, SIM_NS_LOAD, SIM_CTX | SIM_UNSAFE, (CUmodule * out, const void *image),
        (out, image))
{
    return load(out, image);
}

SIM_API(cuModuleLoadDataEx, SIM_NS_LOAD, SIM_CTX | SIM_UNSAFE,
        (CUmodule * out, const void *image, unsigned n, CUjit_option *options, void **values),
        (out, image, n, options, values))
{
    (void)n, (void)options, (void)values;
    return load(out, image);
}

SIM_API(cuModuleLoadFatBinary, SIM_NS_LOAD, SIM_CTX | SIM_UNSAFE,
        (CUmodule * out, const void *image), (out, image))
{
    return load(out, image);
}

/* The whole file, with a zero byte behind it for PTX. */
static void *read_file(const char *path)
{
    struct stat st;
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!f || fstat(fileno(f), &st) || st.st_size < 16) {
        if (f)
            fclose(f);
        return NULL;
    }
    char *bytes = sim_new((size_t)st.st_size + 1);
    if (fread(bytes, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        free(bytes);
        bytes = NULL;
    }
    fclose(f);
    return bytes;
}

SIM_API(cuModuleLoad, SIM_NS_LOAD, SIM_CTX | SIM_UNSAFE, (CUmodule * out, const char *path),
        (out, path))
{
    void *bytes = read_file(path);
    if (!bytes)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult ret = load(out, bytes);
    free(bytes);
    return ret;
}

static struct sim_module *module_of(CUmodule handle, CUresult *out_ret)
{
    struct sim_module *m = sim_handle_find(handle, SIM_MODULE);
    *out_ret = m ? CUDA_SUCCESS
               : sim_handle_is_dead(handle, SIM_MODULE)
                   ? sim_misuse(CUDA_ERROR_INVALID_HANDLE, "module %p is unloaded", (void *)handle)
                   : CUDA_ERROR_INVALID_HANDLE;
    return m;
}

SIM_API(cuModuleUnload, SIM_NS_LOAD, SIM_CTX | SIM_UNSAFE, (CUmodule handle), (handle))
{
    CUresult ret;
    struct sim_module *m = module_of(handle, &ret);
    if (!m)
        return ret;
    if (m->library)
        return CUDA_ERROR_NOT_PERMITTED;
    sim_ref(m);
    ret = sim_context_drain(m->object.ctx);
    if (m->object.handle) /* still: the lock was open while we waited */
        sim_module_retire(m);
    sim_unref(m);
    return ret;
}

static struct sim_function *function_named(struct sim_module *m, const char *name)
{
    for (size_t i = 0; i < m->nfunctions; i++)
        if (!strcmp(m->functions[i]->name, name))
            return m->functions[i];
    return NULL;
}

static CUfunction handle_of(struct sim_function *f)
{
    return f->object.handle ? f->object.handle : sim_handle_make(f);
}

SIM_API(cuModuleGetFunction, SIM_NS_SMALL, SIM_CTX,
        (CUfunction * out, CUmodule handle, const char *name), (out, handle, name))
{
    CUresult ret;
    if (!out || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_module *m = module_of(handle, &ret);
    struct sim_function *f = m ? function_named(m, name) : NULL;
    if (!f)
        return m ? CUDA_ERROR_NOT_FOUND : ret;
    *out = handle_of(f);
    return CUDA_SUCCESS;
}

SIM_API(cuModuleGetFunctionCount, SIM_NS_SMALL, SIM_CTX, (unsigned *out, CUmodule handle),
        (out, handle))
{
    CUresult ret;
    struct sim_module *m = module_of(handle, &ret);
    if (m && !out)
        return CUDA_ERROR_INVALID_VALUE;
    if (m)
        *out = (unsigned)m->nfunctions;
    return ret;
}

SIM_API(cuModuleEnumerateFunctions, SIM_NS_SMALL, SIM_CTX,
        (CUfunction * out, unsigned n, CUmodule handle), (out, n, handle))
{
    CUresult ret;
    struct sim_module *m = module_of(handle, &ret);
    if (m && (!out || !n))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; m && i < n && i < m->nfunctions; i++)
        out[i] = handle_of(m->functions[i]);
    return ret;
}

static CUresult find_global(struct sim_module *m, CUdeviceptr *out, size_t *out_bytes,
                            const char *name)
{
    for (size_t i = 0; i < m->nconstants; i++)
        if (!strcmp(m->constants[i].host->name, name)) {
            if (out)
                *out = m->constants[i].at;
            if (out_bytes)
                *out_bytes = m->constants[i].host->bytes;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

SIM_API(cuModuleGetGlobal_v2, SIM_NS_SMALL, SIM_CTX,
        (CUdeviceptr * out, size_t *out_bytes, CUmodule handle, const char *name),
        (out, out_bytes, handle, name))
{
    CUresult ret;
    if (!name || (!out && !out_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_module *m = module_of(handle, &ret);
    return m ? find_global(m, out, out_bytes, name) : ret;
}

SIM_API(cuModuleGetLoadingMode, SIM_NS_GETTER, SIM_INIT, (CUmoduleLoadingMode * out), (out))
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* ---- libraries: no context of their own, a module in each context that needs one ---- */

static void free_library(struct sim_object *self)
{
    struct sim_library *l = (struct sim_library *)self;
    free(l->image);
    free(l->kernels);
    free(l->modules);
}

static struct sim_library *library_of(CUlibrary handle, CUresult *out_ret)
{
    struct sim_library *l = sim_handle_find(handle, SIM_LIBRARY);
    *out_ret = l ? CUDA_SUCCESS
               : sim_handle_is_dead(handle, SIM_LIBRARY)
                   ? sim_misuse(CUDA_ERROR_INVALID_HANDLE, "library %p is unloaded", (void *)handle)
                   : CUDA_ERROR_INVALID_HANDLE;
    return l;
}

static CUresult load_library(CUlibrary *out, const void *bytes)
{
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_image *image = sim_new(sizeof *image);
    CUresult ret = (CUresult)sim_image_read(bytes, image);
    if (!ret)
        ret = check_image(image);
    if (ret) {
        free(image);
        return ret;
    }
    struct sim_library *l = sim_object_new(sizeof *l, SIM_LIBRARY, NULL, free_library);
    l->image = image;
    l->nkernels = image->nkernels;
    l->kernels = sim_new(l->nkernels * sizeof *l->kernels);
    for (size_t i = 0; i < l->nkernels; i++) {
        l->kernels[i] = sim_object_new(sizeof *l->kernels[i], SIM_KERNEL, NULL, NULL);
        l->kernels[i]->library = l;
        l->kernels[i]->index = i;
        sim_handle_make(l->kernels[i]);
    }
    *out = sim_handle_make(l);
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryLoadData, SIM_NS_LOAD, SIM_INIT,
        (CUlibrary * out, const void *code, CUjit_option *jit, void **jit_values, unsigned njit,
         CUlibraryOption *options, void **values, unsigned n),
        (out, code, jit, jit_values, njit, options, values, n))
{
    (void)jit, (void)jit_values, (void)njit, (void)options, (void)values, (void)n;
    return load_library(out, code);
}

SIM_API(cuLibraryLoadFromFile, SIM_NS_LOAD, SIM_INIT,
        (CUlibrary * out, const char *path, CUjit_option *jit, void **jit_values, unsigned njit,
         CUlibraryOption *options, void **values, unsigned n),
        (out, path, jit, jit_values, njit, options, values, n))
{
    (void)jit, (void)jit_values, (void)njit, (void)options, (void)values, (void)n;
    void *bytes = read_file(path);
    CUresult ret = bytes ? load_library(out, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
    free(bytes);
    return ret;
}

static struct sim_module *library_module(struct sim_library *l, struct sim_context *ctx,
                                         CUresult *out_ret)
{
    *out_ret = CUDA_SUCCESS;
    /* A module that its context's teardown retired has no handle any more. */
    for (size_t i = 0; i < l->nmodules; i++)
        if (l->modules[i]->object.ctx == ctx && l->modules[i]->object.handle)
            return l->modules[i];
    struct sim_module *m;
    *out_ret = make_module(l->image, ctx, &m);
    if (*out_ret)
        return NULL;
    m->library = l;
    sim_handle_make(m);
    l->modules = realloc(l->modules, (l->nmodules + 1) * sizeof *l->modules);
    if (!l->modules)
        abort();
    l->modules[l->nmodules++] = sim_ref(m);
    return m;
}

struct sim_function *sim_kernel_function(struct sim_kernel_object *kernel, struct sim_context *ctx,
                                         CUresult *out_ret)
{
    struct sim_module *m = library_module(kernel->library, ctx, out_ret);
    return m ? m->functions[kernel->index] : NULL;
}

SIM_API(cuLibraryUnload, SIM_NS_LOAD, SIM_INIT, (CUlibrary handle), (handle))
{
    CUresult ret;
    struct sim_library *l = library_of(handle, &ret);
    if (!l)
        return ret;
    sim_ref(l);
    for (size_t i = 0; i < l->nmodules; i++)
        if (l->modules[i]->object.handle)
            sim_context_drain(l->modules[i]->object.ctx);
    for (size_t i = 0; l->object.handle && i < l->nmodules; i++) {
        if (l->modules[i]->object.handle)
            sim_module_retire(l->modules[i]);
        sim_unref(l->modules[i]);
    }
    for (size_t i = 0; l->object.handle && i < l->nkernels; i++) {
        sim_handle_drop(l->kernels[i]);
        sim_unref(l->kernels[i]);
    }
    if (l->object.handle) {
        sim_handle_drop(l);
        sim_unref(l);
    }
    sim_unref(l);
    return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetKernel, SIM_NS_SMALL, SIM_INIT,
        (CUkernel * out, CUlibrary handle, const char *name), (out, handle, name))
{
    CUresult ret;
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_library *l = library_of(handle, &ret);
    const struct sim_image *image = l ? l->image : NULL;
    for (size_t i = 0; l && i < l->nkernels; i++)
        if (!strcmp(image->kernels[i].name, name)) {
            *out = l->kernels[i]->object.handle;
            return CUDA_SUCCESS;
        }
    return l ? CUDA_ERROR_NOT_FOUND : ret;
}

SIM_API(cuLibraryGetKernelCount, SIM_NS_SMALL, SIM_INIT, (unsigned *out, CUlibrary handle),
        (out, handle))
{
    CUresult ret;
    struct sim_library *l = library_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (l)
        *out = (unsigned)l->nkernels;
    return ret;
}

SIM_API(cuLibraryEnumerateKernels, SIM_NS_SMALL, SIM_INIT,
        (CUkernel * out, unsigned n, CUlibrary handle), (out, n, handle))
{
    CUresult ret;
    struct sim_library *l = library_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; l && i < n && i < l->nkernels; i++)
        out[i] = l->kernels[i]->object.handle;
    return ret;
}

SIM_API(cuLibraryGetModule, SIM_NS_SMALL, SIM_CTX, (CUmodule * out, CUlibrary handle),
        (out, handle))
{
    CUresult ret;
    struct sim_library *l = library_of(handle, &ret);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_module *m = l ? library_module(l, sim_context_current(), &ret) : NULL;
    if (m)
        *out = m->object.handle;
    return ret;
}

SIM_API(cuLibraryGetGlobal, SIM_NS_SMALL, SIM_CTX,
        (CUdeviceptr * out, size_t *out_bytes, CUlibrary handle, const char *name),
        (out, out_bytes, handle, name))
{
    CUresult ret;
    if (!name || (!out && !out_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_library *l = library_of(handle, &ret);
    struct sim_module *m = l ? library_module(l, sim_context_current(), &ret) : NULL;
    return m ? find_global(m, out, out_bytes, name) : ret;
}

SIM_API(cuKernelGetFunction, SIM_NS_SMALL, SIM_CTX, (CUfunction * out, CUkernel handle),
        (out, handle))
{
    CUresult ret;
    struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!k)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sim_function *f = sim_kernel_function(k, sim_context_current(), &ret);
    if (f)
        *out = handle_of(f);
    return ret;
}

SIM_API(cuKernelGetLibrary, SIM_NS_SMALL, SIM_CTX, (CUlibrary * out, CUkernel handle),
        (out, handle))
{
    struct sim_kernel_object *k = sim_handle_find(handle, SIM_KERNEL);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (k)
        *out = k->library->object.handle;
    return k ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
