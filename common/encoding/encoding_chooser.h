// Chooses the encoding that takes the least time on the worker's link to the server.
//
// This is pure arithmetic. AutoEncoding measures the link and the encodings and passes the numbers
// in, so tests can predict every choice.

#ifndef SLUICE_COMMON_ENCODING_ENCODING_CHOOSER_H_
#define SLUICE_COMMON_ENCODING_ENCODING_CHOOSER_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace sluice {

// The cost of one encoding for a whole vector.
struct EncodingCost {
  uint64_t bytes = 0;  // that are sent
  absl::Duration encode;
  absl::Duration decode;
};

// Which of the three stages (encode, send, decode) run at the same time on different chunks.
enum class Pipeline {
  // Pushes: all three. While one chunk is sent, the next is encoded and the one before is decoded.
  kThroughout,
  // Pulls: sending and decoding. The server encodes all chunks before it sends the first.
  kAfterEncoding,
};

// Returns the time from the first encoded value to the last decoded one, for a vector of `chunks`
// chunks on a link that carries `link` bytes per second. Of the stages that run at the same time,
// the slowest counts for all chunks and each other stage counts for one chunk.
absl::Duration TimeOnItsWay(const EncodingCost& cost, double link, uint64_t chunks,
                            Pipeline pipeline);

// One thread uses a chooser at a time.
class EncodingChooser {
 public:
  // The chooser switches only if that saves this share of the time. Otherwise two encodings of
  // similar cost would alternate.
  static constexpr double kWorthAChange = 0.05;

  EncodingChooser(Pipeline pipeline, uint64_t chunks) : pipeline_(pipeline), chunks_(chunks) {}

  // Records that `bytes` went over the link in `time`. Choose() uses all records since its last
  // call.
  void NoteTransfer(uint64_t bytes, absl::Duration time);

  // Returns the index of the candidate to use from now on. It stays the one chosen last, at first
  // candidate 0, unless another one is better by kWorthAChange. Of equally good candidates the
  // first wins. If no transfer that took time was noted, the choice and the speed of the link stay.
  size_t Choose(absl::Span<const EncodingCost> candidates);

  // The link's speed in bytes per second that Choose() used last; 0 if unknown.
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
