#include "tests/testing/buffers.h"

#include <glog/logging.h>
#include <grpcpp/grpcpp.h>

namespace sluice {

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::string BytesOf(const TensorChunk& chunk) {
  std::string bytes;
  for (const FloatPiece& piece : chunk.pieces) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size() * sizeof(float));
  }
  return bytes;
}

grpc::ByteBuffer Sliced(const std::string& bytes, std::vector<size_t> ends) {
  ends.push_back(bytes.size());
  std::vector<grpc::Slice> slices;
  size_t begin = 0;
  for (const size_t end : ends) {
    slices.emplace_back(bytes.substr(begin, end - begin));
    begin = end;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace sluice
