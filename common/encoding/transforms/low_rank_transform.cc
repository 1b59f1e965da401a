// low-rank: sends a matrix as the product of two narrow matrices, P · Qᵀ.
//
// This is PowerSGD (Vogels et al. 2019). Each push makes one step of power iteration, which starts
// from the Q of the push before.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/transform.h"
#include "common/encoding/transforms/builtin_transforms.h"

namespace sluice {
namespace {

using Matrix = std::vector<float>;  // row by row

constexpr float kLeastNorm = 1e-20f;

// M, the matrix to encode, is rows · columns. P is rows · rank and Q is columns · rank.
struct Shape {
  size_t rows = 0;
  size_t columns = 0;
  size_t rank = 0;

  size_t elements() const { return (rows + columns) * rank; }
};

// The Q of the first push: numbers in [−1, 1), the same ones for every matrix of that size.
Matrix FirstQ(const Shape& shape) {
  Matrix q(shape.columns * shape.rank);
  uint32_t state = 1;
  for (float& value : q) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state) >> 8) * 0x1p-23f;
  }
  return q;
}

// M · Q.
Matrix MakeP(const float* m, const Matrix& q, const Shape& shape) {
  Matrix p(shape.rows * shape.rank);
  for (size_t row = 0; row < shape.rows; ++row) {
    float* const to = &p[row * shape.rank];
    for (size_t column = 0; column < shape.columns; ++column) {
      const float value = m[row * shape.columns + column];
      const float* const from = &q[column * shape.rank];
      for (size_t k = 0; k < shape.rank; ++k) to[k] += value * from[k];
    }
  }
  return p;
}

// Mᵀ · P.
Matrix MakeQ(const float* m, const Matrix& p, const Shape& shape) {
  Matrix q(shape.columns * shape.rank);
  for (size_t row = 0; row < shape.rows; ++row) {
    const float* const from = &p[row * shape.rank];
    for (size_t column = 0; column < shape.columns; ++column) {
      const float value = m[row * shape.columns + column];
      float* const to = &q[column * shape.rank];
      for (size_t k = 0; k < shape.rank; ++k) to[k] += value * from[k];
    }
  }
  return q;
}

// The dot product of columns `a` and `b`.
double Dot(const Matrix& p, const Shape& shape, size_t a, size_t b) {
  double sum = 0;
  for (size_t row = 0; row < shape.rows; ++row) {
    sum += static_cast<double>(p[row * shape.rank + a]) * p[row * shape.rank + b];
  }
  return sum;
}

// Makes the columns of P orthonormal (modified Gram–Schmidt). A column that depends linearly on the
// columns before it becomes 0.
void Orthonormalize(const Shape& shape, Matrix* p) {
  for (size_t k = 0; k < shape.rank; ++k) {
    for (size_t before = 0; before < k; ++before) {
      const auto share = static_cast<float>(Dot(*p, shape, k, before));
      for (size_t row = 0; row < shape.rows; ++row) {
        (*p)[row * shape.rank + k] -= share * (*p)[row * shape.rank + before];
      }
    }
    const auto norm = static_cast<float>(std::sqrt(Dot(*p, shape, k, k)));
    const float factor = norm > kLeastNorm ? 1 / norm : 0;
    for (size_t row = 0; row < shape.rows; ++row) (*p)[row * shape.rank + k] *= factor;
  }
}

// False if a sum was too large for a float. If P is not finite, neither is Q.
bool AllFinite(const Matrix& matrix) {
  return std::all_of(matrix.begin(), matrix.end(),
                     [](float value) { return std::isfinite(value); });
}

// The Q for the next push. Columns of zeros are replaced, because they would stay zeros forever.
Matrix NextQ(const Shape& shape, Matrix q) {
  const Matrix first = FirstQ(shape);
  for (size_t k = 0; k < shape.rank; ++k) {
    bool zeros = true;
    for (size_t i = k; i < q.size(); i += shape.rank) zeros = zeros && q[i] == 0;
    if (!zeros) continue;
    for (size_t i = k; i < q.size(); i += shape.rank) q[i] = first[i];
  }
  return q;
}

void Append(const Matrix& matrix, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(matrix.data()), matrix.size() * sizeof(float));
}

// Returns the shape in `how`, or BAD_CHUNK if the narrow matrices are larger than the whole.
absl::StatusOr<Shape> ShapeOf(const ChunkEncoding& how) {
  const bool whole_rows =
      how.columns >= 1 && how.columns <= how.count && how.count % how.columns == 0;
  Shape shape;
  if (whole_rows && how.rank >= 1 && how.rank <= kMostRank) {
    shape = {how.count / how.columns, how.columns, how.rank};
    if (shape.elements() <= how.count) return shape;
  }
  return MakeError(
      Reason::kBadChunk,
      absl::StrCat("a low-rank chunk of ", how.count, " elements has ", how.columns,
                   " columns and rank ", how.rank, ", expected whole rows, a rank of 1 to ",
                   kMostRank, " and narrow matrices that are smaller"));
}

class LowRank final : public Transform {
 public:
  // Uses float32 if the chunk is not a matrix, or if its sizes or values do not allow this.
  void Encode(absl::Span<const float> values, const Encoding& encoding, const ChunkContext& context,
              ChunkEncoding* how, std::string* bytes) const override {
    how->columns = context.columns;
    how->rank = encoding.rank;
    const auto shape = ShapeOf(*how);
    Matrix p;
    Matrix q;
    if (shape.ok()) Iterate(values, *shape, context.memory, &p, &q);
    if (!shape.ok() || !AllFinite(q)) {
      how->transform = ValueTransform::kFloat32;
      how->columns = how->rank = 0;
      MakeFloat32Transform()->Encode(values, encoding, context, how, bytes);
      return;
    }
    Append(p, bytes);
    Append(q, bytes);
    if (context.memory != nullptr) *context.memory = NextQ(*shape, std::move(q));
  }

  absl::StatusOr<uint64_t> MostBytes(const ChunkEncoding& how) const override {
    const auto shape = ShapeOf(how);
    if (!shape.ok()) return shape.status();
    return shape->elements() * sizeof(float);
  }

  absl::Status Decode(absl::string_view bytes, const ChunkEncoding& how,
                      absl::Span<float> values) const override {
    const auto shape = ShapeOf(how);
    if (!shape.ok()) return shape.status();
    Matrix narrow(shape->elements());
    if (bytes.size() != narrow.size() * sizeof(float)) {
      return MakeError(Reason::kBadChunk,
                       absl::StrCat("a low-rank chunk has ", bytes.size(), " bytes, expected ",
                                    narrow.size() * sizeof(float)));
    }
    std::memcpy(narrow.data(), bytes.data(), bytes.size());
    const float* const p = narrow.data();
    const float* const q = p + shape->rows * shape->rank;
    for (size_t row = 0; row < shape->rows; ++row) {
      for (size_t column = 0; column < shape->columns; ++column) {
        float sum = 0;
        for (size_t k = 0; k < shape->rank; ++k) {
          sum += p[row * shape->rank + k] * q[column * shape->rank + k];
        }
        values[row * shape->columns + column] = sum;
      }
    }
    return absl::OkStatus();
  }

 private:
  // Makes one step of power iteration, starting from the Q in `memory` if there is one.
  static void Iterate(absl::Span<const float> values, const Shape& shape,
                      const std::vector<float>* memory, Matrix* p, Matrix* q) {
    if (memory != nullptr) *q = *memory;
    if (q->size() != shape.columns * shape.rank) *q = FirstQ(shape);
    *p = MakeP(values.data(), *q, shape);
    Orthonormalize(shape, p);
    *q = MakeQ(values.data(), *p, shape);
  }
};

}  // namespace

std::unique_ptr<const Transform> MakeLowRankTransform() { return std::make_unique<LowRank>(); }

}  // namespace sluice
