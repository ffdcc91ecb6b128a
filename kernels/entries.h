// The interface of the kernels for the host: their names, their single argument, and the memory they share. No CUDA
// here.
//
// Every entry is a function of the embedded image (kernels/image.h) with C linkage. It is launched with
// block_threads_min to block_threads threads per block, no dynamic shared memory, and one argument, a device::Call by
// value. The grid has `local_ranks · channels` blocks in one dimension: block b serves channel b mod channels of the
// launch's rank b / channels. All blocks must be resident at once, because they wait for each other: use a cooperative
// launch, or fewer blocks than always fit. A block uses most of a processor's registers, so assume one per processor,
// or ask the driver. Buffers begin at multiples of their element's size; the caller must refuse others.
//
// A launch serves the ranks of one process that share a GPU. The calls of one communicator are launched in the same
// order on all ranks; the next launch of a rank begins when its last one has ended (stream order).
//
// exec/device_program.h fills a call; kernels/area.h has links and areas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plan/action.h"
#include "plan/types.h"

namespace tutti::device {

inline constexpr int block_threads = 512;     ///< maximum on a GPU; bodies are correct with any number
inline constexpr int block_threads_min = 64;  ///< fewer could not wait for all peers at once
inline constexpr int local_ranks_max = 16;    ///< per launch
inline constexpr int ranks_max = 64;          ///< per communicator whose calls run as kernels

/// How the elements of a group are divided: a Split as numbers, see plan/plan.h. A tile is the part that one channel
/// processes at a time; mapped plans have at most as many tiles as channels, so that channels share all passes.
struct Cut {
  std::uint64_t count = 0;          ///< elements of a group
  std::uint64_t unit = 1;           ///< in elements; parts begin at multiples
  std::uint64_t part_units = 0;     ///< units per part, rounded down
  std::uint64_t part_rest = 0;      ///< the first `part_rest` parts have one unit more
  std::uint64_t tile_elements = 0;  ///< of a part; 0: all of it
  std::uint64_t tiles = 1;
  std::uint64_t stride = 0;  ///< bytes from item to item of a message
  std::uint32_t parts = 1;
  std::uint32_t element_bytes = 1;
};

/// One channel between a rank and one peer: addresses at the peer, addresses here for the peer, and the counters of
/// both directions. In device memory, zero where there is no connection; index channel · ranks + peer. The host writes
/// it once, when the connection is made. The counters belong to the block that serves the channel. They persist from
/// launch to launch and are never an argument: a captured graph replays its arguments.
struct alignas(128) Link {
  std::uint64_t* flag_there;            ///< raised by this rank in the peer's memory
  const std::uint64_t* flag_here;       ///< raised by the peer
  std::byte* slots_there;               ///< ring of slots from this rank to the peer, in the peer's memory
  std::uint64_t* committed_there;       ///< number of messages that this rank has written into it
  const std::uint64_t* released_here;   ///< number of its messages that the peer has released
  const std::byte* slots_here;          ///< ring from the peer to this rank, in this rank's memory
  const std::uint64_t* committed_here;  ///< number of messages that the peer has written into it
  std::uint64_t* released_there;        ///< number of its messages that this rank has released
  std::byte* inbox_there;               ///< of flagged words, from this rank: two halves of Call::inbox_bytes each
  std::byte* inbox_here;                ///< as inbox_there, from the peer
  std::uint64_t raised;                 ///< counters, initially zero: flags raised; of a link for messages: sends,
  std::uint64_t taken;                  ///< flags waited for; receives,
  std::uint64_t committed;              ///< messages sent,
  std::uint64_t released;               ///< messages received,
  std::uint64_t inbox_uses;             ///< calls through the inboxes
  std::uint64_t reserved;
};

/// Why a block gave up, the first time. In pinned host memory, zero at first, one per rank and channel: index channel.
/// `state` is stored last, with release.
struct ErrorRecord {
  enum State : std::uint32_t { none = 0, aborted = 1, late = 2, counts = 3, differs = 4 };
  /// aborted: the abort word was set; late: the peer did not arrive within Call::limit_ns; counts: it sends another
  /// number of bytes than this rank expects, or expects another than this rank sends (verb `acquire`), or another type;
  /// differs: it makes another call
  std::uint32_t state;
  std::uint32_t peer;    ///< the rank that was waited for
  std::uint32_t action;  ///< index in the plan; 0 in specialised kernels, and where calls are compared
  std::uint32_t step;    ///< of the schedule; in specialised kernels the number of the synchronisation
  std::uint32_t tile;
  std::uint32_t verb;     ///< of Verb: the action that waited
  std::uint32_t message;  ///< 1: of a send or receive
  std::uint32_t types;    ///< of a message that differs: this rank's, and the peer's times 65536
  std::uint64_t own;      ///< Call::signature of this rank, where it differs; or the bytes of ErrorRecord::counts
  std::uint64_t theirs;   ///< and of the peer
};

/// One rank of a launch.
struct RankCall {
  const Action* actions;  ///< as prepared by exec/device_program.h, in device memory
  const Place* places;
  Link* links;
  ErrorRecord* errors;  ///< device address
  const std::byte* input;
  std::byte* output;
  std::byte* scratch;
  std::uint32_t action_count;
  std::uint16_t place_count;  ///< 65535: this many or more
  std::uint16_t rank;         ///< in the communicator
};

/// The value of RankCall::place_count.
constexpr std::uint16_t place_count_of(std::size_t places) {
  return places < UINT16_MAX ? static_cast<std::uint16_t>(places) : std::uint16_t{UINT16_MAX};
}

/// A rank's buffers at this GPU's addresses, and the factor (bits of the type) by which a pre-multiplied sum scales its
/// contribution. Mapped plans need the buffers of all ranks; all plans need the rank's own factor.
struct PeerBuffers {
  const std::byte* input;
  std::byte* output;
  std::uint64_t scalar;
};

/// What a rank offers of one of its buffers to kernels of other launches: its place in the table of allocations that
/// all ranks have mapped, and its offset there. One word, as kernels send it.
struct Offer {
  static constexpr std::uint32_t places = 256;                ///< cuda::BufferBoard::places_max
  static constexpr std::uint64_t none = 0;                    ///< not all others can access the buffer
  static constexpr std::uint64_t absent = ~std::uint64_t{0};  ///< the call has no such buffer on this rank

  static constexpr std::uint64_t of(std::uint32_t place, std::uint64_t offset) {
    return std::uint64_t{place + 1} << 48 | offset;
  }
  /// Whatever a peer has sent, a place of the table.
  static constexpr std::uint32_t place(std::uint64_t offer) {
    return (static_cast<std::uint32_t>(offer >> 48) - 1) % places;
  }
  static constexpr std::uint64_t offset(std::uint64_t offer) { return offer & 0xffff'ffff'ffff; }
};

/// One rank's plan through windows, in place of its plan through slots: where all ranks offer their buffers.
struct ByWindows {
  const Action* actions;
  const Place* places;
  /// Addresses of this GPU, by rank · Offer::places + place: the allocations that the rank's peers may offer.
  std::byte* const* mapped;
  std::uint64_t input;   ///< Offer
  std::uint64_t output;  ///< Offer
  std::uint32_t action_count;
  std::uint16_t place_count;
  std::uint16_t reserved;
};

/// What a rank exchanges with one peer in a call with a count per rank; all numbers are bytes.
struct Transfer {
  std::uint64_t from;  ///< offset in the input
  std::uint64_t to;    ///< offset in the output
  std::uint64_t sent;
  std::uint64_t received;
  std::uint64_t all_sent;  ///< by the whole call, of which this may be a part; ranks compare these
  std::uint64_t all_received;
};

/// A send or receive.
struct Message {
  std::byte* data;  ///< only read by a send
  std::uint64_t bytes;
  std::uint16_t peer;
  std::uint8_t send;  ///< 0: receive
  std::uint8_t type;  ///< DataType; compared with the peer's
  std::uint32_t reserved;

  /// Those of a queue are moved one after another, queues at the same time.
  constexpr std::uint32_t queue() const { return 2u * peer + (send != 0 ? 0u : 1u); }
};

/// What precedes the data in a slot of a message: its size and type. The data begin at a multiple of so many bytes.
inline constexpr std::uint64_t message_header_bytes = 128;

enum AbortWord : std::uint32_t {
  goes_on = 0,
  all_ends = 1,   ///< all waits end, and launches that look at the word first do nothing
  some_gone = 2,  ///< some ranks make no calls any more: waits that take longer than gone_ns end
};
inline constexpr std::uint64_t gone_ns = 5'000'000'000;

/// The argument of every entry.
struct Call {
  Cut cut;
  std::uint32_t* abort;       ///< pinned host memory: an AbortWord; a block that gives up sets it to all_ends
  std::uint64_t limit_ns;     ///< limit of a single wait; 0: none
  std::uint64_t slot_bytes;   ///< of every ring, a multiple of 16
  std::uint64_t inbox_bytes;  ///< of one half, a multiple of 16; behind 16 bytes it holds half as many bytes of data
  std::uint32_t slots;        ///< of every ring
  std::uint32_t ranks;        ///< of the communicator
  std::uint32_t local_ranks;  ///< of this launch
  std::uint32_t channels;     ///< blocks per rank; equal on all ranks of the communicator
  DataType type;              ///< of the elements; there is an entry per type, and copies use uint8's for any type
  ReduceOp op;
  std::uint8_t average;  ///< 1: passes marked `last` divide by `ranks`
  std::uint8_t scaled;   ///< 1: leaves are multiplied by the factor of their rank
  /// 1: some ranks are in other launches, so ranks compare their signatures, accesses through windows wait until all
  /// have begun, and words that order them reach other GPUs
  std::uint8_t synchronises;
  std::uint8_t windows;  ///< 1: the plan accesses buffers of other ranks
  std::uint8_t choose;   ///< 1: `by_windows` holds plans that run where all ranks offer their buffers; run_plan only
  std::uint8_t checks_abort;  ///< 1: once the abort word is set, the launch does nothing; run_plan only
  /// Sends and receives, by queue; 0: the call is another. Only for run_plan of uint8, with one local rank, whose links
  /// serve messages alone.
  std::uint32_t message_count;
  /// In pinned memory. Null: they are in `few_messages`.
  const Message* messages;
  /// In pinned memory, by local rank · ranks + peer: the call has a count per rank, and no plan. Null: not used. Only
  /// for run_plan of uint8, with `synchronises`.
  const Transfer* transfers;
  /// In pinned memory, replaces `buffers` if these are not yet known at the launch. Null: not used. Only for run_plan.
  const PeerBuffers* table;
  std::uint64_t signature;  ///< what ranks in other launches must have equal: see call/packed_signature.h
  RankCall local[local_ranks_max];
  union {
    PeerBuffers buffers[ranks_max];  ///< by rank in the communicator
    Message few_messages[ranks_max];
  };
  Cut window_cut;  ///< of `by_windows`
  ByWindows by_windows[local_ranks_max];
};

static_assert(sizeof(Cut) == 64 && sizeof(Link) == 128 && sizeof(ErrorRecord) == 48);
static_assert(sizeof(RankCall) == 64 && sizeof(PeerBuffers) == 24 && sizeof(Message) == 24 && sizeof(Call) == 3552);
static_assert(sizeof(Call) <= 4096, "the size of arguments that every driver accepts");
static_assert(std::is_standard_layout_v<Call> && std::is_trivially_copyable_v<Call>);
static_assert(std::is_standard_layout_v<Link> && std::is_trivially_copyable_v<Link>);

/// The kernels, each for all types.
enum class Body : std::uint8_t {
#define TUTTI_KERNEL_BODY(name) name,
#include "kernels/bodies.inc"
};
inline constexpr Body bodies[] = {
#define TUTTI_KERNEL_BODY(name) Body::name,
#include "kernels/bodies.inc"
};
constexpr const char* name(Body body) {
  constexpr const char* names[] = {
#define TUTTI_KERNEL_BODY(name) #name,
#include "kernels/bodies.inc"
  };
  return names[static_cast<int>(body)];
}

}  // namespace tutti::device
