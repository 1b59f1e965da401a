// Reads a field of a message by its path, as words.

#ifndef SLUICE_TESTS_SCRIPTS_STATE_WORDS_H_
#define SLUICE_TESTS_SCRIPTS_STATE_WORDS_H_

#include <string>

#include "google/protobuf/message.h"

namespace sluice {

// The field "current.awaited.worker": of repeated fields all elements, with blanks between them. A
// message is "set", or "absent". An unknown name is "no field NAME".
std::string FieldWords(const google::protobuf::Message& message, const std::string& path);

}  // namespace sluice

#endif  // SLUICE_TESTS_SCRIPTS_STATE_WORDS_H_
