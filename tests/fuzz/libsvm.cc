// Text files of LIBSVM, plain and gzipped: refused, or read as rows from which batches can be made;
// a gzipped file is read as the same file is that is not.
#include <glog/logging.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"
#include "worker/data/libsvm_dataset.h"

namespace sluice {
namespace {

// A folder in which both splits are the file of FileOf().
const std::string& Folder() {
  static const std::string* const folder = [] {
    auto* const made = new std::string("/tmp/sluice-fuzz-libsvm.XXXXXX");
    PCHECK(mkdtemp(&(*made)[0]) != nullptr);
    for (const char* const name : {"/train.libsvm", "/test.libsvm"}) {
      PCHECK(symlink(FileOf("").c_str(), (*made + name).c_str()) == 0);
    }
    std::atexit([] {
      for (const char* const name : {"/train.libsvm", "/test.libsvm", ""}) {
        remove((Folder() + name).c_str());
      }
    });
    return made;
  }();
  return *folder;
}

void CheckRows(const Dataset& data) {
  const SparseRows& rows = data.features;
  CHECK(data.size() > 0 && rows.begins.size() == data.labels.size() + 1);
  CHECK(rows.begins.front() == 0 && rows.begins.back() == rows.values.size());
  CHECK(rows.columns.size() == rows.values.size());
  for (size_t i = 0; i < data.labels.size(); ++i) {
    CHECK(data.labels[i] < data.form.classes);
    CHECK(rows.begins[i] <= rows.begins[i + 1]);
    for (uint64_t k = rows.begins[i]; k < rows.begins[i + 1]; ++k) {
      CHECK(rows.columns[k] < data.form.columns);
      CHECK(k == rows.begins[i] || rows.columns[k - 1] < rows.columns[k]);
    }
  }
}

void Check(const absl::StatusOr<Dataset>& data, DatasetSplit split) {
  if (!data.ok()) {
    CheckRefusal(data.status(), {absl::StatusCode::kDataLoss, absl::StatusCode::kInvalidArgument});
    CHECK(absl::StartsWith(data.status().message(), Folder())) << data.status();
    return;
  }
  CheckRows(*data);
  const auto count = CountLibsvmSamples(Folder(), split);
  CHECK(count.ok() && *count == static_cast<uint64_t>(data->size()));
}

void CheckSame(const absl::StatusOr<Dataset>& a, const absl::StatusOr<Dataset>& b) {
  CHECK(a.status() == b.status()) << a.status() << " and " << b.status();
  if (!a.ok()) return;
  CHECK(a->labels == b->labels && a->form.columns == b->form.columns);
  CHECK(a->features.begins == b->features.begins && a->features.columns == b->features.columns);
  CHECK(a->features.values == b->features.values);
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const DatasetSplit split = input.Byte() % 2 == 0 ? DatasetSplit::kTrain : DatasetSplit::kTest;
  const absl::string_view content = input.Rest();
  Folder();  // it empties the file
  FileOf(content);
  const auto plain = LoadLibsvmDataset(Folder(), split);
  Check(plain, split);
  if (LooksGzipped(content)) return;
  FileOf(Gzip(content));
  CheckSame(LoadLibsvmDataset(Folder(), split), plain);
}

}  // namespace sluice
