// CRC-32C, the checksum of RFC 3720 (polynomial 0x1EDC6F41, reflected), as event files have it.

#ifndef SLUICE_SERVER_EVENTS_CRC32C_H_
#define SLUICE_SERVER_EVENTS_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace sluice {

uint32_t Crc32c(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_CRC32C_H_
