/* One fuzzed program: a sequence of C calls read from bytes. Used by the fuzzer (calls.rs) and by the replay (replay.c). */
#include <stddef.h>
#include <stdint.h>

/* Runs the program that `data` spells. Ends the process by abort() where the library broke its word. */
void wakefmm_fuzz_one(const uint8_t *data, size_t size);
