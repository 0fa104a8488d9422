// SPDX-License-Identifier: Apache-2.0
// FORMAT 3. A head:
//
//   head 3
//   name digits
//   incarnation 5f2c...            (16 hex digits)
//   next_version 8
//   default_version 7
//   gone 5                         (any number of these)
//   alias prod 3                   (by name)
//   attribute image 3 TEXT         (from version 3 on; by version)
//   attribute precision 3 TEXT     (likewise)
//   attribute tolerance 3 TEXT     (likewise)
//   attribute batching 3 TEXT      (likewise)
//   attribute owner 3 TEXT         (likewise; the name of the token that uploaded it)
//   attribute warm_up 3 TEXT       (likewise)
//   attribute KEY VALUE...         (others are kept, whatever they say)
//
// A version:
//
//   version 3
//   name digits
//   incarnation 5f2c...
//   number 7
//   id <digest>
//   format pt2
//   created_ms 1790000000000
//   model NAME                     (only of an archive with several)
//   part ROLE <digest> <bytes> <document>
//   hole OFFSET LENGTH <digest> <bytes>     (of the part before it)
//   attribute KEY VALUE...         (skipped, whatever they say)
//
// Both end in a checksum line. A newer program may add attributes without a new FORMAT: what does
// not know them keeps or skips them.
#include "core/store/record.h"
#include <stdio.h>
#include <string.h>
#include "core/store/lines.h"

const char *const setting_names[SETTING_KINDS] = {
        [SETTING_IMAGE] = "image", [SETTING_PRECISION] = "precision", [SETTING_BATCHING] = "batching",
        [SETTING_OWNER] = "owner", [SETTING_WARM_UP] = "warm_up",     [SETTING_TOLERANCE] = "tolerance"
};
const char *const store_role_names[STORE_ROLES] = { "graph", "weights", "samples", "labels", "recipe" };

// ---- heads in memory ----
// NULL for an empty array, too.
static void *copy_array(const void *items, uint32_t n, size_t bytes)
{
        void *copy = n == 0 ? NULL : new_array(n, bytes);
        return copy == NULL ? NULL : memcpy(copy, items, n * bytes);
}

Status store_head_copy(const StoreHead *head, StoreHead *out_copy)
{
        StoreHead copy = *head;
        copy.aliases = copy_array(head->aliases, head->n_aliases, sizeof(*copy.aliases));
        copy.settings = copy_array(head->settings, head->n_settings, sizeof(*copy.settings));
        if ((copy.aliases == NULL && copy.n_aliases > 0) || (copy.settings == NULL && copy.n_settings > 0)) {
                store_head_deinit(&copy);
                return fail_memory();
        }
        *out_copy = copy;
        return STATUS_OK;
}

const char *store_head_setting(const StoreHead *head, SettingKind kind, int64_t version)
{
        const char *found = "";
        for (uint32_t i = 0; i < head->n_settings; i++)
                if (head->settings[i].kind == kind && head->settings[i].version <= version)
                        found = head->settings[i].text;
        return found;
}

void store_head_deinit(StoreHead *head)
{
        free(head->aliases);
        free(head->settings);
        head->aliases = NULL;
        head->settings = NULL;
        head->n_aliases = head->n_settings = 0;
}

Head *head_free(Head *head)
{
        if (head == NULL)
                return NULL;
        store_head_deinit(&head->head);
        free(head->gone);
        free(head->attributes);
        free(head);
        return NULL;
}

// ---- heads as text ----
Status record_write_head(const Head *head, Text *out)
{
        size_t start = out->n;
        text_addf(out, "head %d\nname %s\nincarnation %s\nnext_version %lld\ndefault_version %lld\n",
                  STORE_FORMAT, head->head.name, head->incarnation, (long long)head->head.next_version,
                  (long long)head->head.default_version);
        for (uint32_t i = 0; i < head->n_gone; i++)
                text_addf(out, "gone %lld\n", (long long)head->gone[i]);
        for (uint32_t i = 0; i < head->head.n_aliases; i++)
                text_addf(out, "alias %s %lld\n", head->head.aliases[i].name,
                          (long long)head->head.aliases[i].version);
        for (uint32_t i = 0; i < head->head.n_settings; i++) {
                const StoreSetting *setting = &head->head.settings[i];
                text_addf(out, "attribute %s %lld %s\n", setting_names[setting->kind],
                          (long long)setting->version, setting->text);
        }
        if (head->attributes != NULL)
                text_add(out, head->attributes);
        return lines_close(out, start);
}

static Status read_gone(Lines *lines, Head *head)
{
        int64_t number;
        while (lines_take_number(lines, "gone", &number)) {
                TRY(array_reserve(&head->gone, &head->gone_capacity, head->n_gone + 1, sizeof(*head->gone)));
                head->gone[head->n_gone++] = number;
        }
        return STATUS_OK;
}

static Status read_aliases(Lines *lines, StoreHead *head)
{
        char text[STORE_NAME_MAX + 32];
        uint32_t capacity = 0;
        while (lines_take(lines, "alias", text, sizeof(text))) {
                StoreAlias alias;
                long long version;
                int used = 0;
                if (sscanf(text, "%64s %lld%n", alias.name, &version, &used) != 2 || text[used] != '\0' ||
                    version < 1)
                        return fail(STATUS_DAMAGED, "an alias is not understood");
                alias.version = version;
                TRY(array_reserve(&head->aliases, &capacity, head->n_aliases + 1, sizeof(*head->aliases)));
                head->aliases[head->n_aliases++] = alias;
        }
        return STATUS_OK;
}

static Status read_setting(const char *text, SettingKind kind, uint32_t *capacity, StoreHead *head)
{
        const StoreSetting *last = head->n_settings == 0 ? NULL : &head->settings[head->n_settings - 1];
        StoreSetting setting = { .kind = kind };
        long long version;
        int used = 0;
        if (sscanf(text, "%lld%n", &version, &used) != 1 || text[used] != ' ' || version < 1 ||
            strlen(text + used + 1) > STORE_SETTING_MAX ||
            (last != NULL && last->kind == kind && last->version >= version))
                return fail(STATUS_DAMAGED, "a setting is not understood");
        setting.version = version;
        snprintf(setting.text, sizeof(setting.text), "%s", text + used + 1);
        TRY(array_reserve(&head->settings, capacity, head->n_settings + 1, sizeof(*head->settings)));
        head->settings[head->n_settings++] = setting;
        return STATUS_OK;
}

static Status read_settings(Lines *lines, StoreHead *head)
{
        char text[STORE_SETTING_MAX + 32], label[32];
        uint32_t capacity = 0;
        for (int kind = 0; kind < SETTING_KINDS; kind++) {
                snprintf(label, sizeof(label), "attribute %s", setting_names[kind]);
                while (lines_take(lines, label, text, sizeof(text)))
                        TRY(read_setting(text, (SettingKind)kind, &capacity, head));
        }
        return STATUS_OK;
}

static Status read_attributes(Lines *lines, Head *head)
{
        const char *from;
        lines_skip(lines, "attribute", &from);
        if (lines->at == from)
                return STATUS_OK;
        head->attributes = copy_text(from, (size_t)(lines->at - from));
        return head->attributes == NULL ? fail_memory() : STATUS_OK;
}

bool record_is_head(const char *text, size_t n)
{
        return n >= 5 && memcmp(text, "head ", 5) == 0;
}

Status record_read_head(const char *text, size_t n, Head **out_head)
{
        _cleanup_(head_freep) Head *head = calloc(1, sizeof(*head));
        Lines lines;
        int64_t format;
        if (head == NULL)
                return fail_memory();
        TRY(lines_open(text, n, &lines));
        if (!lines_take_number(&lines, "head", &format) || format != STORE_FORMAT)
                return fail(STATUS_DAMAGED, "it has another format");
        if (!lines_take(&lines, "name", head->head.name, sizeof(head->head.name)) ||
            !lines_take(&lines, "incarnation", head->incarnation, sizeof(head->incarnation)) ||
            !lines_take_number(&lines, "next_version", &head->head.next_version) ||
            !lines_take_number(&lines, "default_version", &head->head.default_version))
                return fail(STATUS_DAMAGED, "its head is not understood");
        if (head->head.default_version < 1 || head->head.next_version <= head->head.default_version)
                return fail(STATUS_DAMAGED, "its default version cannot be");
        TRY(read_gone(&lines, head));
        TRY(read_aliases(&lines, &head->head));
        TRY(read_settings(&lines, &head->head));
        TRY(read_attributes(&lines, head));
        if (lines.at != lines.end)
                return fail(STATUS_DAMAGED, "a line is not understood");
        *out_head = take_ptr(head);
        return STATUS_OK;
}

// ---- versions as text ----
static void write_part(const StorePart *part, Text *out)
{
        text_addf(out, "part %s %s %llu %s\n", store_role_names[part->role], part->digest.hex,
                  (unsigned long long)part->n_bytes, part->document.hex);
        for (uint32_t i = 0; part->holes != NULL && i < part->holes->n; i++) {
                const StoreHole *hole = &part->holes->items[i];
                text_addf(out, "hole %llu %llu %s %llu\n", (unsigned long long)hole->offset,
                          (unsigned long long)hole->n, hole->digest.hex, (unsigned long long)hole->n_bytes);
        }
}

Status record_write_version(const Head *head, const StoreVersion *version, Text *out)
{
        size_t start = out->n;
        text_addf(out,
                  "version %d\nname %s\nincarnation %s\nnumber %lld\nid %s\nformat %s\ncreated_ms %lld\n",
                  STORE_FORMAT, head->head.name, head->incarnation, (long long)version->version,
                  version->id.hex, version->format, (long long)version->created_ms);
        if (version->model[0] != '\0')
                text_addf(out, "model %s\n", version->model);
        for (uint32_t i = 0; i < version->n_parts; i++)
                write_part(&version->parts[i], out);
        return lines_close(out, start);
}

static bool read_part(const char *text, StorePart *out)
{
        char role[16], digest[HASH_HEX_BYTES], document[HASH_HEX_BYTES];
        unsigned long long n_bytes;
        int used = 0, which = 0;
        if (sscanf(text, "%15s %64s %llu %64s%n", role, digest, &n_bytes, document, &used) != 4 ||
            text[used] != '\0' || !is_digest(digest) || !is_digest(document))
                return false;
        while (which < STORE_ROLES && strcmp(store_role_names[which], role) != 0)
                which++;
        if (which == STORE_ROLES)
                return false;
        *out = (StorePart){ .role = (StoreRole)which, .n_bytes = n_bytes };
        memcpy(out->digest.hex, digest, sizeof(digest));
        memcpy(out->document.hex, document, sizeof(document));
        return true;
}

static Status read_parts(Lines *lines, StoreVersion *version)
{
        char text[224];
        while (version->n_parts < STORE_MAX_PARTS && lines_take(lines, "part", text, sizeof(text))) {
                StorePart *part = &version->parts[version->n_parts];
                if (!read_part(text, part))
                        return fail(STATUS_DAMAGED, "a part is not understood");
                for (uint32_t i = 0; i < version->n_parts; i++)
                        if (version->parts[i].role == part->role)
                                return fail(STATUS_DAMAGED, "a part is named twice");
                version->n_parts++; // counted first: what it has is given back
                TRY(lines_take_holes(lines, part));
        }
        return version->n_parts == 0 ? fail(STATUS_DAMAGED, "it names no uploaded bytes") : STATUS_OK;
}

static Status read_version(Lines *lines, StoreVersion *version)
{
        const char *from;
        if (!lines_take_digest(lines, "id", &version->id) ||
            !lines_take(lines, "format", version->format, sizeof(version->format)) ||
            !lines_take_number(lines, "created_ms", &version->created_ms))
                return fail(STATUS_DAMAGED, "it lacks its id, format or time");
        lines_take(lines, "model", version->model, sizeof(version->model));
        TRY(read_parts(lines, version));
        lines_skip(lines, "attribute", &from);
        return lines->at == lines->end ? STATUS_OK : fail(STATUS_DAMAGED, "a line is not understood");
}

Status record_read_version(const char *text, size_t n, const Head *head, int64_t number,
                           StoreVersion *out_version, bool *out_foreign)
{
        Lines lines;
        int64_t format, found;
        char name[STORE_NAME_MAX + 1], incarnation[INCARNATION_MAX + 1];
        StoreVersion version = { .version = number };
        TRY(lines_open(text, n, &lines));
        if (!lines_take_number(&lines, "version", &format) || format != STORE_FORMAT)
                return fail(STATUS_DAMAGED, "it has another format");
        if (!lines_take(&lines, "name", name, sizeof(name)) ||
            !lines_take(&lines, "incarnation", incarnation, sizeof(incarnation)) ||
            !lines_take_number(&lines, "number", &found))
                return fail(STATUS_DAMAGED, "its head is not understood");
        *out_foreign = strcmp(incarnation, head->incarnation) != 0;
        if (*out_foreign)
                return STATUS_OK;
        if (strcmp(name, head->head.name) != 0 || found != number)
                return fail(STATUS_DAMAGED, "it belongs to another name or version");
        Status status = read_version(&lines, &version);
        if (status != STATUS_OK)
                store_version_unref(&version);
        else
                *out_version = version;
        return status;
}
