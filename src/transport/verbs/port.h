// The RDMA ports of this machine, and which of them to use.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/verbs/cm_library.h"
#include "transport/verbs/device_faults.h"
#include "transport/verbs/library.h"
#include "transport/verbs/window_trial.h"

namespace tutti::verbs {

/// An open device; closed when its last user is gone.
class OpenDevice {
 public:
  OpenDevice(std::shared_ptr<const Library> of, Context* opened, std::string called)
      : library(std::move(of)), context(opened), name(std::move(called)) {}
  ~OpenDevice() { (void)library->ibv_close_device(context); }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  const std::shared_ptr<const Library> library;
  Context* const context;
  const std::string name;
  DeviceAttributes attributes{};  ///< written before anybody else has the device
  bool known = false;             ///< they could be queried
  DeviceFaults faults;
  WindowTrial windows;
};

/// An active port with the address at which peers reach it.
struct Port {
  std::shared_ptr<OpenDevice> device;
  std::uint8_t number = 1;
  LinkLayer link_layer = LinkLayer::unspecified;
  std::uint16_t lid = 0;
  int mtu = 0;            ///< active; ibv_mtu
  std::int64_t mbps = 0;  ///< from width and speed; 0: unknown
  Gid gid{};              ///< with iWARP: the IP address
  std::uint8_t gid_index = 0;
  int numa = -1;                        ///< its NUMA node; -1: unknown
  bool iwarp = false;                   ///< no immediates, and connections by rdma_cm alone
  std::shared_ptr<const CmLibrary> cm;  ///< set with iWARP

  /// "mlx5_0 port 1 (RoCE v2, 100000 Mbit/s, GID 3 ::ffff:10.0.0.1)"
  std::string text() const;
  /// Why it cannot be used now, as the device says it: "down". Nothing: it is active.
  std::optional<std::string> trouble() const;
};

/// What the user asks for.
struct PortFilter {
  std::string verbs_library;  ///< path of libibverbs, see CmLibrary::load
  std::string names;          ///< TUTTI_IB_HCA: "mlx5_0:1,mlx5_1", "=mlx5_0", "^mlx5_2", "^=mlx5_2:1"; empty: all
  int gid_index = -1;         ///< TUTTI_IB_GID_INDEX; -1: chosen by content
};

/// Whether a filter in the syntax of TUTTI_IB_HCA admits a port.
bool admits(const std::string& names, const std::string& device, int port);

struct PortList {
  std::vector<Port> ports;            ///< fastest first; those with iWARP last
  std::vector<std::string> left_out;  ///< "mlx5_1 port 1: down" for each other port, for the log
  bool unopened = false;              ///< a device could not be opened
  bool excluded = false;              ///< the filter leaves one out
  bool unmet = false;                 ///< one lacks what is asked for
};

/// Opens all devices, except those that are `open` and well, and lists their active ports. Errors: system (the list of
/// devices cannot be read).
Result<PortList> list_ports(const std::shared_ptr<const Library>& library, const PortFilter& filter,
                            const std::vector<std::shared_ptr<OpenDevice>>& open = {});

/// "fe80::1" or "::ffff:10.0.0.1"
std::string text(const Gid& gid);
/// "transport retry counter exceeded"
std::string text(const Library& library, Status status);

/// Rate in Mbit/s of a port's ibv_port_attr width and speed; 0: unknown.
std::int64_t rate_of(std::uint8_t width, std::uint8_t speed);

}  // namespace tutti::verbs
