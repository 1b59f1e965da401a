#include "worker/torch/model_archive.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/torch/guarded.h"

namespace sluice {
namespace {

// Bytes in memory, as LibTorch reads a file.
class ArchiveBytes final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit ArchiveBytes(absl::string_view bytes) : bytes_(bytes) {}

  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t pos, void* to, size_t size, const char* /*what*/) const override {
    if (pos >= bytes_.size()) return 0;
    return bytes_.copy(static_cast<char*>(to), size, pos);
  }

 private:
  const absl::string_view bytes_;
};

// The name of the first record with a function; empty if none has one.
std::string FirstWithCode(absl::string_view archive) {
  caffe2::serialize::PyTorchStreamReader reader(std::make_shared<ArchiveBytes>(archive));
  for (const std::string& name : reader.getAllRecords()) {
    if (!absl::StrContains(name, "code/") || !absl::EndsWith(name, ".py")) continue;
    const auto [data, size] = reader.getRecord(name);
    const absl::string_view text(static_cast<const char*>(data.get()), size);
    if (absl::StrContains(text, "def ")) return name;
  }
  return "";
}

}  // namespace

absl::Status CheckHasNoCode(absl::string_view archive) {
  const auto found = Guarded([archive] { return FirstWithCode(archive); });
  if (!found.ok()) return absl::InvalidArgumentError(found.status().message());
  if (found->empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "it has functions (", *found, "), expected tensors and values only; they were not run"));
}

}  // namespace sluice
