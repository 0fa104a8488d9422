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
