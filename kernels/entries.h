// What the host must know of the kernels: their names, their one argument, and the memory they meet in. No CUDA here.
//
// Every entry is a function of the embedded image (kernels/image.h) with C linkage, launched with block_threads_min to
// block_threads threads a block, no dynamic shared memory, and one argument, a device::Call by value. The grid has
// `local_ranks · channels` blocks in one dimension: block b serves channel b mod channels of the launch's rank b /
// channels. All of them must be resident at once, for they wait for each other: a cooperative launch, or fewer blocks
// than always fit. A block takes most of a processor's registers, so count on one per processor, or ask the driver.
// Buffers begin at multiples of their element's size; whoever gets others has to refuse them.
//
// A launch serves the ranks of one process that share a GPU. Calls of one communicator are launched in one order at all
// ranks; the next launch of a rank begins when its last one has ended (stream order).
//
// How a call is filled is in exec/device_program.h; how links and areas are, in kernels/area.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plan/action.h"
#include "plan/types.h"

namespace tutti::device {

inline constexpr int block_threads = 512;     ///< on a GPU, at most; bodies are right with any number
inline constexpr int block_threads_min = 64;  ///< fewer would not wait for all peers at once
inline constexpr int local_ranks_max = 16;    ///< of one launch
inline constexpr int ranks_max = 64;          ///< of a communicator whose calls run as kernels

/// How the elements of a group are cut: a Split as numbers, see plan/plan.h. A tile is what one channel does at a time;
/// window plans have as many tiles as channels at most, so that channels share all passes.
struct Cut {
  std::uint64_t count = 0;          ///< elements of a group
  std::uint64_t unit = 1;           ///< elements; parts begin at multiples
  std::uint64_t part_units = 0;     ///< units of a part, rounded down;
  std::uint64_t part_rest = 0;      ///<   so many parts, the first, have one more
  std::uint64_t tile_elements = 0;  ///< of a part; 0: all of it
  std::uint64_t tiles = 1;
  std::uint64_t stride = 0;  ///< bytes from item to item of a message
  std::uint32_t parts = 1;
  std::uint32_t element_bytes = 1;
};

/// One channel of a rank and one peer: where to reach the peer, where it accesses us, and how often each has happened.
/// In device memory, zero where there is no connection; index channel · ranks + peer. The host writes it once, when the
/// connection is made. The counters belong to the block that serves the channel and live on from launch to launch,
/// never as an argument: a captured graph replays its arguments.
struct alignas(128) Link {
  std::uint64_t* flag_there;            ///< raised by us in the peer's memory
  const std::uint64_t* flag_here;       ///< raised by the peer
  std::byte* slots_there;               ///< ring of slots from us to the peer, in its memory
  std::uint64_t* committed_there;       ///< messages we have written into it
  const std::uint64_t* released_here;   ///< messages of it the peer has given back
  const std::byte* slots_here;          ///< ring from the peer to us, in our memory
  const std::uint64_t* committed_here;  ///< messages the peer has written into it
  std::uint64_t* released_there;        ///< messages of it we have given back
  std::byte* inbox_there;               ///< of words with flags, from us: two halves of Call::inbox_bytes each
  std::byte* inbox_here;                ///< the same from the peer
  std::uint64_t raised;                 ///< counters, zero at first: flags raised,
  std::uint64_t taken;                  ///<   waited for,
  std::uint64_t committed;              ///<   messages sent,
  std::uint64_t released;               ///<   received,
  std::uint64_t inbox_uses;             ///<   and calls through the inboxes
  std::uint64_t reserved;
};

/// Why a block gave up. In pinned host memory, zeroed before the launch, one per rank and channel: index channel.
/// `state` is stored last, with release.
struct ErrorRecord {
  enum State : std::uint32_t { none = 0, aborted = 1, late = 2 };
  std::uint32_t state;   ///< aborted: the abort word was set; late: the peer did not come within Call::limit_ns
  std::uint32_t peer;    ///< who was waited for
  std::uint32_t action;  ///< index in the plan; of specialised kernels 0
  std::uint32_t step;    ///< of the schedule; of specialised kernels the number of their meeting
  std::uint32_t tile;
  std::uint32_t verb;  ///< of Verb: what it waited in
  std::uint32_t reserved[2];
};

/// One rank of a launch.
struct RankCall {
  const Action* actions;  ///< as prepared by exec/device_program.h, in device memory
  const Place* places;
  Link* links;
  ErrorRecord* errors;  ///< as the device sees them
  const std::byte* input;
  std::byte* output;
  std::byte* scratch;
  std::uint32_t action_count;
  std::uint16_t place_count;  ///< 65535: so many or more
  std::uint16_t rank;         ///< in the communicator
};

/// As RankCall has it.
constexpr std::uint16_t place_count_of(std::size_t places) {
  return places < UINT16_MAX ? static_cast<std::uint16_t>(places) : std::uint16_t{UINT16_MAX};
}

/// A rank's buffers as this GPU sees them, and the factor (bits of the type) by which a pre-multiplied sum scales its
/// contribution. Window plans need those of all ranks, all plans the factor of the own rank.
struct PeerBuffers {
  const std::byte* input;
  std::byte* output;
  std::uint64_t scalar;
};

/// The argument of every entry.
struct Call {
  Cut cut;
  std::uint32_t* abort;       ///< pinned host memory: not zero ends all waiting; a block that gives up sets it
  std::uint64_t limit_ns;     ///< how long one wait may take; 0: for ever
  std::uint64_t slot_bytes;   ///< of every ring, a multiple of 16
  std::uint64_t inbox_bytes;  ///< one half, a multiple of 16; holds half as many bytes of data
  std::uint32_t slots;        ///< of every ring
  std::uint32_t ranks;        ///< of the communicator
  std::uint32_t local_ranks;  ///< of this launch
  std::uint32_t channels;     ///< blocks per rank; alike at all ranks of the communicator
  DataType type;              ///< of the elements; entries are per type, copies take any with uint8's
  ReduceOp op;
  std::uint8_t average;  ///< 1: passes marked `last` divide by `ranks`
  std::uint8_t scaled;   ///< 1: leaves are multiplied by the factor of whose they are
  std::uint8_t meet;     ///< 1: some ranks are in other launches, so windows wait until all have begun
  std::uint8_t reserved[3];
  /// In pinned memory, in the place of `buffers`, for what is not known yet at the launch: then nothing is done once
  /// the abort word is set. Null: there is none. Only for run_plan.
  const PeerBuffers* table;
  RankCall local[local_ranks_max];
  PeerBuffers buffers[ranks_max];  ///< by rank in the communicator
};

static_assert(sizeof(Cut) == 64 && sizeof(Link) == 128 && sizeof(ErrorRecord) == 32);
static_assert(sizeof(RankCall) == 64 && sizeof(PeerBuffers) == 24 && sizeof(Call) == 2688);
static_assert(sizeof(Call) <= 4096, "what every driver takes as arguments");
static_assert(std::is_standard_layout_v<Call> && std::is_trivially_copyable_v<Call>);
static_assert(std::is_standard_layout_v<Link> && std::is_trivially_copyable_v<Link>);

/// The kernels, each for all types.
enum class Body : std::uint8_t {
  run_plan,  ///< walks the actions of any plan of Access::mapped or Access::slots
  two_shot,  ///< all-reduce: each rank reduces its part of all inputs and stores it to all outputs; windows
  one_shot,  ///< small all-reduce: everything to everybody's inbox
};
inline constexpr Body bodies[] = {Body::run_plan, Body::two_shot, Body::one_shot};

/// "tutti_run_plan_float32". Reductions are of the type; a plan without reductions runs as uint8 whatever its type.
constexpr const char* entry_name(Body body, DataType type) {
  constexpr const char* names[][data_type_count] = {
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) "tutti_run_plan_" #enumerator,
      {
#include "plan/types.inc"
      },
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) "tutti_two_shot_" #enumerator,
      {
#include "plan/types.inc"
      },
#define TUTTI_TYPE(group, enumerator, number, bytes, storage) "tutti_one_shot_" #enumerator,
      {
#include "plan/types.inc"
      },
  };
  return names[static_cast<int>(body)][static_cast<int>(type)];
}

}  // namespace tutti::device
