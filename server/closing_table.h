// The table that a server prints when its job is over. `sluice_server` and Job print it.

#ifndef SLUICE_SERVER_CLOSING_TABLE_H_
#define SLUICE_SERVER_CLOSING_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "common/protocol/results.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

// The verdict, the results that workers reported, loss, steps, speed, the newest checkpoint, the
// CRC-32 (zlib's) of the final parameters' bytes, if it is known, pushes by disposition, and
// megabytes moved. Two runs with the same CRC-32 ended with the same bits. Rows of what did not
// occur are left out. With several servers, the first one does not know what all of them moved on
// the wire. Then the warnings about training, one in a line. Returns several lines, each with its
// line end.
std::string ClosingTable(const v1::ServerState& state, const Results& results,
                         absl::optional<uint32_t> crc);

// The line of a model with a name, in a job of several: steps, pushes, the results that workers
// reported, and the CRC-32. With its line end.
std::string ClosingLine(const std::string& model, const v1::ServerState& state,
                        const Results& results, absl::optional<uint32_t> crc);

}  // namespace sluice

#endif  // SLUICE_SERVER_CLOSING_TABLE_H_
