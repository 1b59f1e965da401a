// The servers of a job as a table.

#ifndef SLUICE_TOOLS_CTL_RENDER_SERVERS_TEXT_H_
#define SLUICE_TOOLS_CTL_RENDER_SERVERS_TEXT_H_

#include <string>

#include "sluice/v1/inspector.pb.h"

namespace sluice {

// A head line and one line for each server, each with its line end.
std::string ServersText(const v1::ListServersResponse& servers);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_RENDER_SERVERS_TEXT_H_
