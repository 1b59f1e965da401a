// Random numbers from a seed. They are the same on every machine, which the distributions of the
// standard library do not promise.

#ifndef SLUICE_TESTS_SIMULATION_DICE_H_
#define SLUICE_TESTS_SIMULATION_DICE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace sluice {

// SplitMix64 (Steele, Lea, Flood 2014).
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0xd1342543de82ef95u + 1) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // A number from 0 to `end` − 1. The bias does not matter for small numbers.
  uint64_t Below(uint64_t end) { return Next() % end; }
  uint64_t Between(uint64_t first, uint64_t last) { return first + Below(last - first + 1); }
  bool Percent(uint64_t chance) { return Below(100) < chance; }

  // One of the items; there is at least one.
  template <typename Items>
  auto& Of(Items& items) {
    return items[Below(items.size())];
  }
  template <typename T>
  T Of(std::initializer_list<T> items) {
    return items.begin()[Below(items.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_DICE_H_
