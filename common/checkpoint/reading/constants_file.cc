#include "common/checkpoint/reading/constants_file.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/checkpoint/reading/checked_reader.h"

namespace sluice {
namespace {

constexpr char kJobOfConstantsKey[] = "sluice:constants";

absl::StatusOr<std::string> ReadValues(const ReadableFile& file, const std::string& job_id,
                                       const std::vector<ConstantTensor>& constants) {
  const ReadListener nobody;
  CheckedReader reader(file, nobody);
  const auto header = reader.ReadHeader();
  if (!header.ok()) return header.status();
  const auto job = header->metadata.find(kJobOfConstantsKey);
  if (job == header->metadata.end() || job->second != job_id) {
    return absl::DataLossError(absl::StrCat(
        "it is of ", job == header->metadata.end() ? "no job" : "job " + Shown(job->second),
        ", and the checkpoint of job ", Shown(job_id)));
  }
  if (!SameTensors(header->tensors, ConstantsHeader(job_id, constants).tensors)) {
    return absl::DataLossError("its tensors are not the constants of the checkpoint's model");
  }
  std::string values(BytesOf(constants), '\0');
  const absl::Status read = reader.Read(absl::MakeSpan(values));
  if (!read.ok()) return read;
  const absl::Status checked = reader.CheckChecksum();
  if (!checked.ok()) return checked;
  return values;
}

}  // namespace

SafeTensorsHeader ConstantsHeader(const std::string& job_id,
                                  const std::vector<ConstantTensor>& constants) {
  SafeTensorsHeader header;
  header.metadata = {{"format", "pt"},  // other readers of safetensors look for this
                     {kJobOfConstantsKey, job_id}};
  uint64_t end = 0;
  for (const ConstantTensor& constant : constants) {
    const uint64_t begin = end;
    end += constant.bytes();
    header.tensors.push_back({constant.name, constant.dtype, constant.shape, begin, end});
  }
  header.tensors.push_back({kChecksumName, "U8", {kChecksumBytes}, end, end + kChecksumBytes});
  return header;
}

absl::StatusOr<std::string> ReadConstants(FileSystem& files, const std::string& directory,
                                          const std::string& job_id,
                                          const std::vector<ConstantTensor>& constants) {
  if (constants.empty()) return std::string();
  const std::string path = absl::StrCat(directory, "/", kConstantsFile);
  const auto file = files.Open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::DataLossError(
        absl::StrCat(path,
                     " is missing: it has the tensors of the model that are not trained, which no "
                     "checkpoint repeats; put it back beside the checkpoints"));
  }
  if (!file.ok()) return file.status();
  auto values = ReadValues(**file, job_id, constants);
  return values.ok() ? values : InFile(path, values.status());
}

}  // namespace sluice
