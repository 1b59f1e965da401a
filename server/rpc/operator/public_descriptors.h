// The descriptors of the messages that are compiled into this process, under the names that they
// have on the wire. C++ has other names for copies of other projects' messages: see `own` in
// tools/bazel/proto.bzl.

#ifndef SLUICE_SERVER_RPC_OPERATOR_PUBLIC_DESCRIPTORS_H_
#define SLUICE_SERVER_RPC_OPERATOR_PUBLIC_DESCRIPTORS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>

#include <string>

namespace sluice {

// Where a DescriptorPool finds files: new DescriptorPool(&database). A pool that has one is safe to
// use from any thread.
class PublicDescriptors final : public google::protobuf::DescriptorDatabase {
 public:
  bool FindFileByName(const std::string& file,
                      google::protobuf::FileDescriptorProto* described) override;
  bool FindFileContainingSymbol(const std::string& symbol,
                                google::protobuf::FileDescriptorProto* described) override;
  bool FindFileContainingExtension(const std::string& type, int field,
                                   google::protobuf::FileDescriptorProto* described) override;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_PUBLIC_DESCRIPTORS_H_
