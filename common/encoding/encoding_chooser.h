// Which of several encodings takes the least time on the link that there is.
//
// Pure arithmetic on what others measured: so what it chooses can be told in advance.

#ifndef SLUICE_COMMON_ENCODING_ENCODING_CHOOSER_H_
#define SLUICE_COMMON_ENCODING_ENCODING_CHOOSER_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace sluice {

// What a vector takes in one encoding.
struct EncodingCost {
  uint64_t bytes = 0;  // on the link
  absl::Duration encode;
  absl::Duration decode;
};

// What goes on at the same time, chunk by chunk.
enum class Pipeline {
  // Pushes: while one chunk is on its way the next is encoded and the last decoded.
  kThroughout,
  // Pulls: the server encodes all of a step before it sends the first chunk.
  kAfterEncoding,
};

// How long a vector of so many chunks is on its way over a link of so many bytes a second: the
// slowest of what goes on at the same time for all chunks, and the rest of it for one.
absl::Duration TimeOnItsWay(const EncodingCost& cost, double link, uint64_t chunks,
                            Pipeline pipeline);

// Externally synchronized.
class EncodingChooser {
 public:
  // A change must save this share of the time, or two that are alike would take turns.
  static constexpr double kWorthAChange = 0.05;

  EncodingChooser(Pipeline pipeline, uint64_t chunks) : pipeline_(pipeline), chunks_(chunks) {}

  // So many bytes went over the link in so long. Choose() goes by all since the last Choose().
  void NoteTransfer(uint64_t bytes, absl::Duration time);

  // The number of the candidate to use from now on: the one chosen before, at first number 0,
  // unless another is better by kWorthAChange. Of equal ones, the first. If no transfer was noted,
  // or none that took time, the one chosen before.
  size_t Choose(absl::Span<const EncodingCost> candidates);

  // The link's bytes per second, as Choose() took it last; 0 if unknown.
  double link() const { return link_; }

 private:
  const Pipeline pipeline_;
  const uint64_t chunks_;
  uint64_t bytes_ = 0;
  absl::Duration time_;
  double link_ = 0;
  size_t chosen_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_ENCODING_CHOOSER_H_
