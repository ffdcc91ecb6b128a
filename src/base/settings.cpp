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
constexpr std::string_view log = "Log", start = "Start", engine = "Engine", gpus = "GPUs", mpi = "MPI programs", limits_ = "Time limits";

constexpr std::array table = {
  choice("TUTTI_DEBUG", local, "WARN", "NONE|VERSION|WARN|INFO|TRACE", log, "Log level. Each level includes the levels before it."),
  text("TUTTI_DEBUG_SUBSYS", local, log, "Subjects of INFO and TRACE lines, comma-separated: INIT, TOPO, NET, COLL, TUNE, ENV, ALLOC, ALL. A ^ before the list means all but these. Empty: INIT,ENV."),
  text("TUTTI_DEBUG_FILE", local, log, "File for log lines instead of stderr; %h stands for the host, %p for the process id. Lines that nobody takes from a pipe or terminal are dropped and counted."),
  text("TUTTI_CONF_FILE", local, start, "File with NAME=VALUE lines, read instead of ~/.tutti.conf. Can only be set in the environment."),
  text("TUTTI_COMM_ID", local, start, "Address of rank 0 as host:port, for a start without passing an id. It needs TUTTI_COMM_SECRET; without that it only tells the jobs of one host apart."),
  secret("TUTTI_COMM_SECRET", start, "Secret of a start on several hosts, at least 16 characters; the address is that of TUTTI_COMM_ID, MASTER_ADDR or Slurm's first node. Any process that knows it may join."),
  text("TUTTI_COMM_SECRET_FILE", local, start, "File that contains TUTTI_COMM_SECRET."),
  number("TUTTI_RANK", integer, local, "-1", -1, limits::ranks_max - 1, start, "Rank of this process, for a start from the environment; -1: not given."),
  number("TUTTI_NRANKS", integer, local, "0", 0, limits::ranks_max, start, "Number of ranks, for a start from the environment; 0: not given."),
  text("TUTTI_JOB_ID", local, start, "Any text that is equal on all ranks of a job and different in other jobs, for a start from the environment on one host without TUTTI_COMM_ID."),
  text("TUTTI_SOCKET_IFNAME", local, start, "Network interfaces to use: by prefix (eth,en), by exact name (=eth0), all but some prefixes (^docker,veth), all but exact names (^=lo)."),
  choice("TUTTI_SOCKET_FAMILY", local, "ANY", "ANY|AF_INET|AF_INET6", start, "Address family of sockets."),
  number("TUTTI_SOCKET_NSOCKS", integer, shared, "1", 1, 16, start, "Connections between two ranks of different hosts, per channel. Long messages are striped over them."),
  text("TUTTI_SOCKET_CC", local, start, "Congestion control of data connections: an algorithm's name, or system for the system's default. Empty: the system's default, but cubic or reno instead of bbr within a machine."),
  choice("TUTTI_IB_DISABLE", local, "0", "0|1", start, "1: no RDMA; ranks of different hosts use sockets."),
  text("TUTTI_IB_HCA", local, start, "RDMA devices to use, in NCCL's syntax: by prefix and port (mlx5_0:1,mlx5_1), by exact name (=mlx5_0), all but some (^mlx5_2, ^=mlx5_2:1). Empty: all with an active port."),
  number("TUTTI_IB_GID_INDEX", integer, local, "-1", -1, 255, start, "Index of the port's GID to use; -1: chosen by its content: RoCE v2 before v1, an address of IPv4 before others."),
  number("TUTTI_IB_TC", integer, local, "0", 0, 255, start, "Traffic class of RDMA packets."),
  number("TUTTI_IB_TIMEOUT", integer, local, "16", 1, 31, start, "Time after which an RDMA packet without an answer is sent again: 4.096 µs × 2^value."),
  number("TUTTI_IB_RETRY_CNT", integer, local, "6", 0, 7, start, "How often an RDMA packet is sent again before its connection fails; 7 is for ever on some devices."),
  number("TUTTI_IB_QPS_PER_CONNECTION", integer, shared, "1", 1, 8, start, "Queue pairs between two ranks of different hosts, per channel. Long messages are spread over them."),
  choice("TUTTI_IB_MEMORY_WINDOWS", local, "1", "0|1", start, "1: results go straight into registered memory (of tuttiMemAlloc or tuttiCommRegister) if the RDMA device has memory windows. 0: they are copied from slots."),
  text("TUTTI_IB_LIBRARY", local, start, "Verbs library to load instead of libibverbs.so.1."),
  text("TUTTI_HOSTID", local, start, "Any text; ranks with equal text may share memory. Empty: ranks on one kernel and in one network namespace may."),
  choice("TUTTI_REGISTER", local, "ordinary", "ordinary|mapped", engine, "mapped: tuttiCommRegister makes ordinary memory as fast as that of tuttiMemAlloc, until it is deregistered: it moves the pages around the buffer into memory that peers can map, at the same address. No thread may write to these pages during both calls, and a child of fork shares them. ordinary: memory stays as it is."),
  text("TUTTI_ALGO", shared, engine, "Algorithm to use, or with ^ to exclude, per collective: allreduce:two_shot;broadcast:^one_shot. Empty: the fastest."),
  text("TUTTI_PLAN_FILE", local, engine, "MSCCL XML or MSCCL++ JSON file whose plan serves the calls of its collective and number of ranks. Must be the same file on all ranks."),
  choice("TUTTI_TRANSPORT", shared, "auto", "auto|slots|mapped|cma|socket|rdma", engine, "Transport between ranks of one host: slots, mapped buffers, copies from peers' buffers (CMA), or sockets or RDMA as if each process ran on its own host. Between hosts: rdma fails where there is no RDMA device, socket uses none."),
  choice("TUTTI_TUNE", local, "on", "on|off", engine, "on: measure once how fast the machine is, and choose algorithms by these numbers; where calls contradict them, the next start measures again. off: choose by built-in numbers. Rank 0's setting counts."),
  text("TUTTI_MACHINE_FILE", local, engine, "File with numbers of a machine as tutti-topo --measure prints them, used instead of measuring; numbers that it does not name are the built-in ones. Rank 0's setting counts."),
  text("TUTTI_CACHE_DIR", local, engine, "Folder for measured numbers, and for the choices made from them. Empty: $XDG_CACHE_HOME/tutti or ~/.cache/tutti."),
  choice("TUTTI_AFFINITY", local, "near", "near|off", engine, "near: if a rank is bound to CPUs, the library's threads run near them but not on a core that a rank is bound to, and memory from tuttiMemAlloc lies on its NUMA node. off: threads run where the thread that starts them may run, and memory lies where it is touched first."),
  text("TUTTI_TOPO_FILE", local, engine, "Recorded machine to use instead of this one: XML of NCCL, RCCL or hwloc, or text of nvidia-smi topo -m. The ranks of a host then take its GPUs in turn, or its NUMA nodes if it has none."),
  text("TUTTI_TOPO_DUMP_FILE", local, engine, "File to which the detected machine is written: XML of hwloc if the name ends in .hwloc.xml, otherwise XML of NCCL."),
  text("TUTTI_TOPO_GROUPS", local, engine, "Groups of hosts in which this process's host is, outermost first: pod2/rack7, or rack7 alone. They become levels above hosts. Ranks of a host do as its first one. Empty: the switches that SLURM_TOPOLOGY_ADDR names."),
  text("TUTTI_GRAPH_FILE", local, engine, "Rings of a host's ranks: the channels of the first ring of a file in the format of NCCL_GRAPH_FILE, in which dev n is the n-th rank of its host. Single rings and trees follow the first channel. Rank 0's setting counts."),
  text("TUTTI_GRAPH_DUMP_FILE", local, engine, "File to which rank 0 writes the rings, else the order, of its host's ranks, in the same format."),
  text("TUTTI_JOB_DUMP_FILE", local, engine, "File to which rank 0 of a communicator writes at its start where all ranks are: hosts, locations, levels and order, as JSON that tutti-topo --job-file draws."),
  number("TUTTI_NCHANNELS", integer, shared, "2", 1, limits::channels_max - 1, engine, "Independent channels of one communicator."),
  number("TUTTI_BUFFSIZE", bytes, shared, "128K", 4096, 4 << 20, engine,
         "Size of one slot between two ranks. A pair of ranks has four for each channel and direction."),
  choice("TUTTI_LOOP", local, "auto", "auto|plain|plain_pages|nontemporal|nontemporal_pages", engine, "How calls on more than 512 KiB of a rank's memory store their results: through the caches or past them (nontemporal), page after page or several pages in turn. auto: as was measured to be the fastest."),
  number("TUTTI_ZCOPY_THRESHOLD", bytes, shared, "8K", 64, std::int64_t{1} << 40, engine, "In messages, blocks of this size or more are not copied into a slot where they can be sent, received or read in the buffers of a call."),
  number("TUTTI_NT_THRESHOLD", bytes, local, "0", 0, std::int64_t{1} << 40, engine, "Calls of this size or more use nontemporal stores, smaller ones do not, whatever was measured. 0: as TUTTI_LOOP says."),
  number("TUTTI_SPIN_US", integer, local, "50", 0, 1'000'000, engine, "How long a waiting call spins before it yields its core, in microseconds."),
  number("TUTTI_MAX_CTAS", integer, shared, "64", 1, 512, gpus, "Most blocks of a kernel that a rank may use."),
  choice("TUTTI_GPU_KERNELS", shared, "auto", "auto|run_plan", gpus, "Kernels for calls on device memory. auto: kernels made for one plan where they fit. run_plan: for all calls the kernel that runs any plan."),
  choice("TUTTI_GPU_STAGED", shared, "auto", "auto|always", gpus, "When calls on device memory go through pinned host memory. auto: if no kernel serves them. always: every time."),
  choice("TUTTI_GPU_P2P", shared, "auto", "auto|flags|apart|host|always|off", gpus, "How ranks of a host in several processes or on several GPUs reach each other's memory. auto: by kernels that wait for each other (flags), if no two processes share a GPU without MPS; otherwise groups of 64 KiB or more by kernels that the host starts one by one, if no two ranks of a process share a GPU. flags: as auto, even if processes share a GPU, which is slow. apart: as flags, with a kernel for each rank, even if ranks of a process share a GPU: for measurements with one GPU; each rank then needs its own stream. host: never by flags. always: all sizes by kernels that the host starts, wherever the memory can be reached; each rank then needs its own stream. off: not at all."),
  choice("TUTTI_LAUNCH_ORDER_IMPLICIT", shared, "0", "0|1", gpus, "1: kernels of several communicators that wait for each other run on a GPU one after another, in the order of a process's calls, which must be the same on all ranks; making a communicator is a call. Each communicator then has all its blocks, however many there are. Not for captured calls."),
  number("TUTTI_GPU_SCRATCH", bytes, shared, "256M", 1 << 20, std::int64_t{1} << 40, gpus, "Scratch memory of a rank and communicator for reductions with a count per rank, about. Larger calls are carried out in up to eight slices of all blocks, one after another; but pre-multiplied sums, which need a copy of their input besides, are not."),
  choice("TUTTI_CUMEM_ENABLE", local, "1", "0|1", gpus, "The memory of a GPU by which kernels of several processes meet. 1: made by cuMemCreate and mapped by a descriptor where the driver can, so that it lives as long as any process has it mapped. 0: made by cuMemAlloc and mapped by CUDA IPC."),
  text("TUTTI_CUDA_LIBRARY", local, gpus, "CUDA driver library to load instead of libcuda.so.1."),
  text("TUTTI_CUDA_KERNELS", local, gpus, "File with tutti's GPU kernels (fatbin, cubin or PTX), loaded instead of the built-in kernels."),
  number("TUTTI_MEET_TIMEOUT_MS", integer, local, "10000", 0, day_ms, gpus, "Longest time that a call on device memory waits for ranks of the same GPU that its own thread drives; 0: no limit."),
  choice("TUTTI_MPI", local, "on", "on|off", mpi, "off: the MPI underneath serves all collective calls, though libtutti_mpi is loaded. One rank's off is off for all."),
  choice("TUTTI_MPI_START", local, "lazy", "lazy|early", mpi, "When tutti starts on an MPI communicator. lazy: in its first blocking collective call; MPI serves non-blocking ones before that. early: in MPI_Init, and when a communicator is made. One rank's early is early for all."),
  choice("TUTTI_MPI_STATS", local, "0", "0|1", mpi, "1: MPI_Finalize prints how many calls of each collective function tutti served, and how many MPI, and why."),
  number("TUTTI_TIMEOUT_MS", integer, local, "0", 0, day_ms, limits_, "Longest time that a call waits for a peer that is alive; 0: no limit. The death of a peer is noticed without this limit."),
  number("TUTTI_INIT_TIMEOUT_MS", integer, local, "120000", 1, day_ms, limits_, "Longest time that a start may take, from the call to its end: meeting, joining, connecting. A rank that rank 0 never answers says so a second later. Also the limit for each connection that a call opens later."),
  number("TUTTI_SILENCE_MS", integer, shared, "4000", 0, day_ms, limits_, "How long a rank's process may be stopped (SIGSTOP), or the network to another host cut, before the rank counts as lost, which is said within a second more. A rank that only waits for a core is not lost. Inside a host, a stopped rank is told to those that wait for it. 0: no limit; needed to attach a debugger in mid-run."),
  number("TUTTI_STALL_REPORT_MS", integer, local, "10000", 1, hour_ms, limits_, "A call or start that has waited this long logs which ranks it waits for."),
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
      "tutti reads each setting once: from the environment, else from the file named by `TUTTI_CONF_FILE` or\n"
      "`~/.tutti.conf`, else from `/etc/tutti.conf`. Files have `NAME=VALUE` lines and `#` lines of comment. `shared`\n"
      "settings must be the same on all ranks of a communicator, which is checked when the communicator starts.\n"
      "Generated from `src/base/settings.cpp`.\n";
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
