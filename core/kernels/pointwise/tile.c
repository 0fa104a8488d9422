// SPDX-License-Identifier: Apache-2.0
// tile.c: building tile programs. tile_add_op adds the steps that pointwise_run does around its
// loop: operands converted to the class and rounded to the common dtype, results rounded to
// theirs. tile_finish merges dimensions over all operands and assigns registers.
#include "core/kernels/pointwise/tile_private.h"

#include <string.h>

static Status too_large(void)
{
        return fail(STATUS_TOO_LARGE, "a group of pointwise operators is too large for one tile program");
}

Status tile_program_new(TileProgram **out_program)
{
        TileProgram *program = calloc(1, sizeof(*program));
        if (program == NULL)
                return fail_memory();
        *out_program = program;
        return STATUS_OK;
}

TileProgram *tile_program_free(TileProgram *program)
{
        if (program == NULL)
                return NULL;
        free(program->inputs);
        free(program->outputs);
        free(program->values);
        free(program->steps);
        free(program);
        return NULL;
}

const char *tile_name(void)
{
        static const char *const names[POINT_WIDEST + 1] = { "tile", "tile_avx2", "tile_avx512" };
        return names[point_isa()];
}

// ---- values and steps ----
static Status add_value(TileProgram *program, TileKind kind, Dtype dtype, TileValueId *out_value)
{
        if (program->n_values == TILE_MAX_VALUES)
                return too_large();
        TRY(array_reserve(&program->values, &program->values_capacity, program->n_values + 1,
                          sizeof(TileValue)));
        TileValue *value = &program->values[program->n_values];
        *value = (TileValue){ .kind = kind, .dtype = dtype, .reg = NO_REGISTER, .round_to = DTYPE_NONE };
        value->class = point_tile_class(point_class(dtype));
        *out_value = program->n_values++;
        return STATUS_OK;
}

static Status add_step(TileProgram *program, const TileStep *step)
{
        if (program->n_steps == TILE_MAX_STEPS)
                return too_large();
        TRY(array_reserve(&program->steps, &program->steps_capacity, program->n_steps + 1, sizeof(TileStep)));
        program->steps[program->n_steps++] = *step;
        return STATUS_OK;
}

Status tile_add_input(TileProgram *program, const TensorMeta *meta, TileValueId *out_value)
{
        if (program->n_inputs == TILE_MAX_INPUTS)
                return too_large();
        TRY(array_reserve(&program->inputs, &program->inputs_capacity, program->n_inputs + 1,
                          sizeof(TileOperand)));
        TRY(add_value(program, TILE_INPUT, meta->dtype, out_value));
        TileValue *value = &program->values[*out_value];
        value->operand = (uint8_t)program->n_inputs;
        value->uniform = meta_numel(meta) == 1;
        program->inputs[program->n_inputs++] = (TileOperand){ .meta = *meta, .value = *out_value };
        return STATUS_OK;
}

Status tile_add_number(TileProgram *program, Dtype dtype, PointParam number, TileValueId *out_value)
{
        TRY(add_value(program, TILE_NUMBER, dtype, out_value));
        program->values[*out_value].uniform = true;
        program->values[*out_value].number = number;
        return STATUS_OK;
}

// ---- operands ----
// A number is converted while building.
static Status convert_number(TileProgram *program, TileValueId from, TileClass class, Dtype round_to,
                             TileValueId *out_value)
{
        const TileValue number = program->values[from];
        PointParam element = { 0 }, scratch;
        TRY(add_value(program, TILE_NUMBER, number.dtype, out_value));
        TileValue *value = &program->values[*out_value];
        if (class == TILE_MASK) {
                bool set = number.dtype == DTYPE_F64 ? number.number.f != 0 : number.number.i != 0;
                memcpy(&element, &set, 1);
        } else {
                tile_loader(class, number.dtype)(&number.number, 0, 1, &element);
                if (round_to != DTYPE_NONE)
                        tile_round(class, round_to, &element, 1, &scratch, &element);
        }
        value->uniform = true;
        value->class = class;
        value->number = element;
        return STATUS_OK;
}

// An input's tile is loaded right before its first reader. An input of one element is loaded once
// per range.
static Status load_first(TileProgram *program, TileValueId id)
{
        const TileValue *value = &program->values[id];
        if (value->kind != TILE_INPUT || value->uniform)
                return STATUS_OK;
        for (uint32_t i = 0; i < program->n_steps; i++) {
                if (program->steps[i].kind == STEP_LOAD && program->steps[i].out == id)
                        return STATUS_OK;
        }
        return add_step(program, &(TileStep){ .kind = STEP_LOAD, .out = id, .operand = value->operand });
}

// An input is loaded once more, as what it becomes.
static Status load_as(TileProgram *program, TileValueId from, TileClass class, Dtype round_to,
                      TileValueId *out_value)
{
        const TileValue source = program->values[from];
        for (TileValueId id = 0; id < program->n_values; id++) {
                const TileValue *value = &program->values[id];
                if (value->kind == TILE_INPUT && value->operand == source.operand && value->class == class &&
                    value->round_to == round_to) {
                        *out_value = id;
                        return load_first(program, id);
                }
        }
        TRY(add_value(program, TILE_INPUT, source.dtype, out_value));
        TileValue *value = &program->values[*out_value];
        value->operand = source.operand;
        value->uniform = source.uniform;
        value->class = class;
        value->round_to = round_to;
        return load_first(program, *out_value);
}

static Status convert(TileProgram *program, TileValueId from, TileClass class, Dtype round_to,
                      TileValueId *out_value)
{
        if (program->values[from].kind == TILE_NUMBER)
                return convert_number(program, from, class, round_to, out_value);
        const TileValue source = program->values[from];
        if (source.class == class && round_to == DTYPE_NONE) {
                *out_value = from;
                return load_first(program, from);
        }
        if (source.kind == TILE_INPUT && (source.uniform || round_to == DTYPE_NONE))
                return load_as(program, from, class, round_to, out_value);
        TRY(load_first(program, from));
        program->values[from].filled |= source.uniform;
        TRY(add_value(program, TILE_MADE, source.dtype, out_value));
        program->values[*out_value].class = class;
        TileStep step = { .kind = class == TILE_MASK ? STEP_TO_MASK : STEP_CONVERT,
                          .n_in = 1,
                          .in = { from },
                          .out = *out_value,
                          .round_to = round_to };
        return add_step(program, &step);
}

static Status add_operand(TileProgram *program, const TileOp *op, int k, TileStep *step)
{
        PointClass class = point_class(op->common);
        bool to_mask = op->kernel->in[k] == 'm' || class == POINT_BOOL;
        bool round =
                !to_mask && !op->exact[k] && point_must_round(program->values[op->in[k]].dtype, op->common);
        return convert(program, op->in[k], to_mask ? TILE_MASK : point_tile_class(class),
                       round ? op->common : DTYPE_NONE, &step->in[k]);
}

// Rows of two float operands accept one of them as a single element; all others need it repeated.
static void settle_uniform(TileProgram *program, const TileOp *op, TileStep *step)
{
        bool takes = point_takes_uniform(op->kernel, point_class(op->common));
        bool all = true;
        for (int k = 0; k < step->n_in; k++)
                all &= program->values[step->in[k]].uniform;
        for (int k = 0; k < step->n_in; k++) {
                TileValue *value = &program->values[step->in[k]];
                if (!value->uniform)
                        continue;
                if (takes && !all)
                        step->uniform = (uint8_t)(step->uniform | 1 << k);
                else
                        value->filled = true;
        }
}

Status tile_add_op(TileProgram *program, const TileOp *op, TileValueId *out_value)
{
        PointClass class = point_class(op->common);
        bool exact = false;
        TileStep step = { .kind = STEP_LOOP,
                          .loop = point_loop(op->kernel, class),
                          .n_in = (uint8_t)strlen(op->kernel->in) };
        if (step.loop == NULL)
                return fail(STATUS_INTERNAL, "pointwise row %s has no loop for %s", op->kernel->label,
                            dtype_info[op->common].name);
        for (int k = 0; k < step.n_in; k++) {
                TRY(add_operand(program, op, k, &step));
                exact |= op->exact[k];
        }
        step.params = point_params_for(op->params, op->common, exact);
        settle_uniform(program, op, &step);
        TRY(add_value(program, TILE_MADE, op->out, &step.out));
        TRY(add_step(program, &step));
        *out_value = step.out;
        TileValue *value = &program->values[step.out];
        value->class = op->kernel->mask_out ? TILE_MASK : point_tile_class(class);
        if (value->class == TILE_MASK || !point_must_round(DTYPE_NONE, op->out))
                return STATUS_OK;
        TRY(add_value(program, TILE_MADE, op->out, out_value));
        program->values[*out_value].class = point_tile_class(class);
        return add_step(program, &(TileStep){ .kind = STEP_ROUND,
                                              .n_in = 1,
                                              .in = { step.out },
                                              .out = *out_value,
                                              .round_to = op->out });
}

Status tile_add_cast(TileProgram *program, TileValueId value, Dtype dtype, TileValueId *out_value)
{
        const TileValue source = program->values[value];
        if (source.dtype == dtype) {
                *out_value = value;
                return STATUS_OK;
        }
        if (source.dtype == DTYPE_U64 || dtype == DTYPE_U64 || source.kind == TILE_NUMBER)
                return fail(STATUS_INTERNAL, "tile programs do not cast %s to %s",
                            dtype_info[source.dtype].name, dtype_info[dtype].name);
        TRY(load_first(program, value));
        program->values[value].filled |= source.uniform;
        TRY(add_value(program, TILE_MADE, dtype, out_value));
        return add_step(program,
                        &(TileStep){ .kind = STEP_CAST, .n_in = 1, .in = { value }, .out = *out_value });
}

Status tile_add_output(TileProgram *program, TileValueId value, const TensorMeta *meta)
{
        if (program->n_outputs == TILE_MAX_OUTPUTS)
                return too_large();
        if (program->values[value].dtype != meta->dtype)
                return fail(STATUS_INTERNAL, "an output of a tile program has another dtype than its value");
        if (program->n_outputs > 0 && !meta_same_shape(&program->outputs[0].meta, meta))
                return fail(STATUS_SHAPE, "the outputs of a group of pointwise operators differ in shape");
        TRY(array_reserve(&program->outputs, &program->outputs_capacity, program->n_outputs + 1,
                          sizeof(TileOperand)));
        program->outputs[program->n_outputs++] = (TileOperand){ .meta = *meta, .value = value };
        return STATUS_OK;
}

// ---- dimensions ----
static uint32_t n_operands(const TileProgram *program)
{
        return program->n_outputs + program->n_inputs;
}

static TileOperand *operand_at(TileProgram *program, uint32_t i)
{
        return i < program->n_outputs ? &program->outputs[i] : &program->inputs[i - program->n_outputs];
}

static bool goes_inside(TileProgram *program, int a, int b)
{
        for (uint32_t i = 0; i < n_operands(program); i++) {
                const int64_t *stride = operand_at(program, i)->stride;
                if (stride[a] != stride[b])
                        return stride[a] < stride[b];
        }
        return false;
}

static void swap_dims(TileProgram *program, int a, int b)
{
        int64_t size = program->size[a];
        program->size[a] = program->size[b];
        program->size[b] = size;
        for (uint32_t i = 0; i < n_operands(program); i++) {
                int64_t *stride = operand_at(program, i)->stride, swap = stride[a];
                stride[a] = stride[b];
                stride[b] = swap;
        }
}

static bool continues(TileProgram *program, int inner, int outer)
{
        for (uint32_t i = 0; i < n_operands(program); i++) {
                const int64_t *stride = operand_at(program, i)->stride;
                if (stride[outer] != stride[inner] * program->size[inner])
                        return false;
        }
        return true;
}

static void merge_dims(TileProgram *program)
{
        int n = MIN(program->rank, 1);
        for (int d = 1; d < program->rank; d++) {
                if (continues(program, n - 1, d)) {
                        program->size[n - 1] *= program->size[d];
                        continue;
                }
                if (n != d)
                        swap_dims(program, n, d);
                n++;
        }
        program->rank = n;
}

static int64_t stride_of(const TileOperand *operand, const TensorMeta *shape, int d)
{
        const TensorMeta *meta = &operand->meta;
        int from = d - (shape->rank - meta->rank);
        return from < 0 || meta->size[from] == 1 ? 0 : meta->stride[from] * dtype_info[meta->dtype].bytes;
}

static void plan_dims(TileProgram *program)
{
        const TensorMeta *shape = &program->outputs[0].meta;
        for (int d = shape->rank - 1; d >= 0; d--) {
                if (shape->size[d] == 1)
                        continue;
                int at = program->rank++;
                program->size[at] = shape->size[d];
                for (uint32_t i = 0; i < n_operands(program); i++)
                        operand_at(program, i)->stride[at] = stride_of(operand_at(program, i), shape, d);
                for (; at > 0 && goes_inside(program, at, at - 1); at--)
                        swap_dims(program, at, at - 1);
        }
        merge_dims(program);
        program->numel = meta_numel(shape);
        if (program->rank > 0)
                return;
        program->rank = 1;
        program->size[0] = 1;
        for (uint32_t i = 0; i < n_operands(program); i++)
                operand_at(program, i)->stride[0] = dtype_info[operand_at(program, i)->meta.dtype].bytes;
}

static bool is_dense(const TileProgram *program, const TileOperand *operand)
{
        const TileValue *value = &program->values[operand->value];
        int64_t expected = dtype_info[operand->meta.dtype].bytes;
        if (operand->meta.dtype != tile_dtype[value->class])
                return false;
        for (int d = 0; d < program->rank; d++) {
                if (operand->stride[d] != expected)
                        return false;
                expected *= program->size[d];
        }
        return true;
}

// ---- registers ----
static Status take_register(uint32_t *inout_free, uint8_t *out_reg)
{
        if (*inout_free == 0)
                return too_large();
        *out_reg = (uint8_t)__builtin_ctz(*inout_free);
        *inout_free &= *inout_free - 1;
        return STATUS_OK;
}

static void find_last_uses(TileProgram *program)
{
        for (uint32_t i = 0; i < program->n_steps; i++) {
                TileStep *step = &program->steps[i];
                for (int k = 0; k < step->n_in; k++)
                        program->values[step->in[k]].last_use = (uint16_t)i;
        }
}

// Loops may write over an operand of the same kind that nobody reads later; values of one element
// keep their registers.
static void release(TileProgram *program, uint32_t at, bool same_only, uint32_t *inout_free)
{
        const TileStep *step = &program->steps[at];
        const TileValue *made = step->kind == STEP_STORE ? NULL : &program->values[step->out];
        for (int k = 0; k < step->n_in; k++) {
                TileValue *value = &program->values[step->in[k]];
                bool same = made != NULL && value->class == made->class && step->kind == STEP_LOOP;
                if (value->uniform || value->repeats || value->reg == NO_REGISTER || value->last_use != at ||
                    (same_only && !same))
                        continue;
                *inout_free |= 1u << value->reg;
        }
}

static Status assign_registers(TileProgram *program)
{
        uint32_t free_registers = (1u << TILE_REGISTERS) - 1;
        for (uint32_t i = 0; i < program->n_values; i++) {
                const TileValue *value = &program->values[i];
                if ((value->uniform && value->filled) || value->repeats)
                        TRY(take_register(&free_registers, &program->values[i].reg));
        }
        for (uint32_t i = 0; i < program->n_steps; i++) {
                const TileStep *step = &program->steps[i];
                release(program, i, true, &free_registers);
                if (step->kind != STEP_STORE && !program->values[step->out].repeats)
                        TRY(take_register(&free_registers, &program->values[step->out].reg));
                uint32_t made = step->kind == STEP_STORE ? 0 : 1u << program->values[step->out].reg;
                release(program, i, false, &free_registers);
                free_registers &= ~made;
        }
        return STATUS_OK;
}

// ---- closing ----
static bool is_read_again(const TileProgram *program, TileValueId value)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < program->n_steps; i++) {
                for (int k = 0; k < program->steps[i].n_in; k++)
                        n += program->steps[i].in[k] == value;
        }
        for (uint32_t k = 0; k < program->n_outputs; k++)
                n += program->outputs[k].value == value;
        return n > 1;
}

// Storing rounds: a result that nothing else reads is stored as its loop made it.
static void drop_roundings(TileProgram *program)
{
        for (uint32_t k = 0; k < program->n_outputs; k++) {
                TileOperand *output = &program->outputs[k];
                for (uint32_t i = 0; i < program->n_steps; i++) {
                        const TileStep step = program->steps[i];
                        if (step.kind != STEP_ROUND || step.out != output->value ||
                            step.round_to != output->meta.dtype || is_read_again(program, step.out))
                                continue;
                        output->value = step.in[0];
                        memmove(&program->steps[i], &program->steps[i + 1],
                                (program->n_steps - i - 1) * sizeof(step));
                        program->n_steps--;
                        break;
                }
        }
}

static Status add_stores(TileProgram *program)
{
        for (uint32_t k = 0; k < program->n_outputs; k++) {
                TileOperand *output = &program->outputs[k];
                TileValue *value = &program->values[output->value];
                TRY(load_first(program, output->value));
                value->filled |= value->uniform;
                output->direct = output->dense && value->kind == TILE_MADE;
                for (uint32_t i = 0; i < k; i++)
                        output->direct &= program->outputs[i].value != output->value;
                TileStep step = {
                        .kind = STEP_STORE, .n_in = 1, .in = { output->value }, .operand = (uint8_t)k
                };
                TRY(add_step(program, &step));
        }
        return STATUS_OK;
}

static bool is_same_in_rows(const TileProgram *program, const TileValue *value)
{
        if (value->kind != TILE_INPUT || value->uniform || program->rank < 2)
                return false;
        const int64_t *stride = program->inputs[value->operand].stride;
        for (int d = 1; d < program->rank; d++) {
                if (stride[d] != 0)
                        return false;
        }
        return stride[0] != 0;
}

// The rows of `n` elements that fill whole vectors, in elements.
static int64_t whole_rows(int64_t n, int64_t tile)
{
        int64_t unit = n;
        while (unit % TILE_LANES != 0 && unit <= tile)
                unit *= 2;
        return unit;
}

bool tile_keeps_rows(int64_t n)
{
        const int64_t tile = TILE_BYTES / sizeof(float);
        return whole_rows(n, tile) <= tile;
}

// Tiles of whole rows, if a tile holds enough of them.
static void keep_rows(TileProgram *program)
{
        const int64_t unit = whole_rows(program->size[0], program->tile);
        if (unit == 0 || unit > program->tile)
                return;
        bool any = false;
        for (uint32_t i = 0; i < program->n_values; i++) {
                program->values[i].repeats = is_same_in_rows(program, &program->values[i]);
                any |= program->values[i].repeats;
        }
        if (any)
                program->tile = (uint32_t)(program->tile / unit * unit);
}

Status tile_finish(TileProgram *program)
{
        if (program->n_outputs == 0)
                return fail(STATUS_VALUE, "a group of pointwise operators without outputs");
        plan_dims(program);
        drop_roundings(program);
        for (uint32_t i = 0; i < n_operands(program); i++)
                operand_at(program, i)->dense = is_dense(program, operand_at(program, i));
        TRY(add_stores(program));
        size_t widest = 1;
        program->padded = true;
        for (uint32_t i = 0; i < program->n_values; i++) {
                const TileValue *value = &program->values[i];
                widest = MAX(widest, (size_t)tile_bytes[value->class]);
                // what is in the padding could divide by zero
                program->padded &=
                        value->class == TILE_F32 || value->class == TILE_F64 || value->class == TILE_MASK;
        }
        program->tile = (uint32_t)(TILE_BYTES / MAX(widest, sizeof(float)));
        find_last_uses(program);
        keep_rows(program);
        if (assign_registers(program) == STATUS_OK)
                return STATUS_OK;
        for (uint32_t i = 0; i < program->n_values; i++)
                program->values[i].repeats = false;
        return assign_registers(program);
}
