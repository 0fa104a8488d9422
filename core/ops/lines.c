// SPDX-License-Identifier: Apache-2.0
#include "core/ops/lines.h"

static const char *const rows[] = {
        [LINE_TO_IMAGE] = "aten::unsqueeze",
        [LINE_FROM_IMAGE] = "aten::squeeze.dim",
        [LINE_CONV] = "aten::conv2d",
        [LINE_CONV_TRANSPOSED] = "aten::conv_transpose2d.input",
};

static const LineOp line_ops[] = {
        { "aten::max_pool1d",
          "aten::max_pool2d",
          { LIST_AS_IT_IS, LIST_ONE, LIST_ONE, LIST_ZERO, LIST_ONE } },
        { "aten::avg_pool1d", "aten::avg_pool2d", { LIST_AS_IT_IS, LIST_ONE, LIST_ONE, LIST_ZERO } },
        { "aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d", { LIST_AS_IT_IS, LIST_ONE } },
        { "aten::upsample_nearest1d.vec",
          "aten::upsample_nearest2d.vec",
          { LIST_AS_IT_IS, LIST_ONE, LIST_ONE } },
        { "aten::reflection_pad1d", "aten::reflection_pad2d", { LIST_AS_IT_IS, LIST_PAIRS } },
        { "aten::replication_pad1d", "aten::replication_pad2d", { LIST_AS_IT_IS, LIST_PAIRS } },
};

const Overload *line_row(LineRow row)
{
        return op_find(rows[row]);
}

const LineOp *line_op(const Overload *overload)
{
        for (size_t i = 0; i < ARRAY_LENGTH(line_ops); i++)
                if (overload == op_find(line_ops[i].line))
                        return &line_ops[i];
        return NULL;
}
