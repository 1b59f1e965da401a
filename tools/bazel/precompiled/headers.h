// The headers of the standard library and of Abseil that most sources include. gcc compiles them
// once (library.bzl) and reads what came of it, which takes an eighth of the time. A source
// includes what it needs all the same: clang compiles without this header, and so tells what is
// missing.

#ifndef SLUICE_TOOLS_BAZEL_PRECOMPILED_HEADERS_H_
#define SLUICE_TOOLS_BAZEL_PRECOMPILED_HEADERS_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

#endif  // SLUICE_TOOLS_BAZEL_PRECOMPILED_HEADERS_H_
