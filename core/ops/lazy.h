// SPDX-License-Identifier: Apache-2.0
// Lazy views: tensors with PyTorch's conj or neg bit (Tensor.conj, Tensor.negative). torch.conj and
// the imaginary part of a conjugate share the bytes of their base, so writes to one show in the
// other. Views keep the bits; every other operator gets a copy with the numbers that the bits mean,
// and what it writes goes back through them.
#pragma once
#include "core/ops/emitter.h"

static inline bool tensor_is_lazy(const Tensor *tensor)
{
        return tensor->conj || tensor->negative;
}
// Whether a tensor in the value, or in a container in it, is lazy.
bool value_is_lazy(Value value);
// Whether some argument is lazy.
bool lazy_among(const Schema *schema, const Value *args);
// The value with copies of its lazy tensors, as the bits say (a new reference if none is lazy).
Status lazy_resolve(Emitter *emitter, Value value, Value *out);
// A view of the same bytes with other bits. `tensor` is not changed.
Status lazy_view(const Tensor *tensor, bool conj, bool negative, Value *out);
// Whether the row takes these lazy arguments as they are: views, copy_, and rows that pass their
// arguments on, such as Python rows.
bool lazy_takes(const Overload *overload, const Value *args);
// The views that `call` made, in `out`, get the bits of their base.
void lazy_keep(const OpCall *call, Value out);
// The call with resolved arguments.
Status lazy_call(Emitter *emitter, const Overload *overload, const Value *args, uint64_t given, Value *out);
// Emitter.write between tensors that may be lazy.
Status lazy_write(Emitter *emitter, Tensor *to, Tensor *from);
