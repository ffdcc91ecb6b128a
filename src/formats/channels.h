// The common part of MSCCL XML and MSCCL++ JSON: instructions in channels (thread blocks) that wait for each other.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "formats/memory.h"

namespace tutti::formats {

/// Reads the first chunk, or combines all sources in that order; then writes `destination`.
struct Move {
  std::vector<Cell> sources;
  Cell destination = 0;
};

/// The position of an instruction in the file. `line` is 0 for formats that identify positions by names instead.
struct FilePosition {
  int line = 0;
  Rank rank = 0;
  int channel = 0;  ///< of that rank
  int step = 0;     ///< in that channel
};

/// Its moves are made one after another.
struct Instruction {
  int channel = 0;  ///< counted over all ranks
  FilePosition position;
  std::vector<Move> moves = {};
  std::vector<int> after = {};   ///< instructions whose effects it sees
  std::vector<int> behind = {};  ///< instructions it waits for, without a guarantee about memory
};

/// The instructions of one channel are in order.
struct ChannelProgram {
  std::string name = {};
  long long bytes_min = 0;  ///< as Imported
  long long bytes_max = std::numeric_limits<long long>::max();
  Buffers buffers;
  Memory memory;
  int channels = 0;
  std::vector<Instruction> instructions = {};
  std::vector<char> in_flight = {};  ///< by cell: it represents a message between its send and its receive
  std::string (*where)(const FilePosition&) = nullptr;

  std::string where_of(int instruction) const {
    return where(instructions[static_cast<std::size_t>(instruction)].position);
  }
};

/// All instructions, each after those it waits for. Errors: invalid_argument, naming a cycle of waits.
Result<std::vector<int>> execution_order(const ChannelProgram& program);

/// Refuses two unordered accesses to one cell, one of them a write, and an access to another rank's input or output
/// that may come after that rank's end. Without these, every order that execution_order could give has the same result.
/// Errors: invalid_argument, naming both.
Result<void> check_races(const ChannelProgram& program, const std::vector<int>& order);

}  // namespace tutti::formats
