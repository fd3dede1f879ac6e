# Writes the host build of one kernel file: the file itself, and a row for each kernel in it.
# usage: awk -v file=kernels/chain.cu -f register.awk chain.cu > chain_host.cc
# A kernel is a line with "__global__ ... NAME(", all extern "C". It has a barrier where a line of
# its body calls __syncthreads(); a helper before the first kernel that does so marks all of them.
BEGIN {
    printf "#include \"kernels/device.h\"\n#include \"%s\"\n", file
}
/__global__/ {
    line = $0
    sub(/^.*__global__[^(]*void +/, "", line)
    sub(/__launch_bounds__\([^)]*\) */, "", line)
    sub(/\(.*$/, "", line)
    current = line
    kernel[++count] = line
}
/__syncthreads/ && !/^ *(\/\/|\*|\/\*)/ {
    if (current == "")
        everywhere = 1
    barrier[current] = 1
}
/^ *__constant__/ {
    split($0, word, /[ ;=\[]+/)
    constant[++constants] = word[3]
}
END {
    for (i = 1; i <= count; i++)
        printf "SIM_REGISTER_KERNEL(%s, %d)\n", kernel[i], everywhere || barrier[kernel[i]]
    for (i = 1; i <= constants; i++)
        printf "SIM_REGISTER_CONSTANT(%s)\n", constant[i]
}
