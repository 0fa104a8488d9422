// SPDX-License-Identifier: Apache-2.0
// steps_schema.c: the rows of steps.def as a JSON schema.
#include "api/readers/steps_parts.h"

static const char *const type_schemas[] = {
        [STEP_TYPE_NODE] = "\"type\": \"string\"",
        [STEP_TYPE_NODES] = "\"type\": \"array\", \"items\": {\"type\": \"string\"}",
        [STEP_TYPE_ARGS] = "\"type\": \"array\"",
        [STEP_TYPE_KWARGS] = "\"type\": \"object\"",
        [STEP_TYPE_TEXT] = "\"type\": \"string\"",
        [STEP_TYPE_TEXTS] = "\"type\": \"array\", \"items\": {\"type\": \"string\"}",
        [STEP_TYPE_OPCODE] = "\"type\": \"string\"",
        [STEP_TYPE_INDEX] = "\"type\": \"integer\", \"minimum\": 0",
        [STEP_TYPE_FLAG] = "\"type\": \"boolean\"",
        [STEP_TYPE_NEW] = "\"type\": \"object\"",
        [STEP_TYPE_GRAPH] = "\"type\": \"object\"",
        [STEP_TYPE_MODULE] = "\"type\": \"object\"",
        [STEP_TYPE_SHAPES] = "\"type\": \"object\"",
        [STEP_TYPE_YES] = "\"const\": true",
};

static void add_member(Text *out, StepMember id)
{
        const StepMemberRow *row = &step_members[id];
        const char *schema = row->type < ARRAY_LENGTH(type_schemas) ? type_schemas[row->type] : NULL;
        text_addf(out, "\"%s\": {%s%s\"description\": ", row->name, schema == NULL ? "" : schema,
                  schema == NULL ? "" : ", ");
        text_add_json(out, row->words);
        text_add_char(out, '}');
}

// "type": "object", "properties": {...}, "required": [...]
static void add_object(Text *out, const StepRow *row, const char *kind)
{
        int n = 0;
        text_add(out, "\"type\": \"object\", \"additionalProperties\": false, \"properties\": {");
        if (kind != NULL)
                text_addf(out, "\"%s\": {\"const\": \"%s\"}", kind, row->name);
        n += kind != NULL;
        for (int i = 0; row->needs[i] != MEMBER_NONE; i++) {
                text_add(out, n++ == 0 ? "" : ", ");
                add_member(out, row->needs[i]);
        }
        for (int i = 0; row->takes[i] != MEMBER_NONE; i++) {
                text_add(out, n++ == 0 ? "" : ", ");
                add_member(out, row->takes[i]);
        }
        text_addf(out, "}, \"required\": [%s%s%s", kind == NULL ? "" : "\"", kind == NULL ? "" : kind,
                  kind == NULL ? "" : "\"");
        for (int i = 0; row->needs[i] != MEMBER_NONE; i++)
                text_addf(out, "%s\"%s\"", i == 0 && kind == NULL ? "" : ", ",
                          step_members[row->needs[i]].name);
        text_add_char(out, ']');
}

static void add_row(Text *out, const StepRow *row)
{
        text_add(out, "{\"description\": ");
        text_add_json(out, row->words);
        text_add(out, ", ");
        if (row->kind == STEP_OBJECT) {
                text_addf(out,
                          "\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"%s\"], "
                          "\"properties\": {\"%s\": {",
                          row->name, row->name);
                add_object(out, row, NULL);
                text_add(out, "}}");
        } else {
                add_object(out, row,
                           row->kind == STEP_EDIT   ? "edit"
                           : row->kind == STEP_PASS ? "pass"
                                                    : NULL);
        }
        text_add_char(out, '}');
}

void steps_schema(Text *out)
{
        text_add(out, "{\"anyOf\": [");
        for (uint32_t i = 0; i < n_step_rows; i++) {
                text_add(out, i == 0 ? "\n  " : ",\n  ");
                add_row(out, &step_rows[i]);
        }
        text_add(out, ",\n  {\"description\": \"steps that were saved by name\", \"type\": \"object\", "
                      "\"required\": [\"pass\"], \"properties\": {\"pass\": {\"type\": \"string\"}}}]}");
}
