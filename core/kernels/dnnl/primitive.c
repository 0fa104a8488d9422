// SPDX-License-Identifier: Apache-2.0
// oneDNN, generations 2 and 3 (generation.h). Primitives are immutable and shared by all runs.
// dnnl_memory objects are not, because a run sets their data pointers. So each primitive keeps up
// to MAX_EXECUTIONS sets of them, and a run takes a free set. The scratchpad is always the
// caller's: the library's own scratchpad is tied to the thread that made the primitive.
#include "core/kernels/dnnl/generation.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { MAX_EXECUTIONS = 32, MAX_ARGS = 6, NAME_BYTES = 64 };

typedef enum Role { ROLE_A, ROLE_B, ROLE_OUT, ROLE_SCRATCH, ROLE_CONSTANT } Role;

typedef struct Argument {
        int index; // DNNL_ARG_*
        Role role;
        LayoutView layout; // the primitive's
        void *data;        // ROLE_CONSTANT: borrowed from the primitive's own buffers
} Argument;

typedef struct Execution { // what one run needs for itself
        dnnl_stream_t stream;
        dnnl_exec_arg_t args[MAX_ARGS];
} Execution;

struct DnnlPrimitive {
        dnnl_primitive_t primitive;
        Argument args[MAX_ARGS];
        int n_args, n_threads;
        size_t scratch_bytes;
        int64_t doubled_a, doubled_out; // floats of the one row that is run as two; 0: none
        Storage *weights;               // packed; may be shared with others
        void *bias;                     // a copy
        char name[NAME_BYTES];
        _Atomic int busy[MAX_EXECUTIONS];
        // made at first use; belongs to the run that has set busy[i]
        Execution *executions[MAX_EXECUTIONS];
};

#ifdef __SANITIZE_THREAD__
// The library is not instrumented, so TSan does not see the ordering by its atomics.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
        return "race:libdnnl.so\nmutex:libdnnl.so\n";
}
#endif

// One engine for the process. It is made before the first primitive and never freed: primitives of
// any age refer to it.
static dnnl_engine_t the_engine(void)
{
        static _Atomic(dnnl_engine_t) engine;
        dnnl_engine_t made = atomic_load(&engine), none = NULL;
        if (made != NULL)
                return made;
        if (dnnl_engine_create(&made, dnnl_cpu, 0) != dnnl_success)
                return NULL;
        if (!atomic_compare_exchange_strong(&engine, &none, made)) {
                dnnl_engine_destroy(made);
                made = none;
        }
        return made;
}

// Primitives are made for a number of threads and must run with it; the setting belongs to the
// calling thread.
static void use_threads(int n_threads)
{
#ifdef _OPENMP
        if (omp_get_max_threads() != n_threads)
                omp_set_num_threads(n_threads);
#else
        (void)n_threads;
#endif
}

// ---- executions ----
static void execution_free(Execution *execution, int n_args)
{
        if (execution == NULL)
                return;
        for (int i = 0; i < n_args; i++)
                if (execution->args[i].memory != NULL)
                        dnnl_memory_destroy(execution->args[i].memory);
        if (execution->stream != NULL)
                dnnl_stream_destroy(execution->stream);
        free(execution);
}

static Execution *execution_new(const DnnlPrimitive *primitive)
{
        Execution *execution = dnnl_check_heap() == STATUS_OK ? calloc(1, sizeof(*execution)) : NULL;
        if (execution == NULL)
                return NULL;
        bool ok = dnnl_stream_create(&execution->stream, the_engine(), dnnl_stream_default_flags) ==
                  dnnl_success;
        for (int i = 0; i < primitive->n_args && ok; i++) {
                const Argument *argument = &primitive->args[i];
                execution->args[i].arg = argument->index;
                ok = dnnl_memory_create(&execution->args[i].memory, argument->layout, the_engine(),
                                        argument->data) == dnnl_success;
        }
        if (ok)
                return execution;
        execution_free(execution, primitive->n_args);
        return NULL;
}

static int claim(DnnlPrimitive *primitive)
{
        for (int i = 0; i < MAX_EXECUTIONS; i++)
                if (atomic_load_explicit(&primitive->busy[i], memory_order_relaxed) == 0 &&
                    atomic_exchange_explicit(&primitive->busy[i], 1, memory_order_acquire) == 0)
                        return i;
        return -1;
}

static dnnl_status_t execute(const DnnlPrimitive *primitive, Execution *execution, const void *a,
                             const void *b, void *out, void *scratch)
{
        void *handles[] = { (void *)(uintptr_t)a, (void *)(uintptr_t)b, out, scratch };
        for (int i = 0; i < primitive->n_args; i++)
                if (primitive->args[i].role != ROLE_CONSTANT)
                        dnnl_memory_set_data_handle(execution->args[i].memory,
                                                    handles[primitive->args[i].role]);
        dnnl_status_t status = dnnl_primitive_execute(primitive->primitive, execution->stream,
                                                      primitive->n_args, execution->args);
        return status == dnnl_success ? dnnl_stream_wait(execution->stream) : status;
}

// The rows stand behind the primitive's own scratch.
static float *doubled_rows(const DnnlPrimitive *primitive, void *scratch)
{
        int64_t floats = 2 * (primitive->doubled_a + primitive->doubled_out);
        return (float *)((char *)scratch + primitive->scratch_bytes) - floats;
}

static dnnl_status_t execute_doubled(const DnnlPrimitive *primitive, Execution *execution, const void *a,
                                     void *out, void *scratch)
{
        size_t a_bytes = (size_t)primitive->doubled_a * sizeof(float),
               out_bytes = (size_t)primitive->doubled_out * sizeof(float);
        float *rows = doubled_rows(primitive, scratch), *outs = rows + 2 * primitive->doubled_a;
        for (int i = 0; i < 2; i++) {
                memcpy(rows + i * primitive->doubled_a, a, a_bytes);
                memcpy(outs + i * primitive->doubled_out, out, out_bytes); // an epilogue may add it
        }
        dnnl_status_t status = execute(primitive, execution, rows, NULL, outs, scratch);
        memcpy(out, outs, out_bytes);
        return status;
}

Status dnnl_primitive_run(DnnlPrimitive *primitive, const void *a, const void *b, void *out, void *scratch)
{
        use_threads(primitive->n_threads);
        int place = claim(primitive);
        Execution *execution = place < 0 ? execution_new(primitive) : primitive->executions[place];
        if (execution == NULL)
                execution = execution_new(primitive);
        if (place >= 0)
                primitive->executions[place] = execution;
        dnnl_status_t status = dnnl_out_of_memory;
        if (execution != NULL && primitive->doubled_a != 0)
                status = execute_doubled(primitive, execution, a, out, scratch);
        else if (execution != NULL)
                status = execute(primitive, execution, a, b, out, scratch);
        if (place < 0)
                execution_free(execution, primitive->n_args);
        else
                atomic_store_explicit(&primitive->busy[place], 0, memory_order_release);
        if (status == dnnl_success)
                return STATUS_OK;
        return status == dnnl_out_of_memory
                       ? fail_memory()
                       : fail(STATUS_INTERNAL, "oneDNN status %d in %s", (int)status, primitive->name);
}

// ---- making ----
static void copy_dims(dnnl_dims_t out, int rank, const int64_t *from)
{
        memset(out, 0, sizeof(dnnl_dims_t));
        for (int d = 0; d < rank; d++)
                out[d] = from[d];
}

static Layout strided(int rank, const int64_t *size, const int64_t *stride)
{
        dnnl_dims_t sizes, strides;
        copy_dims(sizes, rank, size);
        copy_dims(strides, rank, stride);
        return layout_by_strides(rank, sizes, strides);
}

static Layout tagged(int rank, const int64_t *size, dnnl_format_tag_t tag)
{
        dnnl_dims_t sizes;
        copy_dims(sizes, rank, size);
        return layout_by_tag(rank, sizes, tag);
}

// What a primitive is asked for; `weight` is the library's choice, `constant` is where the constant
// lies.
typedef struct Layouts {
        Layout input, weight, constant, bias, out;
} Layouts;

static void layouts_deinit(Layouts *layouts)
{
        layout_free(layouts->input);
        layout_free(layouts->weight);
        layout_free(layouts->constant);
        layout_free(layouts->bias);
        layout_free(layouts->out);
}

static bool layouts_are_made(const Layouts *layouts)
{
        return layouts->input != NULL && layouts->weight != NULL && layouts->constant != NULL &&
               layouts->bias != NULL && layouts->out != NULL;
}

typedef struct Reorder {
        LayoutView from, to;
        const void *data;
} Reorder;

static Status reorder(void *context, Storage **out_packed)
{
        const Reorder *what = context;
        LayoutView from = what->from, to = what->to;
        dnnl_engine_t engine = the_engine();
        dnnl_primitive_desc_t desc = NULL;
        dnnl_primitive_t primitive = NULL;
        dnnl_memory_t source = NULL, target = NULL;
        dnnl_stream_t stream = NULL;
        _cleanup_(storage_unrefp) Storage *packed = NULL;
        TRY(storage_new(MAX(dnnl_memory_desc_get_size(to), (size_t)STORAGE_ALIGN), false, NULL, &packed));
        bool ok = dnnl_reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL) == dnnl_success &&
                  dnnl_primitive_create(&primitive, desc) == dnnl_success &&
                  dnnl_memory_create(&source, from, engine, (void *)(uintptr_t)what->data) == dnnl_success &&
                  dnnl_memory_create(&target, to, engine, packed->data) == dnnl_success &&
                  dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success;
        if (ok) {
                dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, source }, { DNNL_ARG_TO, target } };
                ok = dnnl_primitive_execute(primitive, stream, 2, args) == dnnl_success &&
                     dnnl_stream_wait(stream) == dnnl_success;
        }
        if (stream != NULL)
                dnnl_stream_destroy(stream);
        if (target != NULL)
                dnnl_memory_destroy(target);
        if (source != NULL)
                dnnl_memory_destroy(source);
        if (primitive != NULL)
                dnnl_primitive_destroy(primitive);
        if (desc != NULL)
                dnnl_primitive_desc_destroy(desc);
        if (!ok)
                return fail_memory();
        *out_packed = take_ptr(packed);
        return STATUS_OK;
}

// The packed bytes depend on the layout only: one name for each pair of layouts.
static Status pack_constant(const Reorder *what, const PackShare *share, Storage **out_packed)
{
        char format[HASH_HEX_BYTES + 8];
        Sha256 sha;
        sha256_start(&sha);
        TRY(layout_hash(&sha, what->from));
        TRY(layout_hash(&sha, what->to));
        HashHex hex = sha256_finish(&sha);
        snprintf(format, sizeof(format), "dnnl %s", hex.hex);
        PackSource source = pack_source(share, what->data);
        return pack_cache_get(share->storage == NULL ? NULL : share->cache, format, &source, 1,
                              (PackMaker){ reorder, (Reorder *)(uintptr_t)what, share->poll }, out_packed);
}

static dnnl_alg_kind_t algorithm_of(DnnlActivation activation)
{
        static const dnnl_alg_kind_t kinds[] = {
                [DNNL_RELU] = dnnl_eltwise_relu,           [DNNL_CLIP] = dnnl_eltwise_clip_v2,
                [DNNL_SWISH] = dnnl_eltwise_swish,         [DNNL_GELU_ERF] = dnnl_eltwise_gelu_erf,
                [DNNL_GELU_TANH] = dnnl_eltwise_gelu_tanh, [DNNL_TANH] = dnnl_eltwise_tanh,
                [DNNL_SIGMOID] = dnnl_eltwise_logistic,
        };
        return kinds[activation];
}

static dnnl_status_t append_activation(dnnl_post_ops_t ops, const DnnlEpilogue *epilogue)
{
        if (epilogue->activation == DNNL_HARDSWISH)
                return append_hardswish(ops);
        return append_eltwise(ops, algorithm_of(epilogue->activation), epilogue->alpha, epilogue->beta);
}

// User-mode scratchpad and the epilogue. NULL when it cannot be made.
static dnnl_primitive_attr_t make_attributes(const DnnlEpilogue *epilogue)
{
        dnnl_primitive_attr_t attributes = NULL;
        dnnl_post_ops_t ops = NULL;
        if (dnnl_primitive_attr_create(&attributes) != dnnl_success)
                return NULL;
        bool ok = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) ==
                          dnnl_success &&
                  dnnl_post_ops_create(&ops) == dnnl_success;
        if (ok && epilogue->add_out)
                ok = append_sum(ops) == dnnl_success;
        if (ok && epilogue->activation != DNNL_NOTHING)
                ok = append_activation(ops, epilogue) == dnnl_success;
        ok = ok && dnnl_primitive_attr_set_post_ops(attributes, ops) == dnnl_success;
        if (ops != NULL)
                dnnl_post_ops_destroy(ops);
        if (ok)
                return attributes;
        dnnl_primitive_attr_destroy(attributes);
        return NULL;
}

// Implementations that are slower than our own kernels: references, and those that work on plain
// NCHW element by element.
static bool is_slow(const char *name)
{
        return strstr(name, "ref") != NULL || strncmp(name, "simple", 6) == 0;
}

// The operand in DNNL_ARG_WEIGHTS and where its constant bytes are.
typedef struct Constant {
        LayoutView layout;
        const void *data; // NULL: given at run time
        const void *bias; // NULL: none
        int64_t n_bias;
        PackShare share;
} Constant;

static void add_argument(DnnlPrimitive *primitive, int index, Role role, LayoutView layout, void *data)
{
        primitive->args[primitive->n_args++] =
                (Argument){ .index = index, .role = role, .layout = layout, .data = data };
}

static Status set_bias(DnnlPrimitive *primitive, LayoutView layout, const Constant *constant)
{
        size_t n = (size_t)constant->n_bias * sizeof(float);
        primitive->bias =
                aligned_alloc(STORAGE_ALIGN, (n + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN);
        if (primitive->bias == NULL)
                return fail_memory();
        memcpy(primitive->bias, constant->bias, n);
        add_argument(primitive, DNNL_ARG_BIAS, ROLE_CONSTANT, layout, primitive->bias);
        return STATUS_OK;
}

static Status fill(DnnlPrimitive *primitive, dnnl_primitive_desc_t made_from, const Constant *constant)
{
        const_dnnl_primitive_desc_t desc; // lives with the primitive, and so do its layouts
        if (dnnl_primitive_create(&primitive->primitive, made_from) != dnnl_success ||
            dnnl_primitive_get_primitive_desc(primitive->primitive, &desc) != dnnl_success)
                return fail_memory();
        LayoutView weights = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
        LayoutView scratch = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
        add_argument(primitive, DNNL_ARG_SRC, ROLE_A,
                     dnnl_primitive_desc_query_md(desc, dnnl_query_src_md, 0), NULL);
        add_argument(primitive, DNNL_ARG_DST, ROLE_OUT,
                     dnnl_primitive_desc_query_md(desc, dnnl_query_dst_md, 0), NULL);
        if (constant->data != NULL) {
                Reorder what = { .from = constant->layout, .to = weights, .data = constant->data };
                TRY(pack_constant(&what, &constant->share, &primitive->weights));
                add_argument(primitive, DNNL_ARG_WEIGHTS, ROLE_CONSTANT, weights, primitive->weights->data);
        } else {
                add_argument(primitive, DNNL_ARG_WEIGHTS, ROLE_B, weights, NULL);
        }
        if (constant->bias != NULL)
                TRY(set_bias(primitive, dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 1),
                             constant));
        primitive->scratch_bytes = dnnl_memory_desc_get_size(scratch);
        if (primitive->scratch_bytes > 0)
                add_argument(primitive, DNNL_ARG_SCRATCHPAD, ROLE_SCRATCH, scratch, NULL);
        return STATUS_OK;
}

// oneDNN generates its GEMM kernels at their first use in the process, which takes tens of
// milliseconds. This does so while compiling, not in a run.
static void warm_gemm(void)
{
        static const float zeros[16 * 16];
        float out[16 * 16];
        dnnl_sgemm('N', 'N', 16, 16, 16, 1.0f, zeros, 16, zeros, 16, 0.0f, out, 16);
}

// Takes `desc`; NULL: there is no implementation.
static Status make(dnnl_primitive_desc_t desc, const Constant *constant, int n_threads,
                   DnnlPrimitive **out_primitive)
{
        const char *name = NULL;
        if (desc == NULL)
                return STATUS_OK;
        dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&name);
        if (name == NULL || is_slow(name)) {
                dnnl_primitive_desc_destroy(desc);
                return STATUS_OK;
        }
        static pthread_once_t warmed = PTHREAD_ONCE_INIT;
        if (strstr(name, "gemm") != NULL)
                pthread_once(&warmed, warm_gemm);
        DnnlPrimitive *primitive = calloc(1, sizeof(*primitive));
        Status status = primitive == NULL ? fail_memory() : STATUS_OK;
        if (status == STATUS_OK) {
                primitive->n_threads = n_threads;
                strncpy(primitive->name, name, NAME_BYTES - 1);
                status = fill(primitive, desc, constant);
        }
        dnnl_primitive_desc_destroy(desc);
        if (status == STATUS_OK)
                *out_primitive = primitive;
        else
                dnnl_primitive_free(primitive);
        return status;
}

void dnnl_primitive_free(void *pointer)
{
        DnnlPrimitive *primitive = pointer;
        if (primitive == NULL)
                return;
        for (int i = 0; i < MAX_EXECUTIONS; i++)
                execution_free(primitive->executions[i], primitive->n_args);
        if (primitive->primitive != NULL)
                dnnl_primitive_destroy(primitive->primitive);
        storage_unref(primitive->weights);
        free(primitive->bias);
        free(primitive);
}

const char *dnnl_primitive_name(const DnnlPrimitive *primitive)
{
        return primitive->name;
}

size_t dnnl_primitive_scratch(const DnnlPrimitive *primitive)
{
        return primitive->scratch_bytes;
}

// ---- convolution ----
// [out, in/groups, k...] as oneDNN wants it with groups: [groups, out/groups, in/groups, k...].
static int grouped(const DnnlConv *conv, int64_t size[MAX_RANK], int64_t stride[MAX_RANK])
{
        int rank = conv->weight.rank, at = 0;
        if (conv->groups > 1) {
                size[0] = conv->groups;
                stride[0] = conv->weight.size[0] / conv->groups * conv->weight.stride[0];
                at = 1;
        }
        for (int d = 0; d < rank; d++) {
                size[at + d] = conv->weight.size[d];
                stride[at + d] = conv->weight.stride[d];
        }
        if (conv->groups > 1)
                size[1] = conv->weight.size[0] / conv->groups;
        return rank + at;
}

int64_t dnnl_conv_frame(const DnnlConv *conv)
{
        int64_t n = conv->input.size[1], reach, last, size;
        for (int i = 0; i < conv->input.rank - 2; i++) {
                if (!mul_i64(conv->weight.size[2 + i] - 1, conv->dilation[i], &reach) ||
                    !mul_i64(conv->out.size[2 + i] - 1, conv->stride[i], &last) ||
                    !add_i64(last, reach, &last) ||
                    !add_i64(conv->input.size[2 + i], conv->padding[i], &size) ||
                    !mul_i64(n, MAX(last + 1, size), &n))
                        return INT64_MAX;
        }
        return n;
}

// What lies before and after the input, as the output's size implies it, so that padding which is
// cut at the end fits, too. false: brgconv of 2.6 and of 3.7 reads wild addresses for windows that
// lie in the padding alone.
static bool frame_of(const DnnlConv *conv, dnnl_dims_t dilates, dnnl_dims_t after)
{
        for (int i = 0; i < conv->input.rank - 2; i++) {
                int64_t reach = (conv->weight.size[2 + i] - 1) * conv->dilation[i] + 1;
                dilates[i] = conv->dilation[i] - 1;
                after[i] = (conv->out.size[2 + i] - 1) * conv->stride[i] + reach - conv->input.size[2 + i] -
                           conv->padding[i];
                if (conv->padding[i] >= reach || after[i] >= reach)
                        return false;
        }
        return true;
}

static Layouts conv_layouts(const DnnlConv *conv)
{
        int64_t size[MAX_RANK] = { 0 }, stride[MAX_RANK] = { 0 };
        int rank = grouped(conv, size, stride);
        return (Layouts){ .input = strided(conv->input.rank, conv->input.size, conv->input.stride),
                          .weight = tagged(rank, size, dnnl_format_tag_any),
                          .constant = strided(rank, size, stride),
                          .bias = tagged(1, &conv->out.size[1], dnnl_a),
                          .out = strided(conv->out.rank, conv->out.size, conv->out.stride) };
}

Status dnnl_conv_new(const DnnlConv *conv, DnnlPrimitive **out_primitive)
{
        dnnl_dims_t dilates = { 0 }, after = { 0 }, strides, before;
        *out_primitive = NULL;
        use_threads(conv->n_threads);
        // The library's kernels count bytes of the frame in 32 bits.
        if (!dnnl_is_used() || the_engine() == NULL || conv->input.rank + 1 > MAX_RANK ||
            dnnl_conv_frame(conv) > INT32_MAX / (int64_t)sizeof(float) || !frame_of(conv, dilates, after))
                return STATUS_OK;
        TRY(dnnl_check_heap());
        copy_dims(strides, conv->input.rank - 2, conv->stride);
        copy_dims(before, conv->input.rank - 2, conv->padding);
        _cleanup_(layouts_deinit) Layouts layouts = conv_layouts(conv);
        dnnl_primitive_attr_t attributes = make_attributes(&conv->epilogue);
        if (attributes == NULL)
                return fail_memory();
        dnnl_primitive_desc_t desc = NULL;
        ConvLayouts asked = { layouts.input, layouts.weight, conv->bias_data == NULL ? NULL : layouts.bias,
                              layouts.out,   strides,        dilates,
                              before,        after };
        if (!layouts_are_made(&layouts) ||
            conv_desc_new(the_engine(), &asked, attributes, &desc) != dnnl_success)
                desc = NULL;
        dnnl_primitive_attr_destroy(attributes);
        Constant packed = { .layout = layouts.constant,
                            .data = conv->weight_data,
                            .bias = conv->bias_data,
                            .n_bias = conv->out.size[1],
                            .share = conv->share };
        return make(desc, &packed, conv->n_threads, out_primitive);
}

// ---- product of matrices ----
// The stride of a dimension of size 1 is arbitrary, but gemm takes it for a leading dimension. So
// it is replaced by a dense matrix's stride.
static TensorMeta dense_ones(const TensorMeta *meta)
{
        TensorMeta matrix = *meta;
        int row = meta->rank - 2, column = meta->rank - 1;
        if (matrix.size[column] == 1)
                matrix.stride[column] = 1;
        if (matrix.size[row] == 1)
                matrix.stride[row] = matrix.stride[column] == 1 ? MAX(matrix.size[column], (int64_t)1) : 1;
        return matrix;
}

// brg_matmul of 3.7 (AVX-512) takes a single row of the left factor, and a single column of the
// result, for dense whatever their strides.
static bool has_loose_vector(const DnnlMatmul *matmul)
{
        int row = matmul->a.rank - 2, column = matmul->a.rank - 1;
        return (matmul->out.size[row] == 1 && matmul->a.size[column] > 1 && matmul->a.stride[column] != 1) ||
               (matmul->out.size[column] == 1 && matmul->out.size[row] > 1 && matmul->out.stride[row] != 1);
}

// brg_matmul of 3.7 (AVX-512) adds up more than 1,024 products of one row in another order than
// those of several rows, and a row's result shall not depend on how many there are.
enum { DOUBLED_DEPTH = 1024 };
static bool is_doubled(const DnnlMatmul *matmul)
{
        return DNNL_VERSION_MAJOR >= 3 && matmul->b_data != NULL && matmul->a.rank == 2 &&
               matmul->a.size[0] == 1 && matmul->a.size[1] > DOUBLED_DEPTH;
}

static DnnlMatmul doubled(const DnnlMatmul *matmul)
{
        DnnlMatmul two = *matmul;
        meta_init(&two.a, matmul->a.dtype, 2, (int64_t[]){ 2, matmul->a.size[1] });
        meta_init(&two.out, matmul->out.dtype, 2, (int64_t[]){ 2, matmul->out.size[1] });
        return two;
}

// Room for both rows of both operands.
static Status add_doubled_rows(const DnnlMatmul *matmul, DnnlPrimitive *primitive)
{
        int64_t floats, bytes,
                own = (int64_t)(primitive->scratch_bytes + STORAGE_ALIGN - 1) / STORAGE_ALIGN * STORAGE_ALIGN;
        if (!add_i64(matmul->a.size[1], matmul->out.size[1], &floats) ||
            !mul_i64(floats, 2 * (int64_t)sizeof(float), &bytes) || !add_i64(bytes, own, &bytes))
                return fail_memory();
        primitive->doubled_a = matmul->a.size[1];
        primitive->doubled_out = matmul->out.size[1];
        primitive->scratch_bytes = (size_t)bytes;
        return STATUS_OK;
}

static Layouts matmul_layouts(const DnnlMatmul *matmul)
{
        int rank = matmul->a.rank;
        int64_t bias_size[MAX_RANK] = { 0 }, bias_stride[MAX_RANK] = { 0 };
        for (int d = 0; d < rank; d++) {
                bias_size[d] = d == rank - 1 ? matmul->out.size[d] : 1;
                bias_stride[d] = d == rank - 1 ? 1 : matmul->out.size[rank - 1];
        }
        TensorMeta left = dense_ones(&matmul->a), right = dense_ones(&matmul->b),
                   made = dense_ones(&matmul->out);
        return (Layouts){ .input = strided(rank, left.size, left.stride),
                          .weight = tagged(rank, matmul->b.size, dnnl_format_tag_any),
                          .constant = strided(rank, right.size, right.stride),
                          .bias = strided(rank, bias_size, bias_stride),
                          .out = strided(rank, made.size, made.stride) };
}

static Status matmul_new(const DnnlMatmul *matmul, DnnlPrimitive **out_primitive)
{
        *out_primitive = NULL;
        use_threads(matmul->n_threads);
        if (!dnnl_is_used() || the_engine() == NULL || has_loose_vector(matmul))
                return STATUS_OK;
        TRY(dnnl_check_heap());
        _cleanup_(layouts_deinit) Layouts layouts = matmul_layouts(matmul);
        dnnl_primitive_attr_t attributes = make_attributes(&matmul->epilogue);
        if (attributes == NULL)
                return fail_memory();
        dnnl_primitive_desc_t desc = NULL;
        MatmulLayouts asked = { layouts.input, matmul->b_data == NULL ? layouts.constant : layouts.weight,
                                matmul->bias_data == NULL ? NULL : layouts.bias, layouts.out };
        if (!layouts_are_made(&layouts) ||
            matmul_desc_new(the_engine(), &asked, attributes, &desc) != dnnl_success)
                desc = NULL;
        dnnl_primitive_attr_destroy(attributes);
        Constant packed = { .layout = layouts.constant,
                            .data = matmul->b_data,
                            .bias = matmul->bias_data,
                            .n_bias = matmul->out.size[matmul->a.rank - 1],
                            .share = matmul->share };
        return make(desc, &packed, matmul->n_threads, out_primitive);
}

Status dnnl_matmul_new(const DnnlMatmul *matmul, DnnlPrimitive **out_primitive)
{
        if (!is_doubled(matmul) || has_loose_vector(matmul))
                return matmul_new(matmul, out_primitive);
        DnnlMatmul two = doubled(matmul);
        TRY(matmul_new(&two, out_primitive));
        return *out_primitive == NULL ? STATUS_OK : add_doubled_rows(matmul, *out_primitive);
}
