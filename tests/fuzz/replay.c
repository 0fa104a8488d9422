// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over a corpus without a fuzzer: replay_NAME FOLDER [MUTANTS=64]. Each file is
// run as it is, then so many mutants of it (bytes changed, cut, repeated; the same in each run). A
// crash ends the process; the input that did it is in NAME.crash of the current folder. The last
// line is `N passed, N failed`: one per file.
#include <dirent.h>
#include "tests/fuzz/fuzz.h"

static uint64_t state;
static size_t below(size_t n)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return n == 0 ? 0 : (size_t)(state % n);
}

static size_t mutate(uint8_t *data, size_t n, size_t capacity)
{
        static const uint8_t lively[] = { 0,   1,   0x7f, 0x80, 0xff, '"', '{',  '[',
                                          '}', ']', ',',  ':',  '-',  '9', '\\', '\n' };
        for (size_t times = 1 + below(4); times > 0 && n > 0; times--) {
                size_t at = below(n), length = 1 + below(MIN(n - at, (size_t)32));
                switch (below(6)) {
                case 0:
                        data[at] = lively[below(sizeof(lively))];
                        break;
                case 1:
                        data[at] ^= (uint8_t)(1 << below(8));
                        break;
                case 2: // drop
                        memmove(data + at, data + at + length, n - at - length);
                        n -= length;
                        break;
                case 3: // repeat
                        if (n + length <= capacity) {
                                memmove(data + at + length, data + at, n - at);
                                n += length;
                        }
                        break;
                case 4: // copy over
                        memmove(data + below(n - length + 1), data + at, length);
                        break;
                default:
                        if (below(8) == 0)
                                n = at;
                }
        }
        return n;
}

// A target may bring a mutator that knows its documents: then most mutants are made by it, each
// from the last one that worked.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t capacity, unsigned seed) __attribute__((weak));

static size_t next_mutant(uint8_t *mutant, size_t n, size_t capacity)
{
        bool known = LLVMFuzzerCustomMutator != NULL && below(8) != 0;
        return known ? LLVMFuzzerCustomMutator(mutant, n, capacity, (unsigned)below(1u << 31))
                     : mutate(mutant, n, capacity);
}

static void run(const uint8_t *data, size_t n)
{
        uint8_t *exact = malloc(n == 0 ? 1 : n);
        require(exact != NULL, "no memory");
        memcpy(exact, data, n);
        LLVMFuzzerTestOneInput(exact, n);
        free(exact);
}

// What is running, for whoever looks at a crash.
static void note(const char *name, const uint8_t *data, size_t n)
{
        char path[512];
        snprintf(path, sizeof(path), "%s.crash", name);
        FILE *file = fopen(path, "wb");
        if (file == NULL)
                return;
        fwrite(data, 1, n, file);
        fclose(file);
}

static void replay(const char *program, const char *folder, const char *name, int n_mutants)
{
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "rb");
        require(file != NULL, "%s cannot be read", path);
        enum { ROOM = 4096 };
        fseek(file, 0, SEEK_END);
        size_t n = (size_t)ftell(file), capacity = n + ROOM;
        rewind(file);
        uint8_t *data = malloc(capacity), *mutant = malloc(capacity), *base = malloc(capacity);
        require(data != NULL && mutant != NULL && base != NULL && fread(data, 1, n, file) == n,
                "%s cannot be read", path);
        fclose(file);
        note(program, data, n);
        run(data, n);
        state = 0x9e3779b97f4a7c15u ^ n;
        size_t n_base = n;
        memcpy(base, data, n);
        for (int i = 0; i < n_mutants; i++) {
                memcpy(mutant, base, n_base);
                size_t n_mutant = next_mutant(mutant, n_base, capacity);
                note(program, mutant, n_mutant);
                run(mutant, n_mutant);
                bool again = below(64) == 0, keep = fuzz_keep != NULL && fuzz_keep();
                if (again || keep) {
                        n_base = again ? n : n_mutant;
                        memcpy(base, again ? data : mutant, n_base);
                }
        }
        free(base);
        free(data);
        free(mutant);
}

int main(int argc, char **argv)
{
        if (argc < 2) {
                fprintf(stderr, "usage: %s FOLDER [MUTANTS]\n", argv[0]);
                return 2;
        }
        const char *program = strrchr(argv[0], '/') == NULL ? argv[0] : strrchr(argv[0], '/') + 1;
        int n_mutants = argc > 2 ? atoi(argv[2]) : 64, passed = 0;
        struct dirent **names = NULL;
        int n = scandir(argv[1], &names, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                if (names[i]->d_name[0] != '.') {
                        replay(program, argv[1], names[i]->d_name, n_mutants);
                        passed++;
                }
                free(names[i]);
        }
        free(names);
        char crash[512];
        snprintf(crash, sizeof(crash), "%s.crash", program);
        remove(crash);
        printf("%d passed, %d failed\n", passed, passed == 0);
        return passed == 0;
}
