// SPDX-License-Identifier: BSL-1.0
// Tail calls through pointers: a machine of states.

#include "made.h"

struct machine {
    char const* at;
    int words, letters;
};
typedef int state(struct machine*);
KEEP int in_word(struct machine* m);
KEEP int between(struct machine* m);
KEEP int ended(struct machine* m) { return m->words * 100 + m->letters; }
static state* volatile states[] = {ended, between, in_word};

KEEP int next_state(struct machine* m) {
    char const letter = *m->at++;
    return states[letter == 0 ? 0 : letter == ' ' ? 1 : 2](m);
}
KEEP int in_word(struct machine* m) {
    m->letters += 1;
    return next_state(m);
}
KEEP int between(struct machine* m) {
    m->words += 1;
    return next_state(m);
}

int main(void) {
    struct machine m = {"one two three", 1, 0};
    int made = next_state(&m);
    HIDE(made);
    return EXPECT(made == 311);
}
