// Messages of the ParameterServer service, each in a few words.

#ifndef SLUICE_TESTS_TESTING_SERVER_MESSAGES_H_
#define SLUICE_TESTS_TESTING_SERVER_MESSAGES_H_

#include <cstdint>

#include "common/tensor/chunk_encoding.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/testing/vectors.h"

namespace sluice {

// The first message of a push or of an offer of initial parameters.
v1::PushGradientsRequest HeaderOf(const v1::PushHeader& header);
v1::InitializeParamsRequest HeaderOf(uint64_t session);
v1::TensorChunk PayloadOf(uint64_t offset, const Values& elements);
v1::PushGradientsRequest GradientOf(uint64_t offset, const Values& elements);
// An encoded part of a gradient.
v1::PushGradientsRequest GradientOf(const EncodedChunk& chunk);
v1::PushGradientsRequest LaneOf(uint64_t session, uint64_t call);
v1::PushGradientsRequest SummaryOf(uint32_t samples, float loss = 0);
v1::InitializeParamsRequest ParametersOf(uint64_t offset, const Values& elements);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_MESSAGES_H_
