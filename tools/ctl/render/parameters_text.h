// The tensors of a model as text.

#ifndef SLUICE_TOOLS_CTL_RENDER_PARAMETERS_TEXT_H_
#define SLUICE_TOOLS_CTL_RENDER_PARAMETERS_TEXT_H_

#include <string>

#include "sluice/v1/inspector.pb.h"

namespace sluice {

// A table of all tensors, then a line with their sum.
std::string ParametersText(const v1::ListParametersResponse& parameters);

// Place, statistics and values of one tensor.
std::string ParameterText(const v1::GetParameterResponse& parameter);

}  // namespace sluice

#endif  // SLUICE_TOOLS_CTL_RENDER_PARAMETERS_TEXT_H_
