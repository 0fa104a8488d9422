// SPDX-License-Identifier: Apache-2.0
#include "api/formats/choice_text.h"

void choice_write_json(const Choice *choice, NodeNamer name, const void *nodes, Text *out)
{
        const char *reason = choice_reason(choice);
        text_addf(out, "{\"within\": %g, \"error\": %.7g, \"chose\": %u, \"verified\": %u, \"why\": ",
                  bucket_tolerance(choice->bucket), choice->error, choice->n_choose, choice->n_verify);
        if (reason == NULL)
                text_add(out, "null");
        else
                text_add_json(out, reason);
        text_add(out, ", \"nodes\": [");
        for (uint32_t i = 0; i < choice->n; i++) {
                const ChosenNode *node = &choice->nodes[i];
                text_add(out, i == 0 ? "{\"node\": " : ", {\"node\": ");
                text_add_json(out, name(nodes, node->node));
                text_addf(out, ", \"precision\": \"%s\", \"error\": %.7g}", precision_names[node->precision],
                          node->error);
        }
        text_add(out, "]}");
}

void choice_write_text(const Choice *choice, NodeNamer name, const void *nodes, Text *out)
{
        const char *reason = choice_reason(choice);
        text_addf(out, "within %g: ", bucket_tolerance(choice->bucket));
        if (reason != NULL)
                text_add(out, reason);
        else
                text_addf(out, "error %.3g on %u samples", choice->error, choice->n_verify);
        for (uint32_t i = 0; i < choice->n; i++)
                text_addf(out, "%s %.60s %s (%.2g)", i == 0 ? ";" : ",", name(nodes, choice->nodes[i].node),
                          precision_names[choice->nodes[i].precision], choice->nodes[i].error);
        text_add_char(out, '\n');
}
