// Files that are taken for one server's stripe of a checkpoint: refused, or read as values that are
// written, and read again, as the same.
#include "common/checkpoint/reading/stripe_file.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/encoding/checksum.h"
#include "common/tensor/stripes.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/checkpoint/stripe_writer.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/sealed.h"
#include "tests/fuzz/target.h"
#include "tests/testing/durable/faulty_files.h"

namespace sluice {
namespace {

constexpr char kPath[] = "d/stripe";

// What is expected of the file: the second of three stripes of a vector with one slot.
const StripeName kName = {"job", Incarnation(2), Step(9), 1, 3};

Layout TwoTensors() {
  return *Layout::Create({{"a", {100}, RangeKind::kParameter, DataType::kFloat32, 0, 100},
                          {"b", {46}, RangeKind::kParameter, DataType::kFloat32, 100, 46}});
}

// The stripe in the file; null if it is refused.
std::unique_ptr<StripeCheckpoint> Read(const std::string& bytes, StripeRows* rows) {
  const Layout layout = TwoTensors();
  FaultyFiles files;
  CHECK((*files.Create(kPath))->Append(bytes).ok());
  const uint64_t size = Stripes(layout.size(), kName.stripes).SizeOf(kName.stripe);
  std::vector<FloatBuffer> vectors;
  vectors.emplace_back(size);
  vectors.emplace_back(size);
  std::vector<uint64_t> taken(2);
  const absl::Status read = ReadStripe(
      **files.Open(kPath), {kName, layout, {"m"}, 7, Checksum(bytes)},
      [&](size_t vector, uint64_t offset, absl::Span<const float> values) {
        CHECK(offset == taken.at(vector));
        std::copy(values.begin(), values.end(), vectors[vector].span().begin() + offset);
        taken[vector] += values.size();
      },
      rows);
  if (!read.ok()) {
    CheckRefusal(read, {absl::StatusCode::kDataLoss});
    return nullptr;
  }
  CHECK(taken == std::vector<uint64_t>(2, size));
  auto stripe = std::make_unique<StripeCheckpoint>();
  const auto parameters = std::make_shared<Snapshot>();
  parameters->values = std::move(vectors[0]);
  stripe->parameters = parameters;
  stripe->slots.push_back({"m", std::move(vectors[1])});
  stripe->optimizer_steps = 7;
  stripe->row_steps = rows->steps;
  return stripe;
}

std::string Written(const StripeCheckpoint& stripe, const StripeRows& rows) {
  FaultyFiles files;
  const auto written = WriteStripe(kName, TwoTensors(), stripe, **files.Create(kPath), rows.files);
  CHECK(written.ok() && *written == Checksum(files.BytesOf(kPath))) << written.status();
  return files.BytesOf(kPath);
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool sealed = input.Byte() % 8 != 0;
  const std::string given(input.Rest());
  StripeRows rows;
  const auto stripe = Read(sealed ? Sealed(given) : given, &rows);
  if (stripe == nullptr) return;
  const std::string written = Written(*stripe, rows);
  StripeRows again_rows;
  const auto again = Read(written, &again_rows);
  CHECK(again != nullptr);
  CHECK(Written(*again, again_rows) == written);
}

}  // namespace sluice
