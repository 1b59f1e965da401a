#include "server/rpc/operator/get_row.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/status.h"
#include "sluice/v1/inspector.grpc.pb.h"

namespace sluice {
namespace {

constexpr size_t kMostElements = 1024;

// The index of the table; NOT_FOUND.
absl::StatusOr<uint32_t> TableNamed(const std::string& name, const Layout& layout) {
  const std::vector<TableSpec>& tables = layout.tables();
  for (uint32_t i = 0; i < tables.size(); ++i) {
    if (tables[i].name == name) return i;
  }
  return MakeError(Reason::kNotFound,
                   absl::StrCat("no table \"", Shown(name), "\"; ListTables returns the names"));
}

void PutElements(absl::Span<const float> elements, google::protobuf::RepeatedField<float>* to) {
  const absl::Span<const float> shown = elements.subspan(0, kMostElements);
  to->Add(shown.begin(), shown.end());
}

void PutRow(const StoredRow& row, uint32_t width, const RowSlots& slots,
            v1::GetRowResponse& response) {
  response.set_touched(row.touched.value());
  response.set_touches(row.touches);
  response.set_exists(row.touches == 0);
  if (!response.exists()) return;
  for (size_t i = 0; i < slots.size(); ++i) {
    v1::RowSlot& slot = *response.add_slots();
    slot.set_name(slots[i]);
    PutElements(row.elements.subspan((i + 1) * width, width), slot.mutable_elements());
  }
}

class GrpcRowInspector final : public v1::Inspector::CallbackService {
 public:
  explicit GrpcRowInspector(std::function<HeldRows()> rows) : rows_(std::move(rows)) {}

  grpc::ServerUnaryReactor* GetRow(grpc::CallbackServerContext* context,
                                   const v1::GetRowRequest* request,
                                   v1::GetRowResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(AnswerGetRow(*request, rows_(), *response)));
    return reactor;
  }

 private:
  const std::function<HeldRows()> rows_;
};

}  // namespace

absl::Status AnswerGetRow(const v1::GetRowRequest& request, const HeldRows& held,
                          v1::GetRowResponse& response) {
  if (held.layout == nullptr || held.snapshot == nullptr) {
    return MakeError(Reason::kNotInitialized, "the server has no parameters yet");
  }
  const absl::StatusOr<uint32_t> table = TableNamed(request.table(), *held.layout);
  if (!table.ok()) return table.status();
  const RowId id = request.id();
  const uint32_t server = BucketOf(id) % held.place.stripes;
  if (server != held.place.stripe) {
    return MakeError(
        Reason::kNotFound,
        absl::StrCat("row ", id, " of \"", Shown(request.table()), "\" is on server ", server,
                     " of the job; ask that one: ListServers has its address"));
  }
  response.set_step(held.snapshot->step.value());
  const uint32_t width = held.layout->tables()[*table].width;
  std::vector<float> row(width);
  held.snapshot->rows->Read(*table, {id}, absl::MakeSpan(row));
  PutElements(row, response.mutable_elements());
  held.snapshot->rows->Find(*table, id, [&](const StoredRow& stored) {
    PutRow(stored, width, held.slots[*table], response);
  });
  return absl::OkStatus();
}

std::unique_ptr<grpc::Service> MakeGrpcRowInspector(std::function<HeldRows()> rows) {
  return std::make_unique<GrpcRowInspector>(std::move(rows));
}

}  // namespace sluice
