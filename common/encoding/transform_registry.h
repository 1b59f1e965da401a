// The transforms that a process knows: Sluice's own and the user's.
//
// BuiltinTransforms() (transforms/builtin_transforms.h) makes a registry of Sluice's own
// transforms. A program adds its own transforms to it and passes the registry on when it starts: in
// JobOptions, or in ServerProgramOptions. A registry is a value. Copies share the transforms, which
// nobody can change any more. Any number of threads may read a registry that no thread changes.

#ifndef SLUICE_COMMON_ENCODING_TRANSFORM_REGISTRY_H_
#define SLUICE_COMMON_ENCODING_TRANSFORM_REGISTRY_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/encoding/transform.h"
#include "common/tensor/chunk_encoding.h"

namespace sluice {

class TransformRegistry {
 public:
  // Adds the implementation of one of Sluice's own transforms, for BuiltinTransforms().
  void AddBuiltin(ValueTransform transform, std::unique_ptr<const Transform> implementation);

  // Adds a user's own transform. Server and workers must add it under the same `name`. The name
  // must be one that IsTransformName() allows and that no other transform has, and the transform's
  // width must be 1, 2 or 4; otherwise the process dies with a message, since this is a bug in the
  // program.
  void Add(absl::string_view name, std::unique_ptr<const Transform> transform);

  // Returns the transform, which lives as long as this registry or one of its copies. `custom` is
  // the name of a user's own transform and matters only for kCustom. Returns BAD_ARGUMENT if this
  // registry does not have the transform; the message lists the names that it has.
  absl::StatusOr<const Transform*> Find(ValueTransform transform, absl::string_view custom) const;

 private:
  std::map<ValueTransform, std::shared_ptr<const Transform>> builtin_;
  std::map<std::string, std::shared_ptr<const Transform>> custom_;  // by name
};

}  // namespace sluice

#endif  // SLUICE_COMMON_ENCODING_TRANSFORM_REGISTRY_H_
