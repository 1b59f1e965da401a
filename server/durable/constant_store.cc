#include "server/durable/constant_store.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/reading/constants_file.h"
#include "common/encoding/checksum.h"
#include "server/durable/checkpoint/checked_writer.h"
#include "server/durable/format/unfinished_file.h"

namespace sluice {

absl::Status ConstantStore::Restore(const std::vector<ConstantTensor>& constants) {
  if (constants.empty()) return absl::OkStatus();
  auto bytes = ReadConstants(files_, directory_, job_id_, constants);
  if (!bytes.ok()) return bytes.status();
  Set(*std::move(bytes));
  return absl::OkStatus();
}

std::shared_ptr<const ConstantValues> ConstantStore::values() const {
  absl::MutexLock lock(&mu_);
  return values_;
}

absl::StatusOr<std::shared_ptr<const ConstantValues>> ConstantStore::Adopt(
    const std::vector<ConstantTensor>& constants, std::string bytes) {
  if (auto known = values()) return known;
  if (!directory_.empty()) {
    const absl::Status saved = Save(constants, bytes);
    // UNAVAILABLE would be taken for a server that is lost, and the offer be repeated.
    if (absl::IsUnavailable(saved)) return absl::FailedPreconditionError(saved.message());
    if (!saved.ok()) return saved;
  }
  return Set(std::move(bytes));
}

absl::Status ConstantStore::Save(const std::vector<ConstantTensor>& constants,
                                 const std::string& bytes) const {
  const absl::Status written =
      WriteThenName(files_, absl::StrCat(directory_, "/", kConstantsFile), [&](WritableFile& file) {
        CheckedWriter writer(file);
        absl::Status status =
            writer.WriteHeader(ConstantsHeader(job_id_, constants), kMostSafeTensorsHeader);
        if (status.ok()) status = writer.Write(bytes);
        return status.ok() ? writer.WriteChecksum() : status;
      });
  return written.ok() ? files_.SyncDirectory(directory_) : written;
}

std::shared_ptr<const ConstantValues> ConstantStore::Set(std::string bytes) {
  auto values = std::make_shared<ConstantValues>();
  values->checksum = Checksum(bytes);
  values->bytes = std::move(bytes);
  absl::MutexLock lock(&mu_);
  values_ = std::move(values);
  return values_;
}

}  // namespace sluice
