// SPDX-License-Identifier: Apache-2.0
// Passes over working copies that have to run parts of the graph. What they run is bounded like a
// run: limits.run_deadline_ms, limits.max_run_memory. Any thread.
#pragma once
#include "core/edit/edit.h"

// Calls that depend on state alone become state (edit_constants, edit_put_constants).
Status engine_constant_fold(Edit *edit);
// Batch norms are folded into the layers in front of them (edit_fuse).
Status engine_fuse(Edit *edit);
// ShapeProp: every node gets the dtype and shape that it has with inputs of these shapes. A node
// whose sizes depend on numbers gets none, and neither do those that read it. *io_edit is closed
// and becomes a new session on the graph that it made: failures are edit_finish's, or those of the
// node that does not take its inputs. STATUS_INPUT: an input has neither shape nor default.
Status engine_shape_prop(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes);
// ExportedProgram.run_decompositions({}): calls that write become calls that do not. What inputs
// and state are at the end is written by copy_ in front of the output node; in an export it is a
// result of its own. The result serves inputs of these shapes only. Shapes, *io_edit and failures
// as engine_shape_prop. STATUS_UNSUPPORTED: a write through a view that cannot be inverted, a write
// beside nodes that depend on numbers, an input that is no tensor.
Status engine_functionalise(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes);
// ExportedProgram.run_decompositions(): the same, and all calls become calls of operators near
// PyTorch's core ATen set (core/ops/decompose.h). Nodes whose sizes depend on numbers stay, and so
// do child graphs that they call.
Status engine_decompose(Edit **io_edit, const EditShape *shapes, uint32_t n_shapes);
