// The descriptors of the messages that are compiled into this process, under their public names.
// Those are the names that clients know. In C++, messages of other projects have names of their
// own, because Sluice compiles its own copies of them: see `own` in tools/bazel/proto.bzl.

#ifndef SLUICE_SERVER_RPC_OPERATOR_PUBLIC_DESCRIPTORS_H_
#define SLUICE_SERVER_RPC_OPERATOR_PUBLIC_DESCRIPTORS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>

#include <string>

namespace sluice {

// A DescriptorPool asks it for files: new DescriptorPool(&database). Any thread may use such a
// pool.
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
