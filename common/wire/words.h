// Pairs of our enumerators with those of messages, for both directions.

#ifndef SLUICE_COMMON_WIRE_WORDS_H_
#define SLUICE_COMMON_WIRE_WORDS_H_

#include <cstddef>

namespace sluice {

template <typename Ours, typename Theirs>
struct Word {
  Ours ours;
  Theirs theirs;
};

// The message's enumerator: the first of its pairs; Theirs() without any.
template <typename Ours, typename Theirs, size_t kCount>
Theirs ToTheirs(const Word<Ours, Theirs> (&words)[kCount], Ours ours) {
  for (const Word<Ours, Theirs>& word : words) {
    if (word.ours == ours) return word.theirs;
  }
  return Theirs();
}

// Null if there is no pair with it: the message's sender is newer, or it has no value.
template <typename Ours, typename Theirs, size_t kCount>
const Ours* ToOurs(const Word<Ours, Theirs> (&words)[kCount], Theirs theirs) {
  for (const Word<Ours, Theirs>& word : words) {
    if (word.theirs == theirs) return &word.ours;
  }
  return nullptr;
}

}  // namespace sluice

#endif  // SLUICE_COMMON_WIRE_WORDS_H_
