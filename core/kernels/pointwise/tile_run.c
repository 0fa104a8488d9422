// SPDX-License-Identifier: Apache-2.0
// tile_run.c: running tile programs. A range of output elements is walked in tiles; per tile the
// steps run in order on registers, which live on the stack. An operand that is one dense run is
// read and written where it stands, all others are gathered or scattered in runs along the
// innermost dimension. The last tile is filled up to whole vectors.
#include <string.h>
#include "core/kernels/pointwise/tile_private.h"

enum { GRAIN_TILES = 16 };

typedef struct Run {
        const TileProgram *program;
        const void *const *in;
        void *const *out;
        int64_t first; // element that out[k] begins with, where outputs are dense
        atomic_bool zero_divisor;
} Run;

typedef struct Frame {
        char *registers; // `pitch` bytes each
        size_t pitch;
        char *scratch, *stored;    // twice the pitch each
        void *at[TILE_MAX_VALUES]; // where a value's elements are now
        const void *single[TILE_MAX_VALUES];
        PointParam elements[TILE_MAX_VALUES];
        int64_t begin;   // of the tile
        size_t n, n_run; // elements, and with padding
} Frame;

// ---- walking an operand ----
typedef struct Walk {
        int64_t index[MAX_RANK], offset;
} Walk;

static void walk_start(const TileProgram *program, const TileOperand *operand, int64_t at, Walk *walk)
{
        walk->offset = 0;
        for (int d = 0; d < program->rank; d++) {
                walk->index[d] = at % program->size[d];
                at /= program->size[d];
                walk->offset += walk->index[d] * operand->stride[d];
        }
}

// On by `n` along dimension `d`, not beyond its end.
static void walk_on(const TileProgram *program, const TileOperand *operand, int d, int64_t n, Walk *walk)
{
        walk->index[d] += n;
        walk->offset += n * operand->stride[d];
        for (; d + 1 < program->rank && walk->index[d] == program->size[d]; d++) {
                walk->index[d] = 0;
                walk->index[d + 1]++;
                walk->offset += operand->stride[d + 1] - operand->stride[d] * program->size[d];
        }
}

static void repeat_element(size_t bytes, size_t n, char *elements)
{
        uint64_t wide;
        uint32_t narrow;
        if (bytes == 1) {
                memset(elements, *elements, n);
                return;
        }
        memcpy(&narrow, elements, sizeof(narrow));
        if (bytes == sizeof(narrow)) {
                for (size_t i = 1; i < n; i++)
                        memcpy(elements + i * sizeof(narrow), &narrow, sizeof(narrow));
                return;
        }
        memcpy(&wide, elements, sizeof(wide));
        for (size_t i = 1; i < n; i++)
                memcpy(elements + i * sizeof(wide), &wide, sizeof(wide));
}

static void load_elements(const TileValue *value, const char *from, int64_t stride, size_t n, void *to)
{
        tile_loader(value->class, value->dtype)(from, stride, stride == 0 ? 1 : n, to);
        if (stride == 0)
                repeat_element(tile_bytes[value->class], n, to);
}

// ---- short rows ----
enum { CHUNK = 16 };

// Whole chunks, the last of them over the end of the one before it.
static inline __attribute__((always_inline)) void copy_chunks(const char *from, size_t n_bytes, char *to)
{
        for (size_t at = 0; at + CHUNK <= n_bytes; at += CHUNK)
                memcpy(to + at, from + at, CHUNK);
        memcpy(to + n_bytes - CHUNK, from + n_bytes - CHUNK, CHUNK);
}

static inline __attribute__((always_inline)) void repeat_chunk(const char *chunk, size_t n_bytes, char *to)
{
        for (size_t at = 0; at + CHUNK <= n_bytes; at += CHUNK)
                memcpy(to + at, chunk, CHUNK);
        memcpy(to + n_bytes - CHUNK, chunk, CHUNK);
}

// `n` elements of 4 or 8 bytes, as they are.
static inline __attribute__((always_inline)) void copy_row(const char *from, int64_t stride, size_t n,
                                                           const size_t bytes, char *to)
{
        if (stride == (int64_t)bytes && n * bytes >= CHUNK) {
                copy_chunks(from, n * bytes, to);
        } else if (stride == 0 && n * bytes >= CHUNK) {
                char chunk[CHUNK];
                for (size_t i = 0; i < CHUNK; i += bytes)
                        memcpy(chunk + i, from, bytes);
                repeat_chunk(chunk, n * bytes, to);
        } else {
                for (size_t i = 0; i < n; i++)
                        memcpy(to + i * bytes, from + (int64_t)i * stride, bytes);
        }
}

// Elements of an operand that lie in rows: `n` of a row, `stride` bytes apart.
typedef struct Rows {
        const char *from;
        int64_t stride, next; // next: bytes from row to row
        size_t n_rows, n;
} Rows;

static inline __attribute__((always_inline)) void copy_rows(const Rows *rows, const size_t bytes, char *to)
{
        for (size_t r = 0; r < rows->n_rows; r++)
                copy_row(rows->from + (int64_t)r * rows->next, rows->stride, rows->n, bytes,
                         to + r * rows->n * bytes);
}

static void load_rows(const TileValue *value, const Rows *rows, char *to)
{
        const size_t bytes = tile_bytes[value->class];
        const bool plain = value->dtype == tile_dtype[value->class];
        if (plain && bytes == sizeof(uint32_t)) {
                copy_rows(rows, sizeof(uint32_t), to);
        } else if (plain && bytes == sizeof(uint64_t)) {
                copy_rows(rows, sizeof(uint64_t), to);
        } else {
                for (size_t r = 0; r < rows->n_rows; r++)
                        load_elements(value, rows->from + (int64_t)r * rows->next, rows->stride, rows->n,
                                      to + r * rows->n * bytes);
        }
}

// A tile's elements: what is left of a row, or as many whole ones as are left of the next
// dimension.
static void gather(const TileProgram *program, const TileOperand *operand, const TileValue *value,
                   const Frame *frame, const char *data, char *to)
{
        const size_t row = (size_t)program->size[0];
        Walk walk;
        walk_start(program, operand, frame->begin, &walk);
        for (size_t done = 0; done < frame->n;) {
                const size_t left = frame->n - done;
                Rows rows = { data + walk.offset, operand->stride[0], 0, 1, left };
                if (walk.index[0] > 0 || left < row || program->rank == 1) {
                        rows.n = MIN(row - (size_t)walk.index[0], left);
                        walk_on(program, operand, 0, (int64_t)rows.n, &walk);
                } else {
                        rows.n = row;
                        rows.next = operand->stride[1];
                        rows.n_rows = MIN((size_t)(program->size[1] - walk.index[1]), left / row);
                        walk_on(program, operand, 1, (int64_t)rows.n_rows, &walk);
                }
                load_rows(value, &rows, to + done * tile_bytes[value->class]);
                done += rows.n_rows * rows.n;
        }
}

static void run_load(const Run *run, const TileStep *step, Frame *frame)
{
        const TileProgram *program = run->program;
        const TileOperand *operand = &program->inputs[step->operand];
        const TileValue *value = &program->values[step->out];
        const char *data = run->in[step->operand];
        size_t bytes = tile_bytes[value->class];
        const bool dense = operand->dense && operand->value == step->out;
        if (dense && frame->n == frame->n_run) {
                const char *from = data + frame->begin * (int64_t)bytes;
                memcpy(&frame->at[step->out], &from, sizeof(from)); // only read
                return;
        }
        char *to = frame->registers + value->reg * frame->pitch;
        frame->at[step->out] = to;
        if (dense) {
                memcpy(to, data + frame->begin * (int64_t)bytes, frame->n * bytes);
        } else {
                gather(program, operand, value, frame, data, to);
        }
        memset(to + frame->n * bytes, 0, (frame->n_run - frame->n) * bytes);
}

static void run_store(const Run *run, const TileStep *step, Frame *frame)
{
        const TileProgram *program = run->program;
        const TileOperand *operand = &program->outputs[step->operand];
        const TileValue *value = &program->values[step->in[0]];
        const char *from = frame->at[step->in[0]];
        char *data = run->out[step->operand];
        size_t bytes = tile_bytes[value->class];
        if (operand->dense) {
                char *to = data + (frame->begin - run->first) * (int64_t)bytes;
                if (to != from)
                        memcpy(to, from, frame->n * bytes);
                return;
        }
        Walk walk;
        walk_start(program, operand, frame->begin, &walk);
        for (size_t done = 0; done < frame->n;) {
                size_t count = MIN((size_t)(program->size[0] - walk.index[0]), frame->n - done);
                tile_storer(value->class, value->dtype)(from + done * bytes, count, data + walk.offset,
                                                        operand->stride[0]);
                walk_on(program, operand, 0, (int64_t)count, &walk);
                done += count;
        }
}

// ---- steps ----
static void run_loop(Run *run, const TileStep *step, Frame *frame)
{
        const void *in[POINT_MAX_INPUTS];
        for (int k = 0; k < step->n_in; k++)
                in[k] = (step->uniform >> k & 1) != 0 ? frame->single[step->in[k]] : frame->at[step->in[k]];
        PointTile tile = { .in = in,
                           .out = frame->at[step->out],
                           .n = frame->n_run,
                           .uniform = step->uniform,
                           .params = &step->params,
                           .zero_divisor = &run->zero_divisor };
        step->loop(&tile);
}

static void run_convert(const TileProgram *program, const TileStep *step, Frame *frame)
{
        const TileValue *source = &program->values[step->in[0]], *value = &program->values[step->out];
        const void *from = frame->at[step->in[0]];
        void *out = frame->at[step->out];
        size_t n = frame->n_run;
        if (source->class == TILE_MASK) {
                tile_loader(value->class, DTYPE_BOOL)(from, 1, n, out);
        } else if (source->class == value->class) {
                memcpy(out, from, n * tile_bytes[value->class]);
        } else {
                tile_storer(source->class, source->dtype)(from, n, frame->scratch,
                                                          dtype_info[source->dtype].bytes);
                tile_loader(value->class, source->dtype)(frame->scratch, dtype_info[source->dtype].bytes, n,
                                                         out);
        }
        if (step->round_to != DTYPE_NONE)
                tile_round(value->class, step->round_to, out, n, frame->scratch, out);
}

// As copies do: stored from the source's class, loaded into the result's.
static void run_cast(const TileProgram *program, const TileStep *step, Frame *frame)
{
        const TileValue *source = &program->values[step->in[0]], *value = &program->values[step->out];
        const void *from = frame->at[step->in[0]];
        void *out = frame->at[step->out];
        if (value->class == TILE_MASK) {
                tile_storer(source->class, DTYPE_BOOL)(from, frame->n_run, out, 1);
                return;
        }
        if ((source->class == TILE_U8 || source->class == TILE_I32) && dtype_is_float(value->dtype)) {
                // without 64 bits in between
                tile_loader(value->class, tile_dtype[source->class])(from, tile_bytes[source->class],
                                                                     frame->n_run, out);
                if (value->dtype != DTYPE_F32 && value->dtype != DTYPE_F64)
                        tile_round(value->class, value->dtype, out, frame->n_run, frame->scratch, out);
                return;
        }
        tile_storer(source->class, value->dtype)(from, frame->n_run, frame->stored,
                                                 dtype_info[value->dtype].bytes);
        tile_loader(value->class, value->dtype)(frame->stored, dtype_info[value->dtype].bytes, frame->n_run,
                                                out);
}

// A result is written straight to its output when that is dense, without a store step.
static void place_result(const Run *run, const TileStep *step, Frame *frame)
{
        const TileProgram *program = run->program;
        frame->at[step->out] = frame->registers + program->values[step->out].reg * frame->pitch;
        for (uint32_t k = 0; k < program->n_outputs && frame->n == frame->n_run; k++) {
                const TileOperand *output = &program->outputs[k];
                if (output->direct && output->value == step->out)
                        frame->at[step->out] = (char *)run->out[k] +
                                               (frame->begin - run->first) *
                                                       (int64_t)tile_bytes[program->values[step->out].class];
        }
}

static void run_step(Run *run, const TileStep *step, Frame *frame)
{
        const TileProgram *program = run->program;
        if (step->kind != STEP_LOAD && step->kind != STEP_STORE)
                place_result(run, step, frame);
        switch (step->kind) {
        case STEP_LOOP:
                run_loop(run, step, frame);
                return;
        case STEP_LOAD:
                run_load(run, step, frame);
                return;
        case STEP_CONVERT:
                run_convert(program, step, frame);
                return;
        case STEP_TO_MASK:
                tile_storer(program->values[step->in[0]].class,
                            DTYPE_BOOL)(frame->at[step->in[0]], frame->n_run, frame->at[step->out], 1);
                return;
        case STEP_ROUND:
                tile_round(program->values[step->out].class, step->round_to, frame->at[step->in[0]],
                           frame->n_run, frame->scratch, frame->at[step->out]);
                return;
        case STEP_CAST:
                run_cast(program, step, frame);
                return;
        case STEP_STORE:
                run_store(run, step, frame);
                return;
        }
}

// ---- ranges ----
// Values of one element, once for all tiles of a range.
static void load_uniform(const Run *run, Frame *frame)
{
        const TileProgram *program = run->program;
        for (uint32_t i = 0; i < program->n_values; i++) {
                const TileValue *value = &program->values[i];
                if (!value->uniform)
                        continue;
                frame->single[i] = &value->number;
                if (value->kind == TILE_INPUT) {
                        PointParam *element = &frame->elements[i], scratch;
                        load_elements(value, run->in[value->operand], 0, 1, element);
                        if (value->round_to != DTYPE_NONE)
                                tile_round(value->class, value->round_to, element, 1, &scratch, element);
                        frame->single[i] = element;
                }
                if (!value->filled)
                        continue;
                char *to = frame->registers + value->reg * frame->pitch;
                frame->at[i] = to;
                size_t bytes = tile_bytes[value->class], n_bytes = MIN(program->tile * bytes, frame->pitch);
                memcpy(to, frame->single[i], bytes);
                for (size_t filled = bytes; filled < n_bytes; filled *= 2)
                        memcpy(to + filled, to, MIN(filled, n_bytes - filled));
        }
}

static void run_tiles(Run *run, int64_t begin, int64_t end, char *bytes, size_t pitch)
{
        const TileProgram *program = run->program;
        Frame frame; // mostly written before it is read: not cleared
        frame.registers = bytes;
        frame.pitch = pitch;
        frame.scratch = bytes + TILE_REGISTERS * pitch;
        frame.stored = bytes + (TILE_REGISTERS + 2) * pitch;
        load_uniform(run, &frame);
        for (int64_t at = begin; at < end; at += program->tile) {
                frame.begin = at;
                frame.n = (size_t)MIN(end - at, (int64_t)program->tile);
                frame.n_run =
                        program->padded ? (frame.n + TILE_LANES - 1) / TILE_LANES * TILE_LANES : frame.n;
                for (uint32_t i = 0; i < program->n_steps; i++) {
                        const TileStep *step = &program->steps[i];
                        if (at == begin || step->kind != STEP_LOAD || !program->values[step->out].repeats)
                                run_step(run, step, &frame);
                }
        }
}

enum { FEW = 64, FEW_BYTES = FEW * 8 };

static __attribute__((noinline)) void run_few(Run *run, int64_t begin, int64_t end)
{
        _Alignas(64) char bytes[(TILE_REGISTERS + 4) * FEW_BYTES];
        run_tiles(run, begin, end, bytes, FEW_BYTES);
}

static __attribute__((noinline)) void run_many(Run *run, int64_t begin, int64_t end)
{
        _Alignas(64) char bytes[(TILE_REGISTERS + 4) * TILE_BYTES];
        run_tiles(run, begin, end, bytes, TILE_BYTES);
}

// Large stack frames cost time to enter: few elements use a small one.
static void run_range(void *argument, int64_t begin, int64_t end)
{
        if (end - begin <= FEW)
                run_few(argument, begin, end);
        else
                run_many(argument, begin, end);
}

bool tile_has_dense_outputs(const TileProgram *program)
{
        bool dense = true;
        for (uint32_t k = 0; k < program->n_outputs; k++)
                dense &= program->outputs[k].dense && meta_is_contiguous(&program->outputs[k].meta);
        return dense;
}

Status tile_run_part(const TileProgram *program, const void *const *in, void *const *out, int64_t begin,
                     int64_t end)
{
        Run run = { .program = program, .in = in, .out = out, .first = begin };
        run_range(&run, begin, end);
        if (atomic_load_explicit(&run.zero_divisor, memory_order_relaxed))
                return fail(STATUS_RUN, "ZeroDivisionError");
        return STATUS_OK;
}

Status tile_run(const TileProgram *program, const void *const *in, void *const *out, const RunContext *ctx)
{
        Run run = { .program = program, .in = in, .out = out };
        if (program->numel == 0)
                return STATUS_OK;
        TRY(parallel_for(ctx, program->numel, (int64_t)GRAIN_TILES * program->tile, run_range, &run));
        if (atomic_load_explicit(&run.zero_divisor, memory_order_relaxed))
                return fail(STATUS_RUN, "ZeroDivisionError");
        return STATUS_OK;
}
