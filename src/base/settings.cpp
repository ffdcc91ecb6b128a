// The table of settings. A new setting is one entry here.
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/config.h"
#include "base/limits.h"

namespace tutti {
namespace {

constexpr std::int64_t hour_ms = 3'600'000;
constexpr std::int64_t day_ms = 24 * hour_ms;

// clang-format off
constexpr Setting text(std::string_view name, Scope scope, std::string_view group, std::string_view help) {
  return {.name = name, .kind = SettingKind::text, .scope = scope, .default_value = "", .min = 0, .max = 0, .choices = "", .help = help, .help_group = group};
}
constexpr Setting secret(std::string_view name, std::string_view group, std::string_view help) {
  return {.name = name, .kind = SettingKind::secret, .scope = Scope::local, .default_value = "", .min = 0, .max = 0, .choices = "", .help = help, .help_group = group};
}
constexpr Setting choice(std::string_view name, Scope scope, std::string_view default_value, std::string_view choices, std::string_view group, std::string_view help) {
  return {.name = name, .kind = SettingKind::choice, .scope = scope, .default_value = default_value, .min = 0, .max = 0, .choices = choices, .help = help, .help_group = group};
}
constexpr Setting number(std::string_view name, SettingKind kind, Scope scope, std::string_view default_value, std::int64_t min, std::int64_t max, std::string_view group, std::string_view help) {
  return {.name = name, .kind = kind, .scope = scope, .default_value = default_value, .min = min, .max = max, .choices = "", .help = help, .help_group = group};
}

constexpr auto integer = SettingKind::integer;
constexpr auto bytes = SettingKind::bytes;
constexpr auto shared = Scope::shared;
constexpr auto local = Scope::local;
constexpr std::string_view log = "Log", start = "Start", engine = "Engine", gpus = "GPUs", limits_ = "Time limits";

constexpr std::array table = {
  choice("TUTTI_DEBUG", local, "WARN", "NONE|VERSION|WARN|INFO|TRACE", log, "What to log: each level has the ones before it."),
  text("TUTTI_DEBUG_SUBSYS", local, log, "Which subjects INFO and TRACE are about: INIT, TOPO, NET, COLL, TUNE, ENV, ALLOC, ALL, comma-separated; ^ before the list means all but these. Empty: INIT,ENV."),
  text("TUTTI_DEBUG_FILE", local, log, "File that log lines go to instead of stderr; %h becomes the host, %p the process id."),
  text("TUTTI_CONF_FILE", local, start, "File with NAME=VALUE lines, read instead of ~/.tutti.conf; can only be set in the environment."),
  text("TUTTI_COMM_ID", local, start, "Address and port of rank 0, host:port, for a start without passing an id."),
  secret("TUTTI_COMM_SECRET", start, "Who knows it may join a communicator that starts from TUTTI_COMM_ID; at least 16 characters."),
  text("TUTTI_COMM_SECRET_FILE", local, start, "File to read TUTTI_COMM_SECRET from."),
  number("TUTTI_RANK", integer, local, "-1", -1, limits::ranks_max - 1, start, "This process's rank, for a start from the environment; -1: not given."),
  number("TUTTI_NRANKS", integer, local, "0", 0, limits::ranks_max, start, "Number of ranks, for a start from the environment; 0: not given."),
  text("TUTTI_JOB_ID", local, start, "Any text that the ranks of one job have in common, and no other job; for a start from the environment on one host without TUTTI_COMM_ID."),
  text("TUTTI_SOCKET_IFNAME", local, start, "Network interfaces to use: prefixes eth,en; exact =eth0; all but ^docker,veth; both ^=lo."),
  choice("TUTTI_SOCKET_FAMILY", local, "ANY", "ANY|AF_INET|AF_INET6", start, "Address family of sockets."),
  number("TUTTI_SOCKET_NSOCKS", integer, shared, "1", 1, 16, start, "Connections between two ranks of different hosts, per channel; long messages are striped over them."),
  text("TUTTI_SOCKET_CC", local, start, "Congestion control of connections that carry data: the name of one, or system for the system's own. Empty: that too, but cubic or reno instead of bbr within a machine."),
  text("TUTTI_HOSTID", local, start, "What ranks that may share memory have in common; empty: they run on one kernel, in one network namespace."),
  text("TUTTI_ALGO", shared, engine, "Algorithm to use, or ^ to leave out, per collective: allreduce:two_shot;broadcast:^one_shot. Empty: the fastest."),
  text("TUTTI_PLAN_FILE", local, engine, "MSCCL XML or MSCCL++ JSON file: its plan serves the calls of its collective and number of ranks. The same file for all ranks."),
  choice("TUTTI_TRANSPORT", shared, "auto", "auto|slots|mapped|cma|socket", engine, "How bytes reach a peer on the same host: through slots, by mapping its buffers, by copying from them, or through sockets as if each process had a host of its own."),
  choice("TUTTI_TUNE", local, "on", "on|off", engine, "Measure once what the machine does how fast, to choose algorithms by; rank 0's setting counts. off: by built-in numbers."),
  number("TUTTI_AUTOTUNE", integer, shared, "0", 0, 1000, engine, "How often each of the three algorithms that are predicted to be the fastest is tried in the first calls of a collective, size and transport; then the one that was the fastest is used. 0: no trials, as where ranks run on several hosts."),
  text("TUTTI_CACHE_DIR", local, engine, "Folder that keeps what was measured; empty: $XDG_CACHE_HOME/tutti or ~/.cache/tutti."),
  text("TUTTI_TOPO_FILE", local, engine, "Recorded machine that tutti-topo takes for this one: XML of NCCL, RCCL or hwloc, or text of nvidia-smi topo -m."),
  text("TUTTI_TOPO_DUMP_FILE", local, engine, "File that tutti-topo writes the machine to when it has looked at it: XML of hwloc if the name ends in .hwloc.xml, else of NCCL."),
  number("TUTTI_NCHANNELS", integer, shared, "2", 1, limits::channels_max - 1, engine, "Independent channels of one communicator."),
  number("TUTTI_BUFFSIZE", bytes, shared, "64K", 4096, 4 << 20, engine, "Size of one slot between two ranks."),
  number("TUTTI_NT_THRESHOLD", bytes, local, "0", 0, std::int64_t{1} << 40, engine, "Calls from this size on store around the cache; 0: from the size of the cache."),
  number("TUTTI_SPIN_US", integer, local, "50", 0, 1'000'000, engine, "How long a waiting call spins before it gives its core away."),
  number("TUTTI_MAX_CTAS", integer, shared, "64", 1, 512, gpus, "Blocks of a kernel that a rank may use at most."),
  choice("TUTTI_GPU_KERNELS", shared, "auto", "auto|run_plan", gpus, "Kernels that serve calls on device memory: those made for one plan where they fit, or for all calls the one that walks any plan."),
  choice("TUTTI_GPU_STAGED", shared, "auto", "auto|always", gpus, "When calls on device memory go through pinned memory of the host: where kernels do not serve them, or always."),
  choice("TUTTI_GPU_P2P", shared, "auto", "auto|always|off", gpus, "When each rank of a host has kernels of its own, which reach the memory of the others' GPUs: for groups of 64 KiB or more where no two ranks of a process share a GPU, wherever memory can be reached (then each rank needs a stream of its own), or never."),
  text("TUTTI_CUDA_LIBRARY", local, gpus, "Driver of CUDA to load instead of libcuda.so.1."),
  text("TUTTI_CUDA_KERNELS", local, gpus, "File with tutti's kernels for GPUs (fatbin, cubin or PTX), loaded instead of those built in."),
  number("TUTTI_MEET_TIMEOUT_MS", integer, local, "10000", 0, day_ms, gpus, "Longest time that a call on device memory waits for ranks of the same GPU which its own thread drives; 0: for ever."),
  number("TUTTI_TIMEOUT_MS", integer, local, "0", 0, day_ms, limits_, "Longest time a call waits for a peer that is alive; 0: for ever. A peer that died is noticed without it."),
  number("TUTTI_INIT_TIMEOUT_MS", integer, local, "120000", 1, day_ms, limits_, "Longest time that a start may take, from the call to its end: meeting, joining, connecting. Also of each connection that a call opens later."),
  number("TUTTI_SILENCE_MS", integer, shared, "4000", 0, day_ms, limits_, "How long the process of a rank may be stopped (SIGSTOP), or nothing be heard of a rank of another host however busy it is, before it counts as lost. 0: for ever, which a debugger that is attached in mid-run needs."),
  number("TUTTI_STALL_REPORT_MS", integer, local, "10000", 1, hour_ms, limits_, "A call or start that waits this long says in the log for whom."),
};
// clang-format on

std::string allowed(const Setting& setting) {
  switch (setting.kind) {
    case SettingKind::text: return "text";
    case SettingKind::secret: return "text, never shown";
    case SettingKind::choice: {
      std::string listed;
      for (const char c : setting.choices) c == '|' ? listed += ", " : listed += c;
      return listed;
    }
    case SettingKind::integer: return fmt::format("{} … {}", setting.min, setting.max);
    case SettingKind::bytes: return fmt::format("{} … {} bytes; K, M, G", setting.min, setting.max);
  }
  return {};
}

}  // namespace

std::span<const Setting> settings() {
  return table;
}

std::string settings_page() {
  std::string page =
      "# Settings\n\n"
      "From the environment, else the file named by `TUTTI_CONF_FILE` or `~/.tutti.conf`, else `/etc/tutti.conf`. "
      "Files\n"
      "have `NAME=VALUE` lines and `#` lines of comment. Read once. `shared` settings must be the same on all ranks of "
      "a\n"
      "communicator, which is checked when it starts. Generated from `src/base/settings.cpp`.\n";
  std::string_view group;
  for (const Setting& setting : table) {
    if (setting.help_group != group) {
      group = setting.help_group;
      page += fmt::format(
          "\n## {}\n\n| Name | Allowed | Default | Scope | Meaning |\n| --- | --- | --- | --- | --- |\n", group);
    }
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name, allowed(setting), setting.default_value,
                        setting.scope == Scope::shared ? "shared" : "local", setting.help);
  }
  return page;
}

}  // namespace tutti
