// One loop, compiled for several instruction sets; the best that the processor has is chosen when
// the program starts.
//
// A distribution's compiler builds for the oldest processor of its architecture, which for x86-64
// means vectors of 4 floats where today's have 8 or 16. Files that use this are compiled with
// -ffp-contract=off: then every instruction set gives the same bits.

#ifndef SLUICE_COMMON_TENSOR_VECTOR_CLONES_H_
#define SLUICE_COMMON_TENSOR_VECTOR_CLONES_H_

// Put before a function that holds a loop over floats and inlines what it calls. Sanitizers' own
// start-up comes after the choice is made, so they get the plain loop; aarch64 has its vectors
// always.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SLUICE_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define SLUICE_VECTOR_CLONES
#endif

// Put before a loop that is a template, which has no clones: functions that have some inline it.
#define SLUICE_LOOP_BODY [[gnu::always_inline]] inline

#endif  // SLUICE_COMMON_TENSOR_VECTOR_CLONES_H_
