#include "server/rpc/operator/public_descriptors.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace sluice {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptorProto;

// How names are made public: what stands there for what.
struct Names {
  absl::string_view own;
  absl::string_view listed;
  absl::string_view own_folder;
  absl::string_view listed_folder;
};

// The two versions of reflection have the same messages, and C++ has one copy of them.
constexpr Names kNames[] = {
    {"sluice.own.grpc.reflection.v1.", "grpc.reflection.v1alpha.", "sluice/own/grpc/reflection/v1/",
     "grpc/reflection/v1alpha/"},
    {"sluice.own.", "", "sluice/own/", ""},
};

const DescriptorPool& Compiled() { return *DescriptorPool::generated_pool(); }

void Describe(const google::protobuf::FileDescriptor& file, const Names& names,
              FileDescriptorProto* described) {
  file.CopyTo(described);
  std::string text;
  google::protobuf::TextFormat::PrintToString(*described, &text);
  // A package is a name without a point at its end.
  absl::StrReplaceAll({{absl::StrCat(absl::StripSuffix(names.own, "."), "\""),
                        absl::StrCat(absl::StripSuffix(names.listed, "."), "\"")},
                       {names.own, names.listed},
                       {names.own_folder, names.listed_folder}},
                      &text);
  google::protobuf::TextFormat::ParseFromString(text, described);
}

// The name that C++ has for a public one; empty if it has none.
std::string OwnName(absl::string_view name, absl::string_view listed, absl::string_view own) {
  return absl::StartsWith(name, listed) ? absl::StrCat(own, name.substr(listed.size())) : "";
}

using FindFile =
    const google::protobuf::FileDescriptor* (DescriptorPool::*)(const std::string&) const;

// Finds the file by a public name. `listed` and `own` tell how such names differ.
bool Find(FindFile find, const std::string& name, absl::string_view Names::*listed,
          absl::string_view Names::*own, FileDescriptorProto* described) {
  for (const Names& names : kNames) {
    const auto* const found = (Compiled().*find)(OwnName(name, names.*listed, names.*own));
    if (found == nullptr) continue;
    Describe(*found, names, described);
    return true;
  }
  const auto* const found = (Compiled().*find)(name);
  if (found != nullptr) found->CopyTo(described);
  return found != nullptr;
}

}  // namespace

bool PublicDescriptors::FindFileByName(const std::string& file, FileDescriptorProto* described) {
  return Find(&DescriptorPool::FindFileByName, file, &Names::listed_folder, &Names::own_folder,
              described);
}

bool PublicDescriptors::FindFileContainingSymbol(const std::string& symbol,
                                                 FileDescriptorProto* described) {
  return Find(&DescriptorPool::FindFileContainingSymbol, symbol, &Names::listed, &Names::own,
              described);
}

// No message of Sluice has extensions.
bool PublicDescriptors::FindFileContainingExtension(const std::string&, int, FileDescriptorProto*) {
  return false;
}

}  // namespace sluice
