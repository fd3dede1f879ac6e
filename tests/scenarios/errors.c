/* tests/scenarios/errors.c - O-32, O-33, O-34, O-49: calls that fail, at once or later.
 * Called by  scene.c                     Calls  scene.h
 * Threads    one
 * Promise    every return code is printed; faults of the driver come from SIMCUDA_FAULT, set by the test
 * Start at   scene_errors */
#define _GNU_SOURCE
#include "tests/scenarios/scene.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* O-32: calls that are refused, in the middle of a sequence that is seen, learned, replayed. */
static void refuse(CUmodule varying, CUstream s, CUdeviceptr x, unsigned kind)
{
    CUfunction f = scene_function(varying, "vary_mix");
    unsigned v = 1;
    unsigned char word[4] = {0};
    void *hole[2] = {&x, NULL};
    CUresult ret;
    switch (kind) {
    case 0:
        ret = scene_launch(f, s, 1, 2048, 0, ARGS(&x, &v));
        break;
    case 1:
        ret = scene_launch(f, s, 0, 32, 0, ARGS(&x, &v));
        break;
    case 2:
        ret = scene_launch(f, s, 1, 32, 60 * 1024, ARGS(&x, &v));
        break;
    case 3:
        ret = scene_launch(f, s, 1, 32, 1 << 20, ARGS(&x, &v));
        break;
    case 4:
        ret = scene_launch(NULL, s, 1, 32, 0, ARGS(&x, &v));
        break;
    case 5:
        ret = scene_launch(f, s, 1, 32, 0, hole);
        break;
    case 6:
        ret = cuMemcpyHtoDAsync(x + 4 * WORDS, word, 4, s);
        break;
    default:
        ret = cuMemsetD32Async(x, 1, WORDS + 1, s);
        break;
    }
    printf("refused, kind %u: %d\n", kind, ret);
}

enum { REFUSALS = 8 };

static void refused_calls(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    for (unsigned round = 0; round < ROUNDS; round++) {
        scene_work(varying, s, x, 6, round);
        if (round < REFUSALS || round >= ROUNDS - REFUSALS)
            refuse(varying, s, x, round % REFUSALS);
        scene_work(varying, s, x, 6, round);
        CUresult ret = cuStreamSynchronize(s);
        if (ret || round >= ROUNDS - REFUSALS)
            printf("round %u: %d\n", round, ret);
    }
    scene_show("x", 0, s, x);
}

/* O-32: a stream that is gone, with launches that were learned on it and some still queued. */
static void destroyed_stream(void)
{
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction f = scene_function(varying, "vary_mix");
    CUdeviceptr x = scene_buffer();
    CUevent event;
    NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned life = 0; life < 4; life++) {
        CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
        for (unsigned round = 0; round < ROUNDS; round++) {
            unsigned launches = round == ODD_ROUND ? 11 : 12;
            for (unsigned i = 0; i < launches; i++)
                NEED(scene_launch(f, s, 1, 32, 0, ARGS(&x, &round)));
            if (round % 4 == 0) /* not the last one */
                NEED(cuStreamSynchronize(s));
        }
        NEED(cuStreamDestroy(s));
        for (unsigned i = 0; i < 14; i++)
            printf("launch %d ", scene_launch(f, s, 1, 32, 0, ARGS(&x, &i)));
        printf("record %d, query %d, wait %d\n", cuEventRecord(event, s), cuStreamQuery(s),
               cuStreamSynchronize(s));
        NEED(cuCtxSynchronize());
        scene_show("x", life, NULL, x);
    }
}

/* O-33: a kernel of a learned sequence faults; the host does nothing but look. Then one call of each kind. */
static void after_the_fault(CUfunction f, CUstream s, CUdeviceptr x, CUevent event)
{
    unsigned v = 1, word = 0;
    CUdeviceptr p = 0;
    printf("launch %d\n", scene_launch(f, s, 1, 32, 0, ARGS(&x, &v)));
    printf("memset %d\n", cuMemsetD32Async(x, 1, 1, s));
    printf("copy %d\n", cuMemcpyDtoH(&word, x, 4));
    printf("record %d\n", cuEventRecord(event, s));
    printf("stream query %d\n", cuStreamQuery(s));
    printf("stream synchronize %d\n", cuStreamSynchronize(s));
    printf("context synchronize %d\n", cuCtxSynchronize());
    printf("alloc %d\n", cuMemAlloc(&p, 4096));
    for (int i = 0; i < 20; i++) {
        CUresult ret = scene_launch(f, s, 1, 32, 0, ARGS(&x, &v));
        if (ret != CUDA_ERROR_ILLEGAL_ADDRESS)
            printf("launch %d after the fault: %d\n", i, ret);
    }
}

enum fault { FAULT_NEVER, FAULT_ALONE, FAULT_LEARNED };

/* Launch 37 of 40 is one that faults: another kernel in that round, or the one of every round. */
static CUresult launch_37(const CUfunction f[3], CUstream s, CUdeviceptr when, enum fault how,
                          unsigned round, unsigned round_of_fault)
{
    if (how == FAULT_LEARNED)
        return scene_launch(f[2], s, 1, 1, 0, ARGS(&when, &round));
    if (how == FAULT_ALONE && round == round_of_fault)
        return scene_launch(f[1], s, 1, 1, 0, NULL);
    return scene_launch(f[0], s, 1, 32, 0, ARGS(&when, &round));
}

static void fault_while_polling(enum fault how, unsigned round_of_fault)
{
    scene_open();
    CUmodule varying = scene_load("varying"), basic = scene_load("basic");
    const CUfunction f[3] = {scene_function(varying, "vary_mix"), scene_function(basic, "fault"),
                             scene_function(basic, "fault_when")};
    CUfunction mix = f[0];
    CUdeviceptr when = scene_buffer();
    NEED(cuMemcpyHtoD(when, &round_of_fault, 4));
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    CUevent event;
    CUresult ret = CUDA_SUCCESS;
    NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned round = 0; round < ROUNDS && !ret; round++) {
        for (unsigned i = 0; i < 40 && !ret; i++) {
            unsigned v = round + i;
            ret = i == 37
                      ? launch_37(f, s, how == FAULT_LEARNED ? when : x, how, round, round_of_fault)
                      : scene_launch(mix, s, 1, 32, 0, ARGS(&x, &v));
        }
        if (!ret)
            ret = cuEventRecord(event, s);
        while (!ret && (ret = cuEventQuery(event)) == CUDA_ERROR_NOT_READY) {
            usleep(50);
            ret = CUDA_SUCCESS;
        }
    }
    printf("left with %d\n", ret);
    after_the_fault(mix, s, x, event);
}

static void fault_early(void)
{
    fault_while_polling(FAULT_ALONE, 1);
}

static void fault_late(void)
{
    fault_while_polling(FAULT_ALONE, ODD_ROUND);
}

/* No kernel of ours faults here: the test makes a graph launch of the shim do so. */
static void fault_in_graph(void)
{
    fault_while_polling(FAULT_NEVER, ROUNDS);
}

/* The kernel that faults has run in every round before, and is a node of what is replayed. */
static void fault_of_a_learned_kernel(void)
{
    fault_while_polling(FAULT_LEARNED, ODD_ROUND);
}

/* O-34, O-49: a plain loop with a sync in each round, for tests that make driver calls fail.
 * Prints what was accepted, and each code that is not success. */
static void plain_loop(void)
{
    static const char *const names[] = {"vary_mix", "vary_xor", "vary_rot"};
    scene_open();
    CUmodule varying = scene_load("varying");
    CUfunction f[3];
    for (int i = 0; i < 3; i++)
        f[i] = scene_function(varying, names[i]);
    CUstream s = scene_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr x = scene_buffer();
    unsigned accepted = 0, refused = 0, errors = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < (round == ODD_ROUND ? 11u : 12u); i++) {
            unsigned v = round * 12 + i;
            CUresult ret = scene_launch(f[i % 3], s, 1, 32, 0, ARGS(&x, &v));
            accepted += ret == CUDA_SUCCESS;
            refused += ret != CUDA_SUCCESS;
            errors += ret != CUDA_SUCCESS;
            if (ret)
                printf("round %u launch %u: %d\n", round, i, ret);
        }
        CUresult ret = cuStreamSynchronize(s);
        errors += ret != CUDA_SUCCESS;
        if (ret)
            printf("round %u wait: %d\n", round, ret);
    }
    printf("accepted %u refused %u errors %u\n", accepted, refused, errors);
    scene_show("x", 0, s, x);
}

const struct scene_case scene_errors[] = {
    {"O-32-refused", refused_calls},         {"O-32-destroyed-stream", destroyed_stream},
    {"O-33-fault-early", fault_early},       {"O-33-fault-late", fault_late},
    {"O-33-fault-in-graph", fault_in_graph}, {"O-33-fault-learned", fault_of_a_learned_kernel},
    {"O-34-plain-loop", plain_loop},         {NULL, NULL}};
