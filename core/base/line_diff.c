// SPDX-License-Identifier: Apache-2.0
// line_diff.c: E. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), in linear
// space: a path of fewest edits is searched from both ends of a box at once; where the two meet, it
// is cut, and both parts are searched again. Boxes wait on a stack of their own.
//
// Of equally short differences the one is printed whose runs of changed lines end as late as they
// can.
#include "core/base/line_diff.h"

#include <string.h>
#include "core/base/map.h"

enum { CONTEXT = 3 };

typedef struct Line {
        const char *text;
        size_t n; // with its newline
        uint64_t hash;
} Line;

typedef struct Side {
        Line *lines;
        int64_t n;
        bool *changed; // by line; one more, false, at the end
} Side;

typedef struct Box {
        int64_t a, a_end, b, b_end;
} Box;

typedef struct Diff {
        Side a, b;
        // How far the search came on diagonal k, from the front and from the back; the box's own
        // offset is added to k.
        int64_t *forward, *backward;
        Box *stack;
        uint32_t n_stack, stack_capacity;
        int64_t steps_left;
} Diff;

static bool same_line(const Line *a, const Line *b)
{
        return a->hash == b->hash && a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
}

static bool is_same(const Diff *diff, int64_t a, int64_t b)
{
        return same_line(&diff->a.lines[a], &diff->b.lines[b]);
}

static Status read_lines(const DiffSide *from, Side *out_side)
{
        int64_t n = 0;
        const char *end = from->text + from->n;
        for (const char *at = from->text; at < end; n++) {
                const char *newline = memchr(at, '\n', (size_t)(end - at));
                at = newline == NULL ? end : newline + 1;
        }
        out_side->lines = new_array((size_t)n, sizeof(Line));
        out_side->changed = new_array((size_t)n + 1, sizeof(bool));
        if (out_side->lines == NULL || out_side->changed == NULL)
                return fail_memory();
        for (const char *at = from->text; at < end; out_side->n++) {
                const char *newline = memchr(at, '\n', (size_t)(end - at));
                size_t length = (size_t)((newline == NULL ? end : newline + 1) - at);
                out_side->lines[out_side->n] = (Line){ at, length, hash_bytes(at, length) };
                at += length;
        }
        return STATUS_OK;
}

// ---- the search ----

// Paths that left the box go on outside and never come back.
static bool is_inside(int64_t x, int64_t k, int64_t n, int64_t m)
{
        return x >= 0 && x <= n && x - k >= 0 && x - k <= m;
}

// The furthest point on diagonal k with one edit more: a step right from k - 1, or down from k + 1.
static int64_t advance(const int64_t *reached, int64_t k, int64_t d)
{
        bool down = k == -d || (k != d && reached[k - 1] < reached[k + 1]);
        return down ? reached[k + 1] : reached[k - 1] + 1;
}

static int64_t snake(Diff *diff, const Box *box, int64_t x, int64_t y, bool backward)
{
        int64_t n = box->a_end - box->a, m = box->b_end - box->b, from = x;
        while (x < n && y < m && x >= 0 && y >= 0 &&
               is_same(diff, backward ? box->a_end - 1 - x : box->a + x,
                       backward ? box->b_end - 1 - y : box->b + y)) {
                x++;
                y++;
        }
        diff->steps_left -= x - from + 1;
        return x;
}

// One more edit from one end. Diagonals that leave the box are not followed. Returns whether the
// two searches met; then the box is to be cut at (*out_x, *out_y).
static bool search_one(Diff *diff, const Box *box, int64_t d, bool backward, int64_t *out_x, int64_t *out_y)
{
        int64_t n = box->a_end - box->a, m = box->b_end - box->b, delta = n - m;
        int64_t *own = (backward ? diff->backward : diff->forward) + m + 1;
        const int64_t *other = (backward ? diff->forward : diff->backward) + m + 1;
        // met by an odd number of edits while going forward, by an even one while going back
        int64_t others = backward ? d : d - 1;
        bool may_meet = (delta % 2 != 0) != backward;
        int64_t first = d <= m ? -d : -m + ((d - m) & 1), last = d <= n ? d : n - ((d - n) & 1);
        for (int64_t k = first; k <= last; k += 2) {
                int64_t x = d == 0 ? 0 : advance(own, k, d);
                x = snake(diff, box, x, x - k, backward);
                own[k] = x;
                int64_t mirror = delta - k;
                if (!may_meet || mirror < -others || mirror > others || !is_inside(x, k, n, m) ||
                    !is_inside(other[mirror], mirror, n, m) || x + other[mirror] < n)
                        continue;
                *out_x = backward ? box->a_end - x : box->a + x;
                *out_y = backward ? box->b_end - (x - k) : box->b + (x - k);
                return true;
        }
        return false;
}

// False: too many steps.
static bool find_middle(Diff *diff, const Box *box, int64_t *out_x, int64_t *out_y)
{
        int64_t n = box->a_end - box->a, m = box->b_end - box->b;
        for (int64_t i = 0; i < n + m + 3; i++)
                diff->forward[i] = diff->backward[i] = -1;
        diff->steps_left -= n + m;
        for (int64_t d = 0; diff->steps_left > 0; d++) {
                if (search_one(diff, box, d, false, out_x, out_y) ||
                    search_one(diff, box, d, true, out_x, out_y))
                        return true;
        }
        return false;
}

static Status push(Diff *diff, Box box)
{
        TRY(array_reserve(&diff->stack, &diff->stack_capacity, diff->n_stack + 1, sizeof(Box)));
        diff->stack[diff->n_stack++] = box;
        return STATUS_OK;
}

static void mark_changed(Diff *diff, const Box *box)
{
        for (int64_t i = box->a; i < box->a_end; i++)
                diff->a.changed[i] = true;
        for (int64_t i = box->b; i < box->b_end; i++)
                diff->b.changed[i] = true;
}

static Status compare_box(Diff *diff, Box box)
{
        while (box.a < box.a_end && box.b < box.b_end && is_same(diff, box.a, box.b)) {
                box.a++;
                box.b++;
        }
        while (box.a < box.a_end && box.b < box.b_end && is_same(diff, box.a_end - 1, box.b_end - 1)) {
                box.a_end--;
                box.b_end--;
        }
        int64_t x, y;
        if (box.a == box.a_end || box.b == box.b_end || !find_middle(diff, &box, &x, &y)) {
                mark_changed(diff, &box);
                return STATUS_OK;
        }
        TRY(push(diff, (Box){ box.a, x, box.b, y }));
        return push(diff, (Box){ x, box.a_end, y, box.b_end });
}

static Status compare(Diff *diff)
{
        size_t n = (size_t)(diff->a.n + diff->b.n + 3);
        diff->forward = new_array(n, sizeof(int64_t));
        diff->backward = new_array(n, sizeof(int64_t));
        if (diff->forward == NULL || diff->backward == NULL)
                return fail_memory();
        TRY(push(diff, (Box){ 0, diff->a.n, 0, diff->b.n }));
        while (diff->n_stack > 0)
                TRY(compare_box(diff, diff->stack[--diff->n_stack]));
        return STATUS_OK;
}

// ---- sliding ----

// The end of the run of changed lines that begins at `at`.
static int64_t run_end(const Side *side, int64_t at)
{
        while (side->changed[at])
                at++;
        return at;
}

// A run whose first line equals the line behind it may stand one line later. Runs that meet become
// one, unless the other side has a change between them.
static void slide(Side *side, const Side *other)
{
        int64_t there = 0; // the line of the other side that stands beside `at`
        for (int64_t at = 0; at < side->n; at++) {
                while (other->changed[there])
                        there++;
                if (!side->changed[at]) {
                        there++;
                        continue;
                }
                int64_t start = at, end = run_end(side, at), beside = there;
                while (end < side->n && same_line(&side->lines[start], &side->lines[end]) &&
                       !other->changed[beside + 1]) {
                        side->changed[start++] = false;
                        side->changed[end] = true;
                        end = run_end(side, end);
                        beside++;
                }
                at = end - 1;
                there = beside;
        }
}

// ---- printing ----

typedef struct Hunk {
        int64_t a, a_end, b, b_end;
} Hunk;

// The next hunk behind (a, b): changes with at most twice the context between them.
static bool next_hunk(const Diff *diff, int64_t a, int64_t b, Hunk *out_hunk)
{
        while (a < diff->a.n && b < diff->b.n && !diff->a.changed[a] && !diff->b.changed[b]) {
                a++;
                b++;
        }
        if (a == diff->a.n && b == diff->b.n)
                return false;
        int64_t quiet = 0, before = a < CONTEXT ? a : CONTEXT;
        *out_hunk = (Hunk){ .a = a - before, .b = b - before };
        while ((a < diff->a.n || b < diff->b.n) && quiet <= 2 * CONTEXT) {
                bool changed = diff->a.changed[a] || diff->b.changed[b];
                quiet = changed ? 0 : quiet + 1;
                a = changed ? run_end(&diff->a, a) : a + 1;
                b = changed ? run_end(&diff->b, b) : b + 1;
        }
        int64_t surplus = quiet > CONTEXT ? quiet - CONTEXT : 0;
        out_hunk->a_end = a - surplus;
        out_hunk->b_end = b - surplus;
        return true;
}

static void add_range(Text *out, char sign, int64_t from, int64_t end)
{
        text_addf(out, "%c%lld", sign, (long long)(end > from ? from + 1 : from));
        if (end - from != 1)
                text_addf(out, ",%lld", (long long)(end - from));
}

static void add_line(Text *out, char sign, const Line *line)
{
        text_add_char(out, sign);
        text_add_n(out, line->text, line->n);
        if (line->n == 0 || line->text[line->n - 1] != '\n')
                text_add(out, "\n\\ No newline at end of file\n");
}

static void print_hunk(const Diff *diff, const Hunk *hunk, Text *out)
{
        text_add(out, "@@ ");
        add_range(out, '-', hunk->a, hunk->a_end);
        text_add_char(out, ' ');
        add_range(out, '+', hunk->b, hunk->b_end);
        text_add(out, " @@\n");
        int64_t a = hunk->a, b = hunk->b;
        while (a < hunk->a_end || b < hunk->b_end) {
                if (diff->a.changed[a])
                        add_line(out, '-', &diff->a.lines[a++]);
                else if (diff->b.changed[b])
                        add_line(out, '+', &diff->b.lines[b++]);
                else
                        add_line(out, ' ', &diff->a.lines[(b++, a++)]);
        }
}

static void print(const Diff *diff, const DiffSide *from, const DiffSide *to, Text *out)
{
        Hunk hunk = { 0 };
        for (bool first = true; next_hunk(diff, hunk.a_end, hunk.b_end, &hunk); first = false) {
                if (first)
                        text_addf(out, "--- %s\n+++ %s\n", from->name, to->name);
                print_hunk(diff, &hunk, out);
        }
}

static void diff_deinit(Diff *diff)
{
        free(diff->a.lines);
        free(diff->a.changed);
        free(diff->b.lines);
        free(diff->b.changed);
        free(diff->forward);
        free(diff->backward);
        free(diff->stack);
}

Status line_diff(const DiffSide *from, const DiffSide *to, int64_t max_steps, Text *out)
{
        _cleanup_(diff_deinit) Diff diff = { .steps_left = max_steps };
        TRY(read_lines(from, &diff.a));
        TRY(read_lines(to, &diff.b));
        TRY(compare(&diff));
        slide(&diff.a, &diff.b);
        slide(&diff.b, &diff.a);
        print(&diff, from, to, out);
        return text_status(out);
}
