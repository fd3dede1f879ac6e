/* shim/elf.c - see elf.h. Compiled with -fno-builtin: the dlsym hook runs this before libc may be
 * ready. */
#define _GNU_SOURCE
#include "shim/elf.h"
#include <elf.h>
#include <link.h>

bool ag_elf_equal(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static bool starts_with(const char *text, const char *prefix)
{
    while (*prefix && *text == *prefix)
        text++, prefix++;
    return !*prefix;
}

static const char *base_name(const char *path)
{
    const char *name = path;
    for (; *path; path++)
        if (*path == '/')
            name = path + 1;
    return name;
}

struct dynamic {
    const Elf64_Sym *symtab;
    const char *strtab;
    const char *soname;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
};

/* glibc relocates the pointers of a dynamic section in place; other loaders (and the vdso) leave
 * them relative. */
static const void *absolute(uintptr_t base, uintptr_t value)
{
    return (const void *)(value < base ? base + value : value);
}

static bool read_dynamic(const struct dl_phdr_info *info, struct dynamic *out)
{
    const Elf64_Dyn *dyn = NULL;
    uintptr_t soname = 0;
    bool named = false;
    *out = (struct dynamic){.symtab = NULL};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dyn = (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!dyn)
        return false;
    for (; dyn->d_tag != DT_NULL; dyn++) {
        const void *p = absolute(info->dlpi_addr, dyn->d_un.d_ptr);
        if (dyn->d_tag == DT_SYMTAB)
            out->symtab = p;
        else if (dyn->d_tag == DT_STRTAB)
            out->strtab = p;
        else if (dyn->d_tag == DT_GNU_HASH)
            out->gnu_hash = p;
        else if (dyn->d_tag == DT_HASH)
            out->hash = p;
        else if (dyn->d_tag == DT_SONAME)
            soname = dyn->d_un.d_val, named = true;
    }
    if (named && out->strtab)
        out->soname = out->strtab + soname;
    return out->symtab && out->strtab;
}

/* DT_HASH says how many symbols there are; DT_GNU_HASH has to be walked to its last chain. */
static size_t count_symbols(const struct dynamic *d)
{
    if (d->hash)
        return d->hash[1];
    if (!d->gnu_hash)
        return 0;
    const uint32_t buckets = d->gnu_hash[0], offset = d->gnu_hash[1], bloom = d->gnu_hash[2];
    const uint32_t *bucket = d->gnu_hash + 4 + bloom * (sizeof(uintptr_t) / 4);
    const uint32_t *chain = bucket + buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last)
            last = bucket[i];
    if (last < offset)
        return offset;
    while (!(chain[last - offset] & 1))
        last++;
    return last + 1;
}

/* Symbols that an object only imports come before the first hashed one when there is no DT_HASH. */
static size_t count_imports(const struct dynamic *d)
{
    return d->hash ? d->hash[1] : d->gnu_hash ? d->gnu_hash[1] : 0;
}

static void extent(const struct dl_phdr_info *info, uintptr_t *low, uintptr_t *high)
{
    *low = UINTPTR_MAX;
    *high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD)
            continue;
        const uintptr_t start = info->dlpi_addr + ph->p_vaddr;
        if (start < *low)
            *low = start;
        if (start + ph->p_memsz > *high)
            *high = start + ph->p_memsz;
    }
}

struct find {
    const char *soname;
    struct ag_elf_object *out;
};

static int find_one(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct find *find = context;
    struct dynamic d;
    (void)size;
    if (!read_dynamic(info, &d) || !d.soname || !ag_elf_equal(d.soname, find->soname))
        return 0;
    find->out->base = info->dlpi_addr;
    find->out->symtab = d.symtab;
    find->out->strtab = d.strtab;
    find->out->symbols = count_symbols(&d);
    extent(info, &find->out->low, &find->out->high);
    return 1;
}

bool ag_elf_find(const char *soname, struct ag_elf_object *out)
{
    struct find find = {soname, out};
    return dl_iterate_phdr(find_one, &find) == 1;
}

static bool defined(const Elf64_Sym *s)
{
    const unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
    return s->st_shndx != SHN_UNDEF && type == STT_FUNC && (bind == STB_GLOBAL || bind == STB_WEAK);
}

void ag_elf_each(const struct ag_elf_object *object, ag_elf_visit fn, void *context)
{
    const Elf64_Sym *s = object->symtab;
    for (size_t i = 0; i < object->symbols; i++)
        if (defined(&s[i]))
            fn(context, object->strtab + s[i].st_name, (void *)(object->base + s[i].st_value));
}

void *ag_elf_symbol(const struct ag_elf_object *object, const char *name)
{
    const Elf64_Sym *s = object->symtab;
    for (size_t i = 0; i < object->symbols; i++)
        if (defined(&s[i]) && ag_elf_equal(object->strtab + s[i].st_name, name))
            return (void *)(object->base + s[i].st_value);
    return NULL;
}

struct inside {
    uintptr_t address;
    const char *prefix;
};

static int inside_one(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct inside *in = context;
    uintptr_t low, high;
    (void)size;
    extent(info, &low, &high);
    if (in->address < low || in->address >= high)
        return 0;
    return info->dlpi_name && starts_with(base_name(info->dlpi_name), in->prefix) ? 1 : 2;
}

bool ag_elf_inside(uintptr_t address, const char *prefix)
{
    struct inside in = {address, prefix};
    return dl_iterate_phdr(inside_one, &in) == 1;
}

struct imports {
    bool (*known)(const char *name);
    const char *found;
};

static bool driver_name(const char *name)
{
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

static int imports_one(struct dl_phdr_info *info, size_t size, void *context)
{
    struct imports *im = context;
    struct dynamic d;
    (void)size;
    if (!read_dynamic(info, &d))
        return 0;
    const size_t imports = count_imports(&d);
    for (size_t i = 1; i < imports; i++) {
        const Elf64_Sym *s = &d.symtab[i];
        if (s->st_shndx != SHN_UNDEF || ELF64_ST_BIND(s->st_info) != STB_GLOBAL)
            continue;
        const char *name = d.strtab + s->st_name;
        if (!driver_name(name) || im->known(name))
            continue;
        im->found = name;
        return 1;
    }
    return 0;
}

static int adds_one(struct dl_phdr_info *info, size_t size, void *context)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
        *(unsigned long long *)context = info->dlpi_adds;
    return 1;
}

const char *ag_elf_unknown_import(bool (*known)(const char *name), unsigned long long *loads_seen)
{
    struct imports im = {known, NULL};
    unsigned long long adds = 0;
    dl_iterate_phdr(adds_one, &adds);
    if (adds && adds == *loads_seen)
        return NULL;
    dl_iterate_phdr(imports_one, &im);
    *loads_seen = adds;
    return im.found;
}
