// Answers the Inspector's GetRow, on the server that has the row. Any thread may call it.

#ifndef SLUICE_SERVER_RPC_OPERATOR_GET_ROW_H_
#define SLUICE_SERVER_RPC_OPERATOR_GET_ROW_H_

#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/replica/held_rows.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

// NOT_INITIALIZED without parameters; NOT_FOUND if there is no such table, or if another server has
// the row.
absl::Status AnswerGetRow(const v1::GetRowRequest& request, const HeldRows& held,
                          v1::GetRowResponse& response);

// An Inspector that has this method alone, for a server that has rows and not the job's state.
// gRPC's threads call `rows`.
std::unique_ptr<grpc::Service> MakeGrpcRowInspector(std::function<HeldRows()> rows);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_GET_ROW_H_
