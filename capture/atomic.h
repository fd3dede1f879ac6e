/* capture/atomic.h - one spelling of atomic fields for C and for the tests' C++. */
#ifndef AG_CAPTURE_ATOMIC_H
#define AG_CAPTURE_ATOMIC_H

#ifdef __cplusplus
#include <atomic>
#define AG_ATOMIC(type) std::atomic<type>
#else
#include <stdatomic.h>
#define AG_ATOMIC(type) _Atomic(type)
#endif

#endif
