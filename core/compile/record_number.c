// SPDX-License-Identifier: Apache-2.0
// record_number.c: runtime scalars. When the first operator takes one, it becomes a 0-dim
// wrapped tensor in an input slot of its own. The number's tag (Value.tag) is its placeholder's
// position + 1.
#include "core/compile/recorder.h"

Status record_number(Emitter *emitter, Value number, Tensor **out_tensor)
{
        Recorder *recorder = recorder_of(emitter);
        Recording *recording = recorder->recording;
        uint32_t at = number.tag - 1;
        if (recorder->numbers[at] == NULL) {
                TensorMeta meta;
                Buffer *buffer;
                Recorded *value;
                uint32_t n = recording->n_inputs - recording->n_tensor_inputs;
                meta_init(&meta, number.kind == VALUE_INT ? DTYPE_I64 : DTYPE_F64, 0, NULL);
                meta.wrapped = true;
                TRY(array_reserve(&recording->inputs, &recording->inputs_capacity, recording->n_inputs + 1,
                                  sizeof(Recorded *)));
                TRY(array_reserve(&recording->number_inputs, &recording->number_inputs_capacity, n + 1,
                                  sizeof(uint32_t)));
                TRY(recording_add_buffer(recording, BUFFER_INPUT, sizeof(int64_t), &buffer));
                TRY(recording_add_value(recording, FROM_INPUT, buffer->storage, &meta, 0, &value));
                value->input = buffer->input = recording->n_inputs;
                value->name = runtime_scalar_name(recording->graph, at);
                recording->number_inputs[n] = at;
                recording->inputs[recording->n_inputs++] = value;
                TRY(recorder_live_tensor(value, &recorder->numbers[at]));
        }
        *out_tensor = tensor_ref(recorder->numbers[at]);
        return STATUS_OK;
}

void record_number_read(Emitter *emitter, Value number)
{
        recorder_of(emitter)->scalars_read |= (uint64_t)1 << (number.tag - 1);
}
