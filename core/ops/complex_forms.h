// SPDX-License-Identifier: Apache-2.0
// Operators without a kernel for complex numbers, written with those of real ones.
#pragma once
#include "core/ops/compose.h"

// What emit calls in place of the row: set where the row takes real numbers only, the call has
// complex ones, and a form is known. Else NULL.
OpExpand complex_form(const OpCall *call);
// The form of a row of real numbers; NULL: none.
OpExpand complex_form_of(const OpDef *op);
// [[real, -imag], [imag, real]]: the real matrix that is a complex one, with all of its eigenvalues
// and singular values twice.
Value complex_doubled(Compose *c, Value real, Value imag);
// The same of a hermitian matrix. One triangle of `a` is read, and the real parts of the diagonal.
Value complex_hermitian(Compose *c, Value a, bool upper);
