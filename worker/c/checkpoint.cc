#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/reading/checkpoint_reader.h"
#include "common/storage/file_system.h"
#include "worker/c/job.h"
#include "worker/c/model.h"
#include "worker/c/sluice.h"

struct sluice_checkpoint {
  explicit sluice_checkpoint(sluice::CheckpointReader opened) : reader(std::move(opened)) {
    for (const sluice::LayoutRange& range : reader.layout().ranges()) {
      tensors.push_back(
          {range.name.c_str(), range.shape.data(), range.shape.size(),
           range.kind == sluice::RangeKind::kParameter ? SLUICE_PARAMETER : SLUICE_STATISTIC,
           TypeOf(range.dtype)});
    }
    model = {tensors.data(), tensors.size()};
  }

  static int32_t TypeOf(sluice::DataType type) {
    switch (type) {
      case sluice::DataType::kFloat64:
        return SLUICE_FLOAT64;
      case sluice::DataType::kFloat16:
        return SLUICE_FLOAT16;
      case sluice::DataType::kBFloat16:
        return SLUICE_BFLOAT16;
      case sluice::DataType::kInt64:
        return SLUICE_INT64;
      case sluice::DataType::kFloat32:
        break;
    }
    return SLUICE_FLOAT32;
  }

  const sluice::CheckpointReader reader;
  std::vector<sluice_tensor> tensors;  // names and shapes are the reader's
  sluice_model model = {};
  // Of the table that was read last.
  std::vector<uint64_t> ids;
  std::vector<float> rows;
  std::string values;                      // of the constants, once they were read
  std::vector<sluice_constant> constants;  // names and shapes are the reader's
};

namespace sluice {
namespace {

absl::Status ReadTable(const char* table, sluice_checkpoint* checkpoint, sluice_saved_rows* rows) {
  if (table == nullptr) return NoNameError("a table");
  const auto held = checkpoint->reader.ReadTable(table);
  if (!held.ok()) return held.status();
  checkpoint->ids.clear();
  checkpoint->rows.clear();
  checkpoint->ids.reserve(held->size());
  checkpoint->rows.reserve(held->size() * held->width());
  for (size_t i = 0; i < held->size(); ++i) {
    const absl::Span<const float> row = held->row(i);
    checkpoint->ids.push_back(held->id(i));
    checkpoint->rows.insert(checkpoint->rows.end(), row.begin(), row.end());
  }
  *rows = {checkpoint->ids.data(), checkpoint->rows.data(), held->size(),
           static_cast<uint32_t>(held->width())};
  return absl::OkStatus();
}

absl::Status ReadConstants(sluice_checkpoint* checkpoint) {
  if (!checkpoint->constants.empty()) return absl::OkStatus();
  auto values = checkpoint->reader.ReadConstants();
  if (!values.ok()) return values.status();
  checkpoint->values = *std::move(values);
  char* data = checkpoint->values.data();
  for (const ConstantTensor& constant : checkpoint->reader.layout().constants()) {
    checkpoint->constants.push_back({constant.name.c_str(), constant.shape.data(),
                                     constant.shape.size(), constant.dtype.c_str(), data});
    data += constant.bytes();
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace sluice

sluice_code sluice_checkpoint_open(const char* where, sluice_checkpoint** checkpoint) {
  return sluice::Guarded([&]() -> absl::Status {
    if (where == nullptr) return sluice::NoNameError("a checkpoint");
    auto reader = sluice::CheckpointReader::Open(sluice::RealFileSystem(), where);
    if (!reader.ok()) return reader.status();
    *checkpoint = new sluice_checkpoint(*std::move(reader));
    return absl::OkStatus();
  });
}

void sluice_checkpoint_free(sluice_checkpoint* checkpoint) { delete checkpoint; }

const sluice_model* sluice_checkpoint_model(const sluice_checkpoint* checkpoint) {
  return &checkpoint->model;
}

const char* sluice_checkpoint_path(const sluice_checkpoint* checkpoint) {
  return checkpoint->reader.path().c_str();
}

uint64_t sluice_checkpoint_step(const sluice_checkpoint* checkpoint) {
  return checkpoint->reader.contents().source.step.value();
}

sluice_code sluice_checkpoint_read(sluice_checkpoint* checkpoint, float* parameters) {
  return sluice::Guarded([&] {
    return checkpoint->reader.ReadParameters(
        absl::MakeSpan(parameters, checkpoint->reader.layout().size()));
  });
}

sluice_code sluice_checkpoint_read_constants(sluice_checkpoint* checkpoint,
                                             const sluice_constant** constants, size_t* count) {
  return sluice::Guarded([&] {
    const absl::Status read = sluice::ReadConstants(checkpoint);
    *constants = checkpoint->constants.data();
    *count = checkpoint->constants.size();
    return read;
  });
}

sluice_code sluice_checkpoint_read_table(sluice_checkpoint* checkpoint, const char* table,
                                         sluice_saved_rows* rows) {
  return sluice::Guarded([&] { return sluice::ReadTable(table, checkpoint, rows); });
}
