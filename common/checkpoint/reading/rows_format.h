// The bytes of a file of rows: what one server has of the tables of a checkpoint, all of it or what
// has changed since a step before. Numbers are little-endian.
//
// Header:
//   8  "SLUICER1"; the last byte is the number of the format
//   8  length of the description in bytes
//      the description: a SavedRows (proto/sluice/v1/durable.proto)
//   8  XXH3-64 of the bytes before it
//
// Blocks follow, in ascending order of table and bucket. A block has rows of one bucket of one
// table, in ascending order of id, and ids that were removed. A bucket may have several blocks;
// then those with rows come first. A block has at most 65536 ids and 1 MiB, or one row.
//   4  "ROWS"
//   4  index of the table
//   4  bucket
//   4  n, the number of rows and waiting ids (TableSpec::admit_after)
//   4  w, how many of them wait
//   4  r, the number of removed ids
//   8n the ids
//   8n the latest step that touched each
//   4n how many steps have touched each, if it waits; 0 for a row
//      for each row its elements, then its slots, float32
//   8r the removed ids. What the files before this one have of them does not count
//   8  XXH3-64 of the bytes of the block before it
//
// End:
//   4  "ENDS"
//   4  zeros
//   8  number of blocks, then of rows, of waiting ids, and of removed ids, 8 bytes each
//   8  XXH3-64 of the checksums of the header and of all blocks, and of the bytes of the end before
//      it. It is the file's checksum
//
// A file with its name is whole: it is written under another name first, synced, and renamed.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_ROWS_FORMAT_H_
#define SLUICE_COMMON_CHECKPOINT_READING_ROWS_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/tensor/table_spec.h"

namespace sluice {

inline constexpr char kRowsMagic[] = "SLUICER1";
inline constexpr char kRowsBlock[] = "ROWS";
inline constexpr char kRowsEnd[] = "ENDS";
inline constexpr uint64_t kRowsPrefix = 16;     // of the header, before the description
inline constexpr uint64_t kRowsChecksum = 8;    // after each part
inline constexpr uint64_t kRowsBlockHead = 24;  // of a block, before the ids
inline constexpr uint64_t kRowsEndBytes = 40;   // without the checksum

inline constexpr size_t kMostBlockIds = 65536;
inline constexpr uint64_t kMostBlockBytes = 1 << 20;

// The content of a block.
struct RowsBlock {
  uint32_t table = 0;
  uint32_t bucket = 0;
  std::vector<RowId> ids;         // of rows and waiting ids
  std::vector<uint64_t> touched;  // a step for each
  std::vector<uint32_t> touches;  // for each
  std::vector<float> elements;    // of the rows alone
  std::vector<RowId> removed;

  bool empty() const { return ids.empty() && removed.empty(); }
  void Clear();
};

// How many rows, waiting ids and removed ids there are.
struct RowsCounts {
  uint64_t blocks = 0;
  uint64_t rows = 0;
  uint64_t waiting = 0;
  uint64_t removed = 0;
};

// "SLUICER1", the length and the description; without the checksum.
std::string EncodeRowsPrefix(const std::string& description);
// A block without its checksum.
std::string EncodeRowsBlock(const RowsBlock& block);
// The end without its checksum.
std::string EncodeRowsEnd(const RowsCounts& counts);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_ROWS_FORMAT_H_
