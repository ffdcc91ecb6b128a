// Names in MSCCL++ plans: operations, and features that schedules here cannot express.
#pragma once

#include <string_view>
#include <utility>

namespace tutti::formats::mscclpp {

struct Kind {
  std::string_view name;
  bool moves = false;    // copies, or
  bool reduces = false;  // combines its sources, and copies the result to further destinations
  bool signals = false;
  bool waits = false;
  bool relaxed = false;
};
inline constexpr Kind kinds[] = {
    {.name = "nop"},
    {.name = "flush"},
    {.name = "barrier"},
    {.name = "put", .moves = true},
    {.name = "get", .moves = true},
    {.name = "copy", .moves = true},
    {.name = "pws", .moves = true, .signals = true},
    {.name = "pwsf", .moves = true, .signals = true},
    {.name = "re", .reduces = true},
    {.name = "res", .reduces = true},
    {.name = "rre", .reduces = true},
    {.name = "rres", .reduces = true},
    {.name = "signal", .signals = true},
    {.name = "rlxsignal", .signals = true, .relaxed = true},
    {.name = "wait", .waits = true},
    {.name = "rlxwait", .waits = true, .relaxed = true},
};
inline constexpr std::pair<std::string_view, std::string_view> not_understood[] = {
    {"ppkt", "packets"},
    {"rppkt", "packets"},
    {"respkt", "packets"},
    {"cpkt", "packets"},
    {"upkt", "packets"},
    {"repkt", "packets"},
    {"recpkt", "packets"},
    {"recspkt", "packets"},
    {"glres", "switch channels"},
    {"gstore", "switch channels"},
    {"gstorepkt", "switch channels"},
    {"pipeline", "pipelines"},
    {"sem_acquire", "semaphores"},
    {"sem_release", "semaphores"},
};

}  // namespace tutti::formats::mscclpp
