// SPDX-License-Identifier: Apache-2.0
// Observing a node: readers are added that describe its call, take statistics of its value, copy
// it, or end the run when it holds a NaN or an infinity. Their results are fetched beside those
// that the client asks for; a value itself lives no longer than without them. A graph with them is
// another program, whose fusions may be other ones.
#pragma once
#include "core/edit/region.h"

// What is observed of a node, and which values end the run.
typedef enum EditObserve { OBSERVE_CALL = 1, OBSERVE_STATS = 2, OBSERVE_TENSOR = 4 } EditObserve;
typedef enum EditHalt { HALT_NAN = 1, HALT_INF = 2 } EditHalt;

// To be called before actions change the node: `call` describes the call as it was authored, with
// the values that reach it, and the others read what the actions make of its value. *out_hit gets
// the new nodes. `node` belongs to the session and stands for a node of the base.
Status edit_observe(Edit *edit, Node *node, uint8_t observe, uint8_t halt_on, RuleHit *out_hit);
// The same for a module's call: its arguments and the value that it gives. *out_hit tells which
// module it is and which nodes it is made of, too.
Status edit_observe_region(Edit *edit, const EditRegion *region, uint8_t observe, uint8_t halt_on,
                           RuleHit *out_hit);
