/* tools/simcuda/sim_image.c - reads names out of fat binaries, cubins and PTX.
 * Called by  sim_module.c               Calls  libc
 * Threads    any
 * Promise    an sm_90 cubin is preferred to PTX, as a device of that kind would
 * Start at   sim_image_read(). The fat binary: a 16-byte header {magic, version, header bytes,
 *            payload bytes}, then parts {kind, version, header bytes, payload bytes, ...}       */
#define _GNU_SOURCE
#include "tools/simcuda/sim_image.h"

#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { INVALID_IMAGE = 200, NO_BINARY_FOR_GPU = 209 }; /* CUresult */
/* From sm_90 on a kernel with shared memory has this much more, for the system. */
enum { RESERVED = 1024 };
enum { FAT_MAGIC = 0xBA55ED50u, WRAPPER_MAGIC = 0x466243b1, PART_PTX = 1, PART_ELF = 2 };

struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};

struct fat_part {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
};

/* What nvcc's host code passes around: a pointer to the fat binary. */
struct fat_wrapper {
    uint32_t magic, version;
    const void *data;
    const void *more;
};

static bool copy_name(char *out, const char *name, size_t n)
{
    if (!n || n >= SIM_IMAGE_NAME)
        return false;
    memcpy(out, name, n);
    out[n] = 0;
    return true;
}

static struct sim_image_kernel *add_kernel(struct sim_image *image, const char *name, size_t n)
{
    for (size_t i = 0; i < image->nkernels; i++)
        if (strlen(image->kernels[i].name) == n && !memcmp(image->kernels[i].name, name, n))
            return &image->kernels[i];
    if (image->nkernels == SIM_IMAGE_NAMES)
        return NULL;
    struct sim_image_kernel *k = &image->kernels[image->nkernels];
    if (!copy_name(k->name, name, n))
        return NULL;
    k->static_shared = 0;
    image->nkernels++;
    return k;
}

static void add_global(struct sim_image *image, const char *name, size_t n)
{
    for (size_t i = 0; i < image->nglobals; i++)
        if (strlen(image->globals[i]) == n && !memcmp(image->globals[i], name, n))
            return;
    if (image->nglobals < SIM_IMAGE_NAMES && copy_name(image->globals[image->nglobals], name, n))
        image->nglobals++;
}

static size_t identifier(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '$')
        n++;
    return n;
}

/* ".entry NAME(" and ".const ... NAME[" or ".global ... NAME[". The text ends with a zero byte. */
static void read_ptx(const char *text, struct sim_image *image)
{
    for (const char *p = text; (p = strstr(p, ".entry ")) != NULL;) {
        p += 7;
        add_kernel(image, p, identifier(p));
    }
    for (const char *p = text; (p = strstr(p, "\n.const ")) != NULL;) {
        p += 8;
        const char *end = strpbrk(p, "[;=\n");
        const char *name = end;
        while (name && name > p && identifier(name - 1))
            name--;
        if (name)
            add_global(image, name, (size_t)(end - name));
    }
}

static bool read_elf(const char *elf, size_t bytes, struct sim_image *image)
{
    const Elf64_Ehdr *eh = (const Elf64_Ehdr *)elf;
    if (bytes < sizeof *eh || eh->e_shoff > bytes || eh->e_shentsize != sizeof(Elf64_Shdr) ||
        eh->e_shnum > (bytes - eh->e_shoff) / sizeof(Elf64_Shdr) || eh->e_shstrndx >= eh->e_shnum)
        return false;
    const Elf64_Shdr *sh = (const Elf64_Shdr *)(elf + eh->e_shoff);
    const char *names = elf + sh[eh->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < eh->e_shnum; i++)
        if (sh[i].sh_type != SHT_NOBITS &&
            (sh[i].sh_offset > bytes || sh[i].sh_size > bytes - sh[i].sh_offset))
            return false;
    for (unsigned i = 0; i < eh->e_shnum; i++) {
        const char *section = names + sh[i].sh_name;
        if (!strncmp(section, ".text.", 6))
            add_kernel(image, section + 6, strlen(section + 6));
        if (sh[i].sh_type != SHT_SYMTAB || sh[i].sh_link >= eh->e_shnum)
            continue;
        const Elf64_Sym *sym = (const Elf64_Sym *)(elf + sh[i].sh_offset);
        const char *strings = elf + sh[sh[i].sh_link].sh_offset;
        for (size_t s = 0; s < sh[i].sh_size / sizeof *sym; s++)
            if (ELF64_ST_TYPE(sym[s].st_info) == STT_OBJECT && sym[s].st_shndx)
                add_global(image, strings + sym[s].st_name, strlen(strings + sym[s].st_name));
    }
    for (unsigned i = 0; i < eh->e_shnum; i++) {
        const char *section = names + sh[i].sh_name;
        if (strncmp(section, ".nv.shared.", 11))
            continue;
        for (size_t k = 0; k < image->nkernels; k++)
            if (!strcmp(image->kernels[k].name, section + 11))
                image->kernels[k].static_shared =
                    (uint32_t)sh[i].sh_size - (sh[i].sh_size < RESERVED ? 0 : RESERVED);
    }
    return true;
}

static int read_fat(const char *fat, struct sim_image *out)
{
    const struct fat_header *h = (const struct fat_header *)fat;
    const char *p = fat + h->header_bytes, *end = p + h->bytes, *ptx = NULL;
    while (p + sizeof(struct fat_part) <= end) {
        const struct fat_part *part = (const struct fat_part *)p;
        const char *payload = p + part->header_bytes;
        if (!part->header_bytes || part->bytes > (uint64_t)(end - payload))
            return INVALID_IMAGE;
        if (part->kind == PART_ELF && !memcmp(payload, ELFMAG, SELFMAG))
            return read_elf(payload, part->bytes, out) ? 0 : INVALID_IMAGE;
        if (part->kind == PART_PTX && strnlen(payload, part->bytes) < part->bytes)
            ptx = payload;
        p = payload + part->bytes;
    }
    if (!ptx)
        return NO_BINARY_FOR_GPU;
    read_ptx(ptx, out);
    return 0;
}

int sim_image_read(const void *bytes, struct sim_image *out)
{
    uint32_t magic;
    memset(out, 0, sizeof *out);
    memcpy(&magic, bytes, sizeof magic);
    if (magic == WRAPPER_MAGIC) {
        bytes = ((const struct fat_wrapper *)bytes)->data;
        memcpy(&magic, bytes, sizeof magic);
    }
    if (magic == FAT_MAGIC)
        return read_fat(bytes, out);
    if (!memcmp(bytes, ELFMAG, SELFMAG)) {
        const Elf64_Ehdr *eh = bytes;
        /* A cubin has no size of its own: its section table stands before the program headers. */
        uint64_t end = eh->e_shoff + (uint64_t)eh->e_shnum * sizeof(Elf64_Shdr);
        uint64_t more = eh->e_phoff + (uint64_t)eh->e_phnum * eh->e_phentsize;
        return read_elf(bytes, more > end ? more : end, out) ? 0 : INVALID_IMAGE;
    }
    if (strstr(bytes, ".version") && strstr(bytes, ".target")) {
        read_ptx(bytes, out);
        return 0;
    }
    return INVALID_IMAGE;
}
