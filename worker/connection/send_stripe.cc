#include "worker/connection/send_stripe.h"

#include "common/tensor/float_buffer.h"

namespace sluice {
namespace {

// Pieces of at least so many elements are sent from where they lie: through a socket, and where the
// server reads them. Smaller ones are gathered in chunks.
constexpr uint64_t kSentFromMemory = uint64_t{1} << 15;
constexpr uint64_t kReadFromMemory = uint64_t{1} << 12;

// How many elements to send at once.
uint64_t PartSize(const SharedStripe& stripe, uint64_t begin, const OutgoingPush& push) {
  const uint64_t unit = stripe.span.unit();
  if (unit >= kSentFromMemory) return unit;
  const bool read = unit >= kReadFromMemory && push.IsRead(stripe.Part(begin, begin + 1).values);
  return read ? unit : kChunkElements;
}

}  // namespace

SharedFloats SharedStripe::Part(uint64_t begin, uint64_t end) const {
  const auto piece = span.OnePiece(begin, end);
  if (piece.has_value()) return {*piece, owner};
  const auto copy = std::make_shared<FloatBuffer>(end - begin);
  Gather(span, begin, end, copy->span().data());
  return {copy->span(), copy};
}

bool SendStripe(const SharedStripe& stripe, uint64_t begin, uint64_t end, OutgoingPush& push) {
  if (begin == end) return true;
  if (stripe.span.OnePiece(begin, end).has_value()) {
    return push.Send(begin, stripe.Part(begin, end));
  }
  bool open = true;
  ForEachUnit(PartSize(stripe, begin, push), begin, end, [&](uint64_t from, uint64_t to) {
    open = open && push.Send(from, stripe.Part(from, to));
  });
  return open;
}

}  // namespace sluice
