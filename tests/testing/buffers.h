// gRPC's buffers and what came in them, as bytes.

#ifndef SLUICE_TESTS_TESTING_BUFFERS_H_
#define SLUICE_TESTS_TESTING_BUFFERS_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/tensor/tensor_chunk.h"

namespace sluice {

std::string BytesOf(const grpc::ByteBuffer& buffer);

// Of its pieces.
std::string BytesOf(const TensorChunk& chunk);

// `bytes` in slices that end at these positions, which ascend.
grpc::ByteBuffer Sliced(const std::string& bytes, std::vector<size_t> ends);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_BUFFERS_H_
