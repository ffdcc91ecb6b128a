// The part of libpmix's interface that tutti uses, in the layout of the PMIx standard (versions 3 to 5), so that the
// build does not need its headers. A test compares the two where the headers are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::pmix {

using Status = int;
inline constexpr Status success = 0;
inline constexpr Status done_at_once = -157;  ///< PMIX_OPERATION_SUCCEEDED: no callback follows

struct Process {
  char space[256];
  std::uint32_t rank;
};
inline constexpr std::uint32_t any_rank = 0xffff'fffe;  ///< PMIX_RANK_WILDCARD: facts about the whole job

enum Type : std::uint16_t { type_bool = 1, type_string = 3, type_int = 6, type_uint16 = 13, type_uint32 = 14 };

struct Value {
  std::uint16_t type;
  union {
    bool flag;
    char* string;
    int integer;
    std::uint16_t uint16;
    std::uint32_t uint32;
    struct {
      void* first;
      void* second;
      char third;
    } largest;  ///< pmix_envar_t
  };
};

struct Info {
  char key[512];
  std::uint32_t flags;
  Value value;
};

inline constexpr std::uint8_t scope_global = 3;

using DoneCallback = void(Status status, void* context);
using ValueCallback = void(Status status, Value* value, void* context);

using InitFunction = Status(Process* self, Info* info, std::size_t count);
using FinalizeFunction = Status(const Info* info, std::size_t count);
using PutFunction = Status(std::uint8_t scope, const char* key, Value* value);
using CommitFunction = Status();
using FenceFunction = Status(const Process* who, std::size_t whos, const Info* info, std::size_t count,
                             DoneCallback* done, void* context);
using GetFunction = Status(const Process* of, const char* key, const Info* info, std::size_t count, ValueCallback* done,
                           void* context);
using VersionFunction = const char*();
using StatusTextFunction = const char*(Status status);

}  // namespace tutti::pmix
