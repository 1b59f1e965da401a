// Translates the reports of replicas to the messages of sequencer.proto, and back.
//
// FromProto() checks every field; its error is BAD_ARGUMENT and names the field. Whether a report
// answers a command is ReportCheck's to say. ToProto() cannot fail. Any thread may call these
// functions.

#ifndef SLUICE_SERVER_RPC_SERVERS_REPORT_MESSAGES_H_
#define SLUICE_SERVER_RPC_SERVERS_REPORT_MESSAGES_H_

#include "absl/status/statusor.h"
#include "server/replica/replica_commands.h"
#include "server/state/server_status.h"
#include "sluice/v1/sequencer.pb.h"

namespace sluice {

// The message has neither `number` nor `taken`, which the link knows.
v1::HolderMessage ToProto(const ReplicaReport& report);
absl::StatusOr<ReplicaReport> FromProto(const v1::HolderMessage& message);

v1::HolderFigures ToProto(const StripeFigures& figures);
StripeFigures FromProto(const v1::HolderFigures& message);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_REPORT_MESSAGES_H_
