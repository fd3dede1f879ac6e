// Kernels that talk to the host, or to each other, while they run.
#include "kernels/device.h"

// Holds its stream until *flag reaches value.
extern "C" __global__ void wait_flag(const unsigned *flag, unsigned value)
{
    while (ag_load(flag) < value)
        ag_pause();
}

extern "C" __global__ void set_flag(unsigned *flag, unsigned value)
{
    ag_store(flag, value);
}

// Reads what a flag says now.
extern "C" __global__ void read_flag(const unsigned *flag, unsigned *out)
{
    *out = ag_load(flag);
}

// A flag that no argument names: the launch carries a pointer to what carries the flag's.
struct flag_box {
    unsigned *flag;
};
extern "C" __global__ void set_boxed_flag(const flag_box *box, unsigned value)
{
    ag_store(box->flag, value);
}
