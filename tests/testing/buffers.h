// Converts gRPC's buffers, and chunks that were read from them, to bytes and back.

#ifndef SLUICE_TESTS_TESTING_BUFFERS_H_
#define SLUICE_TESTS_TESTING_BUFFERS_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/tensor/tensor_chunk.h"

namespace sluice {

std::string BytesOf(const grpc::ByteBuffer& buffer);

// The bytes of the chunk's pieces, joined.
std::string BytesOf(const TensorChunk& chunk);

// A buffer with `bytes`, cut into slices at the positions `ends`, which ascend.
grpc::ByteBuffer Sliced(const std::string& bytes, std::vector<size_t> ends);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_BUFFERS_H_
