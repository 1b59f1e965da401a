#include "tests/testing/server/messages.h"

#include <string>

#include "common/wire/encoding.h"

namespace sluice {

v1::PushGradientsRequest HeaderOf(const v1::PushHeader& header) {
  v1::PushGradientsRequest message;
  *message.mutable_header() = header;
  return message;
}

v1::InitializeParamsRequest HeaderOf(uint64_t session) {
  v1::InitializeParamsRequest message;
  message.mutable_header()->set_session(session);
  return message;
}

v1::TensorChunk PayloadOf(uint64_t offset, const Values& elements) {
  v1::TensorChunk chunk;
  chunk.set_offset(offset);
  chunk.set_payload(elements.data(), elements.size() * sizeof(float));
  return chunk;
}

v1::PushGradientsRequest GradientOf(uint64_t offset, const Values& elements) {
  v1::PushGradientsRequest message;
  *message.mutable_chunk() = PayloadOf(offset, elements);
  return message;
}

v1::PushGradientsRequest GradientOf(const EncodedChunk& chunk) {
  v1::PushGradientsRequest message;
  message.mutable_chunk()->set_offset(chunk.offset);
  *message.mutable_chunk()->mutable_encoding() = ToProto(chunk.how);
  message.mutable_chunk()->set_checksum(chunk.checksum);
  message.mutable_chunk()->set_payload(std::string(chunk.payload));
  return message;
}

v1::PushGradientsRequest LaneOf(uint64_t session, uint64_t call) {
  v1::PushGradientsRequest message;
  message.mutable_lane()->set_session(session);
  message.mutable_lane()->set_call_number(call);
  return message;
}

v1::PushGradientsRequest SummaryOf(uint32_t samples, float loss) {
  v1::PushGradientsRequest message;
  message.mutable_summary()->set_samples(samples);
  if (loss != 0) message.mutable_summary()->set_loss(loss);
  return message;
}

v1::InitializeParamsRequest ParametersOf(uint64_t offset, const Values& elements) {
  v1::InitializeParamsRequest message;
  *message.mutable_chunk() = PayloadOf(offset, elements);
  return message;
}

}  // namespace sluice
