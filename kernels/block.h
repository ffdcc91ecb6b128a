// The operations that a kernel body may use of the block of threads that runs it: on a GPU kernels/cuda_block.cuh, in
// tests real threads or fibers. A body is a template over its block and uses nothing of CUDA, so the tested source is
// the shipped source.
//
// All threads of a body take the same branches around a barrier. Nothing relies on threads running in lockstep. Memory
// that any rank may write while a kernel runs is accessed through the block; data that are constant during a launch
// (the call, actions, places, addresses in links) are read directly.
#pragma once

#include <concepts>
#include <cstdint>

#if defined(__CUDACC__)
#define TUTTI_DEVICE __device__ __forceinline__
#define TUTTI_UNROLL _Pragma("unroll")
#define TUTTI_ROLL _Pragma("unroll 1")
#else
#define TUTTI_DEVICE inline
#define TUTTI_UNROLL
#define TUTTI_ROLL
#endif

namespace tutti::device {

/// `Bytes` bytes in registers, in memory order.
template <int Bytes>
struct Pack;
template <>
struct Pack<16> {
  std::uint64_t words[2];
};
template <>
struct Pack<8> {
  std::uint64_t words[1];
};
template <>
struct Pack<4> {
  std::uint32_t words[1];
};
template <>
struct Pack<2> {
  std::uint16_t words[1];
};
template <>
struct Pack<1> {
  std::uint8_t words[1];
};

/// 16 bytes of memory: twice four bytes of data with their flag. The two halves may arrive one after the other.
struct FlaggedWord {
  std::uint32_t data0, flag0, data1, flag1;
};

/// The purpose of a barrier.
enum class Barrier : std::uint8_t {
  publish,   ///< all stores of the block precede the release that follows
  operands,  ///< the addresses of a pass are in shared memory; the previous pass has ended
  counters,  ///< messages counted by one thread are read by another
  actions,   ///< the actions in shared memory have all been carried out, or have been loaded
};

/// Faults that tests inject to see that they are detected; `none` on a GPU.
enum class Fault : std::uint8_t {
  none,
  release_relaxed,     ///< flags and counters are raised without memory order
  acquire_relaxed,     ///< and read without memory order
  no_publish_barrier,  ///< one thread signals before the others have stored
  no_operand_barrier,  ///< passes overlap
  no_vote,             ///< threads continue without those that still wait
  no_entry_barrier,    ///< windows are read before their owner has begun
  no_exit_barrier,     ///< a call ends before its peers have left its memory
  wrong_bound,         ///< a pass one element short
  one_slot_too_many,   ///< acquire does not count the last message
  one_flag_checked,    ///< the second half of a flagged word is accepted unchecked
  one_inbox,           ///< both halves of an inbox are the same memory
  inbox_not_cleared,   ///< flags repeat
  gpu_scope,           ///< flags for other GPUs are raised with the order of this GPU alone
  wrong_link,          ///< a rank's words for one peer go to another
  windows_alone,       ///< a rank goes through windows although another offers none
};
inline constexpr int fault_count = static_cast<int>(Fault::windows_alone) + 1;

// clang-format off
template <class B>
concept Block = requires(B b, std::uint32_t* word, std::uint64_t* counter, const std::uint64_t* seen, void* to,
                         const void* from) {
  { B::fault } -> std::convertible_to<Fault>;
  { b.thread() } -> std::same_as<int>;   // in the block
  { b.threads() } -> std::same_as<int>;
  { b.block() } -> std::same_as<int>;    // in the launch
  { b.sync(Barrier::publish) };          // all threads of the block
  { b.sync_any(true) } -> std::same_as<bool>;  // a barrier too; true if any thread passed true
  // Bulk data, unordered; aligned to its size.
  { b.template load<16>(from) } -> std::same_as<Pack<16>>;
  { b.template store<16>(to, Pack<16>{}) };
  // Words that order other accesses, or that hosts and other GPUs read.
  { b.load_acquire(seen) } -> std::same_as<std::uint64_t>;
  { b.load_relaxed(word) } -> std::same_as<std::uint32_t>;
  { b.store_release(counter, std::uint64_t{}) };
  { b.store_release(word, std::uint32_t{}) };
  { b.store_relaxed(word, std::uint32_t{}) };
  // Data that carries its flag: each half arrives as a whole, and orders nothing else.
  { b.load_flagged(from) } -> std::same_as<FlaggedWord>;
  { b.store_flagged(to, FlaggedWord{}) };
  { b.now_ns() } -> std::same_as<std::uint64_t>;
  { b.pause() };                         // between two reads of a polled word
};
// clang-format on

}  // namespace tutti::device
