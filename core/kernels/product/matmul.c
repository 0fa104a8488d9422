// SPDX-License-Identifier: Apache-2.0
// matmul.c: the blocked product. Model: c is cut into macro tiles (MC x NC); each is one piece of
// parallel_for and goes over k in blocks of KC: a block of b and a block of a are packed into
// panels, then register tiles are computed and merged into c. Rows times rows, both contiguous
// along k, are dot products straight from the operands. Two more ways for thin shapes, where
// packing would cost more than the product: a row vector times a matrix with contiguous rows, and
// the transposed problem when n is thinner than m. Integers wrap.
//
// The order in which an element of c sums over k depends on k and on whether both operands are
// contiguous along k, never on m, n or the threads: a row has the same bits in every batch. Dot
// products: one sum per lane. All others: plain sums of KC terms, then the sum of those.
#include "core/kernels/product/matmul.h"
#include <string.h>
#include "core/kernels/product/matmul_tile.h"

enum { MC = 144, NC = 256, KC = GEMM_K_BLOCK, THIN_ROWS = 64, ROW_NC = 1024 };
enum { DOT_ROWS = 256, DOT_NC = 64, DOT_STEPS = 64, DOT_GROUP = 16, DOT_NEAR_BYTES = 28 << 10 };

typedef struct GemmRun {
        const Gemm *task;
        const GemmTile *tile;
        const RunContext *ctx;
        size_t item_bytes;
        int64_t m_blocks, n_blocks, m_step, n_step;
        size_t slot_bytes;  // packing buffers of one piece
        _Atomic int failed; // a piece could not get its packing buffer
} GemmRun;

static int64_t batch_offset(const Gemm *task, const GemmMatrix *matrix, int64_t item)
{
        int64_t offset = 0;
        for (int d = task->batch_rank - 1; d >= 0; d--) {
                offset += item % task->batch_size[d] * matrix->batch[d];
                item /= task->batch_size[d];
        }
        return offset;
}

static char *element(const GemmRun *run, const GemmMatrix *matrix, int64_t item, int64_t i, int64_t j)
{
        if (matrix->data == NULL)
                return NULL;
        return (char *)matrix->data +
               (batch_offset(run->task, matrix, item) + i * matrix->row + j * matrix->col) *
                       (int64_t)run->item_bytes;
}

static GemmMerge merge_of(const Gemm *task, bool first, bool last)
{
        return (GemmMerge){ .first = first,
                            .last = last,
                            .c_col = task->c.col,
                            .add_col = task->add.col,
                            .alpha = task->alpha,
                            .beta = task->beta };
}

// Where piece number `piece` stands: batch item, first row, first column.
static void locate(const GemmRun *run, int64_t piece, int64_t *item, int64_t *i, int64_t *j)
{
        *j = piece % run->n_blocks * run->n_step;
        piece /= run->n_blocks;
        *i = piece % run->m_blocks * run->m_step;
        *item = piece / run->m_blocks;
}

// A part of c.
typedef struct Patch {
        int64_t item, i, n_i, j, n_j;
} Patch;

static void merge_tile(const GemmRun *run, const GemmMerge *merge, const Patch *patch, const char *tile)
{
        char *c = element(run, &run->task->c, patch->item, patch->i, patch->j);
        const char *add = element(run, &run->task->add, patch->item, patch->i, patch->j);
        int64_t c_step = run->task->c.row * (int64_t)run->item_bytes,
                add_step = run->task->add.row * (int64_t)run->item_bytes;
        for (int64_t r = 0; r < patch->n_i; r++) {
                run->tile->merge_row(merge, patch->n_j, tile, c, add);
                tile += (size_t)run->tile->columns * run->item_bytes;
                c += c_step;
                if (add != NULL)
                        add += add_step;
        }
}

static void pack_columns(const GemmRun *run, const GemmBlock *block, void *out)
{
        const Gemm *task = run->task;
        if (task->pack_b != NULL)
                task->pack_b(task->pack_context, block, run->tile->columns, out);
        else
                run->tile->pack_b(element(run, &task->b, block->item, block->k, block->j), task->b.row,
                                  task->b.col, block->n_k, block->n_j, out);
}

static void macro_tile(const GemmRun *run, Work *work, int64_t item, int64_t i0, int64_t j0, char *buffer)
{
        const Gemm *task = run->task;
        const GemmTile *tile = run->tile;
        int64_t n_i = MIN(task->m - i0, run->m_step), n_j = MIN(task->n - j0, run->n_step);
        char *a_panels = buffer,
             *b_panels = buffer + (size_t)(run->m_step + tile->rows) * KC * run->item_bytes;
        _Alignas(64) char out[GEMM_MAX_TILE * 8];
        for (int64_t k = 0; k < task->k; k += KC) {
                int64_t n_k = MIN(task->k - k, KC);
                GemmMerge merge = merge_of(task, k == 0, k + n_k == task->k);
                pack_columns(run, &(GemmBlock){ item, k, n_k, j0, n_j }, b_panels);
                tile->pack_a(element(run, &task->a, item, i0, k), task->a.row, task->a.col, n_i, n_k,
                             a_panels);
                for (int64_t j = 0; j < n_j && !work_stops(work, n_i * n_k * 2); j += tile->columns) {
                        const char *b = b_panels + (size_t)(j * n_k) * run->item_bytes;
                        for (int64_t i = 0; i < n_i; i += tile->rows) {
                                Patch patch = { item, i0 + i, MIN(n_i - i, tile->rows), j0 + j,
                                                MIN(n_j - j, tile->columns) };
                                tile->product((int)patch.n_i, n_k,
                                              a_panels + (size_t)(i * n_k) * run->item_bytes, b, out);
                                merge_tile(run, &merge, &patch, out);
                        }
                }
                if (work->stops)
                        return;
        }
}

static void blocked_pieces(void *argument, int64_t begin, int64_t end)
{
        GemmRun *run = argument;
        Scratch scratch;
        if (scratch_init(&scratch, run->ctx, (int64_t)run->slot_bytes, 1) != STATUS_OK) {
                atomic_store(&run->failed, 1);
                return;
        }
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t item, i, j;
                locate(run, piece, &item, &i, &j);
                macro_tile(run, &work, item, i, j, scratch.data);
        }
        scratch_deinit(&scratch);
}

// So many rows of a that they and four of b stay in the first cache, in whole blocks.
static int64_t dot_group(const GemmRun *run)
{
        int64_t rows = DOT_NEAR_BYTES / MAX(run->task->k * (int64_t)run->item_bytes, (int64_t)1) - 4,
                block = run->tile->dot_rows;
        return MAX(MIN(rows, (int64_t)DOT_GROUP) / block, (int64_t)1) * block;
}

// All rows of the patch, which are a group, with all its columns: rows of a against rows of b, both
// contiguous along k. What an item's number says is read once: that takes divisions.
static void dot_rows(const GemmRun *run, Work *work, const Patch *patch)
{
        const Gemm *task = run->task;
        const GemmMerge merge = merge_of(task, true, true);
        const int64_t bytes = (int64_t)run->item_bytes, a_step = task->a.row * bytes,
                      b_step = task->b.col * bytes, c_step = task->c.row * bytes,
                      add_step = task->add.row * bytes;
        const char *a = element(run, &task->a, patch->item, patch->i, 0),
                   *b = element(run, &task->b, patch->item, 0, patch->j),
                   *add = element(run, &task->add, patch->item, patch->i, patch->j);
        char *c = element(run, &task->c, patch->item, patch->i, patch->j);
        _Alignas(64) char dots[DOT_GROUP * DOT_NC * 8];
        for (int64_t j = 0; j < patch->n_j && !work->stops; j += 4)
                for (int64_t i = 0; i < patch->n_i && !work_stops(work, DOT_STEPS);
                     i += run->tile->dot_rows) {
                        GemmDots rows = { (int)MIN(patch->n_i - i, run->tile->dot_rows),
                                          (int)MIN(patch->n_j - j, 4),
                                          task->k,
                                          DOT_NC,
                                          { a + i * a_step, task->a.row },
                                          { b + j * b_step, task->b.col } };
                        run->tile->dot_block(work, &rows, dots + (i * DOT_NC + j) * bytes);
                }
        for (int64_t i = 0; i < patch->n_i && !work->stops; i++)
                run->tile->merge_row(&merge, patch->n_j, dots + i * DOT_NC * bytes, c + i * c_step,
                                     add == NULL ? NULL : add + i * add_step);
}

// Dot products straight from the operands, 3 or 4 rows by 4 at a time. A group of rows of a is in
// the first cache for all columns of the piece, b's in the second.
static void dot_pieces(void *argument, int64_t begin, int64_t end)
{
        const GemmRun *run = argument;
        const Gemm *task = run->task;
        int64_t group = dot_group(run);
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                Patch patch;
                locate(run, piece, &patch.item, &patch.i, &patch.j);
                patch.n_j = MIN(task->n - patch.j, run->n_step);
                for (int64_t end_i = MIN(task->m, patch.i + run->m_step); patch.i < end_i && !work.stops;
                     patch.i += group) {
                        patch.n_i = MIN(end_i - patch.i, group);
                        dot_rows(run, &work, &patch);
                }
        }
}

// Rows of b are contiguous and a has few rows: y += x[k] * b[k], in blocks of columns that stay in
// the first cache.
static void row_pieces(void *argument, int64_t begin, int64_t end)
{
        const GemmRun *run = argument;
        const Gemm *task = run->task;
        _Alignas(64) char sum[ROW_NC * 8];
        Work work = { .ctx = run->ctx };
        for (int64_t piece = begin; piece < end && !work.stops; piece++) {
                int64_t item, i, j;
                locate(run, piece, &item, &i, &j);
                int64_t n = MIN(task->n - j, run->n_step);
                for (int64_t k = 0; k < task->k && !work_stops(&work, MIN(task->k - k, KC) * n / 4);
                     k += KC) {
                        int64_t n_k = MIN(task->k - k, KC);
                        GemmMerge merge = merge_of(task, k == 0, k + n_k == task->k);
                        memset(sum, 0, (size_t)n * run->item_bytes);
                        run->tile->add_rows(
                                n_k, n, (GemmRows){ element(run, &task->a, item, i, k), task->a.col },
                                (GemmRows){ element(run, &task->b, item, k, j), task->b.row }, sum);
                        run->tile->merge_row(&merge, n, sum, element(run, &task->c, item, i, j),
                                             element(run, &task->add, item, i, j));
                }
        }
}

// k == 0: c = beta * add.
static void empty_pieces(void *argument, int64_t begin, int64_t end)
{
        const GemmRun *run = argument;
        GemmMerge merge = merge_of(run->task, true, true);
        static const char zeros[8];
        for (int64_t piece = begin; piece < end; piece++) {
                int64_t item, i, j;
                locate(run, piece, &item, &i, &j);
                for (int64_t column = j; column < MIN(run->task->n, j + run->n_step); column++)
                        run->tile->merge_row(&merge, 1, zeros, element(run, &run->task->c, item, i, column),
                                             element(run, &run->task->add, item, i, column));
        }
}

// a b = (b^T a^T)^T: swaps rows and columns in all four.
static Gemm transposed(const Gemm *task)
{
        Gemm out = *task;
        out.m = task->n;
        out.n = task->m;
        out.a = task->b;
        out.b = task->a;
        GemmMatrix *matrices[] = { &out.a, &out.b, &out.c, &out.add };
        for (size_t i = 0; i < ARRAY_LENGTH(matrices); i++) {
                int64_t row = matrices[i]->row;
                matrices[i]->row = matrices[i]->col;
                matrices[i]->col = row;
        }
        return out;
}

static Status run_pieces(GemmRun *run, int64_t items, int64_t m_step, int64_t n_step, int64_t flops_per_piece,
                         ParallelBody body)
{
        run->m_step = m_step;
        run->n_step = n_step;
        run->m_blocks = (run->task->m + m_step - 1) / m_step;
        run->n_blocks = (run->task->n + n_step - 1) / n_step;
        int64_t grain = MAX((int64_t)1, 2000000 / MAX(flops_per_piece, 1));
        TRY(parallel_for(run->ctx, items * run->m_blocks * run->n_blocks, grain, body, run));
        if (atomic_load(&run->failed))
                return fail(STATUS_TOO_LARGE, "a matrix product has no working memory left; send smaller "
                                              "inputs or start the server with a "
                                              "larger --max-run-memory");
        return run_poll(run->ctx);
}

// Gathering columns is expensive, so blocks of rows are taller, as long as all threads still get
// work. The order of each element's sum does not change.
static int64_t rows_of_block(const RunContext *ctx, const Gemm *task, int64_t items)
{
        int64_t rows = MC, columns = (task->n + NC - 1) / NC, n_threads = ctx == NULL ? 1 : ctx->n_threads;
        while (task->pack_b != NULL && rows < 4 * MC &&
               items * columns * ((task->m + 2 * rows - 1) / (2 * rows)) >= n_threads)
                rows *= 2;
        return rows;
}

Status gemm(const RunContext *ctx, const Gemm *task)
{
        Gemm local = *task;
        if (local.beta == 0)
                local.add.data = NULL;
        int64_t items = 1;
        for (int d = 0; d < local.batch_rank; d++)
                items *= local.batch_size[d];
        if (items == 0 || local.m == 0 || local.n == 0)
                return STATUS_OK;
        // The thinner side becomes m.
        if (local.pack_b == NULL && local.n < local.m && local.n <= THIN_ROWS)
                local = transposed(&local);
        GemmRun run = { .task = &local,
                        .tile = kernel_variant(&gemm_family, local.dtype),
                        .ctx = ctx,
                        .item_bytes = dtype_info[local.dtype].bytes };
        if (local.k == 0)
                return run_pieces(&run, items, 1, ROW_NC, ROW_NC, empty_pieces);
        if (local.pack_b == NULL && local.a.col == 1 && local.b.row == 1)
                return run_pieces(&run, items, DOT_ROWS, DOT_NC,
                                  MIN(local.m, DOT_ROWS) * DOT_NC * local.k * 2, dot_pieces);
        if (local.pack_b == NULL && local.m <= 3 && local.b.col == 1)
                return run_pieces(&run, items, 1, ROW_NC, MIN(local.n, ROW_NC) * local.k * 2, row_pieces);
        // Whole panels, except at the edges.
        int64_t m_step = MIN(rows_of_block(ctx, &local, items),
                             (local.m + run.tile->rows - 1) / run.tile->rows * run.tile->rows);
        int64_t n_step =
                MIN((int64_t)NC, (local.n + run.tile->columns - 1) / run.tile->columns * run.tile->columns);
        run.slot_bytes = (size_t)(m_step + run.tile->rows + n_step + run.tile->columns) * KC * run.item_bytes;
        return run_pieces(&run, items, m_step, n_step, m_step * n_step * local.k * 2, blocked_pieces);
}
