// What is said on the links between servers, in words for the story.

#ifndef SLUICE_TESTS_SIMULATION_LINK_WORDS_H_
#define SLUICE_TESTS_SIMULATION_LINK_WORDS_H_

#include <string>

#include "server/replica/replica_commands.h"

namespace sluice {

std::string Words(const ReplicaCommand& command);
std::string Words(const ReplicaReport& report);

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_LINK_WORDS_H_
