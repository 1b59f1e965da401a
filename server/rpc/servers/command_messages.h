// Translates the commands to replicas to the messages of sequencer.proto, and back.
//
// FromProto() checks every field; its error is BAD_ARGUMENT and names the field, or that of a
// layout or an optimizer. Whether a command may stand at its place is CommandCheck's to say.
// ToProto() cannot fail. Any thread may call these functions.

#ifndef SLUICE_SERVER_RPC_SERVERS_COMMAND_MESSAGES_H_
#define SLUICE_SERVER_RPC_SERVERS_COMMAND_MESSAGES_H_

#include "absl/status/statusor.h"
#include "server/replica/replica_commands.h"
#include "sluice/v1/sequencer.pb.h"

namespace sluice {

// The message has neither `number` nor `taken`, which the link knows.
v1::SequencerMessage ToProto(const ReplicaCommand& command);
absl::StatusOr<ReplicaCommand> FromProto(const v1::SequencerMessage& message);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_COMMAND_MESSAGES_H_
