// Compiles a loop for several instruction sets. The program chooses the best one when it starts.
//
// Without this, the compiler builds for the oldest x86-64 processor, whose vectors have 4 floats;
// today's have 8 or 16. Files that use this are compiled with -ffp-contract=off, so that every
// instruction set gives the same bits.

#ifndef SLUICE_COMMON_TENSOR_VECTOR_CLONES_H_
#define SLUICE_COMMON_TENSOR_VECTOR_CLONES_H_

// Put before a function that holds a loop over floats and inlines what it calls. Sanitizers get the
// plain loop, because they start after the choice is made. aarch64 needs no choice.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SLUICE_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SLUICE_VECTOR_CLONES
#endif

// Put beside it before a loop that only copies, so that the compiler does not make a call of
// memcpy() of it. From 8 KiB on, memcpy() uses an instruction that starts slowly: a copy of memory
// that is in no cache then takes up to a half longer.
#if defined(__GNUC__) && !defined(__clang__)
#define SLUICE_LOOP_OF_COPIES __attribute__((optimize("no-tree-loop-distribute-patterns")))
#else
#define SLUICE_LOOP_OF_COPIES
#endif

// Put before a loop that is a template: functions with SLUICE_VECTOR_CLONES inline it.
#define SLUICE_LOOP_BODY [[gnu::always_inline]] inline

#endif  // SLUICE_COMMON_TENSOR_VECTOR_CLONES_H_
