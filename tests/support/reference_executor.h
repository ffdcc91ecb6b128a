// Runs the plans of all ranks on plain numbers, with delays as a seed has them. Shares no code with check.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/random.h"
#include "support/reference_values.h"

namespace tutti::testing {

/// One run of the plans.
struct Trial {
  std::uint64_t seed = 0;
  int slots = 2;  ///< 0: messages are taken from the sender's memory
  int channels = 1;
  int tiles = 1;
  int calls = 2;
  std::vector<bool> in_place = {};  ///< by rank; empty: none
  std::vector<int> hosts = {};  ///< by rank: where blocks that last are read in their sender's buffer; empty: nowhere
  int resident = 0;             ///< channels that have a place at once, each until its call ends; 0: all
};
/// A random one that suits the plans.
Trial random_trial(const Plan& plan, std::uint64_t seed);

enum class Outcome {
  right,
  wrong,    ///< a rank's output, as it leaves its call
  stalled,  ///< nobody can go on
  broken,   ///< an action that no executor could carry out, or that leaves its block
};

struct InitResult {
  Outcome outcome = Outcome::right;
  std::string what;
};

/// Every rank's channels take their actions one operand at a time, in random turns: some seeds give long turns, some
/// let one rank or channel go on only when nobody else can. When a rank's call ends, its outputs are compared, then its
/// buffers overwritten at once; the next call brings new inputs whenever it is the rank's turn.
class ReferenceExecutor {
 public:
  ReferenceExecutor(std::span<const Plan> plans, Expected& expected, const Arithmetic& arithmetic, const Trial& trial);
  InitResult run();

 private:
  static constexpr Word poison = 0xdeadbeefdeadbeefu;
  enum class State { entering, running, leaving, finished, done };
  struct Operand {
    Word* at = nullptr;
    int words = 0;   // that the block has
    Rank owner = 0;  // whose factor scales it
  };
  /// A block of this rank that the receiver of a message may read.
  struct Offered {
    Rank peer = 0;
    std::uint64_t message = 0;
    const Word* at = nullptr;
  };
  struct Channel {
    Rank rank = 0;
    int channel = 0;
    State state = State::entering;
    int tile = 0;
    std::size_t action = 0;
    int operand = 0;                    // of a pass: the next place to be read or written
    std::vector<Offered> offered = {};  // and not known to be read
    Word held[block_words_max] = {};
  };
  struct Buffers {
    std::vector<Word> user;  // input and output
    std::vector<Word> scratch;
    std::size_t input = 0;  // blocks, in user
    std::size_t output = 0;
    int input_blocks = 0;
    int output_blocks = 0;
    int call = -1;  // under way
    int channels_left = 0;
  };
  struct Link {
    std::vector<Word> slots;
    std::vector<Operand> offered;  // by item of a slot: where it is read instead
    std::uint64_t committed = 0;
    std::uint64_t released = 0;
    bool filling = false;
    bool reading = false;
  };
  void lay_out(Rank rank);
  bool may_begin(const Channel& l) const;
  void begin_call(Rank rank);
  void end_call(Rank rank);
  bool compare(Rank rank);
  bool find_place(std::size_t channel);
  void leave_place(std::size_t channel);

  bool turn(Channel& l);  ///< false: blocked
  bool act(Channel& l, const Action& a);
  bool pass(Channel& l, const Action& a);
  void next_action(Channel& l);
  bool leave(Channel& l);

  Operand kept(Channel& l, const Action& a);
  bool offer(Channel& l, const Action& a, std::size_t destination);
  bool may_change(Channel& l, const Action& a);
  bool waits_for_readers(Channel& l, const Word* changed);
  Operand operand(Channel& l, const Action& a, const Place& p, bool written);
  Operand item(Channel& l, const Place& p, bool written);
  Link& link(const Channel& l, Rank from, Rank to);
  std::uint64_t& flag(Rank from, Rank to, bool raised);
  bool fail(Outcome outcome, std::string what);

  std::span<const Plan> plans_;
  Expected& expected_;
  const Arithmetic& arithmetic_;
  Trial trial_;
  Random random_;
  Access access_;
  int ranks_;
  int parts_;
  int expected_call_ = -1;
  std::size_t slot_words_ = 0;
  std::uint64_t ring_ = 1;  // slots of a connection
  std::vector<Buffers> buffers_;
  std::vector<std::vector<Word>> lines_;                      // by call · ranks + rank: payload, empty until published
  Word nothing_[block_words_max] = {poison, poison, poison};  // of a line that is not there yet
  std::vector<Link> links_;
  std::vector<std::uint64_t> raised_, taken_;
  std::vector<Channel> channels_;
  std::vector<char> placed_;  // by channel
  int places_left_;
  InitResult verdict_;
};

}  // namespace tutti::testing
