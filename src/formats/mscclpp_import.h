// The state of reading an MSCCL++ plan: GPUs, thread blocks, channels and barriers by the file's numbers.
#pragma once

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "formats/imported.h"
#include "formats/json.h"
#include "formats/source.h"

namespace tutti::formats::mscclpp {

enum ChannelType { memory_channel, port_channel, channel_types, switch_channel = channel_types };

struct Channel {
  Rank peer = 0;
  int number = 0;  // among the rank's channels to that peer
};
struct Remote {
  Rank rank = 0;
  Buffer buffer = Buffer::input;
};
struct Gpu {
  JsonAt at;
  std::array<std::vector<Channel>, channel_types> channels;
  std::vector<Remote> remotes;
};
/// The objects that the operations of one thread block may name, by the number they use.
struct Block {
  std::array<std::vector<Channel>, channel_types> channels;
  std::array<std::vector<Remote>, channel_types> remotes;
};

class Import {
 public:
  Result<Imported> run(const Json& root, Rank of_root);

 private:
  using Wire = std::tuple<Rank, Rank, int, int>;  // from, to, type, number
  struct Flag {
    int instruction;
    bool relaxed;
  };
  struct Barrier {
    std::vector<int> entries, exits;
    int expected = 0;
  };

  void header(const JsonAt& file, Rank of_root);
  void find_parts(const JsonAt& gpus);
  void gpu(const JsonAt& at, Rank rank);
  void channels(const JsonAt& at, Rank rank, Gpu& gpu);
  void blocks(Rank rank);
  Block block(const JsonAt& at, const Gpu& gpu);
  void op(const JsonAt& at, const Block& block);
  void barrier(const JsonAt& at, FilePosition position);
  std::vector<Cell> chunks(const JsonAt& at, const Block& block, int type);
  using Cells = std::vector<std::vector<Cell>>;  // by buffer that an operation names
  void copies(const JsonAt& at, const Cells& sources, const Cells& destinations, std::vector<Move>& moves);
  void reductions(const JsonAt& at, const Cells& sources, const Cells& destinations, std::vector<Move>& moves);
  void refuse_overlap(const JsonAt& at, const std::vector<Cell>& source, const std::vector<Cell>& destination);
  Result<void> match();
  Result<void> join_barriers();
  int channel_type(const JsonAt& at);
  Buffer buffer(const JsonAt& at);

  JsonReader reader_;
  ChannelProgram program_;
  std::vector<Gpu> gpus_;
  std::map<Wire, std::vector<Flag>> signals_, waits_;
  std::map<std::tuple<Rank, int, int>, Barrier> barriers_;  // by rank, id and number of times it was passed
  std::map<std::tuple<int, int>, int> passed_;              // by channel and id
  int steps_ = 0;
  int moves_ = 0;
};

}  // namespace tutti::formats::mscclpp
