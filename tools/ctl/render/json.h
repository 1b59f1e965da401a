// The JSON that --json prints: protobuf's mapping, one object in a line.

#ifndef SLUICE_TOOLS_CTL_RENDER_JSON_H_
#define SLUICE_TOOLS_CTL_RENDER_JSON_H_

#include <google/protobuf/message.h>

#include <string>

namespace sluice {

// The names of fields are those of protobuf's JSON (`jobId`), as grpcurl prints them. Fields that
// are 0 are there, too, so that scripts find every field; optional ones only if they are set. The
// text has a line end, and control characters of names are escaped.
std::string JsonLine(const google::protobuf::Message& message);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_RENDER_JSON_H_
